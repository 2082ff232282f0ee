"""Benchmarks: each prints a table, compares with a peer or a baseline in the same run, and is never a timed test.

python -m benchmarks                     all of them
python -m benchmarks.overhead --quick    one of them, in a minute
python -m benchmarks.simulator --json rows.json
"""
