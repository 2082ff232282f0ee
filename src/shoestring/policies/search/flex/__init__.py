"""flex: elastic search by a freeze-thaw model of learning curves."""
