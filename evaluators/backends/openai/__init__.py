"""Any endpoint that speaks OpenAI's protocol, as a backend."""

from evaluators.backends.openai.backend import MODELS, SUMMARY, open_backend

__all__ = ["MODELS", "SUMMARY", "open_backend"]
