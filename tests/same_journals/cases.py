"""Simulated runs whose journals are kept: every recipe, placement and way of saving, in the words of a user.

They are said in words alone, so that the whole way from words to decisions is compared, and no name of a module counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import shoestring as ss

Words = Mapping[str, object]

SPACE = {"x": ss.uniform(0.0, 1.0), "lr": ss.log(1e-4, 1.0), "width": ss.choice(32, 64, 128)}
STUDY: Words = {
    "space": SPACE,
    "minimize": "loss",
    "trials": 12,
    "max_steps": 9,
    "budget": 5,
    "deadline": "6h",
    "seed": 3,
    "name": "kept",
    "market": {"kind": "modern", "interruptions_per_hour": 0.5, "denial_share": 0.1},
    "max_machines": 3,
}
BAG: Words = {
    "kind": "bag",
    "given": [{"k": number} for number in range(20)],
    "max_steps": 12,
    "budget": 5,
    "deadline": "1d",
    "seed": 5,
    "name": "kept",
    "market": {"kind": "preemptible"},
    "max_machines": 3,
}
JOINT: Words = {
    **STUDY,
    "space": {**SPACE, "machine": ss.machine_type("m5.large", "c5.large"), "count": ss.machine_count(1, 2)},
    "constraints": ["cost <= 0.05"],
}
PARTS: Words = {**STUDY, "fractions": [0.1, 0.5, 1.0], "constraints": ["time <= 2h"], "trials": 8}
ELASTIC: Words = {
    **STUDY,
    "trials": 24,
    "max_steps": 60,
    "max_machines": 8,
    "deadline": "3h",
    "options": {"t_min_s": 900},
}

_STUDIES = ("asha", "hyperband", "successive_halving", "asha_tpe", "bohb", "tpe", "theta", "theta_adaptive", "random")
_ELASTIC = ("seer", "seer_as_printed", "hypersched", "elastic_hyperband", "elastic_successive_halving", "elastic_grid")
_PLACEMENTS = ("slack", "cheapest", "cheapest_step", "refund_seeking", "on_demand", "greedy", "uniform_progress")
_SAVING = ("periodic", "on_notice", "programme", "young_daly", "young_daly_1h", "none")

CASES: dict[str, Words] = {
    **{recipe: {**STUDY, "recipe": recipe} for recipe in _STUDIES},
    **{recipe: {**ELASTIC, "recipe": recipe} for recipe in _ELASTIC},
    "grid": {**STUDY, "recipe": "grid", "options": {"points": 2}},
    "flex": {**STUDY, "recipe": "flex", "trials": 24, "max_machines": 4},
    "rubberband": {**STUDY, "recipe": "rubberband"},
    "spottune": {**STUDY, "recipe": "spottune", "market": "auction"},
    "spottune_as_printed": {**STUDY, "recipe": "spottune_as_printed", "market": "auction"},
    "trimtuner": {**PARTS, "recipe": "trimtuner"},
    "trimtuner_gp_as_printed": {**PARTS, "recipe": "trimtuner_gp_as_printed", "trials": 5},
    "trimtuner_dt_as_printed": {**PARTS, "recipe": "trimtuner_dt_as_printed", "trials": 5},
    "given": {**BAG, "recipe": "given"},
    "scispot": {**BAG, "recipe": "scispot"},
    **{f"placement-{name}": {**STUDY, "recipe": "asha", "options": {"placement": name}} for name in _PLACEMENTS},
    "placement-as_printed": {**STUDY, "recipe": "asha", "market": "auction", "options": {"placement": "as_printed"}},
    **{f"saving-{name}": {**BAG, "recipe": "given", "options": {"checkpointing": name}} for name in _SAVING},
    "machines-in-the-space": {**JOINT, "recipe": "tpe"},
    "machines-in-the-space-trimtuner": {**JOINT, "recipe": "trimtuner", "trials": 8},
    "limits": {**STUDY, "recipe": "asha", "constraints": ["time <= 10m"]},
    "out-of-money": {**STUDY, "recipe": "random", "budget": 0.02},
    "out-of-time": {**STUDY, "recipe": "random", "deadline": "20m"},
    "slots": {**STUDY, "recipe": "hyperband", "slots": 2, "market": {"kind": "modern", "slots": 4}},
}

EXACT = frozenset({*_ELASTIC, "rubberband", "machines-in-the-space", "placement-cheapest", "placement-on_demand"})
"""Decided by plain arithmetic. The others rest on NumPy and SciPy, whose last digits differ between releases and
between processors: they are compared where both are those of the recording."""
