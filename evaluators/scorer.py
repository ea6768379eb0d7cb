"""What a scorer is: texts to numbers that metrics read, pinned to a revision.

A file in ``evaluators/scorers`` is a plug-in. It holds ``SUMMARY``, ``KINDS`` (the kinds of score it gives) and
``open_scorer(kind, model, revision)``, which finds the scorer and loads nothing heavy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
"""Named sets: those that need no network, and those that the paper's authors took."""
SCORER_HELP = (
    "Who scores sentiment, toxicity and likeness of generated texts: default, reference, none, or "
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


def wanted_scorers(given: Sequence[str]) -> tuple[Wanted, ...]:
    """Scorers as they are named on a command line: sets, and ``KIND=NAME[:MODEL[@REVISION]]``.

    Raises:
        ConfigError: a name that is neither, or two scorers of one kind.

    >>> wanted_scorers(["toxicity=classifier:org/name@main"])[0].model
    'org/name'
    """
    entries = [entry for text in given for entry in SETS.get(text, (text,))]
    found: dict[ScorerKind, Wanted] = {}
    for entry in entries:
        wanted = _wanted(entry)
        if wanted.kind in found:
            raise ConfigError(f"--scorer: two scorers of kind {wanted.kind}; a run has one of each kind, leave one out")
        found[wanted.kind] = wanted
    return tuple(found.values())


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
    return Wanted(kind, name, location or None, revision or None)


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
