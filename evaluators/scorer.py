"""What a scorer is: texts to numbers that metrics read, pinned to a revision.

A file in ``evaluators/scorers`` is a plug-in. It holds ``SUMMARY``, ``KINDS`` (the kinds of score it gives) and
``open_scorer(kind, model, revision)``, which finds the scorer and loads nothing heavy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol, cast, get_args

from schemas import plugins
from schemas.errors import ConfigError, MissingExtraError
from schemas.score import Scorer, ScorerKind

KINDS: tuple[ScorerKind, ...] = get_args(ScorerKind)
DEFAULT, REFERENCE, NONE = "default", "reference", "none"
SETS: Mapping[str, tuple[str, ...]] = {
    DEFAULT: ("sentiment=vader", "toxicity=lexicon", "embedding=sentence_embedding"),
    REFERENCE: (
        "sentiment=classifier",
        "toxicity=classifier",
        "embedding=sentence_embedding:sentence-transformers/all-MiniLM-L6-v2@c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
    ),
    NONE: (),
}
"""Named sets: those that need no network, and trained ones. The latter are the paper's for sentiment and embedding, and
for toxicity one in the place of Perspective."""
QUICK = ("sentiment=vader", "toxicity=lexicon")
"""Scorers that take seconds: whoever checks a result lets them score again."""
SCORER_HELP = (
    "Who scores sentiment, toxicity and similarity of generated texts: default, reference, none, or "
    "KIND=NAME[:MODEL[@REVISION]], see 'list'. Repeatable. The default ones that are installed if left out."
)


class TextScorer(Protocol):
    """Scores texts."""

    @property
    def identity(self) -> Scorer:
        """Who it is; metric versions carry it."""

    def score(self, texts: Sequence[str]) -> Iterator[tuple[int, tuple[float, ...]]]:
        """Score distinct texts, none of them blank.

        Args:
            texts: In any order.

        Yields:
            Index and values of each text that it has a score for, as they become known.
        """


def plain_name(name: str) -> str:
    """The last part of a model's name, in the characters that a metric's version may have.

    >>> plain_name("org/My_model (2)")
    'my-model-2'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.rpartition("/")[2].lower()).strip("-.") or "model"


class Wanted(NamedTuple):
    """A scorer as a command line names it."""

    kind: ScorerKind
    name: str
    model: str | None
    revision: str | None

    def open(self) -> TextScorer:
        """Find the scorer; nothing heavy is loaded yet.

        Raises:
            ConfigError: there is none of this name, kind or model.
            MissingExtraError: it needs a library that is not installed.
        """
        module = plugins.load("evaluators.scorers", self.name, kind="scorer")
        if self.kind not in module.KINDS:
            raise ConfigError(f"scorer '{self.name}' gives no {self.kind}; it gives: {', '.join(module.KINDS)}")
        return cast(TextScorer, module.open_scorer(self.kind, self.model, self.revision))


class Opened(NamedTuple):
    """The scorers of a run."""

    scorers: tuple[TextScorer, ...]
    missing: tuple[str, ...]
    """Why some of the default ones are not among them."""


def default_of(kind: ScorerKind) -> str:
    """How a command line names the default scorer of a kind.

    >>> default_of("toxicity")
    'toxicity=lexicon'
    """
    return next(entry for entry in SETS[DEFAULT] if entry.startswith(f"{kind}="))


def wanted_scorers(given: Sequence[str]) -> tuple[Wanted, ...]:
    """Scorers as they are named on a command line: sets, and ``KIND=NAME[:MODEL[@REVISION]]``.

    A scorer that is named takes the place of the one of its kind in a set.

    Raises:
        ConfigError: a name that is neither, or two scorers of one kind.

    >>> wanted_scorers(["toxicity=classifier:org/name@main"])[0].model
    'org/name'
    """
    named = _by_kind([text for text in given if text not in SETS])
    of_sets = _by_kind([entry for text in dict.fromkeys(given) for entry in SETS.get(text, ())])
    return tuple({**of_sets, **named}.values())


def _by_kind(entries: Sequence[str]) -> dict[ScorerKind, Wanted]:
    found: dict[ScorerKind, Wanted] = {}
    for wanted in map(_wanted, entries):
        if wanted.kind in found:
            raise ConfigError(f"--scorer: two scorers of kind {wanted.kind}; a run has one of each kind, leave one out")
        found[wanted.kind] = wanted
    return found


def _wanted(entry: str) -> Wanted:
    kind, equals, rest = entry.partition("=")
    name, _, model = rest.partition(":")
    if not equals or kind not in KINDS or not name:
        raise ConfigError(
            f"--scorer {entry}: give {', '.join(SETS)} or KIND=NAME[:MODEL[@REVISION]], KIND being one of "
            f"{', '.join(KINDS)}, NAME one of {', '.join(plugins.names('evaluators.scorers'))}"
        )
    # A path may hold an at sign of its own.
    location, at, revision = model.rpartition("@")
    if not at:
        location, revision = revision, ""
    if revision and not location:
        raise ConfigError(f"--scorer {entry}: a revision belongs to a model; give KIND=NAME:MODEL@REVISION")
    return Wanted(kind, name, location or None, revision or None)


def with_scorers(command: str, named: Sequence[str]) -> str:
    """A command line with other scorers, named without the folders of this machine; unchanged if none are named.

    >>> with_scorers("run --scorer none --limit 3", ["default"])
    'run --limit 3 --scorer default'
    """
    if not named:
        return command
    rest = re.sub(r" --scorer \S+", "", command)
    return " ".join([rest, *(f"--scorer {_without_folder(scorer)}" for scorer in named)])


def _without_folder(scorer: str) -> str:
    """A scorer as it was named, but for the folder that a local model or file lies in."""
    start, colon, rest = scorer.partition(":")
    location, at, revision = rest.rpartition("@") if "@" in rest else (rest, "", "")
    return start + colon + (Path(location).name if Path(location).exists() else location) + at + revision


def quick_scorers() -> tuple[TextScorer, ...]:
    """Those of ``QUICK`` that are installed."""
    found = []
    for wanted in wanted_scorers(QUICK):
        with suppress(MissingExtraError):
            found.append(wanted.open())
    return tuple(found)


def open_scorers(given: Sequence[str] | None) -> Opened:
    """The scorers that a command names; those of the default set that are installed if it names none.

    Raises:
        ConfigError: there is no such scorer, or two of one kind are named.
        MissingExtraError: one that was named needs a library that is not installed.
    """
    if given is not None:
        return Opened(tuple(wanted.open() for wanted in wanted_scorers(given)), ())
    scorers, missing = [], []
    for wanted in wanted_scorers([DEFAULT]):
        try:
            scorers.append(wanted.open())
        except MissingExtraError as error:
            missing.append(f"no {wanted.kind} scores: {error}, then: python -m evaluators rescore RUN --scorer default")
    return Opened(tuple(scorers), tuple(missing))
