"""A hundred jobs whose results are right only if every step was done once, in order: run with `--on slurm`."""

import os
import time

import shoestring as ss

STEPS = 10


def expected_value(seed, steps=STEPS):
    value = seed
    for step in range(1, steps + 1):
        value = (31 * value + step) % 1_000_003
    return value


def work(job):
    value = int((job.checkpoint / "value").read_text()) if job.checkpoint else job["seed"]
    for step in job.steps():
        time.sleep(job["step_s"])
        value = (31 * value + step) % 1_000_003
        job.report(step=step, value=value)
        with job.save() as folder:
            if folder:
                (folder / "value").write_text(str(value))


if __name__ == "__main__":
    ss.run_bag(
        work,
        name="bag",
        over={"seed": range(int(os.environ["JOBS"])), "step_s": [float(os.environ["STEP_S"])]},
        minimize="value",
        max_steps=STEPS,
    )
