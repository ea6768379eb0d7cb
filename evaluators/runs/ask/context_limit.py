"""Finds requests that are longer than the model's context, before any request is sent."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter

from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import progress
from evaluators.backend import Backend, ChoiceRequest, GenerateRequest, Request
from evaluators.runs.plan.earlier_answers import AnswerStores, unanswered
from evaluators.runs.plan.plan import Plan, can_ask
from evaluators.task import Prompt, prompt_names

_AT_A_TIME = 1024
_SHOWN_FROM = 4 * _AT_A_TIME
"""Number of texts from which counting their tokens takes long enough for a progress bar."""
_SPARE_TOKENS = 32
"""Tokens added to the bound of every text, for special tokens at its ends."""
_EXAMPLES = attrgetter("n_examples", "example_set", "example_rule")


@dataclass
class Shortfall:
    """Counts of the requests of a plan that the model's context does not hold."""

    n_items: int = 0
    """Number of items with a request that does not fit."""
    n_requests: int = 0
    longest: int = 0
    """Largest number of tokens that a request that does not fit needs."""
    n_cut: int = 0
    """Number of requests that fit but leave less than the prompt's ``max_tokens`` for the answer."""
    n_distinct: int = 0
    """Number of distinct requests of each part, whether they fit or not."""

    def exceeds(self, max_failure_rate: float) -> bool:
        """Return True if more requests do not fit than may fail: the run would end without a result."""
        return self.n_requests > round(max_failure_rate * self.n_distinct)


@dataclass
class Ruler:
    """Counts the tokens that requests need, each distinct text once, and compares them with the context's size."""

    backend: Backend
    room: int
    _counted: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)

    def needs(self, requests: Sequence[Request], n_after: int = 0) -> list[int]:
        """Return the number of tokens that each request needs, or its number of bytes if that surely fits.

        A text has at most as many tokens as bytes, so short texts need not be tokenized.

        Args:
            requests: The requests.
            n_after: Number of tokens that must fit after each answer.
        """
        # What is added around a prompt, such as a chat template.
        (n_around,) = self.backend.needed_tokens([GenerateRequest(prompt="a", max_tokens=1)]) if requests else (0,)
        bounds = [n_around + _SPARE_TOKENS + longest_bytes(request) for request in requests]
        long = [
            request
            for request, bound in zip(requests, bounds, strict=True)
            if bound + _more_tokens(request) + n_after > self.room
        ]
        distinct = {_text(request): request for request in long if _text(request) not in self._counted}
        texts = list(distinct.values())
        is_long = len(texts) >= _SHOWN_FROM
        with progress("counting the tokens of prompts", len(texts)) if is_long else nullcontext() as advance:
            for start in range(0, len(texts), _AT_A_TIME):
                batch = texts[start : start + _AT_A_TIME]
                self._counted |= zip(map(_text, batch), self.backend.needed_tokens(batch), strict=True)
                if advance is not None:
                    advance(len(batch))
        return [self._counted.get(_text(request), bound) for request, bound in zip(requests, bounds, strict=True)]


def check_context(
    plans: Sequence[Plan],
    backend: Backend,
    stores: AnswerStores,
    max_failure_rate: float,
    *,
    probe: bool = True,
    leave_out: bool = False,
) -> list[Plan]:
    """Return the plans whose requests fit the model's context, before anything is asked.

    A number of examples that does not fit is left out with all its sets if the same config is asked with another one.
    A line on standard error says so, and also if a few requests do not fit or leave little room for an answer.

    Args:
        plans: All plans that the backend is to answer.
        backend: The model that would answer.
        stores: Stores that may hold responses already; answered requests are not counted.
        max_failure_rate: Share of requests that may fail.
        probe: False if a remote backend must not be probed; only what is known without that is then checked.
        leave_out: True to leave out configs that do not fit, and say so, as long as another one fits.

    Raises:
        ConfigError: more requests of a config do not fit than may fail, or the backend cannot ask what a plan needs.
        RunError: the store of a run, or the cache, cannot be read.
    """
    for plan in plans:
        plan.check(backend, probe=probe)
    if backend.context_tokens is None:
        return list(plans)
    ruler = Ruler(backend, backend.context_tokens)
    too_long: list[tuple[Plan, Shortfall]] = []
    for plan in plans:
        short = shortfall(plan, ruler, stores)
        if short.exceeds(max_failure_rate):
            too_long.append((plan, short))
        elif short.n_requests or short.n_cut:
            print(_warning(plan, short, ruler.room), file=sys.stderr)
    longest: dict[tuple[object, ...], tuple[Plan, int]] = {}
    for plan, short in too_long:
        key = _config_and_examples(plan)
        longest[key] = plan, max(short.longest, longest[key][1] if key in longest else 0)
    fitting = [plan for plan in plans if _config_and_examples(plan) not in longest]
    asked = {_config_and_examples(plan)[:2] for plan in fitting}
    refused = [
        (plan, short)
        for plan, short in too_long
        if plan.prompt.n_examples is None or _config_and_examples(plan)[:2] not in asked
    ]
    if refused:
        refusals = [_refusal(plan, backend, ruler, short, max_failure_rate) for plan, short in refused]
        if not (leave_out and fitting):
            others = "" if len(refused) == len(plans) else "; or name the other configs with --config"
            raise ConfigError(f"{'; '.join(refusals)}{others}; nothing was asked")
        for refusal in refusals:
            print(f"not asked: {refusal}", file=sys.stderr)
    for plan, n_tokens in longest.values():
        prompt = plan.prompt
        if prompt.n_examples is not None:
            shown = " ".join(filter(None, (prompt.protocol or prompt.id, prompt.example_rule)))
            print(
                f"config '{plan.selection.config}' is not asked with {prompt.n_examples} examples ({shown}): they need "
                f"up to {n_tokens:,} tokens, and the model's context has {ruler.room:,}",
                file=sys.stderr,
            )
    return fitting


def _config_and_examples(plan: Plan) -> tuple[object, ...]:
    """Return the dataset and the config of a plan, and the examples that it is asked with, of whatever set."""
    manifest, prompt = plan.selection.manifest, plan.prompt
    # A protocol has prompts with other sets of as many examples, which go together; other prompts stand alone.
    protocol = prompt.id if prompt.n_examples is None else prompt.protocol or prompt.id
    of_examples = protocol, prompt.n_examples, prompt.example_rule
    return f"{manifest.name}@{manifest.version}", plan.selection.config, *of_examples


def other_prompts(
    plan: Plan, backend: Backend, max_failure_rate: float, ruler: Ruler | None = None, *, with_examples: bool = False
) -> list[Prompt]:
    """Return the other prompts of a task that the backend can ask about the same items and that fit its context.

    Args:
        plan: The items, and the prompt to exclude.
        backend: The model that would answer.
        max_failure_rate: Share of requests that may be too long.
        ruler: Ruler with the tokens counted so far; None to count them anew.
        with_examples: True to consider only prompts that show the same examples.
    """
    askable = [
        other
        for other in plan.task.prompts.values()
        if other.id != plan.prompt.id
        and can_ask(other, backend)
        and not (with_examples and _EXAMPLES(other) != _EXAMPLES(plan.prompt))
    ]
    if ruler is None and backend.context_tokens is not None:
        ruler = Ruler(backend, backend.context_tokens)
    if ruler is None:
        return askable
    fitting = []
    for prompt in askable:
        with suppress(ConfigError):  # A prompt that needs more examples than there are is of no help.
            if not shortfall(replace(plan, prompt=prompt), ruler).exceeds(max_failure_rate):
                fitting.append(prompt)
    return fitting


def shortfall(plan: Plan, ruler: Ruler, stores: AnswerStores | None = None) -> Shortfall:
    """Compare the requests of a plan with the context: those without an answer in some stores, or all for None.

    Where options are scored after an answer, the longest answer and the options must fit too: an answer that fills the
    context could not be followed up.
    """
    total, prompt = Shortfall(), plan.prompt
    # By their bytes, which are few.
    alone = GenerateRequest(prompt="", max_tokens=1)
    n_after = 0 if prompt.follow_up is None else longest_bytes(prompt.following(alone, ""))
    for part in plan.parts:
        asked = {request.sha256: request for request in chain.from_iterable(part.requests)}
        total.n_distinct += len(asked)
        if stores is not None:
            missing, *_ = unanswered(plan, [part], ruler.backend, stores)
            wanted = {request.sha256 for request in missing.values()}
            asked = {sha256: request for sha256, request in asked.items() if sha256 in wanted}
        # The texts of a suite that is too large for memory are forgotten after each part.
        of_part = ruler if part.selected.kept is not None else Ruler(ruler.backend, ruler.room)
        needs = dict(zip(asked, of_part.needs(list(asked.values()), n_after), strict=True))
        with_answer = {sha256: n_tokens + _more_tokens(asked[sha256]) for sha256, n_tokens in needs.items()}
        if prompt.follow_up is not None:
            needs = {sha256: n_tokens + n_after for sha256, n_tokens in with_answer.items()}
        long = {sha256 for sha256, n_tokens in needs.items() if n_tokens > ruler.room}
        total.n_items += sum(any(request.sha256 in long for request in of_item) for of_item in part.requests)
        total.n_requests += len(long)
        total.longest = max([total.longest, *(needs[sha256] for sha256 in long)])
        # Where options follow an answer, a request whose longest answer does not fit is among those that do not.
        if prompt.follow_up is None:
            total.n_cut += sum(n > ruler.room and sha256 not in long for sha256, n in with_answer.items())
    return total


def _refusal(plan: Plan, backend: Backend, ruler: Ruler, short: Shortfall, max_failure_rate: float) -> str:
    config = plan.selection.config
    # CONFIG=PROMPT changes the prompt of this config only.
    alike = other_prompts(plan, backend, max_failure_rate, ruler, with_examples=True)
    # Prompts with the same examples come first: counting the tokens of all prompts of a task takes minutes.
    others = prompt_names(plan.task, alike or other_prompts(plan, backend, max_failure_rate, ruler))
    # Suggest single prompts only if no whole protocol fits.
    whole = [name for name in others if name not in plan.task.prompts]
    fitting = [f"{config}={name}" for name in whole or others]
    remedy = f"take --prompt {' or '.join(fitting)}, which fits, or " if fitting else "take "
    return (
        f"{short.n_items} of {plan.selection.n_items} items of config '{config}' are too long for "
        f"the model with prompt '{plan.prompt.id}': they need up to {short.longest:,} tokens"
        f"{'' if plan.prompt.follow_up is None else ' with the longest answer'}, its context has {ruler.room:,}; "
        f"{remedy}a model with a longer context"
    )


def _warning(plan: Plan, short: Shortfall, room: int) -> str:
    parts = []
    if short.n_items:
        parts.append(
            f"{short.n_items} of {plan.selection.n_items} items are too long for the model and will count as "
            f"failed: they need up to {short.longest:,} tokens"
        )
    if short.n_cut:
        parts.append(
            f"{short.n_cut} requests leave less than the {plan.prompt.max_tokens} tokens that an answer may take, so "
            "that answers may be cut"
        )
    return f"config '{plan.selection.config}': {'; '.join(parts)}; the model's context has {room:,} tokens"


def _text(request: Request) -> tuple[str, tuple[str, ...]]:
    return request.prompt, request.options if isinstance(request, ChoiceRequest) else ()


def longest_bytes(request: Request) -> int:
    """Return the bytes of a prompt and its longest option, a bound on their tokens, each of at least one byte."""
    options = request.options if isinstance(request, ChoiceRequest) else ()
    return len(request.prompt.encode()) + max((len(option.encode()) for option in options), default=0)


def _more_tokens(request: Request) -> int:
    """Return how many tokens an answer may take beyond the first, which ``Backend.needed_tokens`` includes."""
    return request.max_tokens - 1 if isinstance(request, GenerateRequest) else 0
