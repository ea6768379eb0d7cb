"""The calibrations of distributions over labels, one file each; see :mod:`evaluators.calibrator`."""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
