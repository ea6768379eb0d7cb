"""Calibrations of distributions over labels, each a file ``NAME_calibration.py``; see :mod:`evaluators.calibrator`."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
