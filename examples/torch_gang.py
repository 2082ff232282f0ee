"""Train one model with torch.distributed, with the same batch however many workers the trial has.

    shoestring run examples/torch_gang.py                   # on this computer
    shoestring run examples/torch_gang.py --on slurm        # on the nodes of a cluster

Every optimizer step sees `BATCH` samples. They are divided into parts of `PART`, which the workers share: with fewer
workers, each of them accumulates the gradients of more parts. So a trial that gets more workers on the way, and resumes
from its checkpoint, trains as if nothing had changed.
"""

from __future__ import annotations

from typing import Any

import shoestring as ss

BATCH, PART = 96, 8
"""96 is divisible by 1, 2, 3, 4 and 6 parts a worker."""


def train(trial: ss.Trial) -> None:
    import torch
    from torch import distributed, nn

    torch.set_num_threads(1)  # one core per worker
    distributed.init_process_group("gloo")  # finds the others by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
    torch.manual_seed(0)  # the same weights in all workers
    samples, labels = _spirals()
    model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=float(trial["lr"]))
    if trial.checkpoint:
        saved = torch.load(trial.checkpoint / "state.pt")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    for step in trial.steps():
        order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(step))  # the same in all workers
        for batch in order.split(BATCH):
            optimizer.zero_grad()
            for part in batch.split(PART)[trial.rank :: trial.world_size]:
                loss = nn.functional.cross_entropy(model(samples[part]), labels[part], reduction="sum")
                (loss / len(batch)).backward()  # adds to the gradients of the parts before it
            for weights in model.parameters():
                gradient = torch.zeros_like(weights) if weights.grad is None else weights.grad
                distributed.all_reduce(gradient)  # the sum over all workers is the gradient of the whole batch
                weights.grad = gradient
            optimizer.step()
        with torch.no_grad():
            loss = nn.functional.cross_entropy(model(samples), labels)
        trial.report(loss=float(loss), workers=trial.world_size)
        with trial.save() as folder:
            if folder:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "state.pt")
    distributed.destroy_process_group()


def _spirals() -> tuple[Any, Any]:
    """Three arms of a spiral, 960 points."""
    import torch

    noise = torch.randn(960, 2, generator=torch.Generator().manual_seed(1)) * 0.03
    arm, along = torch.arange(960) % 3, torch.linspace(0.1, 1.0, 960)
    angle = 4 * along + arm * (2 * torch.pi / 3)
    return torch.stack([angle.cos(), angle.sin()], 1) * along[:, None] + noise, arm


if __name__ == "__main__":
    study = ss.tune(
        train,
        name="torch-gang",
        space={"lr": ss.log(1e-4, 1e-1)},
        minimize="loss",
        trials=8,
        max_steps=5000,
        recipe="elastic_successive_halving",
        max_machines=2,
        deadline="2m",
    )
    print(study.best)
