"""Which machines to rent, where each trial runs, when a machine is released."""
