"""Ray backends and clusters for the tests."""

import json
import tempfile
import time
from pathlib import Path

from shoestring.backends.on_market import on_market
from shoestring.backends.processes import ProcessBackend
from shoestring.backends.ray.joined_nodes import JoinedNodes
from shoestring.backends.ray.keeper import Keep
from shoestring.backends.ray.kept_process import RAY_START, KeptProcess
from shoestring.backends.ray.link import RayLink
from shoestring.backends.ray.nodes import RayNodes
from shoestring.backends.ray.place import RayPlace
from shoestring.backends.ray.worker import RayWorkers
from shoestring.worker.ranks import free_port


def on_started_nodes(rig):
    return RayPlace().open(None, rig.site, rig.provider)


def on_cluster(rig, cluster, nodes=None):
    """As `RayPlace.open`; `nodes` to look at what it does."""
    nodes = nodes or JoinedNodes(rig.site.run_dir, cluster.address)
    machines = on_market(RayNodes(nodes, rig.clock), rig.provider, rig.site)
    return ProcessBackend(rig.site, machines, RayWorkers(nodes), rig.provider)


class SmallCluster:
    """An existing cluster on this machine: a head without CPUs, and nodes with three each, to be killed by name."""

    def __init__(self, folder: Path, *, nodes: int) -> None:
        self._folder = folder
        self._processes: dict[str, KeptProcess] = {}
        self._tries = 0
        port = free_port()
        self.address = f"127.0.0.2:{port}"
        self._link = RayLink(self.address, "observer", log=folder / "driver.log", node_ip="127.0.0.2")
        try:
            self._up("head", "--head", f"--port={port}", "--include-dashboard=false")
            for number in range(nodes):
                self.add(f"n{number}")
        except BaseException:
            self.end()
            raise

    def add(self, name: str, **resources: float) -> None:
        self._up(name, f"--address={self.address}", f"--resources={json.dumps({name: 1, **resources})}")

    def is_up(self, name: str) -> bool:
        self._link.listen()
        mark = "node:__internal_head__" if name == "head" else name
        return any(node.alive and mark in node.resources for node in self._link.view.nodes)

    def kill(self, name: str) -> None:
        self._processes.pop(name).end()

    def end(self) -> None:
        self._link.close()
        for name in list(self._processes):
            self.kill(name)

    def _up(self, name: str, *options: str) -> None:
        """A node gives up after half a minute, which may be too soon on a busy machine."""
        until = time.monotonic() + 120
        while not self.is_up(name):
            if name not in self._processes or not self._processes[name].alive():
                self._start(name, *options)
            assert time.monotonic() < until, f"{name} does not come up"
            time.sleep(0.05)

    def _start(self, name: str, *options: str) -> None:
        self._tries += 1
        head = name == "head"
        scratch = tempfile.mkdtemp(prefix="test-ray-")
        process = self._processes[name] = KeptProcess(self._folder / f"{name}-{self._tries}")
        process.start(
            Keep(
                command=(
                    *RAY_START,
                    f"--num-cpus={0 if head else 3}",
                    "--num-gpus=0",
                    "--object-store-memory=80000000",
                    "--include-log-monitor=false",
                    f"--node-ip-address=127.0.0.{2 if head else 3}",
                    f"--temp-dir={scratch}",
                    *options,
                ),
                heartbeat=str(self._folder / "no-heartbeat"),
                silence_s=900,
                scratch=scratch,
            )
        )
