"""A job bag: one job for every combination of values, on machines that can be preempted.

shoestring run examples/bag.py
shoestring export bag -o energies.csv
"""

import math
import random

import shoestring as ss

SITES = 400


def magnet(job: ss.Trial) -> None:
    """Metropolis sampling of a ring of small magnets; each step is one sweep."""
    rng = random.Random(job["seed"])
    spins = [1] * SITES
    if job.checkpoint:
        spins = [int(spin) for spin in (job.checkpoint / "spins.txt").read_text().split()]
    for step in job.steps():
        for _ in range(SITES):
            site = rng.randrange(SITES)
            cost = 2 * spins[site] * (spins[site - 1] + spins[(site + 1) % SITES])
            if cost <= 0 or rng.random() < math.exp(-cost / job["temperature"]):
                spins[site] = -spins[site]
        job.report(step=step, energy=-sum(spins[i] * spins[i - 1] for i in range(SITES)) / SITES)
        with job.save() as folder:
            if folder:
                (folder / "spins.txt").write_text(" ".join(map(str, spins)))


bag = ss.run_bag(
    magnet,
    name="bag",
    over={"temperature": [0.5, 1.0, 2.0, 4.0], "seed": range(3)},
    minimize="energy",
    max_steps=30,
)
