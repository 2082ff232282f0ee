"""What runs beside the user's code. Light to start, and works without a controller.

A segment is a folder. The backend writes `task.json` (what to do, never changed) and `control.json` (the current orders
and when it must end, replaced as a whole); the worker writes `pid.json` and appends to `out.jsonl`. Two kinds of
process share the work:

    supervisor   ends the segment on time, whatever user code does, and reports how it ended
    player       runs the user's function or command; saves and stops at the next step when it is time

A trial that is trained by several workers together is a gang: one player process per rank on this machine.
Nothing that any of them starts outlives the segment (`containment`).

Nothing here queries the controller: losing it costs no step, and no more money than was prepaid.
"""
