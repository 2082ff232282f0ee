"""Which trials run, and for how many steps."""
