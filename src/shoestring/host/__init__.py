"""The program on a leased machine that runs the workers ordered of it: it knows no cloud and no cluster."""
