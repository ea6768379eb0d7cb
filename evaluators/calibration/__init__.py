"""Calibrations of distributions over labels, each a file ``NAME_calibration.py`` found by its name.

:mod:`evaluators.calibrator` is their interface, and *reweighting* one of them, with a command of its own.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
