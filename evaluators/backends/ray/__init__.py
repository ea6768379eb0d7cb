"""Another backend on every machine of a Ray cluster, as a backend."""

from evaluators.backends.ray.backend import MODELS, SUMMARY, open_backend

__all__ = ["MODELS", "SUMMARY", "open_backend"]
