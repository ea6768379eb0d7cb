"""Reads candidates from the answers of a model: sentences with a slot, each with the cell it was written for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from biasboard.ground.errors import DataError
from biasboard.ground.progress import Report
from builders.dataset.output import Rule
from builders.synthbias.generation.instructions import DATASET, DesignCell, cell_of
from builders.synthbias.minimal_pairs import Slotted
from schemas.documents.dataset import Reject
from schemas.documents.record import Record
from schemas.documents.result import Model, Result
from schemas.files.json_answers import NoJsonError, find_json
from schemas.folders.run_folder import finished_runs, read_result, read_run
from schemas.lexicon import CASES

FAILED = Rule(name="failed_request", description="the request was answered")
REFUSED = Rule(name="refused_answer", description="the model did not decline")
TRUNCATED = Rule(name="truncated_answer", description="the answer was not cut off before its end")
UNREADABLE = Rule(name="unreadable_answer", description="the answer holds JSON with a list of sentences")
MALFORMED = Rule(name="malformed_sentence", description="a sentence has the texts 'before' and 'after', and a case")
ANSWER_RULES = (FAILED, REFUSED, TRUNCATED, UNREADABLE, MALFORMED)
_MOST_SHOWN = 200


class WrittenSentence(NamedTuple):
    """A sentence that a model wrote."""

    row: str
    """Id of the instruction and number of the sentence in its answer, as ``ID#NUMBER``."""
    cell: DesignCell
    slotted: Slotted


class WrittenAnswers(NamedTuple):
    """The runs of one model, and the contents of its answers."""

    runs: tuple[tuple[Path, Result], ...]
    """Folder and result of each run, those with the most items first."""
    model: Model
    candidates: tuple[WrittenSentence, ...]
    rejects: tuple[Reject, ...]
    """Answers and sentences that could not be read as candidates."""
    samples: Mapping[str, int]
    """Number of instructions asked, by cell key; failed requests count."""
    n_calls: int
    """Number of requests that all runs sent, including retries."""
    cost_usd: float | None
    """Cost of all runs in US dollars; None if the cost of any run is unknown."""
    asked: frozenset[str]
    """Ids of the instructions in the finished runs."""


def read_answers(path: Path, report: Report) -> WrittenAnswers:
    """Read the answers of all runs at a path, ordered by their instructions.

    An instruction in several runs, such as a pilot and the full run after it, is read once: from the run with the most
    items.

    Raises:
        DataError: there is no run of this project's instructions, or the runs are of several models.
    """
    runs = _runs(path)
    records: dict[str, Record] = {}
    for number, (folder, _) in enumerate(runs):
        report("reading answers", number, len(runs))
        for record in read_run(folder).records:
            records.setdefault(record.item_id, record)
    candidates: list[WrittenSentence] = []
    rejects: list[Reject] = []
    samples: dict[str, int] = {}
    for key in sorted(records):
        record = records[key]
        cell = cell_of(record.groups.get("cell", ""))
        if cell is None:
            raise DataError(f"{path}: record '{key}' names no cell of this builder; ask again: {_HOW}")
        samples[cell.key] = samples.get(cell.key, 0) + 1
        for sentence in _read_sentences(record, cell):
            (candidates if isinstance(sentence, WrittenSentence) else rejects).append(sentence)  # type: ignore[arg-type]
    costs = [result.usage.cost_usd for _, result in runs]
    return WrittenAnswers(
        runs=tuple(runs),
        model=runs[0][1].model,
        candidates=tuple(candidates),
        rejects=tuple(rejects),
        samples=samples,
        n_calls=sum(result.usage.n_attempts for _, result in runs),
        # Exact, so that the order of the runs does not change its last digit.
        cost_usd=None if None in costs else math.fsum(cost or 0.0 for cost in costs),
        asked=frozenset(records),
    )


_HOW = "biasboard build synthbias generate --help"


def _runs(path: Path) -> list[tuple[Path, Result]]:
    """Return the runs at a path, those with the most items first."""
    runs = [(folder, read_result(folder)) for folder in finished_runs(path)]
    ours = [(folder, result) for folder, result in runs if result.signature.dataset == DATASET]
    if not ours:
        raise DataError(f"--input {path}: holds no run of dataset '{DATASET}'; ask a model first: {_HOW}")
    models = {result.model.identity_sha256: result.model.id for _, result in ours}
    if len(models) > 1:
        raise DataError(
            f"--input {path}: {len(models)} models answered ({', '.join(sorted({*models.values()}))}); name the runs "
            "of one model"
        )
    return sorted(ours, key=lambda run: (-run[1].signature.n_items, run[1].signature_sha256))


def _read_sentences(record: Record, cell: DesignCell) -> Iterator[WrittenSentence | Reject]:
    (exchange,) = record.exchanges
    text = exchange.text or ""
    try:
        value = find_json(text) if exchange.status == "answered" else None
        rule, reason = UNREADABLE, "holds JSON without a list of sentences"
    except NoJsonError as error:
        value, rule, reason = None, UNREADABLE, f"holds no JSON: {error}"
    sentences = value.get("sentences") if isinstance(value, dict) else value
    if isinstance(sentences, list) and sentences:
        yield from (candidate_of(one, f"{record.item_id}#{number}", cell) for number, one in enumerate(sentences))
        return
    if record.status == "refused":
        rule, reason = REFUSED, record.reason or "declines"
    elif exchange.status != "answered":
        rule, reason = FAILED, record.reason or exchange.error or "no answer"
    elif record.truncated:
        rule, reason = TRUNCATED, f"was cut off after {exchange.n_completion_tokens} tokens"
    yield Reject(candidate=_shown(text) or "no text", source_row=record.item_id, rule=rule.name, reason=reason)


def _shown(text: str) -> str:
    """Return the beginning of a text, with lone surrogates, which no file can hold, written out."""
    return text[:_MOST_SHOWN].encode("utf-8", "backslashreplace").decode()


def candidate_of(value: Any, row: str, cell: DesignCell) -> WrittenSentence | Reject:
    """Return a sentence of an answer as a candidate, or as a reject if it does not have the requested form."""
    fields = value if isinstance(value, dict) else {}
    before, after = fields.get("before"), fields.get("after")
    case = next((case for case in CASES if case == fields.get("case")), None)
    # JSON can escape control characters, and lone surrogates, which no file can hold.
    if case is None or not (isinstance(before, str) and isinstance(after, str) and f"{before}{after}".isprintable()):
        shown = " ".join(str(fields.get(name, "")) for name in ("before", "after")) if fields else str(value)
        reason = f"has no plain texts 'before' and 'after' with a case out of {', '.join(CASES)}"
        return Reject(candidate=_shown(shown), source_row=row, rule=MALFORMED.name, reason=reason)
    # Models are inconsistent about the spaces around the gap.
    before = before.strip() + " "
    after = after.strip()
    after = f" {after}" if after[:1].isalpha() else after
    return WrittenSentence(row, cell, Slotted(cell.config, before, case, after, cell.first, cell.second, cell.referent))
