"""A backend for any endpoint that speaks OpenAI's protocol."""

from evaluators.backends.openai.backend import MODELS, SUMMARY, open_backend

__all__ = ["MODELS", "SUMMARY", "open_backend"]
