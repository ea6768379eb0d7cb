"""Calibrations of distributions over labels, one per file ``NAME_calibration.py``.

:mod:`evaluators.calibrator` is their interface. The inputs without content that some ask about are items of a dataset.
*reweighting* is a calibration too, and has a command of its own.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
