"""Callbacks of a scheduler reach all waiters of the job, in the service and in its controllers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from shoestring.server.callbacks import FOLDER, Callbacks
from shoestring.server.schemas import SlurmCallback
from tests.server.serving import Serving

NEWS = {"job_id": "17", "state": "NODE_FAIL", "exit_code": "0:0", "nodes": "n[1-2]"}


def test_all_waiters_of_a_job_are_woken_once(tmp_path: Path) -> None:
    async def story() -> None:
        callbacks = Callbacks(tmp_path)
        news = msgspec.convert(NEWS, SlurmCallback)
        waiting = [asyncio.ensure_future(callbacks.wait("17")) for _ in range(2)]
        other = asyncio.ensure_future(callbacks.wait("18"))
        await asyncio.sleep(0)
        assert callbacks.deliver(news) == 2
        assert await asyncio.gather(*waiting) == [news, news]
        assert callbacks.deliver(news) == 0
        other.cancel()
        with pytest.raises(asyncio.CancelledError):
            await other
        assert callbacks.deliver(msgspec.structs.replace(news, job_id="18")) == 0, "those who gave up are forgotten"

    asyncio.run(story())


def test_a_controller_finds_the_callback_in_its_run_folder(shared: Serving) -> None:
    body = json.dumps({**NEWS, "run": "study-simulated"}).encode()
    assert shared.ask("POST", "/v1/callbacks/slurm", body) == (202, b'{"woken":0}')
    left = json.loads((shared.store / "study-simulated" / FOLDER / "17.json").read_text())
    assert left["state"] == "NODE_FAIL"


@pytest.mark.parametrize(
    "odd", [{"job_id": "../17"}, {"job_id": "17\n"}, {"job_id": ""}, {"state": "x"}, {"run": "../x"}, {"more": 1}]
)
def test_invalid_callbacks_are_refused(shared: Serving, odd: dict[str, object]) -> None:
    assert shared.ask("POST", "/v1/callbacks/slurm", json.dumps({**NEWS, **odd}).encode())[0] == 400
