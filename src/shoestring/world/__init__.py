"""The outside of a run: live (a backend and a clock) or simulated (a heap of events)."""
