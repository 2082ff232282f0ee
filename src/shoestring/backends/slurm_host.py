"""A former name of `shoestring.host`, by which a job in a Slurm queue may still start it."""

from shoestring.backends.slurm.host import main

if __name__ == "__main__":
    main()
