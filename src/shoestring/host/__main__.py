"""`python -m shoestring.host FOLDER [MACHINE [NODE]]`: host the lease of this folder, if no other machine does.

MACHINE is what the provider calls this machine, NODE its name there.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from shoestring.host.host import LeaseHost, sign_in


def main() -> None:
    folder, machine, node, *_ = [*sys.argv[1:], "", ""]
    if sign_in(Path(folder), machine=machine, node=node or socket.gethostname()):
        LeaseHost(Path(folder)).run()


if __name__ == "__main__":
    main()
