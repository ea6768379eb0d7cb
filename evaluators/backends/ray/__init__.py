"""Runs another backend on the machines of a Ray cluster."""

from evaluators.backends.ray.backend import MODELS, SUMMARY, open_backend

__all__ = ["MODELS", "SUMMARY", "open_backend"]
