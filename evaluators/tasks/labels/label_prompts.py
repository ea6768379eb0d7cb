"""The prompts of classification tasks: an instruction, k solved examples, and the input to label.

There are two styles, written from their descriptions. *release* is the prompt that the code of Reif & Schwartz (NAACL
2024, arXiv:2405.02743) sends. *paper* is that of Tk-Instruct (arXiv:2204.07705), which the paper names. Both are used
with k = 0, 2, 4, 8 or 16 examples, and with three sets of them if k > 0; five with k = 8, of which the last two are not
asked by default. With k = 8 there are further contexts, for tasks with two labels, in which 4, 5, 6, 7 or all 8
examples have the more frequent label (§6.2 of the paper). That is the label that more items of the pool have.

A third style, *words*, is our own. It names the labels and is answered with one of them in words, for models without
log-probabilities of options. It is used with k = 0 and 8.

A prompt has a maximum length. Examples are added in order until the next one does not fit. If the input does not fit
either, its middle is cut out, and then the end of the instruction; the end of the prompt is always kept. Lengths are
counted in bytes, so that all models get the same prompts. The prompts of the release count tokens of the model instead.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

from evaluators.task import CountTokens, Prompt, by_id
from schemas.items.label import LabelItem

# Both as in the paper.
N_EXAMPLES = (0, 2, 4, 8, 16)
N_SETS = 3
N_COMPARED = 5
"""Number of sets of :data:`N_BALANCED` examples that the tables of the paper compare; the last ones are an extra."""
N_BALANCED = 8
"""Number of examples in contexts that fix how many have the more frequent label."""
_MAX_BYTES = (4096, 1024)
"""Maximum lengths: about the 1,024 tokens of the paper, and a quarter of that for models with a short context."""
_MAX_TOKENS = 2000
"""Maximum number of tokens in the release; the paper says 1,024."""
_GAP = " ... "
_WORDS_CONTEXTS = (0, N_BALANCED)
"""Numbers of examples in prompts that are answered in words: those that are asked by default."""
_WORDS_TOKENS = 32
"""Largest number of tokens of an answer in words: the longest label of the 279 tasks has 30 characters."""

Style: TypeAlias = Literal["release", "paper", "words"]
Cut: TypeAlias = Literal["input", "instruction"]


class FilledPrompt(NamedTuple):
    """The text of a prompt about an item, and the parts of it that were left out."""

    text: str
    n_shown: int
    """Number of examples that fit."""
    cut: Cut | None
    """The part that was shortened; ``instruction`` if leaving out the input was not enough."""


class _Frame(NamedTuple):
    """The texts of a style around an instruction, an example and an input."""

    head: Callable[[str], str]
    example: Callable[[int, str, str], str]
    query: Callable[[str, Sequence[str]], str]
    """Function of the input and its labels."""


def _closed(text: str) -> str:
    """Return a text with a full stop at its end, unless it ends in punctuation."""
    return text if text[-1:] in string.punctuation and text else f"{text}."


# Apparent slips in *release* are what the release sends: a space before "Output:" in examples, an empty line and no
# space before that of the query, and a full stop after the labels of examples, which the scored label lacks.
_FRAMES: Mapping[Style, _Frame] = {
    "release": _Frame(
        head=lambda instruction: f"{_closed(instruction)}\n\n" if instruction else "",
        example=lambda number, text, label: f"{_closed(f'Input: {text}')}\n{_closed(f' Output: {label}')}\n\n",
        query=lambda text, labels: f"{_closed(f'Input: {text}')}\n\nOutput:",
    ),
    "paper": _Frame(
        head=lambda instruction: f"{_closed(f'Definition: {instruction}')}\n\n" if instruction else "",
        example=lambda number, text, label: (
            f" Positive Example {number} -\n{_closed(f'Input: {text}')}\n{_closed(f' Output: {label}')}\n\n"
        ),
        query=lambda text, labels: f"Now complete the following example -\n{_closed(f'Input: {text}')}\nOutput:",
    ),
    "words": _Frame(
        head=lambda instruction: f"{_closed(instruction)}\n\n" if instruction else "",
        example=lambda number, text, label: f"Input: {text}\nLabel: {label}\n\n",
        # One label a line: some contain commas, slashes or quotation marks.
        query=lambda text, labels: (
            f"Input: {text}\n\nLabels:\n"
            + "".join(f"- {label}\n" for label in labels)
            + "Answer with one label only.\nLabel:"
        ),
    ),
}

_PROTOCOLS: Mapping[str, tuple[Style, int | None, int | None]] = {
    **{f"{style}-{size}b": (style, size, None) for style in _FRAMES for size in _MAX_BYTES},
    f"release-{_MAX_TOKENS}t": ("release", None, _MAX_TOKENS),
}
"""Style of each protocol and the maximum length of its prompts, in bytes or in tokens of the model, by name; the first
one is the default."""
_ORIGINS: Mapping[Style, str] = {
    "release": "Prompt of the release",
    "paper": "Prompt of Tk-Instruct, which the paper names",
    "words": "Prompt that names the labels and is answered with one in words",
}


def label_prompts() -> dict[str, Prompt]:
    """Return all prompts by id, with the default one first."""
    prompts = (_prompt(name, *context) for name, (style, *_) in _PROTOCOLS.items() for context in _contexts(style))
    return by_id(*prompts)


def _contexts(style: Style) -> Iterator[tuple[int, int | None, int | None]]:
    """Yield each number of examples with each set, then each share with each set; without examples there is one.

    Yields:
        Number of examples, number of the set, and how many have the more frequent label; None if that is not fixed.
    """
    for k in _WORDS_CONTEXTS if style == "words" else N_EXAMPLES:
        n_sets = N_COMPARED if k == N_BALANCED else N_SETS
        yield from ((k, number, None) for number in (range(n_sets) if k else (None,)))
    if style != "words":
        yield from ((N_BALANCED, number, n_frequent) for n_frequent in N_FREQUENT for number in range(N_SETS))


def _prompt(protocol: str, n_examples: int, number: int | None, n_frequent: int | None) -> Prompt:
    style, max_bytes, max_tokens = _PROTOCOLS[protocol]
    room = f"{max_bytes} bytes" if max_tokens is None else f"{max_tokens} tokens of the model"
    name, shown = f"k{n_examples}", f"{n_examples} examples"
    if n_frequent is not None:
        name += f"-{rule_of(n_frequent)}"
        shown += f" of which {n_frequent} have the more frequent of two labels"
    if number is not None:
        name += f"-set{number}"
    frame = _FRAMES[style]
    prompt = Prompt(
        id=f"{protocol}-{name}-v1",
        template=frame.head("{instruction}") + "{examples}" + frame.query("{text}", ("{label}",)),
        options=(" {label}",),
        outcome_texts=(frame.example(1, "{text}", "{label}"),) if n_examples else (),
        orders=((0,),),
        scoring="option_logprob",
        requires="option_logprobs",
        description=f"{_ORIGINS[style]}, in at most {room}, with "
        + ("no examples." if number is None else f"{shown}, set {number}."),
        protocol=protocol,
        n_examples=n_examples,
        example_set=number,
        is_extra=number is not None and number >= N_SETS,
        example_rule=None if n_frequent is None else rule_of(n_frequent),
        max_prompt_bytes=max_bytes,
        max_prompt_tokens=max_tokens,
        normalisation="token_mean_if_unequal",
    )
    if style != "words":
        return prompt
    return replace(
        prompt,
        options=("{label}",),
        scoring="generation",
        requires="generation",
        normalisation=None,
        max_tokens=_WORDS_TOKENS,
        temperature=0.0,
        # Models that only continue texts go on with further inputs.
        stop=("\nInput:",),
        # Only calibrations and domain-label bias read them, which need probabilities. Examples are shown without being
        # asked.
        unread_splits=frozenset({"pool", "content_free"}),
    )


def filled(
    item: LabelItem, prompt: Prompt, examples: Sequence[LabelItem], count_tokens: CountTokens | None = None
) -> FilledPrompt:
    """Fill a prompt.

    Args:
        item: The item to ask about.
        prompt: One of :func:`label_prompts`.
        examples: Items to show, in order.
        count_tokens: Function that returns the number of tokens of a text, for prompts limited in tokens; None to fill
            such a prompt as if everything fitted.
    """
    frame = _FRAMES[_PROTOCOLS[prompt.protocol or ""][0]]
    limit: float = float("inf")
    size: CountTokens = len
    if prompt.max_prompt_bytes is not None:
        limit, size = prompt.max_prompt_bytes, _n_bytes
    elif prompt.max_prompt_tokens is not None and count_tokens is not None:
        limit, size = prompt.max_prompt_tokens, count_tokens

    def query_of(text: str) -> str:
        return frame.query(text, item.labels)

    head, query = frame.head(item.instruction.strip()), query_of(item.text.strip())
    shown: list[str] = []
    for number, example in enumerate(examples, start=1):
        text = frame.example(number, example.text.strip(), (example.target or "").strip())
        # The release measures examples joined by spaces, but sends them without.
        if size(f"{head}{' '.join(shown)}{text}{query}") > limit:
            break
        shown.append(text)
    if shown or size(f"{head}{query}") <= limit:
        return FilledPrompt(f"{head}{''.join(shown)}{query}", len(shown), None)
    return _shortened(head, item.text.strip(), query_of, limit, size)


def _n_bytes(text: str) -> int:
    return len(text.encode())


def _shortened(
    head: str, text: str, query: Callable[[str], str], limit: float, size: Callable[[str], int]
) -> FilledPrompt:
    """Cut out the middle of an input, and the end of the instruction if that is not enough."""
    kept = _most(len(text), lambda n: size(head + query(_without_middle(text, n))) <= limit)
    if kept is not None:
        return FilledPrompt(head + query(_without_middle(text, kept)), 0, "input")
    # The release cuts the end of the prompt instead, including "Output:".
    instruction, nothing = head.removesuffix("\n\n"), query(_GAP.strip())
    kept = _most(len(instruction), lambda n: size(f"{instruction[:n]}\n\n{nothing}") <= limit) or 0
    cut: Cut = "instruction" if kept < len(instruction) else "input"
    return FilledPrompt(f"{instruction[:kept]}\n\n{nothing}", 0, cut)


def _without_middle(text: str, n: int) -> str:
    """Return a text with its middle cut out, so that n characters are kept."""
    return text[: n - n // 2] + _GAP + (text[-(n // 2) :] if n > 1 else "")


def _most(most: int, fits: Callable[[int], bool]) -> int | None:
    """Return the largest number up to ``most`` that fits, where all smaller ones fit too; None if 0 does not."""
    if not fits(0):
        return None
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


N_FREQUENT = (4, 5, 6, 7, 8)
"""Fixed numbers of examples with the more frequent label, of :data:`N_BALANCED`, as in §6.2 of the paper."""
_RULE = "frequent"
_FITTING = 0.9
"""Share of the inputs of a pool beside which all examples by a rule must fit."""


def rule_of(n_frequent: int) -> str:
    """Return the name of the rule by which so many examples have the more frequent label."""
    return f"{_RULE}{n_frequent}"


def why_no_examples(pool: Sequence[LabelItem], prompt: Prompt) -> str | None:
    """Return why no examples can be chosen by any of the rules, or not all fit into a prompt; None if all rules work.

    The answer is the same for each rule, so that all shares are compared on the same tasks. Without some of the
    examples the labels have another share than the prompt's name says: 5 of the 6 that fit in place of 5 of 8. They
    must fit beside nine in ten inputs of the pool, since a single long one hardly changes a mean, and not of the test,
    so that a run of some items is of the same tasks as one of all. Only a limit in bytes is looked at, because no
    tokenizer is known here.
    """
    labels = {label for item in pool for label in item.labels}
    if len(labels) != 2:
        return f"{len(labels)} labels"
    n_rarer = len(pool) - len(_with_more_frequent_label(pool))
    if n_rarer < N_BALANCED - min(N_FREQUENT):
        return f"{n_rarer} items with the rarer label to show"
    if len(pool) - n_rarer < max(N_FREQUENT):
        return f"{len(pool) - n_rarer} items with the more frequent label to show"
    if prompt.max_prompt_bytes is None:
        return None
    sets = (
        examples_by_rule(pool, rule_of(n_frequent), N_BALANCED, number)
        for n_frequent in N_FREQUENT
        for number in range(N_SETS)
    )
    by_length = sorted(pool, key=lambda item: _n_bytes(item.text))
    long = by_length[int(_FITTING * (len(pool) - 1))]
    longest = max(sets, key=lambda items: sum(_n_bytes(f"{item.text}{item.target}") for item in items))
    if filled(long, prompt, longest).n_shown < N_BALANCED:
        return f"{N_BALANCED} examples do not fit into {prompt.max_prompt_bytes:,} bytes"
    return None


def examples_by_rule(pool: Sequence[LabelItem], rule: str, n_examples: int, number: int) -> tuple[LabelItem, ...]:
    """Return the examples of a set, in the order of the pool.

    Sets share no items as long as the pool has enough of each label; then they start over.
    """
    n_frequent = int(rule.removeprefix(_RULE))
    frequent = _with_more_frequent_label(pool)
    rarer = [index for index in range(len(pool)) if index not in frequent]
    chosen = {*_of_set(frequent, n_frequent, number), *_of_set(rarer, n_examples - n_frequent, number)}
    return tuple(pool[index] for index in sorted(chosen))


def _with_more_frequent_label(pool: Sequence[LabelItem]) -> list[int]:
    """Return the indices of the items with the label that more of them have; the first offered of two that tie."""
    # In the pool, not in the test: a run may ask a part of the test only, and must not depend on its right answers.
    counts = Counter(item.target for item in pool)
    most = max(pool[0].labels, key=lambda label: counts[label])
    return [index for index, item in enumerate(pool) if item.target == most]


def _of_set(indices: Sequence[int], n_wanted: int, number: int) -> list[int]:
    """Return the indices of a set, which starts where the set before it ended."""
    return [indices[(n_wanted * number + step) % len(indices)] for step in range(n_wanted)]
