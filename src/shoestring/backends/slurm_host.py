"""The former name of `shoestring.backends.slurm.host`: a job in a Slurm queue may still start it by this one (`python -m`)."""

from shoestring.backends.slurm.host import main

if __name__ == "__main__":
    main()
