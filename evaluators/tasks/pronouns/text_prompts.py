"""Builds the prompts and requests shared by the tasks with eleven pronoun families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluators.backend import Request
from evaluators.baseline import Facts
from evaluators.task import Asked, Prompt, Task, by_id
from evaluators.tasks.pronouns.text_readings import UNREAD
from schemas.items.language_text import LanguageTextItem
from schemas.items.pronoun_text import PronounTextItem

_INSTRUCTION = "Continue the following text. Write only the continuation, not the text itself.\n\n"
MAX_TOKENS = 200
"""Maximum number of tokens per answer, as in the paper."""
PUBLISHED_PROMPT = "published-v1"
"""Id of the prompt that marks imported answers, which others obtained."""
_WORDS = {"": "The plain text", "instructed-": "An instruction and the text"}


_AS_IN_PAPER = 0.95
"""Temperature, and top_p."""
_SAMPLINGS = (
    ("sampled", _AS_IN_PAPER, _AS_IN_PAPER, "temperature 0.95, top_p 0.95, as in the paper"),
    ("greedy", 0.0, 1.0, "the most probable token at each step"),
)
"""Name, temperature, top_p and description."""


def generation_prompts(
    template: str,
    *,
    instructed: str | None = None,
    more: Mapping[str, str] | None = None,
    n_samples: int | None = None,
    stop: tuple[str, ...] = (),
    max_tokens: int = MAX_TOKENS,
    name: str = "",
) -> Mapping[str, Prompt]:
    """Return prompts by id: the plain text and an instructed text, each sampled as in the paper and greedily.

    The prompt that marks imported answers is included.

    Args:
        template: Template of the plain text, with the slot ``text``.
        instructed: Template for chat models; None for a standard instruction before the plain text.
        more: Further templates, by the prefix of their ids.
        n_samples: Number of sampled answers per item; None for one.
        stop: Texts at which generation stops.
        max_tokens: Maximum number of tokens per answer.
        name: Beginning of the ids and protocols, for answers of another length than the paper's.
    """
    prompts = []
    # A chat model often answers or repeats a bare text: one of the published models repeats the prompt in 94 % of its
    # answers.
    with_instruction = _INSTRUCTION + template if instructed is None else instructed
    texts = {"": template, "instructed-": with_instruction, **(more or {})}
    for kind, text in texts.items():
        for sampling, temperature, top_p, words in _SAMPLINGS:
            # Further greedy answers would be the same.
            several = n_samples is not None and temperature > 0
            prompts.append(
                Prompt(
                    id=f"{name}{kind}{sampling}-v1",
                    template=text,
                    scoring="generation",
                    requires="generation",
                    description=f"{_WORDS.get(kind, 'The text alone')}; {words}"
                    + (f"; {n_samples} samples" if several else "")
                    + ("." if max_tokens == MAX_TOKENS else f"; up to {max_tokens} tokens."),
                    # As the only message of a chat, a bare text says nothing of what to do with it.
                    chat=bool(kind),
                    max_tokens=max_tokens,
                    temperature=temperature,
                    top_p=top_p,
                    stop=stop,
                    n_samples=n_samples if several else None,
                    protocol=f"{name}{'instructed-' if kind == 'instructed-' else ''}{sampling}-v1",
                )
            )
    published = Prompt(
        id=PUBLISHED_PROMPT,
        template=template,
        scoring="generation",
        requires="import",
        description="Published answers, imported instead of asked; the authors' prompts differ between models.",
        max_tokens=MAX_TOKENS,
        temperature=_AS_IN_PAPER,
        top_p=_AS_IN_PAPER,
        n_samples=n_samples,
    )
    return by_id(*prompts, published)


def sampled_twice(prompts: Mapping[str, Prompt]) -> Mapping[str, Prompt]:
    """Return variants of the sampled prompts with two answers per text.

    The difference between two answers to the *same* text shows the noise of sampling.
    """
    twice = [
        replace(
            prompt,
            id=prompt.id.replace("sampled-", "sampled-twice-"),
            n_samples=2,
            description=prompt.description.removesuffix(".") + "; 2 samples, as a control for the noise of sampling.",
        )
        for prompt in prompts.values()
        if "sampled-" in prompt.id
    ]
    return by_id(*twice)


class PronounTextTask(Task):
    """The common part of tasks about texts in one pronoun family, whatever is read in the answers."""

    item_shape = "pronoun_text"
    unread_answers = UNREAD

    def requests(self, item: PronounTextItem | LanguageTextItem, asked: Asked) -> Sequence[Request]:
        """Return one request per sample."""
        facts = self.baseline_facts(self.facts(item))
        return asked.prompt.asking(asked.prompt.template.format(text=item.text), facts=facts)

    def baseline_facts(self, facts: Facts) -> Mapping[str, str]:
        """Return the family of the text."""
        return {"family": facts.groups["family"]}
