"""A study of Optuna's that our optimiser chooses for: a support vector machine that reads digits, learned about from
parts of the data, and small enough in the end to answer fast. The data comes with scikit-learn.

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
"""The first so many are for testing. Fractions are taken of the rest from its beginning, so small ones are part of
large ones."""


def search(trials: int = 24, seed: int = 0) -> tuple[Answer, optuna.Study]:
    sampler = TrimTunerSampler(seed=seed, constraints=["vectors <= 500"], fractions=[1 / 8, 1 / 3, 1])

    def objective(trial: optuna.Trial) -> float:
        learn = slice(TEST, TEST + round(sampler.fraction(trial) * (len(LABELS) - TEST)))
        model = SVC(
            C=trial.suggest_float("C", 1e-2, 1e3, log=True),
            gamma=trial.suggest_float("gamma", 1e-4, 1.0, log=True),
            kernel=trial.suggest_categorical("kernel", ["rbf", "sigmoid"]),
        ).fit(PICTURES[learn], LABELS[learn])
        trial.set_user_attr("vectors", len(model.support_))  # an answer takes time in proportion to these
        return 1 - model.score(PICTURES[:TEST], LABELS[:TEST])

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=trials)
    return sampler.best(study), study


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    answer, study = search()
    data = sum(trial.user_attrs["fraction"] for trial in study.trials)
    print(f"{answer}\n{len(study.trials)} trials on as much data as {data:.1f} whole ones")
