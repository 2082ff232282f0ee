"""A bag on preemptible machines, with a file of their lifetimes."""

import time

import shoestring as ss


def work(job):
    for step in job.steps():
        time.sleep(0.1)
        job.report(energy=-step * job["k"])


ss.run_bag(
    work,
    over={"k": [1, 2, 3, 4, 5, 6]},
    minimize="energy",
    max_steps=6,
    recipe="scispot",
    budget="$5",
    deadline="3d",
    max_machines=2,
    seed=7,
    market={"kind": "preemptible", "speedup": 300, "seed": 3},
    options={"lifetimes": "lifetimes.json"},
)
