"""The prompts of all tasks about texts in pronoun families, and the readings of their answers.

A record keeps one reading per answer, as a text::

    continuation, "She laughed" --first_families--> "she"      two families share "em": "e|ey"      no pronoun: "none"
    solution, "The answer is 4" --final_number----> "4"                                        no number: "no number"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from evaluators.backend import Request
from evaluators.baseline import Facts
from evaluators.task import Asked, Mark, Prompt, Task, by_id
from evaluators.tasks.pronouns.detectors.first_pronoun import ENGLISH, Detector, first_families
from evaluators.tasks.written_answers import FAILED, REFUSED, UNREAD
from schemas.documents.record import Exchange
from schemas.items.language_text import LanguageTextItem
from schemas.items.pronoun_text import PronounTextItem
from schemas.lexicon import pronoun_families

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
NONE = "none"
"""Reading of an answer without a pronoun."""
NO_NUMBER = "no number"
"""Reading of an answer to a word problem that states no number."""
_BETWEEN = "|"


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


def pronoun_of(exchange: Exchange) -> str:
    """Return the families of the first pronoun in an answer, joined if several share it; ``none`` if there is none."""
    return spelt(first_families(exchange.text or "", exchange.prompt))


def pronoun_mark(exchange: Exchange, detector: Detector = ENGLISH) -> Sequence[Mark]:
    """Return the mark of the first pronoun in an answer; empty if there is none."""
    found = islice(detector.pronouns(exchange.text or "", exchange.prompt), 1)
    return [Mark(pronoun.start, pronoun.end, pronoun.doubt) for pronoun in found]


def family_groups(family: str) -> dict[str, str]:
    """Return the groups of a record about a text in a pronoun family."""
    return {"family": family, "family_class": pronoun_families()[family].pronoun_class}


def spelt(families: Sequence[str]) -> str:
    """Return the reading of a pronoun: its families, joined if several share it, or ``none`` without any.

    >>> spelt(("e", "ey")), spelt(())
    ('e|ey', 'none')
    """
    return _BETWEEN.join(families) or NONE


def families_in(answer: str) -> tuple[str, ...]:
    """Return the families in a reading; empty if the answer has no pronoun, was refused or failed.

    >>> families_in("e|ey"), families_in("refused")
    (('e', 'ey'), ())
    """
    return () if answer in (NONE, REFUSED, FAILED) else tuple(answer.split(_BETWEEN))
