"""The study of a storm, as a process: `python study.py SETTINGS`."""

import json
import sys
from pathlib import Path

import shoestring as ss

HERE = Path(__file__).parent
SETTINGS = Path(sys.argv[1])
settings = json.loads(SETTINGS.read_text())
sys.path.insert(0, str(HERE))
import work  # noqa: E402


def train(trial):
    work.train(trial, settings)


COMMAND = [sys.executable, "-I", "-S", str(HERE / "work.py"), str(SETTINGS), "{x}"]
grid = settings["recipe"] == "grid"
try:
    ss.tune(
        train if settings["code"] == "function" else COMMAND,
        space={"x": ss.uniform(0, 1) if not grid else ss.choice([n / 6 for n in range(6)])},
        minimize="loss",
        max_steps=settings["steps"],
        max_machines=3,
        max_failures=1_000_000,
        recipe=settings["recipe"],
        budget=f"${settings['budget_usd']}",
        deadline="900d",
        seed=settings["seed"],
        name="storm",
        store=settings["store"],
        options={"checkpointing": "periodic", "every_s": settings["save_every_s"]},
        **({} if grid else {"trials": 6}),
        **({} if settings["market"] is None else {"market": settings["market"]}),
    )
except KeyboardInterrupt:
    sys.exit(130)
