"""What runs beside the user's code. Light to start, and able to do its duty with the controller dead.

A segment is a folder. The backend writes `task.json` (what to do, never changed) and `control.json` (what is wanted
and by when it must be over, replaced as a whole); the worker writes `pid.json` and appends to `out.jsonl`. Two
kinds of process share the work:

    supervisor   holds the clock: ends the segment on time, whatever user code does, tells how it ended
    player       the user's function or command; saves and leaves at the next step when it is time

A trial that is trained by several workers together is a gang: one player for each of them that runs here.

Nothing here asks the controller anything: losing it costs no step, and no more money than was prepaid.
"""
