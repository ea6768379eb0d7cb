"""The interface of a scorer, which turns texts into numbers that metrics read, and the scores of a run.

Each file in ``evaluators/scorers`` is a plug-in. It holds ``SUMMARY``, ``KINDS`` (the kinds of score that it gives) and
``open_scorer(kind, model, revision)``, which locates the scorer without loading anything large.

Computes the scores of the texts of a run, and keeps them in ``scores.parquet``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Protocol, cast, get_args

import numpy as np

from biasboard.ground import strict_json
from biasboard.ground.columns import FloatArray
from biasboard.ground.errors import ConfigError, DataError, MissingExtraError
from biasboard.ground.files import sha256_file
from biasboard.ground.kinds import SCORERS
from biasboard.ground.memory import machine_memory
from biasboard.ground.progress import progress
from biasboard.ground.strict_json import JsonValue
from schemas.documents.base import shown
from schemas.documents.result import ScoresFile
from schemas.documents.run_files import Scorer, ScorerKind, TextScore, text_sha256
from schemas.files import contract, row_files
from schemas.folders.run_folder import SCORES, read_score_rows

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
WORD_LISTS = frozenset({"vader-sentences", "lexicon"})
"""Names of scorers that look up words: for a demonstration without a network, not for a claim about a model.

"Go back to your country, you filth." has a sentiment of 0, and a threat in common words no toxicity.
"""
SCORER_HELP = (
    "Scorers of sentiment, toxicity and similarity of generated texts: default, reference, none, or "
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
    """Return the default scorer of a kind, as it is named on the command line.

    >>> default_of("toxicity")
    'toxicity=lexicon'
    """
    return next(entry for entry in SETS[DEFAULT] if entry.startswith(f"{kind}="))


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


_PENDING = "pending-scores-*.parquet"
_SCORED = "scores of texts"
_MOST_REMEMBERED = 4_000_000
"""Largest number of score values of a run, 32 MB, that this machine remembers."""
_SAVE_EVERY_SECONDS = 60.0
_WORTH_KEEPING_SECONDS = 5.0

Vectors = Mapping[str, tuple[float, ...]]
"""Score values by the hash of the text."""


@dataclass(frozen=True)
class TextScores:
    """The scores of the texts of one run, from at most one scorer of each kind."""

    scorers: Mapping[ScorerKind, Scorer] = field(default_factory=dict)
    """Scorer of each kind."""
    values: Mapping[ScorerKind, Vectors] = field(default_factory=dict)
    """Scores of each kind, by the hash of the text."""

    def of_kinds(self, kinds: Collection[ScorerKind]) -> TextScores:
        """Return only the scores of some kinds."""
        return TextScores(
            {kind: scorer for kind, scorer in self.scorers.items() if kind in kinds},
            {kind: vectors for kind, vectors in self.values.items() if kind in kinds},
        )

    def label(self, kind: ScorerKind) -> str | None:
        """Return the name and revision of the scorer of a kind; None if there is none."""
        return self.scorers[kind].label if kind in self.scorers else None

    def vectors(self, kind: ScorerKind, hashes: Sequence[str]) -> FloatArray:
        """Return the scores of some texts.

        Args:
            kind: The kind of score.
            hashes: Hashes of the texts; an empty hash stands for no text.

        Returns:
            Scores of shape (len(hashes), n_values), with a row of nan for each text without a score. n_values is 0 if
            there are no scores of the kind.
        """
        known = self.values.get(kind, {})
        n_values = len(next(iter(known.values()), ()))
        vectors = np.full((len(hashes), n_values), np.nan)
        for row, text_hash in enumerate(hashes):
            if text_hash in known:
                vectors[row] = known[text_hash]
        return vectors

    def rows(self) -> list[TextScore]:
        """Return the scores as rows of the file, ordered by kind and hash."""
        return [
            TextScore(kind=kind, scorer=self.scorers[kind].label, text_sha256=text_hash, values=vectors[text_hash])
            for kind, vectors in sorted(self.values.items())
            for text_hash in sorted(vectors)
        ]


NO_SCORES = TextScores()


def read_scores(folder: Path, file: ScoresFile | None) -> TextScores:
    """Read the scores of a run.

    Args:
        folder: The folder of the run.
        file: The reference to the file in the run's result; None if there are no scores.

    Raises:
        DataError: the file is missing, was changed, or does not match the result.
    """
    if file is None:
        return NO_SCORES
    values: dict[ScorerKind, dict[str, tuple[float, ...]]] = {scorer.kind: {} for scorer in file.scorers}
    for row in read_score_rows(folder, file):
        values[row.kind][row.text_sha256] = row.values
    return TextScores({scorer.kind: scorer for scorer in file.scorers}, values)


def write_scores(folder: Path, scores: TextScores) -> ScoresFile | None:
    """Write the scores of a run to its folder, and remove intermediate ones.

    Returns:
        The reference to the file for the result; None if there are no scores.
    """
    path = folder / SCORES
    for pending in folder.glob(_PENDING):
        pending.unlink()
    if not scores.scorers:
        path.unlink(missing_ok=True)
        return None
    rows = scores.rows()
    row_files.write_rows(path, rows, TextScore)
    named = tuple(scores.scorers[kind] for kind in sorted(scores.scorers))
    return ScoresFile(path=SCORES, sha256=sha256_file(path), n_rows=len(rows), scorers=named)


def score_texts(
    texts: Sequence[str],
    scorers: Sequence[TextScorer],
    *,
    known: TextScores = NO_SCORES,
    folder: Path | None = None,
    save_every_seconds: float = _SAVE_EVERY_SECONDS,
) -> TextScores:
    """Score texts, and reuse known scores.

    Args:
        texts: The texts of a run; equal ones are scored once.
        scorers: At most one scorer of each kind.
        known: Earlier scores. Those from exactly the same scorer are reused, and those of kinds without a scorer are
            kept.
        folder: Folder for intermediate scores, from which a stopped run continues; None to save none.
        save_every_seconds: Seconds between saves of intermediate scores.

    Returns:
        The scores of these texts, without texts that a scorer gave no score.
    """
    by_hash = {text_sha256(text): text for text in texts}
    identities: dict[ScorerKind, Scorer] = {}
    scores: dict[ScorerKind, Vectors] = {}
    for kind, earlier in known.values.items():
        identities[kind] = known.scorers[kind]
        scores[kind] = {text_hash: earlier[text_hash] for text_hash in by_hash if text_hash in earlier}
    pending = _pending(folder)
    for scorer in scorers:
        identity = scorer.identity
        kept = pending.get((identity.kind, identity.label), {})
        if known.scorers.get(identity.kind) == identity:
            kept = {**known.values[identity.kind], **kept}
        vectors = {text_hash: kept[text_hash] for text_hash in by_hash if text_hash in kept}
        scores[identity.kind] = _scored(scorer, by_hash, vectors, folder, save_every_seconds)
        identities[identity.kind] = identity
    return TextScores(identities, scores)


def _scored(
    scorer: TextScorer,
    by_hash: Mapping[str, str],
    vectors: dict[str, tuple[float, ...]],
    folder: Path | None,
    save_every_seconds: float,
) -> Vectors:
    missing = [text_hash for text_hash in by_hash if text_hash not in vectors]
    if not missing:
        return vectors
    identity = scorer.identity
    memory = machine_memory()
    # Remembered by this machine, so that importing a published model again takes 2.6 s of CPU time instead of 35 s.
    asked = {"scorer": contract.plain(asdict(identity)), "texts": strict_json.sha256([*sorted(missing)])}
    remembered = _from_memory(memory.get(_SCORED, asked), missing)
    if remembered is not None:
        return vectors | remembered
    started = last_saved = monotonic()
    unsaved: dict[str, tuple[float, ...]] = {}
    with progress(f"{identity.kind} by {identity.label}", len(by_hash), done=len(vectors)) as advance:
        for index, values in _arriving(scorer, [by_hash[text_hash] for text_hash in missing]):
            vectors[missing[index]] = unsaved[missing[index]] = values
            advance(1)
            if folder is not None and monotonic() - last_saved > save_every_seconds:
                _save(folder, TextScores({identity.kind: identity}, {identity.kind: unsaved}))
                unsaved, last_saved = {}, monotonic()
    if folder is not None and unsaved and monotonic() - started > _WORTH_KEEPING_SECONDS:
        _save(folder, TextScores({identity.kind: identity}, {identity.kind: unsaved}))
    memory.put(_SCORED, asked, _for_memory(vectors, missing))
    if len(vectors) < len(by_hash):
        print(f"{identity.label} scored {len(vectors):,} of {len(by_hash):,} texts; the others are left out")
    return vectors


def _arriving(scorer: TextScorer, texts: Sequence[str]) -> Iterator[tuple[int, tuple[float, ...]]]:
    """Yield the scores of a scorer, which may be a user's: what is none must not be remembered, or go on without end.

    Raises:
        DataError: it scores a text twice or one that is not there, or gives no finite numbers.
    """
    given: set[object] = set()
    for one in scorer.score(texts):
        try:
            index, values = one
            numbers = np.array(values, dtype=np.float64)
            is_sound = numbers.ndim == 1 and np.isfinite(numbers).all() and texts[index] not in given and index >= 0
        except (TypeError, ValueError, LookupError):
            is_sound = False
        if not is_sound:
            raise DataError(
                f"scorer {scorer.identity.label}: gives {shown(one)}, and a text needs its number and one tuple of "
                "finite numbers; correct the scorer"
            )
        given.add(texts[index])
        yield index, tuple(numbers.tolist())


def _for_memory(vectors: Vectors, hashes: Sequence[str]) -> JsonValue:
    """Return the scores of some texts in the form that the machine remembers; None if they are too many."""
    scored = [text_hash for text_hash in sorted(hashes) if text_hash in vectors]
    sizes = {len(vectors[text_hash]) for text_hash in scored}
    if len(sizes) != 1 or len(scored) * max(sizes) > _MOST_REMEMBERED:
        return None
    numbers = np.array([vectors[text_hash] for text_hash in scored], dtype="<f8")
    return {"texts": [*scored], "values": base64.b64encode(numbers.tobytes()).decode()}


def _from_memory(value: JsonValue | None, hashes: Sequence[str]) -> dict[str, tuple[float, ...]] | None:
    """Return remembered scores; None if they are not those of these texts."""
    if not isinstance(value, dict):
        return None
    remembered: dict[str, Any] = value
    scored, wanted = remembered["texts"], set(hashes)
    if not scored or not wanted.issuperset(scored):
        return None
    rows = np.frombuffer(base64.b64decode(remembered["values"]), dtype="<f8").reshape(len(scored), -1).tolist()
    return {text_hash: tuple(row) for text_hash, row in zip(scored, rows, strict=True)}


def _save(folder: Path, scores: TextScores) -> None:
    """Save intermediate scores in a new file."""
    number = 1 + max((int(path.stem.rpartition("-")[2]) for path in folder.glob(_PENDING)), default=0)
    row_files.write_rows(folder / _PENDING.replace("*", f"{number:06}"), scores.rows(), TextScore)


def _pending(folder: Path | None) -> dict[tuple[ScorerKind, str], dict[str, tuple[float, ...]]]:
    kept: dict[tuple[ScorerKind, str], dict[str, tuple[float, ...]]] = {}
    for path in sorted(folder.glob(_PENDING)) if folder is not None else ():
        try:
            rows = row_files.read_rows(path, TextScore)
        except DataError:
            continue  # Texts whose scores cannot be read are scored again.
        for row in rows:
            kept.setdefault((row.kind, row.scorer), {})[row.text_sha256] = row.values
    return kept
