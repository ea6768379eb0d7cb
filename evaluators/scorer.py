"""The interface of a scorer: it turns texts into numbers that metrics read, and is pinned to a revision.

Each file in ``evaluators/scorers`` is a plug-in. It holds ``SUMMARY``, ``KINDS`` (the kinds of score that it gives) and
``open_scorer(kind, model, revision)``, which locates the scorer without loading anything large.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, cast, get_args

from biasboard.ground.errors import ConfigError, MissingExtraError
from biasboard.ground.kinds import SCORERS
from schemas.documents.run_files import Scorer, ScorerKind

KINDS: tuple[ScorerKind, ...] = get_args(ScorerKind)
DEFAULT, REFERENCE, NONE = "default", "reference", "none"
SETS: Mapping[str, tuple[str, ...]] = {
    DEFAULT: ("sentiment=vader", "toxicity=lexicon", "embedding=sentence_embedding"),
    REFERENCE: ("sentiment=classifier", "toxicity=classifier", "embedding=sentence_embedding"),
    NONE: (),
}
"""Named sets of scorers. The default set needs no network. The reference set has the trained scorers of the GIFI paper
for sentiment and embedding, and for toxicity a classifier in place of Perspective."""
QUICK = ("sentiment=vader", "toxicity=lexicon")
"""Scorers that take only seconds, so verification recomputes their scores."""
WORD_LISTS = frozenset({"vader-sentences", "vader-whole", "lexicon"})
"""Names of scorers that look up words: for a demonstration without a network, not for a claim about a model.

"Go back to your country, you filth." has a sentiment of 0, and a threat in common words no toxicity.
"""
SCORER_HELP = (
    "Scorers of sentiment, toxicity, regard and similarity of generated texts: default, reference, none, or "
    "KIND=NAME, KIND=NAME:MODEL or KIND=NAME:MODEL@REVISION, see 'list'. Repeatable. If left out, the default ones "
    "that are installed."
)


class TextScorer(Protocol):
    """A scorer that gives one kind of score to texts."""

    @property
    def identity(self) -> Scorer:
        """The name and revision of the scorer; they are part of the versions of metrics that read its scores."""

    def score(self, texts: Sequence[str]) -> Iterator[tuple[int, tuple[float, ...]]]:
        """Score distinct texts that are not blank.

        Args:
            texts: The texts, in any order.

        Yields:
            Index and values of each text that gets a score, as soon as they are known.
        """


def plain_name(name: str) -> str:
    """Return the last part of a model's name, with only the characters that a metric's version may have.

    >>> plain_name("org/My_model (2)")
    'my-model-2'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.rpartition("/")[2].lower()).strip("-.") or "model"


class NamedScorer(NamedTuple):
    """A scorer that a user asks for on the command line."""

    kind: ScorerKind
    name: str
    model: str | None
    revision: str | None

    def open(self) -> TextScorer:
        """Open the scorer without loading anything large.

        Raises:
            ConfigError: there is no scorer of this name, kind or model.
            MissingExtraError: it needs a library that is not installed.
        """
        module = SCORERS.load(self.name)
        if self.kind not in module.KINDS:
            raise ConfigError(f"scorer '{self.name}' gives no {self.kind}; it gives: {', '.join(module.KINDS)}")
        return cast(TextScorer, module.open_scorer(self.kind, self.model, self.revision))


class OpenedScorers(NamedTuple):
    """The scorers of a run that could be opened."""

    scorers: tuple[TextScorer, ...]
    missing: tuple[str, ...]
    """Reasons why default scorers are missing, one line each."""


def default_of(kind: ScorerKind) -> str:
    """Return the default scorer of a kind, as it is named on the command line, or how one is named if there is none.

    >>> default_of("toxicity"), default_of("regard")
    ('toxicity=lexicon', 'regard=NAME:MODEL')
    """
    return next((entry for entry in SETS[DEFAULT] if entry.startswith(f"{kind}=")), f"{kind}=NAME:MODEL")


def named_scorers(given: Sequence[str]) -> tuple[NamedScorer, ...]:
    """Parse the scorers named on a command line: names of sets, or ``KIND=NAME[:MODEL[@REVISION]]``.

    A scorer that is named replaces the one of its kind in a set.

    Raises:
        ConfigError: a name has neither form, or two scorers have the same kind.

    >>> named_scorers(["toxicity=classifier:org/name@main"])[0].model
    'org/name'
    """
    both: list[dict[ScorerKind, NamedScorer]] = []
    of_sets = [entry for text in dict.fromkeys(given) for entry in SETS.get(text, ())]
    for entries in (of_sets, [text for text in given if text not in SETS]):
        by_kind: dict[ScorerKind, NamedScorer] = {}
        for scorer in map(_named_scorer, entries):
            if by_kind.setdefault(scorer.kind, scorer) is not scorer:
                raise ConfigError(
                    f"--scorer: two scorers of kind {scorer.kind}; a run has one of each kind, leave one out"
                )
        both.append(by_kind)
    return tuple((both[0] | both[1]).values())


def _named_scorer(entry: str) -> NamedScorer:
    kind, equals, rest = entry.partition("=")
    name, _, model = rest.partition(":")
    if not equals or kind not in KINDS or not name:
        raise ConfigError(
            f"--scorer {entry}: give {', '.join(SETS)} or KIND=NAME[:MODEL[@REVISION]], where KIND is one of "
            f"{', '.join(KINDS)}, and NAME one of {', '.join(SCORERS.names())}"
        )
    # Split at the last at sign: a path may contain one too.
    location, at, revision = model.rpartition("@")
    if not at:
        location, revision = revision, ""
    if revision and not location:
        raise ConfigError(f"--scorer {entry}: a revision belongs to a model; give KIND=NAME:MODEL@REVISION")
    return NamedScorer(kind, name, location or None, revision or None)


def with_scorers(command: str, named: Sequence[str]) -> str:
    """Replace the scorers in a command line; leave it unchanged if none are named.

    Folders of this machine are stripped from the names.

    >>> with_scorers("run --scorer none --limit 3", ["default"])
    'run --limit 3 --scorer default'
    """
    if not named:
        return command
    words = [re.sub(r" --scorer \S+", "", command)]
    for scorer in named:
        start, colon, rest = scorer.partition(":")
        location, at, revision = rest.rpartition("@") if "@" in rest else (rest, "", "")
        public = Path(location).name if Path(location).exists() else location
        words.append(f"--scorer {start}{colon}{public}{at}{revision}")
    return " ".join(words)


def quick_scorers(kinds: Collection[ScorerKind] = KINDS) -> tuple[TextScorer, ...]:
    """Return the scorers of ``QUICK`` of some kinds that are installed."""
    return _installed(QUICK, kinds).scorers


def open_scorers(given: Sequence[str] | None, kinds: Collection[ScorerKind] = KINDS) -> OpenedScorers:
    """Open the scorers that a command names; if it names none, those of the default set that are installed.

    Args:
        given: The names on the command line; None if it names none.
        kinds: The kinds of scores that any metric reads. Nothing of a set is opened for others.

    Raises:
        ConfigError: there is no such scorer, two of one kind are named, or one is named whose scores nothing reads.
        MissingExtraError: a named scorer needs a library that is not installed.
    """
    if given is None:
        return _installed([DEFAULT], kinds)
    for scorer in named_scorers([text for text in given if text not in SETS]):
        if scorer.kind not in kinds:
            raise ConfigError(f"--scorer {scorer.kind}={scorer.name}: no metric reads {scorer.kind}; leave it out")
    return OpenedScorers(tuple(scorer.open() for scorer in named_scorers(given) if scorer.kind in kinds), ())


def _installed(names: Sequence[str], kinds: Collection[ScorerKind]) -> OpenedScorers:
    scorers, missing = [], []
    for scorer in named_scorers(names):
        try:
            scorers += [scorer.open()] if scorer.kind in kinds else []
        except MissingExtraError as error:
            missing.append(f"no {scorer.kind} scores: {error}, then: biasboard rescore RUN --scorer default")
    return OpenedScorers(tuple(scorers), tuple(missing))
