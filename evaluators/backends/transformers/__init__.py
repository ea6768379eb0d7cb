"""Any causal model of the Hub or of a folder, run by the library transformers, as a backend."""

from evaluators.backends.transformers.backend import MODELS, SUMMARY, open_backend

__all__ = ["MODELS", "SUMMARY", "open_backend"]
