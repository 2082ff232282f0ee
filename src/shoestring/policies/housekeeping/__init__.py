"""Renewal of prepaid leases and the end of a run."""
