"""SciSpot: job bags on preemptible VMs."""
