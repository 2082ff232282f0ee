"""A former name of `shoestring.host`, by which a job in a Slurm queue may still start it."""

import os
import sys

from shoestring.host.__main__ import main as host


def main() -> None:
    sys.argv[2:] = [os.environ.get("SLURM_JOB_ID", ""), os.environ.get("SLURMD_NODENAME", "")]
    host()


if __name__ == "__main__":
    main()
