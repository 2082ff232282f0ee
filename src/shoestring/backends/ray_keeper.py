"""The former name of `shoestring.backends.ray.keeper`: a controller that is running may still start it by this one (`python -m`)."""

from shoestring.backends.ray.keeper import main

if __name__ == "__main__":
    main()
