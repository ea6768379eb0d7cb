"""Gives a model tokens to think with before its answer, apart from those of the answer.

In a text of a local model, nothing but marks separates both, so that it may not end, while the model thinks, where an
answer would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from biasboard.ground import strict_json
from evaluators.backend import OF_LANGUAGE_MODELS, Answers, Capability, Events, GenerateRequest, Request
from evaluators.backend_options import BackendOptions
from evaluators.models.tokenizer import ModelTokenizer
from evaluators.thinking import THINKING_TOKENS

_NO_OPTIONS = (
    "the chat template begins the answer in the middle of thinking, so that no option can follow; where the template "
    """lets it be, switch that off with --chat-template-args '{"enable_thinking": false}'"""
)
"""Reason why options cannot be scored behind a template that opens thinking."""


def thinking_tokens_of(options: BackendOptions, tokenizer: ModelTokenizer) -> int:
    """Return the number of tokens to think with: the user's, or by default some if the chat template opens thinking."""
    if options.thinking_tokens is not None:
        return options.thinking_tokens
    return THINKING_TOKENS if tokenizer.opens_thinking else 0


def obstacles_of(tokenizer: ModelTokenizer) -> dict[str, str]:
    """Return the abilities that a model lacks behind its chat template, each with the reason."""
    return {"option_logprobs": _NO_OPTIONS} if tokenizer.opens_thinking else {}


def capabilities_of(tokenizer: ModelTokenizer) -> frozenset[Capability]:
    """Return the abilities of a language model behind its chat template."""
    return OF_LANGUAGE_MODELS - obstacles_of(tokenizer).keys()


def arguments_of(options: BackendOptions) -> dict[str, object]:
    """Return the options that open the same model again, by name; a file without the folder that it lies in."""
    return {
        "chat-template-args": f"'{options.chat_template_args}'" if options.chat_template_args else None,
        "system-prompt": None if options.system_prompt is None else options.system_prompt.name,
        "thinking-tokens": options.thinking_tokens,
    }


def conditions_of(options: BackendOptions, n_tokens: int) -> dict[str, str]:
    """Return what answers depend on beside the model, its template and the prompt, by name."""
    arguments = strict_json.canonical(dict(options.template_arguments)).decode()
    chosen = {
        "thinking_tokens": str(n_tokens) if n_tokens else None,
        "chat_template_args": arguments if options.chat_template_args else None,
        "system_prompt": options.system_prompt_sha256,
    }
    return {name: value for name, value in chosen.items() if value is not None}


def ask_with_thinking(
    ask: Callable[[Sequence[Request], frozenset[int]], Events],
    requests: Sequence[Request],
    missing: frozenset[int],
    n_tokens: int,
) -> Events:
    """Ask with more tokens for each text than its answer may take, and cut answers where they should have stopped.

    Args:
        ask: ``Backend.ask`` of a model that writes what it thinks into its texts.
        requests: All requests of the run.
        missing: Indices of those that need an answer.
        n_tokens: Number of tokens to think with; 0 to ask as it is.
    """
    if not n_tokens:
        yield from ask(requests, missing)
        return
    longer = [
        replace(request, max_tokens=request.max_tokens + n_tokens, stop=())
        if isinstance(request, GenerateRequest)
        else request
        for request in requests
    ]
    for event in ask(longer, missing):
        if isinstance(event, Answers):
            cut = {
                index: response.stopped_at(request.stop)
                for index, response in event.responses.items()
                if isinstance(request := requests[index], GenerateRequest)
            }
            yield event._replace(responses={**event.responses, **cut})
        else:
            yield event
