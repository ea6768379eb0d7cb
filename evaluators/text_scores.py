"""Computes the scores of the texts of a run, and keeps them in ``scores.parquet``."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from biasboard.ground import strict_json
from biasboard.ground.columns import FloatArray
from biasboard.ground.errors import DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.memory import machine_memory
from biasboard.ground.progress import progress
from biasboard.ground.strict_json import JsonValue
from evaluators.scorer import TextScorer
from schemas.documents.base import shown
from schemas.documents.result import ScoresFile
from schemas.documents.run_files import Scorer, ScorerKind, TextScore, text_sha256
from schemas.files import contract, row_files
from schemas.folders.run_folder import SCORES, read_score_rows

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


def first_values(vectors: FloatArray) -> FloatArray:
    """Return the first value of each text, shape (n,); nan without scores."""
    return vectors[:, 0] if vectors.shape[1] else np.full(len(vectors), np.nan)


def smooth_sentiment(vectors: FloatArray) -> FloatArray:
    """Return P(positive) - P(negative), or the value itself if a scorer gives only one; shape (n,).

    Args:
        vectors: P(negative), P(neutral) and P(positive), or a single value in [-1, 1], shape (n, 3) or (n, 1).
    """
    if vectors.shape[1] != 3:
        return first_values(vectors)
    # Unlike the rule of the published code, this does not jump where another label becomes the most probable.
    # Divided by the sum because probabilities in single precision do not sum to exactly 1.
    difference: FloatArray = (vectors[:, 2] - vectors[:, 0]) / vectors.sum(axis=1)
    return difference


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
