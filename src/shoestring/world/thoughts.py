"""The former name of `shoestring.world.live.background`, by which a controller that is running may still start it."""

from shoestring.world.live.background import main

if __name__ == "__main__":
    main()
