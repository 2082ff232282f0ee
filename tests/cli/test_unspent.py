"""What a search leaves of its budget is said where people look: at its end, in its status, in its plan."""

from __future__ import annotations

from tests.cli.prompt import Prompt

FILE = """
command: echo {x}
space: {x: {float: [0, 1]}}
minimize: loss
trials: 32
max_steps: 9
budget: 4
deadline: 36h
max_machines: 4
market: modern
simulate: {seconds_per_step: 60}
"""


def test_the_ending_the_status_and_the_plan_say_it(prompt: Prompt) -> None:
    prompt.write("spec.yaml", FILE)
    said = "of $4.00 left: all 32 trials are over. To use it: the same command with --trials "
    assert said in prompt("simulate", "spec.yaml").output
    assert said in prompt("status").output
    assert '"unspent"' in prompt("status", "spec-simulated", "--json").stdout
    planned = prompt("plan", "spec.yaml", "--runs", "2").output
    assert "of $4.00 would be left after 32 trials. To use it: the same command with --trials " in planned
