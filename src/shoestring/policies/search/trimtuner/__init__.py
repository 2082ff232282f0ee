"""TrimTuner: hyper-parameters, machines and data fractions chosen together."""
