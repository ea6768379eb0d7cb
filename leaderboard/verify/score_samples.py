"""Scores a sample of the texts of a result again, with scorers that take too long for all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from biasboard.ground.errors import DataError
from evaluators.scorer import TextScorer
from evaluators.task import load_task
from evaluators.text_scores import read_scores
from schemas.documents.run_files import text_sha256
from schemas.folders.run_folder import RESCORE_TEXTS, read_parts, read_result

N_TEXTS = 100
"""Number of texts to score again: they find a share of 3 % of invented scores with a probability of 95 %."""
_TOLERANCE = 1e-3
"""Largest difference of two values: trained scorers differ in the fourth digit between processors."""


def compare_scores(folder: Path, scorers: Sequence[TextScorer], *, seed: int) -> tuple[str, ...]:
    """Score some texts of a verified result again, and compare the scores with the stored ones.

    Args:
        folder: Folder of the result, which holds its texts.
        scorers: The scorers that are installed here.
        seed: Seed of the draw of the texts, which must not be known before the result is submitted.

    Returns:
        Labels of the scorers of the result that scored again; those that are not installed here are left out.

    Raises:
        DataError: a stored score is missing or differs.
    """
    result = read_result(folder)
    stored = read_scores(folder, result.scores)
    used = [scorer for scorer in scorers if stored.label(scorer.identity.kind) == scorer.identity.label]
    if not used:
        return ()
    task = load_task(result.signature.task)
    texts = sorted({text for records in read_parts(folder, result, recount=False) for text in task.texts(records)})
    drawn = random.Random(seed).sample(texts, min(N_TEXTS, len(texts)))
    for scorer in used:
        kind, label = scorer.identity.kind, scorer.identity.label
        for index, values in scorer.score(drawn):
            known = stored.values[kind].get(text_sha256(drawn[index]))
            if known is None or any(abs(one - other) > _TOLERANCE for one, other in zip(known, values, strict=True)):
                raise DataError(f"{folder}: {label} gives a text other scores than the stored ones; {RESCORE_TEXTS}")
    return tuple(scorer.identity.label for scorer in used)
