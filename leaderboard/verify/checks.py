"""Checks what a result says about its model and its task, and the requests, answers and readings of its records."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from biasboard.ground.columns import BoolArray, Column
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import printable
from evaluators.adapter_set import trained_items
from evaluators.backend import GenerateRequest, check_model_id, choice_sha256, model_identity
from evaluators.runs.ask.importing import BACKEND
from evaluators.task import Prompt, Task, load_task, prompt_of
from schemas.documents.record import Exchange, Record
from schemas.documents.result import TOLERANCE, Model, Result, Signature
from schemas.files.record_columns import RecordColumns
from schemas.files.record_hashes import is_hashed
from schemas.folders.run_folder import ADAPTERS, SUBMIT_AGAIN, read_adapters

_NO_EXAMPLES = hashlib.sha256().hexdigest()
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+@-]*")
_BASELINE = "baseline/"


def check_claims(path: Path, result: Result, *, is_foreign: bool) -> None:
    """Check that the names in a result are unambiguous, and that task and prompt are those of this code.

    Args:
        path: Path of the ``result.json``.
        result: The result in it.
        is_foreign: True if a stranger may have written it; a user may name own runs as they like.

    Raises:
        DataError: no run gives such a name, the identity does not follow from its parts or is that of another model, or
            the task version or the prompt is not that of this code.
    """
    _check_model(path, result.model)
    if is_foreign:
        _check_foreign_model(path, result.model)
    _check_signature(path, result)


def _check_foreign_model(path: Path, model: Model) -> None:
    """Check that a result that a stranger hands in names the model that answered, which its identity describes."""
    if model.endpoint == "baseline":
        raise DataError(f"{path}: is of a baseline, and the board computes baselines itself; leave it out")
    if model.identity is None:
        # The address of an endpoint is part of its identity and is not shown, so that its hash has to be believed.
        if model.endpoint != "api":
            raise DataError(f"{path}: says only the hash of its model's identity, not its parts; run the model again")
        return
    for name, ours, theirs in _named_by_identity(model, model.identity):
        if ours != theirs:
            raise DataError(
                f"{path}: the identity says {name} '{printable(theirs)}', the model '{printable(str(ours))}'; run it "
                "again without --name, or name the folder that was loaded"
            )


def _named_by_identity(model: Model, identity: Mapping[str, str | None]) -> Iterator[tuple[str, str | None, str]]:
    """Yield each name that follows from an identity: what it is, as the model has it, and as the identity has it."""
    files = identity.get("adapter") or identity.get("model")
    if model.backend == BACKEND:
        # Harnesses log the name and the commit apart, and a published file is named by its hash alone.
        if commit := identity.get("commit"):
            yield "commit", model.revision, commit
    elif files is not None:
        name, _, revision = files.rpartition("@")
        yield "revision", model.revision, revision
        if name:
            # With one adapter per context, an id has this suffix.
            yield "id", model.id.removesuffix("-LoRA") if "adapters" in identity else model.id, name
    elif (own := identity.get("id")) is not None:
        yield "id", model.id, own


def _check_model(path: Path, model: Model) -> None:
    try:
        # Baselines are the only models whose ids users cannot choose.
        check_model_id(model.id.removeprefix(_BASELINE) if model.endpoint == "baseline" else model.id)
    except ConfigError as error:
        raise DataError(f"{path}: {printable(str(error))}") from error
    if model.revision is not None and not _REVISION.fullmatch(model.revision):
        raise DataError(
            f"{path}: revision '{printable(model.revision)}' is not of letters, digits and . _ : / + @ - alone; name "
            "a commit, a tag or a version"
        )
    identity = model.identity
    if identity is None:
        return
    if model_identity(identity) != model.identity_sha256:
        raise DataError(f"{path}: identity_sha256 is not the hash of the identity; run the model again")
    parts = {
        "backend": model.backend,
        "precision": model.precision,
        "chat_template": model.chat_template_sha256,
        "chat_template_sha256": model.chat_template_sha256,
    }
    for name, value in parts.items():
        if name in identity and identity[name] != value:
            raise DataError(
                f"{path}: the identity says {name} '{printable(str(identity[name]))}', the model '{value}'; run the "
                "model again"
            )


def _check_signature(path: Path, result: Result) -> None:
    """Check that the task version and the prompt of the signature are those of this code."""
    signature = result.signature
    task = load_task(signature.task)
    if task.measures_nothing:
        raise DataError(
            f"{path}: the answers of task {task.name} are data to build from, and no board shows them; name a run of "
            "another task"
        )
    if signature.task_version not in (task.version, *task.earlier_versions):
        raise DataError(
            f"{path}: read by task {task.name} {signature.task_version}, the code has {task.version}; rescore the run"
        )
    prompt = prompt_of(task, signature.prompt)
    if signature.prompt_sha256 != prompt.sha256() or signature.n_outcomes != prompt.n_outcomes:
        raise DataError(f"{path}: prompt '{signature.prompt}' differs from the one in this code; run the model again")
    shows = task.examples_split is not None
    if shows != (signature.examples_sha256 is not None):
        raise DataError(
            f"{path}: task {task.name} {'shows' if shows else 'shows no'} examples, and examples_sha256 is "
            f"{signature.examples_sha256}; run the model again"
        )
    if shows and not prompt.n_examples and signature.examples_sha256 != _NO_EXAMPLES:
        raise DataError(f"{path}: prompt '{prompt.id}' shows no examples, but the signature names some; run it again")


class TrainingCheck:
    """Compares the records of a result with the items that its adapters were trained on, part by part."""

    def __init__(self, folder: Path, result: Result) -> None:
        """Read the list of the adapters, if the result has one.

        Args:
            folder: The folder of the result.
            result: The result in it.

        Raises:
            DataError: the list is damaged, is about another dataset or task, or lacks a config of the result.
        """
        self._path, self._task = folder / ADAPTERS, load_task(result.signature.task)
        adapters = read_adapters(folder, result)
        self._trained = trained_items(folder, result)
        if adapters is None:
            return
        signature = result.signature
        if not self._task.trains_adapters:
            raise DataError(f"{self._path}: task {self._task.name} trains no adapters; run the model without")
        asked = (signature.dataset, signature.dataset_version, signature.task)
        if (adapters.data.name, adapters.data.version, adapters.data.task) != asked:
            raise DataError(
                f"{self._path}: was trained on {adapters.data.name} {adapters.data.version} for task "
                f"{adapters.data.task}, the result is on "
                f"{' '.join(asked)}; train adapters on that dataset and run the model again"
            )

    def __call__(self, records: RecordColumns) -> None:
        """Check the next part.

        Raises:
            DataError: an adapter was trained on an item outside the split of the examples, on one without a record
                though the others of its split have one, or on an example that the prompt shows.
        """
        if not self._trained or not self._task.trains_adapters or not len(records):
            return
        trained = self._trained[records[0].config]
        support = self._task.examples_split
        splits = dict(zip(records.columns["item_id"].texts, records.columns["split"].texts, strict=True))
        for item_id in sorted(trained):
            split = splits.get(item_id)
            if split is None and support in splits.values():
                raise self._fault(records, item_id, f"is no item of split {support}")
            if split is not None and split != support:
                raise self._fault(records, item_id, f"is of split {split}, which is measured")
        for item_id in sorted(trained & self._task.shown_items(records)):
            raise self._fault(records, item_id, "is an example that the prompt shows")

    def _fault(self, records: RecordColumns, item_id: str, why: str) -> DataError:
        return DataError(
            f"{self._path}: the adapter of config {records[0].config} was trained on item '{item_id[:60]}', which "
            f"{why}; train it on other items and run the model again"
        )


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
