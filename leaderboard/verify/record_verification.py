"""Checks the records of one result: requests, possible answers, and readings that follow from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import cast

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
    signature = result.signature
    task = load_task(signature.task)
    _check_texts(path, result, records)
    is_sound = np.diff(records.first_exchanges) > 0
    is_cut = np.zeros(len(records), dtype=np.bool_)
    is_cut[records.owners[records.exchanges["finish_reason"].coded.is_one_of("length")]] = True
    is_sound &= is_cut == records.columns["truncated"].flags
    for is_right in (_sound_requests(records, signature), _possible(records), _counted(records, result.model)):
        is_sound[records.owners[~is_right]] = False
    if result.withheld is not None:
        pass  # The readings follow from texts that are kept elsewhere.
    else:
        is_sound &= task.certain_readings(records, signature.normalisation)
    indices = np.flatnonzero(~is_sound)
    for index, record in zip(indices.tolist(), records.rows(indices), strict=True):
        where = f"{path}: row {records.first_row + index}"
        for exchange in record.exchanges:
            _check_exchange(where, result, exchange)
        if result.withheld is None:
            _check_reading(where, signature, task, record)
        elif record.truncated != _is_cut(record):
            raise _wrongly_cut(where, record)


def _sound_requests(records: RecordColumns, signature: Signature) -> BoolArray:
    """Return the mask of the exchanges with the hash of their request and the outcomes of the signature."""
    exchanges = records.exchanges
    options = exchanges["options"].lists
    is_sound: BoolArray = np.ones(len(records.owners), dtype=np.bool_)
    if brings_options(signature):
        is_sound &= _have_distinct(exchanges["outcomes"]) & _have_distinct(exchanges["options"])
    else:
        is_sound &= exchanges["outcomes"].lists.lengths == (signature.n_outcomes or 0)
    prompts, hashes, texts = exchanges["prompt"].texts, exchanges["request_sha256"].texts, options.values.texts
    ends = options.offsets.tolist()
    is_choice = exchanges["kind"].coded.is_one_of("choice")
    for index in np.flatnonzero(is_choice & exchanges["prompt"].known).tolist():
        offered = cast(tuple[str, ...], tuple(texts[ends[index] : ends[index + 1]]))
        is_sound[index] &= choice_sha256(prompts[index] or "", offered) == hashes[index]
    prompt = prompt_of(load_task(signature.task), signature.prompt)
    samples = exchanges["sample"]
    for index in np.flatnonzero(~is_choice & exchanges["prompt"].known).tolist():
        sample = int(samples.integers[index]) if samples.known[index] else None
        is_sound[index] &= _generation_sha256(prompts[index] or "", sample, prompt) == hashes[index]
    return is_sound


def _have_distinct(column: Column) -> BoolArray:
    """Return the mask of the lists of texts without repeated texts."""
    lists = column.lists
    n_codes = len(lists.values.coded.texts) + 1
    cells, counts = np.unique(lists.owners * n_codes + lists.values.coded.codes, return_counts=True)
    distinct: BoolArray = np.ones(len(lists.lengths), dtype=np.bool_)
    distinct[cells[counts > 1] // n_codes] = False
    return distinct


def brings_options(signature: Signature) -> bool:
    """Return True if each item brings its own options, so that the prompt does not determine their number."""
    return signature.scoring == "option_logprob" and signature.n_outcomes is None


def _possible(records: RecordColumns) -> BoolArray:
    """Return the mask of the exchanges whose options have probabilities that are possible together."""
    exchanges = records.exchanges
    logprobs, bounds = exchanges["option_logprobs"].lists, exchanges["option_is_bound"].lists
    n = len(records.owners)
    sums = np.bincount(logprobs.owners, weights=np.nan_to_num(np.exp(logprobs.values.numbers)), minlength=n)
    n_bounds = np.bincount(bounds.owners, weights=bounds.values.flags, minlength=n)
    is_possible: BoolArray = (sums <= _MOST_TOGETHER) | (n_bounds > 0)
    return is_possible


def _counted(records: RecordColumns, model: Model) -> BoolArray:
    """Return the mask of the exchanges whose stored numbers of bytes are those of their options."""
    options, counts = records.exchanges["options"].lists, records.exchanges["option_byte_counts"].lists
    n = len(records.owners)
    if not np.array_equal(options.offsets, counts.offsets):
        return np.zeros(n, dtype=np.bool_)
    coded = options.values.coded
    lengths = np.array([_n_bytes(text, model) for text in coded.texts], dtype=np.int64)
    wrong = lengths[coded.codes] != counts.values.integers if len(lengths) else np.zeros(0, dtype=np.bool_)
    is_right: BoolArray = np.bincount(options.owners, weights=wrong, minlength=n) == 0
    tokens = records.exchanges["option_token_counts"].lists
    moved = records.exchanges["n_moved_tokens"].integers[tokens.owners] + 1
    n_bytes = np.bincount(counts.owners, weights=counts.values.integers, minlength=n)[tokens.owners]
    strange = tokens.values.known & ((tokens.values.integers < 1) | (tokens.values.integers > n_bytes + moved))
    is_right[tokens.owners[strange]] = False
    return is_right


def _n_bytes(option: str, model: Model) -> int:
    """Return the number of bytes of an option as the model got it: without its space after a chat template."""
    return len((option if model.chat_template_sha256 is None else option.lstrip()).encode())


def _check_exchange(where: str, result: Result, exchange: Exchange) -> None:
    """Check that the request of an exchange matches its stored texts, and that its answers are possible."""
    signature = result.signature
    if exchange.prompt is not None and _request_sha256(exchange.prompt, exchange, signature) != exchange.request_sha256:
        raise DataError(f"{where}: request_sha256 is not the hash of its prompt and options; run the model again")
    if brings_options(signature):
        if len({*exchange.options}) < len(exchange.options) or len({*exchange.outcomes}) < len(exchange.outcomes):
            raise DataError(f"{where}: offers an option or an outcome twice; run the model again")
    elif len(exchange.outcomes) != (signature.n_outcomes or 0):
        raise DataError(
            f"{where}: has {len(exchange.outcomes)} outcomes, the signature {signature.n_outcomes}; rescore the run"
        )
    expected = [_n_bytes(option, result.model) for option in exchange.options]
    if list(exchange.option_byte_counts) != expected:
        raise DataError(
            f"{where}: option_byte_counts are {list(exchange.option_byte_counts)}, its options have {expected} bytes; "
            "run the model again"
        )
    for n_tokens, n_bytes in zip(exchange.option_token_counts, expected, strict=False):
        if n_tokens is not None and not 0 < n_tokens <= n_bytes + (exchange.n_moved_tokens or 0) + 1:
            raise DataError(f"{where}: an option of {n_bytes} bytes has {n_tokens} tokens; run the model again")
    logprobs = [value for value in exchange.option_logprobs if value is not None]
    together = math.fsum(map(math.exp, logprobs))
    if together > _MOST_TOGETHER and not any(exchange.option_is_bound) and not _one_begins_another(exchange.options):
        raise DataError(
            f"{where}: its options have probabilities that sum to {together:.3g}, and they exclude each other; run the "
            "model again"
        )


def _one_begins_another(options: Sequence[str]) -> bool:
    ordered = sorted(option.strip() for option in options)
    return any(later.startswith(earlier) for earlier, later in pairwise(ordered))


def _request_sha256(text: str, exchange: Exchange, signature: Signature) -> str:
    """Return the hash of the request that a text makes under the prompt of a signature."""
    if exchange.kind == "choice":
        return choice_sha256(text, exchange.options)
    return _generation_sha256(text, exchange.sample, prompt_of(load_task(signature.task), signature.prompt))


def _generation_sha256(text: str, sample: int | None, prompt: Prompt) -> str:
    return GenerateRequest(
        prompt=text,
        max_tokens=prompt.max_tokens or 0,
        temperature=prompt.temperature or 0.0,
        top_p=1.0 if prompt.top_p is None else prompt.top_p,
        stop=prompt.stop or (),
        sample=sample,
    ).sha256


def _check_texts(path: Path, result: Result, records: RecordColumns) -> None:
    """Check that all texts are hashes if they are kept elsewhere, and none of them otherwise."""
    exchanges = records.exchanges
    if result.withheld is not None and exchanges["kind"].coded.is_one_of("choice").any():
        raise DataError(f"{path}: holds probabilities of options, which are no texts to withhold; {SUBMIT_AGAIN}")
    if result.withheld is not None and result.model.endpoint == "baseline":
        raise DataError(f"{path}: is of a baseline, whose texts anybody can make; run the baseline again")
    for index, text, status in zip(
        records.owners.tolist(), exchanges["text"].texts, exchanges["status"].texts, strict=True
    ):
        where = f"{path}: row {records.first_row + index}"
        if result.withheld is None and text is not None and is_hashed(text):
            raise DataError(f"{where}: holds a hash in place of a text; submit the run with --withhold-texts")
        if result.withheld is not None and (text is None or not is_hashed(text)) and (text or status == "answered"):
            what = "a text" if text else "no hash of its text"
            raise DataError(
                f"{where}: holds {what}, though the result names complete records elsewhere; {SUBMIT_AGAIN}"
            )


def _is_cut(record: Record) -> bool:
    return any(exchange.finish_reason == "length" for exchange in record.exchanges)


def _wrongly_cut(where: str, record: Record) -> DataError:
    return DataError(f"{where}: truncated is {record.truncated}, its answers say otherwise; rescore the run")


def _check_reading(where: str, signature: Signature, task: Task, record: Record) -> None:
    """Check that the reading of a record follows from the model's answers."""
    if record.truncated != _is_cut(record):
        raise _wrongly_cut(where, record)
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
