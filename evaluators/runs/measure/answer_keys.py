"""Makes answer keys: the hashes that every result on a dataset under a prompt must share."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluators.backend import Response
from evaluators.runs.measure.recording import first_asked, records_of
from evaluators.runs.plan.plan import Plan, with_examples
from evaluators.runs.plan.selection import Selection, select
from evaluators.task import load_task, prompt_of
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.board import AnswerKey, KeyExtent, KeyPart
from schemas.documents.dataset import Manifest
from schemas.documents.result import Signature
from schemas.files.record_columns import RecordColumns
from schemas.files.record_hashes import asked_sha256, item_hashes, items_sha256

_UNASKED = Response(status="failed", error="nobody was asked")


class MadeKey(NamedTuple):
    """An answer key, and the contents of its file of item hashes."""

    key: AnswerKey
    items: bytes


def key_of_dataset(folder: Path, manifest: Manifest, *, config: str, task: str, prompt: str) -> MadeKey:
    """Return the answer key of a config or suite of a dataset under a prompt.

    The key is made from the items alone, by the code that would ask about them; no answer is needed. Anybody who has
    the dataset can make the same key.

    Raises:
        ConfigError: the prompt shows more examples than the dataset has.
        NoExamplesError: the rule of the prompt finds none in any part.
        DataError: the data files are damaged.
    """
    loaded = load_task(task)
    asked_with = prompt_of(loaded, prompt)
    without = asked_with.unread_splits
    whole, left_out = with_examples(select(folder, manifest, config, without=without), loaded, asked_with)
    limited = None
    if loaded.default_limit is not None:
        limit, support = loaded.default_limit, loaded.support_splits
        by_default = select(folder, manifest, config, limit=limit, support=support, without=without).without(left_out)
        limited = by_default if by_default.n_items < whole.n_items else None
    plan = Plan(whole, loaded, asked_with)
    unanswered = (
        records_of(plan, part, part.requests, [[_UNASKED] * len(asked) for asked in part.requests], chat=False)
        for part in plan.parts
    )
    made = key_of_parts(plan.signature, manifest.content_sha256, map(RecordColumns.of_stream, unanswered), limited)
    return made._replace(key=replace(made.key, licence=manifest.licence))


def key_of_parts(
    signature: Signature, dataset_sha256: str, parts: Iterable[RecordColumns], limited: Selection | None = None
) -> MadeKey:
    """Return the answer key of some records, whatever their answers.

    The hash is that of the dataset's contents; ``limited`` are the items asked by default, None if all are.
    """
    # The usual protocol of a large suite asks 100 items per task. These hashes identify a result on the default items,
    # which would otherwise look like an arbitrary slice.
    key_parts, hashes, limited_parts = [], [], []
    with_requests = has_known_requests(signature)
    prompt = prompt_of(load_task(signature.task), signature.prompt)
    for number, records in enumerate(first_asked(part, prompt) for part in parts):
        key_parts.append(_part(records, with_requests=with_requests))
        hashes.append(item_hashes(records, with_requests=with_requests))
        if limited is not None:
            chosen = {(split, item.item_id) for split, item in limited.parts[number].items}
            rows = zip(records.columns["split"].texts, records.columns["item_id"].texts, strict=True)
            only = RecordColumns(records.table.filter(pa.array([row in chosen for row in rows])))
            limited_parts.append(_part(only, with_requests=with_requests))
    file = io.BytesIO()
    np.save(file, np.concatenate(hashes), allow_pickle=False)
    items = file.getvalue()
    key = AnswerKey(
        schema_version=SCHEMA_VERSION,
        dataset_sha256=dataset_sha256,
        signature=signature,
        parts=tuple(key_parts),
        items_path=f"{key_name(signature)}.npy",
        items_file_sha256=hashlib.sha256(items).hexdigest(),
        limited=None
        if limited is None
        else KeyExtent(
            limit=limited.limit or 0,
            n_items=limited.n_items,
            items_sha256=limited.items_sha256,
            parts=tuple(limited_parts),
        ),
    )
    return MadeKey(key, items)


def _part(records: RecordColumns, *, with_requests: bool) -> KeyPart:
    return KeyPart(
        config=records[0].config,
        n_items=len(records),
        facts_sha256=items_sha256(records),
        requests_sha256=asked_sha256(records) if with_requests else None,
    )


def has_known_requests(signature: Signature) -> bool:
    """Return True if the first requests follow from the items and the prompt alone.

    Those of imported answers do not, nor those of prompts that are cut by tokens, which depend on the tokenizer. Keys
    hold first requests only: what is asked after an answer follows from it, and is checked against it.
    """
    prompt = prompt_of(load_task(signature.task), signature.prompt)
    return prompt.requires != "import" and prompt.max_prompt_tokens is None


def key_name(signature: Signature) -> str:
    """Return the file name, without its ending, of the key for a signature's config, task and prompt."""
    return f"{signature.config}-{signature.task}-{signature.prompt}"


def item_hashes_in(content: bytes) -> npt.NDArray[np.uint8]:
    """Return the item hashes in the contents of a file, shape (n, 32).

    Raises:
        ValueError: the contents are not such an array.
    """
    # Loading a stranger's pickle would run its code.
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != hashlib.sha256().digest_size:
        raise ValueError(f"holds an array of {array.dtype} of shape {array.shape}, not of SHA-256 hashes")
    hashes: npt.NDArray[np.uint8] = array
    return hashes
