"""Checks the records of one result: requests, possible answers, and readings that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from biasboard.ground.columns import BoolArray, Column
from biasboard.ground.errors import DataError
from evaluators.backend import GenerateRequest, choice_sha256
from evaluators.task import Prompt, Task, load_task, prompt_of
from schemas.documents.record import Exchange, Record
from schemas.documents.result import TOLERANCE, Model, Result, Signature
from schemas.files.record_columns import RecordColumns
from schemas.files.record_hashes import is_hashed
from schemas.folders.run_folder import SUBMIT_AGAIN

_MOST_TOGETHER = 1.02
"""Maximum sum of the probabilities of mutually exclusive options: 1, plus the rounding of half precision."""


def check_requests(path: Path, result: Result, records: RecordColumns) -> None:
    """Check that all requests match their stored texts, and that the readings follow from possible answers.

    Args:
        path: Path of the records, for messages.
        result: The result that the records belong to.
        records: The records of one part.

    Raises:
        DataError: a request is not the one that its prompt and options make, its probabilities are impossible, or a
            reading does not follow from the answers.
    """
    for check in _CHECKS:
        wrong = np.flatnonzero(~check.are_sound(records, result))
        if len(wrong):
            index = int(records.owners[wrong[0]])
            exchange = records[index].exchanges[int(wrong[0]) - int(records.first_exchanges[index])]
            raise DataError(f"{path}: row {records.first_row + index}: {check.fault(exchange, result)}")
    _check_readings(path, result, records)


class _Check(NamedTuple):
    """A rule about each exchange, and the words about one that breaks it."""

    are_sound: Callable[[RecordColumns, Result], BoolArray]
    fault: Callable[[Exchange, Result], str]


def _kept_as_stated(records: RecordColumns, result: Result) -> BoolArray:
    """Return the mask of the exchanges that hold a hash in place of a text if, and only if, the result says so."""
    exchanges = records.exchanges
    statuses = exchanges["status"].coded.is_one_of("answered")
    has_text = np.array([bool(text) for text in exchanges["text"].texts], dtype=np.bool_)
    hashed = np.array([text is not None and is_hashed(text) for text in exchanges["text"].texts], dtype=np.bool_)
    if result.withheld is None:
        return ~hashed
    kept: BoolArray = (hashed | ~(has_text | statuses)) & ~exchanges["kind"].coded.is_one_of("choice")
    return kept


def _wrongly_kept(exchange: Exchange, result: Result) -> str:
    if result.withheld is None:
        return "holds a hash in place of a text; submit the run with --withhold-texts"
    if exchange.kind == "choice":
        return f"holds probabilities of options, which are no texts to withhold; {SUBMIT_AGAIN}"
    what = "a text" if exchange.text else "no hash of its text"
    return f"holds {what}, though the result names complete records elsewhere; {SUBMIT_AGAIN}"


def _have_their_hash(records: RecordColumns, result: Result) -> BoolArray:
    """Return the mask of the exchanges whose hash is that of the request that their texts make."""
    exchanges, signature = records.exchanges, result.signature
    prompt = prompt_of(load_task(signature.task), signature.prompt)
    options, samples = exchanges["options"].lists, exchanges["sample"]
    ends, offered = options.offsets.tolist(), options.values.texts
    is_choice = exchanges["kind"].coded.is_one_of("choice")
    hashes, are_theirs = exchanges["request_sha256"].texts, np.ones(len(records.owners), dtype=np.bool_)
    for index, text in enumerate(exchanges["prompt"].texts):
        if text is None:
            continue
        if is_choice[index]:
            made = choice_sha256(text, cast(tuple[str, ...], tuple(offered[ends[index] : ends[index + 1]])))
        else:
            made = _generation_sha256(text, int(samples.integers[index]) if samples.known[index] else None, prompt)
        are_theirs[index] = made == hashes[index]
    return are_theirs


def _generation_sha256(text: str, sample: int | None, prompt: Prompt) -> str:
    return GenerateRequest(
        prompt=text,
        max_tokens=prompt.max_tokens or 0,
        temperature=prompt.temperature or 0.0,
        top_p=1.0 if prompt.top_p is None else prompt.top_p,
        stop=prompt.stop or (),
        sample=sample,
    ).sha256


def brings_options(signature: Signature) -> bool:
    """Return True if each item brings its own options, so that the prompt does not determine their number."""
    return signature.scoring == "option_logprob" and signature.n_outcomes is None


def _offer_their_outcomes(records: RecordColumns, result: Result) -> BoolArray:
    """Return the mask of the exchanges with as many outcomes as the signature says, or with options of their own."""
    exchanges = records.exchanges
    if brings_options(result.signature):
        return _have_distinct(exchanges["outcomes"]) & _have_distinct(exchanges["options"])
    as_many: BoolArray = exchanges["outcomes"].lists.lengths == (result.signature.n_outcomes or 0)
    return as_many


def _have_distinct(column: Column) -> BoolArray:
    """Return the mask of the lists of texts without repeated texts."""
    lists = column.lists
    n_codes = len(lists.values.coded.texts) + 1
    cells, counts = np.unique(lists.owners * n_codes + lists.values.coded.codes, return_counts=True)
    distinct: BoolArray = np.ones(len(lists.lengths), dtype=np.bool_)
    distinct[cells[counts > 1] // n_codes] = False
    return distinct


def _other_outcomes(exchange: Exchange, result: Result) -> str:
    if brings_options(result.signature):
        return "offers an option or an outcome twice; run the model again"
    return f"has {len(exchange.outcomes)} outcomes, the signature {result.signature.n_outcomes}; rescore the run"


def _count_their_bytes(records: RecordColumns, result: Result) -> BoolArray:
    """Return the mask of the exchanges whose stored numbers of bytes are those of their options."""
    options, counts = records.exchanges["options"].lists, records.exchanges["option_byte_counts"].lists
    n = len(records.owners)
    if not np.array_equal(options.offsets, counts.offsets):
        as_many: BoolArray = options.lengths == counts.lengths
        return as_many
    coded = options.values.coded
    lengths = np.array([_n_bytes(text, result.model) for text in coded.texts], dtype=np.int64)
    wrong = lengths[coded.codes] != counts.values.integers if len(lengths) else np.zeros(0, dtype=np.bool_)
    are_right: BoolArray = np.bincount(options.owners, weights=wrong, minlength=n) == 0
    return are_right


def _n_bytes(option: str, model: Model) -> int:
    """Return the number of bytes of an option as the model got it: without its space after a chat template."""
    return len((option if model.chat_template_sha256 is None else option.lstrip()).encode())


def _miscounted_bytes(exchange: Exchange, result: Result) -> str:
    expected = [_n_bytes(option, result.model) for option in exchange.options]
    stored = list(exchange.option_byte_counts)
    return f"option_byte_counts are {stored}, its options have {expected} bytes; run the model again"


def _count_their_tokens(records: RecordColumns, result: Result) -> BoolArray:
    """Return the mask of the exchanges whose options have possible numbers of tokens: from 1 to one for each byte."""
    tokens, counts = (records.exchanges[f"option_{name}_counts"].lists for name in ("token", "byte"))
    n = len(records.owners)
    moved = records.exchanges["n_moved_tokens"].integers[tokens.owners] + 1
    n_bytes = np.bincount(counts.owners, weights=counts.values.integers, minlength=n)[tokens.owners]
    if np.array_equal(tokens.offsets, counts.offsets):
        n_bytes = counts.values.integers
    strange = tokens.values.known & ((tokens.values.integers < 1) | (tokens.values.integers > n_bytes + moved))
    are_possible: BoolArray = np.bincount(tokens.owners, weights=strange, minlength=n) == 0
    return are_possible


def _miscounted_tokens(exchange: Exchange, result: Result) -> str:
    most = (exchange.n_moved_tokens or 0) + 1
    pairs = zip(exchange.option_token_counts, exchange.option_byte_counts, strict=False)
    strange = (pair for pair in pairs if pair[0] is not None and not 0 < pair[0] <= pair[1] + most)
    n_tokens, n_bytes = next(strange, (None, sum(exchange.option_byte_counts)))
    return f"an option of {n_bytes} bytes has {n_tokens} tokens; run the model again"


def _are_possible_together(records: RecordColumns, result: Result) -> BoolArray:
    """Return the mask of the exchanges whose options have probabilities that are possible together."""
    exchanges = records.exchanges
    logprobs, bounds = exchanges["option_logprobs"].lists, exchanges["option_is_bound"].lists
    n = len(records.owners)
    sums = np.bincount(logprobs.owners, weights=np.nan_to_num(np.exp(logprobs.values.numbers)), minlength=n)
    n_bounds = np.bincount(bounds.owners, weights=bounds.values.flags, minlength=n)
    are_possible: BoolArray = (sums <= _MOST_TOGETHER) | (n_bounds > 0)
    options = exchanges["options"].lists
    ends, texts = options.offsets.tolist(), cast(list[str], options.values.texts)
    for index in np.flatnonzero(~are_possible).tolist():
        are_possible[index] = _one_begins_another(texts[ends[index] : ends[index + 1]])
    return are_possible


def _one_begins_another(options: Sequence[str]) -> bool:
    ordered = sorted(option.strip() for option in options)
    return any(later.startswith(earlier) for earlier, later in pairwise(ordered))


def _impossible_together(exchange: Exchange, result: Result) -> str:
    together = sum(np.exp(value) for value in exchange.option_logprobs if value is not None)
    return (
        f"its options have probabilities that sum to {together:.3g}, and they exclude each other; run the model again"
    )


def _no_hash(exchange: Exchange, result: Result) -> str:
    return "request_sha256 is not the hash of its prompt and options; run the model again"


_CHECKS = (
    _Check(_kept_as_stated, _wrongly_kept),
    _Check(_have_their_hash, _no_hash),
    _Check(_offer_their_outcomes, _other_outcomes),
    _Check(_count_their_bytes, _miscounted_bytes),
    _Check(_count_their_tokens, _miscounted_tokens),
    _Check(_are_possible_together, _impossible_together),
)


def _check_readings(path: Path, result: Result, records: RecordColumns) -> None:
    """Check that all records say whether an answer was cut, and that their readings follow from the answers."""
    signature = result.signature
    task = load_task(signature.task)
    is_cut = np.zeros(len(records), dtype=np.bool_)
    is_cut[records.owners[records.exchanges["finish_reason"].coded.is_one_of("length")]] = True
    is_certain = (np.diff(records.first_exchanges) > 0) & (is_cut == records.columns["truncated"].flags)
    if result.withheld is None:
        is_certain &= task.certain_readings(records, signature.normalisation)
    indices = np.flatnonzero(~is_certain)
    for index, record in zip(indices.tolist(), records.rows(indices), strict=True):
        where = f"{path}: row {records.first_row + index}"
        if record.truncated != is_cut[index]:
            raise DataError(f"{where}: truncated is {record.truncated}, its answers say otherwise; rescore the run")
        if result.withheld is None:
            _check_reading(where, signature, task, record)


def _check_reading(where: str, signature: Signature, task: Task, record: Record) -> None:
    """Check that the reading of a record follows from the model's answers."""
    if not record.exchanges:
        raise DataError(f"{where}: holds no answer of the model; run the model again")
    try:
        read = task.read(record.exchanges, signature.normalisation)
    except (ValueError, LookupError) as error:
        raise DataError(f"{where}: task {task.name} cannot read its answers: {error}; run the model again") from error
    if read.status != record.status:
        raise DataError(f"{where}: status is '{record.status}', its answers give '{read.status}'; rescore the run")
    stored, computed = record.reading, read.reading
    if stored is None or computed is None:
        agrees = stored is computed
    else:
        same_words = (stored.outcomes, stored.answers) == (computed.outcomes, computed.answers)
        agrees = same_words and all(
            abs(ours - theirs) <= TOLERANCE
            for ours, theirs in zip(computed.probabilities, stored.probabilities, strict=True)
        )
    if not agrees:
        raise DataError(f"{where}: the reading does not follow from the stored answers; rescore the run")
