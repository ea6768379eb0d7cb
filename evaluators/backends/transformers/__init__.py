"""Calls any causal language model of the Hub or of a local folder through the library transformers."""

from evaluators.backends.transformers.backend import EXTRA, MODELS, SUMMARY, open_backend

__all__ = ["EXTRA", "MODELS", "SUMMARY", "open_backend"]
