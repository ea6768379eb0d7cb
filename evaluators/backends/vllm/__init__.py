"""Calls any causal language model through vLLM."""

from evaluators.backends.vllm.backend import MODELS, SUMMARY, open_backend

__all__ = ["MODELS", "SUMMARY", "open_backend"]
