"""Where trials run: processes of this machine, this process, Ray nodes, Slurm nodes."""
