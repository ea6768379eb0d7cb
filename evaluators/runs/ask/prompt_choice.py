"""Finds the prompts that a user names, and chooses those that fit a model: that it can be asked and its context holds.

Whether prompts are too long is judged by a sample of the items, so that the choice takes no longer for many of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from biasboard.ground.errors import ConfigError
from evaluators.backend import Backend, ChoiceRequest
from evaluators.runs.ask.context_limit import Ruler, shortfall
from evaluators.runs.plan.plan import Plan, why_no_message, with_examples
from evaluators.runs.plan.selection import sampled
from evaluators.task import Prompt, Task, prompt_of
from evaluators.task_abilities import ShowsExamples

_N_SAMPLED = 64
"""Number of items by which prompts are judged to be too long."""


def named_prompts(task: Task, config: str, given: Sequence[str]) -> list[str]:
    """Return the prompts and protocols among values of ``--prompt`` that choose prompts for a config.

    ``CONFIG=PROMPT`` chooses a prompt for one config, which is then asked with no other.
    """
    pairs = [name.partition("=") for name in dict.fromkeys(given)]
    own = [prompt for name, equals, prompt in pairs if equals and name == config]
    return own or [name for name, equals, _ in pairs if not equals and name in {*task.prompts, *protocols(task)}]


def prompt_groups(
    task: Task, contexts: Sequence[str] | None = None, named: Sequence[str] = ()
) -> list[Sequence[Prompt]]:
    """Return the prompts that are asked together: of each name, or the default ones and then those in their place.

    A prompt stands alone, unless the task shows examples: then all of its protocol in the chosen contexts are asked.

    Raises:
        ConfigError: a named prompt does not exist.
    """
    if named:
        return [_prompts(task, name, contexts) for name in named]
    names = dict.fromkeys(
        (prompt.protocol if isinstance(task, ShowsExamples) else None) or prompt.id
        for prompt in task.prompts.values()
        if prompt.requires != "import"
    )
    groups: list[Sequence[Prompt]] = []
    for name in names:
        # A protocol need not have prompts in every context.
        with suppress(ConfigError):
            groups.append(_prompts(task, name, contexts))
    return groups


def usual_prompts(task: Task, contexts: Sequence[str] | None = None) -> Sequence[Prompt]:
    """Return the prompts that are asked where the user names none: the first, or all of its protocol in the contexts.

    Raises:
        ConfigError: the protocol has no such context, or the task shows no examples.
    """
    first = prompt_of(task, None)
    return _prompts(task, (first.protocol if isinstance(task, ShowsExamples) else None) or first.id, contexts)


def _prompts(task: Task, name: str, contexts: Sequence[str] | None) -> Sequence[Prompt]:
    """Return the prompts of a name, a prompt or a protocol, in the contexts that the user chooses; None if he does not.

    A context is a number of examples such as ``8``, ``8-RULE`` or ``8-more``.
    """
    if not isinstance(task, ShowsExamples):
        if contexts is not None:
            raise ConfigError(f"--contexts {','.join(contexts)}: task '{task.name}' shows no examples; leave it out")
        return [prompt_of(task, name)]
    if name not in protocols(task) and contexts is None:
        return [prompt_of(task, name)]
    protocol = name if name in protocols(task) else prompt_of(task, name).protocol
    of_protocol = [prompt for prompt in task.prompts.values() if prompt.protocol == protocol]
    have = dict.fromkeys(map(context_name, of_protocol))
    chosen = contexts or [*map(str, task.default_contexts)]
    for context in chosen:
        if context not in have:
            raise ConfigError(
                f"--contexts: no prompt of protocol '{protocol}' has context '{context}'; have, separated by commas: "
                f"{', '.join(have)}"
            )
    return [prompt for prompt in of_protocol if context_name(prompt) in chosen]


def protocols(task: Task) -> frozenset[str | None]:
    """Return the protocols of a task whose prompts show examples; empty for other tasks."""
    is_shown = isinstance(task, ShowsExamples)
    return frozenset(prompt.protocol for prompt in task.prompts.values() if is_shown and prompt.protocol is not None)


def context_name(prompt: Prompt) -> str:
    """Return the number of examples that a prompt shows, and the rule that chooses them, if any, or ``more``."""
    return "-".join(filter(None, (str(prompt.n_examples), prompt.example_rule, "more" if prompt.is_extra else None)))


def choose_prompts(
    plan: Plan, groups: Sequence[Sequence[Prompt]], backend: Backend, max_failure_rate: float
) -> tuple[Sequence[Prompt], list[str]]:
    """Choose the first group of prompts that a model can be asked with; none if there is no such group.

    The preferred groups come first. The prompt of the plan does not matter, and a remote backend is probed.

    Returns:
        The group, and why each one before it cannot, in words that begin with its name: ``NAME needs up to 1,284
        tokens, and the model's context has 512``.
    """
    sample = replace(plan, selection=sampled(plan.selection, _N_SAMPLED))
    passed_over: list[str] = []
    for group in groups:
        obstacles = (_obstacle(replace(sample, prompt=prompt), backend, max_failure_rate) for prompt in group)
        why = next(filter(None, obstacles), None)
        if why is None:
            return group, passed_over
        passed_over.append(f"{group_name(group)} {why}")
    return (), passed_over


def group_name(group: Sequence[Prompt]) -> str:
    """Return the name of prompts that are asked together: that of a single one, or the protocol of several."""
    return group[0].id if len(group) == 1 or group[0].protocol is None else group[0].protocol


def _obstacle(plan: Plan, backend: Backend, max_failure_rate: float) -> str | None:
    """Return why a model cannot be asked with the prompt of a plan; None if it can."""
    prompt = plan.prompt
    if missing := sorted(prompt.needs - backend.capabilities):
        reasons = "; ".join(f"{name}: {reason}" for name, reason in backend.runtime.obstacles.items())
        return f"needs {' and '.join(missing)}" + (f" ({reasons})" if reasons else "")
    if (why := why_no_message(prompt, backend)) is not None:
        return f"{why}, and the model is sent messages of a chat"
    try:
        plan = replace(plan, selection=with_examples(plan.selection, plan.task, prompt)[0]).for_backend(backend)
        if (
            prompt.requires == "option_logprobs"
            and backend.scores_first_token_only
            and any(
                len(option.strip()) > 1  # Unlike those of letters, their first tokens may be the same.
                for part in plan.parts
                for request in chain.from_iterable(part.requests)
                for option in (request.options if isinstance(request, ChoiceRequest) else ())
            )
        ):
            return "needs log-probabilities of whole options, and the endpoint gives those of first tokens"
        if backend.context_tokens is None:
            return None
        ruler = Ruler(backend, backend.context_tokens)
        short = shortfall(plan, ruler)
    except ConfigError as error:
        return f"cannot be asked: {error}"
    if short.exceeds(max_failure_rate):
        return f"needs up to {short.longest:,} tokens, and the model's context has {ruler.room:,}"
    return None
