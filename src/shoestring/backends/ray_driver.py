"""The former name of `shoestring.backends.ray.driver`: a controller that is running may still start it by this one (`python -m`)."""

from shoestring.backends.ray.driver import main

if __name__ == "__main__":
    main()
