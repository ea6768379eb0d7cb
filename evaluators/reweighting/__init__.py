"""Reweights the class probabilities of any classifier, so that it is right about equally often in each class.

A correction changes the probability of each class by a rule of its own, a weight or a membership function, and the
class with the largest corrected value is predicted. It is fitted on probabilities with known classes, and the
classifier is not asked again. The package computes with NumPy alone, and knows neither records nor models:
:mod:`evaluators.reweighting.estimator` has the scikit-learn estimator, :mod:`evaluators.reweighting.fitting` what it
calls.

References:
    "Discovering the Hidden Role of Gini Index In Prompt-based Classification", arXiv:2603.15654; the rules are those of
    DCS, arXiv:2503.05157.
"""
