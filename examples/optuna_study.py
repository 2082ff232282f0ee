"""An Optuna study with our optimizer as its sampler: a support vector machine for digits, tuned on data fractions, with
a constraint on its number of support vectors. The data comes with scikit-learn.

    pip install 'shoestring[optuna,learn]'
    python examples/optuna_study.py
"""

from __future__ import annotations

import optuna
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from shoestring.for_optuna import TrimTunerSampler
from shoestring.optimizer.observations import Answer

DIGITS = load_digits()
PICTURES, LABELS = DIGITS.data / 16, DIGITS.target
TEST = 600
"""The first samples are for testing. Fractions are the first of the rest, so small ones are subsets of large ones."""


def search(trials: int = 24, seed: int = 0) -> tuple[Answer, optuna.Study]:
    sampler = TrimTunerSampler(seed=seed, constraints=["vectors <= 500"], fractions=[1 / 8, 1 / 3, 1])

    def objective(trial: optuna.Trial) -> float:
        learn = slice(TEST, TEST + round(sampler.fraction(trial) * (len(LABELS) - TEST)))
        model = SVC(
            C=trial.suggest_float("C", 1e-2, 1e3, log=True),
            gamma=trial.suggest_float("gamma", 1e-4, 1.0, log=True),
            kernel=trial.suggest_categorical("kernel", ["rbf", "sigmoid"]),
        ).fit(PICTURES[learn], LABELS[learn])
        trial.set_user_attr("vectors", len(model.support_))  # prediction time is proportional to these
        return 1 - model.score(PICTURES[:TEST], LABELS[:TEST])

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=trials)
    return sampler.best(study), study


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    answer, study = search()
    data = sum(trial.user_attrs["fraction"] for trial in study.trials)
    print(f"{answer}\n{len(study.trials)} trials used as much data as {data:.1f} full ones")
