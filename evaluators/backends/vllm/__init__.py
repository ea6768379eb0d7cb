"""Calls any causal language model through vLLM."""

from evaluators.backends.vllm.backend import EXTRA, MODELS, SUMMARY, open_backend

__all__ = ["EXTRA", "MODELS", "SUMMARY", "open_backend"]
