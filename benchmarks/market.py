"""How fast offers are compared: expected dollars a useful step, for many markets, trials and moments at once."""

from __future__ import annotations

import statistics
import time

from benchmarks.rows import Row, parser, publish

MARKETS, REPEATS, ALONE = 60, 5, 1000


def main() -> None:
    args = parser(__doc__ or "").parse_args()
    import numpy as np

    from shoestring.models.step_price import usd_per_useful_step

    moments, trials = (200, 20) if args.quick else (1000, 50)
    rng = np.random.default_rng(0)
    step_s = rng.uniform(1.0, 300.0, size=(MARKETS, 1, trials))
    chance = rng.random((MARKETS, moments, 1)) ** 4
    usd_per_hour = rng.uniform(0.02, 3.0, size=(MARKETS, moments, 1))
    steps_left = rng.integers(1, 500, size=trials)
    seconds = []
    for _ in range(REPEATS):
        began = time.process_time()
        for moment in range(0, moments, 10):  # as a placement asks: a few moments at a time, so that it stays in cache
            some = slice(moment, moment + 10)
            price = usd_per_useful_step(
                step_s, steps_left, chance[:, some], usd_per_hour[:, some], refund_within_s=3600.0
            )
            price.argmin(axis=0)
        seconds.append(time.process_time() - began)
    evaluations = MARKETS * moments * trials
    began = time.process_time()
    for k in range(ALONE):
        usd_per_useful_step(10.0, 100, chance[k % MARKETS, 0, 0], 0.5, refund_within_s=3600.0)
    one_by_one = ALONE / (time.process_time() - began)
    rate = evaluations / statistics.median(seconds)
    publish(
        [
            Row("market_evaluations_per_s", rate, "1/s", f"{evaluations} of them, one core, CPU time; goal 1e6"),
            Row("vectorised_vs_one_by_one", rate / one_by_one, "ratio", f"{one_by_one:.0f} a second asked one by one"),
        ],
        args.json,
    )


if __name__ == "__main__":
    main()
