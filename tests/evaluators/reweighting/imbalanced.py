"""Data sets of scikit-learn with planted imbalance: a logistic model that saw few noisy rows, and rare classes."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from tests.evaluators.reweighting.made import Made

# The standard deviation of the noise on the features, the number of rows to train on before most of the rare classes
# are left out, and the parameter C of the logistic model.
_SETS = {
    "digits": (load_digits, 6.0, 400, 1e-3),
    "wine": (load_wine, 1.0, 60, 1e-2),
    "breast_cancer": (load_breast_cancer, 1.0, 120, 1e-2),
    "iris": (load_iris, 0.7, 50, 1e-2),
}
NAMES = tuple(_SETS)
_KEPT, _MOST_ROWS = 0.3, 400


def imbalanced(name: str, seed: int, *, are_labels_rare: bool) -> Made:
    """Return a model's probabilities for rows that it was not trained on, and their classes.

    Half of the classes, at least one, keep 30 % of their rows.

    Args:
        name: Name of the data set.
        seed: Seed of the noise, of the rare classes and of the split.
        are_labels_rare: True if the classes are rare among the labelled rows too, and not only in training.
    """
    load, noise, n_trained, penalty = _SETS[name]
    features, targets = load(return_X_y=True)
    rng = np.random.default_rng(seed)
    n_classes = int(targets.max()) + 1
    if name != "digits":
        features = StandardScaler().fit_transform(features)
    noisy = features + rng.normal(0, noise, features.shape)
    rare = rng.permutation(n_classes)[: max(1, n_classes // 2)]
    is_kept = ~np.isin(targets, rare) | (rng.random(len(targets)) < _KEPT)
    order = rng.permutation(len(targets))
    trained = order[:n_trained]
    # Each class has two rows at least to be trained on.
    few = np.concatenate([order[targets[order] == one][:2] for one in range(n_classes)])
    trained = np.union1d(trained[is_kept[trained]], few)
    rest = np.setdiff1d(order, trained)
    if are_labels_rare:
        rest = rest[is_kept[rest]]
    rest = rng.permutation(rest)[:_MOST_ROWS]
    model = LogisticRegression(C=penalty, max_iter=2000).fit(noisy[trained], targets[trained])
    return Made(model.predict_proba(noisy[rest]), targets[rest])
