"""Reads scores that were computed elsewhere, such as those of Perspective, whose service stops at the end of 2026."""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable, sha256_file
from biasboard.ground.plain_text import unprotected
from schemas.documents.run_files import Scorer, ScorerKind

SUMMARY = "a CSV file with the columns text and score: KIND=stored:FILE.csv@NAME-REVISION, such as perspective-2026-11"
KINDS: tuple[ScorerKind, ...] = ("sentiment", "toxicity")
_LOWEST: Mapping[str, float] = {"sentiment": -1.0, "toxicity": 0.0}
# Excludes "1_0" and digits of other scripts, which float() accepts.
_DECIMAL = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]{1,9})?")
_LABEL = re.compile(r"(?=[A-Za-z0-9.-]*+\Z)([A-Za-z0-9][A-Za-z0-9.-]*?)-([A-Za-z0-9.][A-Za-z0-9.-]*)")


class Stored:
    """A scorer that looks up texts in a file."""

    def __init__(self, kind: ScorerKind, path: Path, label: re.Match[str]) -> None:
        self._scores = _read(path, kind)
        self.identity = Scorer(
            kind=kind,
            # The prefix keeps the user's label from passing for one of our scorers.
            name=f"stored-{label[1]}",
            revision=label[2],
            settings={"file": path.name, "file_sha256": sha256_file(path)},
        )

    def score(self, texts: Sequence[str]) -> Iterator[tuple[int, tuple[float, ...]]]:
        """Yield the index and the score of each text that is in the file.

        Raises:
            DataError: none of the texts is in the file.
        """
        if not any(text in self._scores for text in texts):
            raise DataError(
                f"{self.identity.settings['file']}: has no score for any of the {len(texts)} texts of this run; "
                "biasboard texts RUN writes those that are needed"
            )
        for index, text in enumerate(texts):
            if text in self._scores:
                yield index, (self._scores[text],)


def open_scorer(kind: ScorerKind, model: str | None, revision: str | None) -> Stored:
    """Read a file of scores.

    Args:
        kind: ``sentiment`` or ``toxicity``.
        model: Path of the file.
        revision: Name of the original scorer and, after the first dash, its revision: ``perspective-2026-11``.

    Raises:
        ConfigError: the file does not exist, or its path, the name or the revision is missing.
        DataError: the file is not a CSV file with valid scores.
    """
    label = _LABEL.fullmatch(revision or "")
    if model is None or label is None:
        raise ConfigError(
            "scorer 'stored' needs a file, and the original scorer's name and revision in letters, digits, '.' and "
            f"'-': {kind}=stored:FILE.csv@NAME-REVISION"
        )
    path = Path(model)
    if not path.is_file():
        raise ConfigError(f"scorer 'stored': no file {path}; give a CSV file with the columns text and score")
    return Stored(kind, path, label)


def _read(path: Path, kind: ScorerKind) -> dict[str, float]:
    csv.field_size_limit(sys.maxsize)
    check_readable(path)
    scores: dict[str, float] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            missing = [name for name in ("text", "score") if name not in (reader.fieldnames or ())]
            if missing:
                have = ", ".join(reader.fieldnames or ()) or "nothing"
                raise DataError(f"{path}: column {', '.join(missing)} is missing; have: {have}; name the columns so")
            for row in reader:
                where = f"{path}:{reader.line_num}"
                if None in row or None in row.values():
                    raise DataError(f"{where}: has more or fewer fields than the header; quote texts with commas")
                score = _number(row["score"], kind, where)
                text = unprotected(row["text"])
                if scores.setdefault(text, score) != score:
                    raise DataError(f"{where}: a text with two scores, {scores[text]:g} and {score:g}; keep one")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8; save it so") from error
    except csv.Error as error:
        raise DataError(f"{path}: is not CSV ({error}); give a CSV file with the columns text and score") from error
    if not scores:
        raise DataError(f"{path}: has no rows; give a CSV file with the columns text and score")
    return scores


def _number(text: str, kind: ScorerKind, where: str) -> float:
    score = float(text) if _DECIMAL.fullmatch(text.strip()) else math.nan
    if not _LOWEST[kind] <= score <= 1:
        raise DataError(
            f"{where}: score '{text[:40]}' is no number in [{_LOWEST[kind]:g}, 1]; leave the row out or mend it"
        )
    return score
