"""Runs another backend on the machines of a Ray cluster."""

from evaluators.backends.ray.backend import EXTRA, MODELS, SUMMARY, open_backend

__all__ = ["EXTRA", "MODELS", "SUMMARY", "open_backend"]
