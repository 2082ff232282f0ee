"""Where new configurations come from: random, TPE, Optuna."""
