"""Reads candidates from the answers of a model: sentences with a slot, each with the cell it was written for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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
from schemas.folders.run_folder import RECORDS, RESULT, finished_runs, read_result, read_run
from schemas.lexicon import CASES

FAILED = Rule(name="failed_request", description="the request was answered")
REFUSED = Rule(name="refused_answer", description="the model did not decline")
TRUNCATED = Rule(name="truncated_answer", description="the answer was not cut off before its end")
UNREADABLE = Rule(name="unreadable_answer", description="the answer holds JSON with a list of sentences")
MALFORMED = Rule(name="malformed_sentence", description="a sentence has the texts 'before' and 'after', and a case")
ANSWER_RULES = (FAILED, REFUSED, TRUNCATED, UNREADABLE, MALFORMED)
_MOST_SHOWN = 200


class Answered(NamedTuple):
    """A finished run whose answers are read."""

    folder: Path
    result: Result

    @property
    def files(self) -> dict[str, bytes]:
        """The contents of its result and records files, by file name."""
        return {name: (self.folder / name).read_bytes() for name in (RECORDS, RESULT)}


class WrittenSentence(NamedTuple):
    """A sentence that a model wrote."""

    row: str
    """Id of the instruction and number of the sentence in its answer, as ``ID#NUMBER``."""
    cell: DesignCell
    slotted: Slotted


class WrittenAnswers(NamedTuple):
    """The runs of one model, and the contents of its answers."""

    runs: tuple[Answered, ...]
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
    for number, answered in enumerate(runs):
        report("reading answers", number, len(runs))
        for record in read_run(answered.folder).records:
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
    costs = [run.result.usage.cost_usd for run in runs]
    return WrittenAnswers(
        runs=tuple(runs),
        model=runs[0].result.model,
        candidates=tuple(candidates),
        rejects=tuple(rejects),
        samples=samples,
        n_calls=sum(run.result.usage.n_attempts for run in runs),
        # Exact, so that the order of the runs does not change its last digit.
        cost_usd=None if None in costs else math.fsum(cost or 0.0 for cost in costs),
        asked=frozenset(records),
    )


_HOW = "biasboard build synthbias generate --help"


def _runs(path: Path) -> list[Answered]:
    """Return the runs at a path, those with the most items first."""
    runs = [Answered(folder, read_result(folder)) for folder in finished_runs(path)]
    ours = [run for run in runs if run.result.signature.dataset == DATASET]
    if not ours:
        raise DataError(f"--input {path}: holds no run of dataset '{DATASET}'; ask a model first: {_HOW}")
    models = {run.result.model.identity_sha256: run.result.model.id for run in ours}
    if len(models) > 1:
        raise DataError(
            f"--input {path}: {len(models)} models answered ({', '.join(sorted({*models.values()}))}); name the runs "
            "of one model"
        )
    return sorted(ours, key=lambda run: (-run.result.signature.n_items, run.result.signature_sha256))


def _read_sentences(record: Record, cell: DesignCell) -> Iterator[WrittenSentence | Reject]:
    (exchange,) = record.exchanges
    text = exchange.text or ""
    sentences = _sentences(text) if exchange.status == "answered" else ""
    if not isinstance(sentences, str):
        for number, value in enumerate(sentences):
            yield candidate_of(value, f"{record.item_id}#{number}", cell)
        return
    rule, reason = UNREADABLE, sentences
    if record.status == "refused":
        rule, reason = REFUSED, record.reason or "declines"
    elif exchange.status != "answered":
        rule, reason = FAILED, record.reason or exchange.error or "no answer"
    elif record.truncated:
        rule, reason = TRUNCATED, f"was cut off after {exchange.n_completion_tokens} tokens"
    yield Reject(candidate=_shown(text) or "no text", source_row=record.item_id, rule=rule.name, reason=reason)


def _is_clean(text: str) -> bool:
    """Return True if a text has no control characters and no lone surrogates, which JSON can escape."""
    return all(character.isprintable() for character in text)


def _shown(text: str) -> str:
    """Return the beginning of a text, with lone surrogates, which no file can hold, written out."""
    return text[:_MOST_SHOWN].encode("utf-8", "backslashreplace").decode()


def _sentences(text: str) -> Sequence[Any] | str:
    """Return the list of sentences in an answer, or the reason why there is none."""
    try:
        value = find_json(text)
    except NoJsonError as error:
        return f"holds no JSON: {error}"
    sentences = value.get("sentences") if isinstance(value, dict) else value
    return sentences if isinstance(sentences, list) and sentences else "holds JSON without a list of sentences"


def candidate_of(value: Any, row: str, cell: DesignCell) -> WrittenSentence | Reject:
    """Return a sentence of an answer as a candidate, or as a reject if it does not have the requested form."""
    fields = value if isinstance(value, dict) else {}
    before, after = fields.get("before"), fields.get("after")
    case = next((case for case in CASES if case == fields.get("case")), None)
    is_text = isinstance(before, str) and isinstance(after, str) and _is_clean(before + after)
    if not is_text or case is None:
        shown = " ".join(str(fields.get(name, "")) for name in ("before", "after")) if fields else str(value)
        reason = f"has no plain texts 'before' and 'after' with a case out of {', '.join(CASES)}"
        return Reject(candidate=_shown(shown), source_row=row, rule=MALFORMED.name, reason=reason)
    assert isinstance(before, str)
    assert isinstance(after, str)
    # Models are inconsistent about the spaces around the gap.
    before = before.strip() + " "
    after = after.strip()
    after = f" {after}" if after[:1].isalpha() else after
    return WrittenSentence(row, cell, Slotted(cell.config, before, case, after, cell.first, cell.second, cell.referent))
