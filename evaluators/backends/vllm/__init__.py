"""Any causal model in a vLLM engine, as a backend."""

from evaluators.backends.vllm.backend import MODELS, SUMMARY, open_backend

__all__ = ["MODELS", "SUMMARY", "open_backend"]
