"""The former name of `shoestring.backends.ray.keeper`, by which a controller that is running may still start it."""

from shoestring.backends.ray.keeper import main

if __name__ == "__main__":
    main()
