"""The former name of `shoestring.backends.ray.driver`, by which a controller that is running may still start it."""

from shoestring.backends.ray.driver import main

if __name__ == "__main__":
    main()
