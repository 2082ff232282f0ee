"""The real learning curves of examples/workloads: every configuration trained to its end, once, and cached.

    python -m benchmarks.workload_curves             a table of final values and seconds per step
    python -m benchmarks.workload_curves --quick     one configuration of each workload

Other benchmarks call `curves(workload)`, which trains what the cache does not have. A cache is void when the workload's
file or the data change. Seconds are CPU time: wall time depends on other processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from benchmarks.datasets import data_folder
from benchmarks.rows import Row, parser, publish
from shoestring.kernel.types import Config, JobId, Metrics
from shoestring.space.space import from_plain
from shoestring.trial import Trial
from shoestring.worker.loading import load_function

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded, as the workloads do it

WORKLOADS = ("logistic", "svm", "trees", "linear", "mlp", "cnn")
"""In the order of SpotTune's Table II."""
CONFIGURATIONS = 16
QUICK = (15,)
FOLDER = Path(__file__).parents[1] / "examples" / "workloads"
DATA = ("fashion_mnist_20k_5k.npz", "mnist_10k.npz")


class Recorded(msgspec.Struct, frozen=True):
    """One configuration, trained to its end."""

    values: list[float]
    step_s: list[float]
    """CPU seconds of each step."""


@dataclass(frozen=True, eq=False)
class Curves:
    workload: str
    metric: str
    """Less of it is better, in all of them."""
    configs: list[Config]
    values: Numbers
    """`values[k, i]` is what configuration i reported at step k + 1; all finite in the workloads there are."""
    step_s: Numbers
    """CPU seconds, in the same places."""
    stages: list[tuple[int, ...]]
    """Of each configuration: the steps after which its learning rate falls; none where it has no such schedule."""


def curves(workload: str, which: Sequence[int] = range(CONFIGURATIONS), folder: Path | None = None) -> Curves:
    """The curves of these configurations. Those that are not in the folder yet are trained now: seconds each."""
    import numpy as np

    source = _Source(workload)
    path = (folder or default_folder()) / f"{workload}-{source.digest}.json"
    known = msgspec.json.decode(path.read_bytes(), type=dict[int, Recorded]) if path.exists() else {}
    for number in which:
        if number not in known:
            known[number] = source.train(number)
            _replace(path, msgspec.json.encode(known))
    found = [known[number] for number in which]
    return Curves(
        workload=workload,
        metric=source.metric,
        configs=[source.configs[number] for number in which],
        values=np.array([curve.values for curve in found]).T,
        step_s=np.array([curve.step_s for curve in found]).T,
        stages=[source.stages(source.configs[number]) for number in which],
    )


def default_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shoestring" / "workload_curves"


class _Source:
    """A workload's file, and what is in it."""

    def __init__(self, workload: str) -> None:
        self._train = load_function(f"{workload}.py:train", FOLDER)
        self._module = self._train.__globals__
        self.metric: str = self._module["METRIC"]
        self.configs = list(from_plain(self._module["SPACE"]).grid(CONFIGURATIONS))
        text = b"".join((FOLDER / name).read_bytes() for name in (f"{workload}.py", "pictures.py"))
        found = [name for name in DATA if (data_folder() / name).exists()]
        self.digest = blake2b(text + repr(found).encode(), digest_size=6).hexdigest()

    def train(self, number: int) -> Recorded:
        host, steps = _Stopwatch(self.metric), self._module["MAX_STEPS"]
        self._train(Trial(job=JobId(f"j{number}"), config=self.configs[number], until_step=steps, host=host))
        return Recorded(host.values, host.step_s)

    def stages(self, config: Config) -> tuple[int, ...]:
        declared = self._module.get("STAGES", {})
        return tuple(declared.get(config.get("decay_at"), ()))


class _Stopwatch:
    """The host of a trial that is never interrupted and never saves: it measures each step."""

    def __init__(self, metric: str) -> None:
        self._metric, self._began = metric, 0.0
        self.values: list[float] = []
        self.step_s: list[float] = []

    def leaving(self) -> bool:
        self._began = time.process_time()
        return False

    def save_due(self, step: int) -> bool:  # noqa: ARG002
        return False

    def reported(self, step: int, metrics: Metrics) -> None:  # noqa: ARG002
        self.step_s.append(time.process_time() - self._began)
        self.values.append(metrics[self._metric])

    def folder(self) -> Path:
        raise AssertionError("asked where to save, though no save is ever due")

    def saved(self, step: int, folder: Path, began: float) -> None:  # noqa: ARG002
        raise AssertionError(f"saved at step {step}, though no save is ever due")


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(f".{os.getpid()}")
    new.write_bytes(content)
    new.replace(path)


def main() -> None:
    asked = parser(__doc__ or "")
    asked.add_argument("--folder", type=Path, default=default_folder(), help="where the curves are kept")
    args = asked.parse_args()
    rows = []
    for workload in WORKLOADS:
        found = curves(workload, QUICK if args.quick else range(CONFIGURATIONS), args.folder)
        last = sorted(found.values[-1])
        spread = f"{found.metric}, worst {last[-1]:.4g}; {len(last)} configurations, {len(found.values)} steps"
        rows.append(Row(f"{workload}_best", last[0], "final", spread))
        variation = median(found.step_s.std(axis=0) / found.step_s.mean(axis=0))
        seconds = found.step_s.mean(axis=0)
        against = f"median, {min(seconds):.3f} to {max(seconds):.3f}; coefficient of variation {variation:.3f}"
        rows.append(Row(f"{workload}_step", median(seconds), "s", against))
    publish(rows, args.json)


if __name__ == "__main__":
    main()
