"""The former name of `shoestring.world.live.background`: a controller that is running may still start it by this one (`python -m`)."""

from shoestring.world.live.background import main

if __name__ == "__main__":
    main()
