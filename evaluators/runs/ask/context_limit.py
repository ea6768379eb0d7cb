"""Finds requests that are longer than the model's context, before any request is sent."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from biasboard.ground.errors import ConfigError
from biasboard.ground.progress import progress
from evaluators.backend import Backend, ChoiceRequest, GenerateRequest, Request
from evaluators.runs.plan.earlier_answers import AnswerStores, unanswered
from evaluators.runs.plan.plan import Plan, PlannedPart, can_ask
from evaluators.task import Prompt, prompt_names

_AT_A_TIME = 1024
_SHOWN_FROM = 4 * _AT_A_TIME
"""Number of texts from which counting their tokens takes long enough for a progress bar."""
SPARE_TOKENS = 32
"""Tokens added to the bound of every text, for special tokens at its ends."""


class Shortfall(NamedTuple):
    """Counts of the requests of a plan that the model's context does not hold."""

    n_items: int
    """Number of items with a request that does not fit."""
    n_requests: int
    longest: int
    """Largest number of tokens that a request needs."""
    n_cut: int
    """Number of requests that fit but leave less than the prompt's ``max_tokens`` for the answer."""
    n_distinct: int
    """Number of distinct requests, whether they fit or not."""

    def exceeds(self, max_failure_rate: float) -> bool:
        """Return True if more requests do not fit than may fail: the run would end without a result."""
        return self.n_requests > round(max_failure_rate * self.n_distinct)

    @classmethod
    def joined(cls, parts: Sequence[Shortfall]) -> Shortfall:
        """Return the sums over parts, and the longest of their requests."""
        sums = {name: sum(getattr(part, name) for part in parts) for name in cls._fields}
        return cls(**sums | {"longest": max(part.longest for part in parts)})


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
        frame = self._frame() if requests else 0
        bounds = [frame + longest_bytes(request) for request in requests]
        long = [
            request
            for request, bound in zip(requests, bounds, strict=True)
            if bound + _more_tokens(request) + n_after > self.room
        ]
        distinct = {_text(request): request for request in long if _text(request) not in self._counted}
        for batch in _batches(list(distinct.values())):
            self._counted |= zip(map(_text, batch), self.backend.needed_tokens(batch), strict=True)
        return [self._counted.get(_text(request), bound) for request, bound in zip(requests, bounds, strict=True)]

    def for_part(self, part: PlannedPart) -> Ruler:
        """Return a ruler for a part: this one, or one with an empty cache if the suite is too large for memory."""
        return self if part.selected.kept is not None else Ruler(self.backend, self.room)

    def _frame(self) -> int:
        """Return an upper bound on the tokens added around a prompt, such as those of a chat template."""
        (n_tokens,) = self.backend.needed_tokens([GenerateRequest(prompt="a", max_tokens=1)])
        return n_tokens + SPARE_TOKENS


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
    shorts: dict[int, Shortfall] = {}
    too_long: dict[_Examples, int] = {}
    for plan in plans:
        plan.check(backend, probe=probe)
    if backend.context_tokens is None:
        return list(plans)
    ruler = Ruler(backend, backend.context_tokens)
    for plan in plans:
        of_parts = []
        for part in plan.parts:
            missing = unanswered(plan, [part], backend, stores).requests.values()
            wanted = frozenset(request.sha256 for request in missing)
            of_parts.append(shortfall(part, ruler.for_part(part), wanted))
        short = Shortfall.joined(of_parts)
        if short.exceeds(max_failure_rate):
            too_long[_examples_of(plan)] = max(short.longest, too_long.get(_examples_of(plan), 0))
            shorts[id(plan)] = short
        elif short.n_requests or short.n_cut:
            print(_warning(plan, short, ruler.room), file=sys.stderr)
    fitting = [plan for plan in plans if _examples_of(plan) not in too_long]
    asked = {(one.dataset, one.config) for one in map(_examples_of, fitting)}
    refused = [
        plan
        for plan in plans
        if id(plan) in shorts and (plan.prompt.n_examples is None or _examples_of(plan)[:2] not in asked)
    ]
    if refused:
        refusals = [_refusal(plan, backend, ruler, shorts[id(plan)], max_failure_rate) for plan in refused]
        if not (leave_out and fitting):
            others = "" if len(refused) == len(plans) else "; or name the other configs with --config"
            raise ConfigError(f"{'; '.join(refusals)}{others}; nothing was asked")
        for refusal in refusals:
            print(f"not asked: {refusal}", file=sys.stderr)
    for one, longest in too_long.items():
        if one.n_examples is None:
            continue
        print(
            f"config '{one.config}' is not asked with {one.n_examples} examples "
            f"({' '.join(filter(None, (one.protocol, one.rule)))}): they need up to {longest:,} tokens, and the "
            f"model's context has {ruler.room:,}",
            file=sys.stderr,
        )
    return fitting


class _Examples(NamedTuple):
    """The examples with which a config is asked, of whatever set."""

    dataset: str
    config: str
    protocol: str
    n_examples: int | None
    rule: str | None


def _examples_of(plan: Plan) -> _Examples:
    manifest, prompt = plan.selection.manifest, plan.prompt
    dataset = f"{manifest.name}@{manifest.version}"
    # A protocol has prompts with other sets of as many examples, which go together; other prompts stand alone.
    protocol = prompt.id if prompt.n_examples is None else prompt.protocol or prompt.id
    return _Examples(dataset, plan.selection.config, protocol, prompt.n_examples, prompt.example_rule)


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
        and not (with_examples and _examples(other) != _examples(plan.prompt))
    ]
    if ruler is None and backend.context_tokens is not None:
        ruler = Ruler(backend, backend.context_tokens)
    if ruler is None:
        return askable
    fitting = []
    for prompt in askable:
        with suppress(ConfigError):  # A prompt that needs more examples than there are is of no help.
            parts = [shortfall(part, ruler.for_part(part)) for part in replace(plan, prompt=prompt).parts]
            total = Shortfall.joined(parts)
            if not total.exceeds(max_failure_rate):
                fitting.append(prompt)
    return fitting


def shortfall(part: PlannedPart, ruler: Ruler, wanted: frozenset[str] | None = None) -> Shortfall:
    """Compare the requests of a part with the context: those whose hash is in ``wanted``, or all if it is None.

    Where options are scored after an answer, the longest answer and the options must fit too: an answer that fills the
    context could not be followed up.
    """
    requests, prompt = part.requests, part.prompt
    asked = {
        request.sha256: request
        for request in chain.from_iterable(requests)
        if wanted is None or request.sha256 in wanted
    }
    # By their bytes, which are few.
    alone = GenerateRequest(prompt="", max_tokens=1)
    n_after = 0 if prompt.follow_up is None else longest_bytes(prompt.following(alone, ""))
    needs = dict(zip(asked, ruler.needs(list(asked.values()), n_after), strict=True))
    if prompt.follow_up is not None:
        needs = {sha256: n + _more_tokens(asked[sha256]) + n_after for sha256, n in needs.items()}
    long = {sha256 for sha256, n_tokens in needs.items() if n_tokens > ruler.room}
    return Shortfall(
        n_items=sum(any(request.sha256 in long for request in of_item) for of_item in requests),
        n_requests=len(long),
        longest=max((needs[sha256] for sha256 in long), default=0),
        # Where options follow an answer, a request whose longest answer does not fit is among those that do not.
        n_cut=sum(
            needs[sha256] + _more_tokens(request) > ruler.room
            for sha256, request in asked.items()
            if sha256 not in long and prompt.follow_up is None
        ),
        n_distinct=len({request.sha256 for of_item in requests for request in of_item}),
    )


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


def _examples(prompt: Prompt) -> tuple[int | None, int | None, str | None]:
    return prompt.n_examples, prompt.example_set, prompt.example_rule


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


def _batches(requests: Sequence[Request]) -> Iterator[Sequence[Request]]:
    """Yield requests in batches, with a progress bar if there are many."""
    batches = [requests[start : start + _AT_A_TIME] for start in range(0, len(requests), _AT_A_TIME)]
    if len(requests) < _SHOWN_FROM:
        yield from batches
        return
    with progress("counting the tokens of prompts", len(requests)) as advance:
        for batch in batches:
            yield batch
            advance(len(batch))


def _text(request: Request) -> tuple[str, tuple[str, ...]]:
    return request.prompt, request.options if isinstance(request, ChoiceRequest) else ()


def longest_bytes(request: Request) -> int:
    """Return the bytes of a prompt and its longest option, a bound on their tokens, each of at least one byte."""
    options = request.options if isinstance(request, ChoiceRequest) else ()
    return len(request.prompt.encode()) + max((len(option.encode()) for option in options), default=0)


def _more_tokens(request: Request) -> int:
    """Return how many tokens an answer may take beyond the first, which ``Backend.needed_tokens`` includes."""
    return request.max_tokens - 1 if isinstance(request, GenerateRequest) else 0
