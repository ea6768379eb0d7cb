"""A backend for any endpoint that speaks OpenAI's protocol."""

from evaluators.backends.openai.backend import EXTRA, MODELS, SUMMARY, open_backend

__all__ = ["EXTRA", "MODELS", "SUMMARY", "open_backend"]
