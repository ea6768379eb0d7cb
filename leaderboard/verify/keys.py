"""Finds what the records of a result must say: answer keys, from files and from datasets, and compares both."""

from __future__ import annotations

import atexit
import base64
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable, held, replacing, sha256_file
from biasboard.ground.memory import Memory, code_sha256, machine_memory
from biasboard.ground.plugins import HINT
from evaluators.benchmark import benchmarks
from evaluators.runs.measure.recording import first_asked
from evaluators.runs.measure.stored_results import MadeKey, has_known_requests, item_hashes_in, key_name, key_of_dataset
from evaluators.task import load_task, prompt_of
from leaderboard.verify.entries import Match
from schemas.documents.board import AnswerKey, KeyPart
from schemas.documents.dataset import Manifest
from schemas.documents.result import Signature
from schemas.files import contract
from schemas.files.record_columns import RecordColumns, asked_sha256, item_hashes, items_sha256
from schemas.folders.dataset_folder import MANIFEST, read_manifest


@dataclass(frozen=True)
class KnownKey:
    """An answer key that the board trusts, from a file or from a dataset on this machine."""

    key: AnswerKey
    origin: str
    """Path of the key, or of the dataset, for messages."""
    items: bytes
    """Contents of the file of item hashes."""

    @property
    def sha256(self) -> str:
        """The hash of everything in the key."""
        return strict_json.sha256(contract.dump(self.key))

    @cached_property
    def index_by_hash(self) -> dict[bytes, int]:
        """The index of each item by its hash."""
        return {hashed.tobytes(): index for index, hashed in enumerate(item_hashes_in(self.items))}


class KeyBook:
    """The answer keys that a board knows: those in a folder, and those of datasets on this machine or in the code."""

    def __init__(
        self, keys: Path | None, datasets: Path | None = None, *, embedded: Path | None = None, may_build: bool = True
    ) -> None:
        """Name the folders; each key is read or made when it is first needed.

        Args:
            keys: Folder of keys, which come before those of datasets; None for none.
            datasets: Folder of built datasets, from which keys are made; None for none.
            embedded: Folder of the datasets that the code holds; None for none of them.
            may_build: False if these are there already, or not at all.
        """
        self._keys, self._datasets, self._embedded, self._may_build = keys, datasets, embedded, may_build
        self._known: dict[tuple[str, ...], KnownKey | None] = {}

    def __reduce__(self) -> tuple[Callable[..., KeyBook], tuple[Any, ...]]:
        """Pickle the arguments: each process opens the book once and then reads each key once.

        Only the process that begins builds datasets: others have limits of memory and time.
        """
        return _book, (self._keys, self._datasets, self._embedded)

    def find(self, signature: Signature, memory: Memory) -> KnownKey | None:
        """Return the key of the config and prompt of a signature; None if the board does not know the dataset.

        Raises:
            ConfigError: no task or prompt has such a name.
            DataError: a key or a dataset is damaged.
        """
        # A dataset is looked for as one of its benchmark, so that a wrong one must not answer for the right one.
        name = (signature.benchmark, dataset_name(signature), key_name(signature))
        if name not in self._known:
            self._known[name] = self._read(*name[1:]) or self._made(signature, memory)
        return self._known[name]

    def _read(self, dataset: str, name: str) -> KnownKey | None:
        path = None if self._keys is None else self._keys / dataset / f"{name}.json"
        if path is None or not path.is_file():
            return None
        key = contract.read(path, AnswerKey)
        items = path.with_name(key.items_path)
        check_readable(items)
        if sha256_file(items) != key.items_file_sha256:
            raise DataError(f"{items}: is not the file that {path} names; make the keys again")
        return KnownKey(key, str(path), items.read_bytes())

    def _made(self, signature: Signature, memory: Memory) -> KnownKey | None:
        if self._embedded is not None and self._may_build:
            _build_embedded(signature, self._embedded)
        dataset = dataset_of(signature, self._datasets, self._embedded)
        if dataset is None:
            return None
        folder, manifest = dataset
        asked = {"config": signature.config, "task": signature.task, "prompt": signature.prompt}

        def made() -> dict[str, Any]:
            key, items = key_of_dataset(folder, manifest, **asked)
            return {"key": contract.dump(key), "items": base64.b64encode(items).decode()}

        parts: dict[str, strict_json.JsonValue] = {"manifest": contract.dump(manifest), **asked}
        found = memory.remembered("answer key of a dataset", parts, dict[str, Any], made)
        key = contract.load(found["key"], AnswerKey, where="memory")
        return KnownKey(key, str(folder), base64.b64decode(found["items"]))


def dataset_of(signature: Signature, *folders: Path | None) -> tuple[Path, Manifest] | None:
    """Return the folder and the manifest of the dataset of a signature; None if some folders of datasets hold none.

    One that was built with a limit has the name and version of the whole. Of several, that with most items counts, so
    that answers to a part never pass for answers to all.
    """
    found: list[tuple[int, Path, Manifest]] = []
    for path in (path for folder in folders if folder is not None for path in sorted(folder.glob(f"*/{MANIFEST}"))):
        manifest = read_manifest(path.parent)
        names = {*manifest.configs, *(suite.name for suite in manifest.suites)}
        is_asked = (manifest.name, manifest.version) == (signature.dataset, signature.dataset_version)
        if is_asked and signature.config in names:
            parts = manifest.parts(signature.config) or (signature.config,)
            n_items = sum(entry.n_items for entry in manifest.splits if entry.config in parts)
            found.append((n_items, path.parent, manifest))
    return max(found, key=itemgetter(0))[1:] if found else None


@cache
def _book(keys: Path | None, datasets: Path | None, embedded: Path | None) -> KeyBook:
    return KeyBook(keys, datasets, embedded=embedded, may_build=False)


def open_book(keys: Path, datasets: Path | None) -> KeyBook:
    """Return the answer keys that a board knows, those of embedded datasets among them."""
    return KeyBook(keys, datasets, embedded=embedded_folder())


def dataset_name(signature: Signature) -> str:
    """Return the name of the folder with the keys of a dataset."""
    return f"{signature.dataset}@{signature.dataset_version}"


class KeyCheck:
    """A comparison of the records of a result with an answer key, part by part."""

    def __init__(self, where: str, signature: Signature, known: KnownKey | None) -> None:
        """Begin before the first part, with the path of the records and the key of their config and prompt.

        Raises:
            DataError: the signature contradicts the key.
        """
        self._where, self._signature, self._known = where, signature, known
        self._parts: Sequence[KeyPart] = () if known is None else known.key.parts
        self._ends = list(accumulate(part.n_items for part in self._parts))
        self._limit: int | None = None
        self.match = self._match_of_signature()
        """The part of the dataset that the result asks about, by its signature."""
        self._n_parts, self._last_index = 0, -1

    def _match_of_signature(self) -> Match:
        signature, known = self._signature, self._known
        if signature.benchmark not in (names := [benchmark.name for benchmark in benchmarks()]):
            reason = f"no benchmark '{signature.benchmark}' is known here; have: {', '.join(names)}; {HINT}"
            return Match("unknown", reason)
        name = f"{dataset_name(signature)} {signature.config} under prompt {signature.prompt}"
        if known is None:
            return Match(
                "unknown",
                f"the board has no answer key of {name}, so nothing says that these are its items; build the dataset "
                "and give its folder with --datasets, or add its key with: biasboard keys DATASET",
            )
        ours, limited = known.key.signature, known.key.limited
        theirs = replace(signature, normalisation=ours.normalisation)
        if theirs == ours:
            return Match("whole", None)
        if limited is not None and theirs == replace(ours, items_sha256=limited.items_sha256, n_items=limited.n_items):
            self._parts, self._limit = limited.parts, limited.limit
            return Match("whole", None)
        facts = ((field, getattr(theirs, field), getattr(ours, field)) for field in Signature.__dataclass_fields__)
        if told := [f"{field} is {its}, not {own}" for field, its, own in facts if field not in _CHOSEN and its != own]:
            raise DataError(
                f"{self._where}: the signature is not that of {name}: {', '.join(told)}; run the model again"
            )
        if unread := [split for split in signature.splits if split not in ours.splits]:
            raise DataError(
                f"{self._where}: has items of split {' and '.join(unread)}, which are not asked under prompt "
                f"{signature.prompt}; run the model again, which asks nothing again that is answered"
            )
        if signature.n_items >= ours.n_items:
            raise DataError(
                f"{self._where}: the signature names {signature.n_items} items of {name}, which has {ours.n_items} "
                "others; run the model again"
            )
        # Of more items than are asked by default, those are enough.
        enough = ours.n_items if limited is None else limited.n_items
        n_whole = enough if signature.n_items < enough else ours.n_items
        asked = f"{signature.n_items:,} of {n_whole:,} items of {signature.config}"
        return Match("slice", f"a limited run, of {asked}: ask all of them")

    def add(self, records: RecordColumns, facts_sha256: str | None) -> None:
        """Compare the records of the next part.

        Args:
            records: The records.
            facts_sha256: Hash of what they say about their items; None if it is to be computed.

        Raises:
            DataError: a record is not about the item that it names, or asks something else.
        """
        known = self._known
        if known is None:
            return
        number, self._n_parts = self._n_parts, self._n_parts + 1
        records = first_asked(records, prompt_of(load_task(self._signature.task), self._signature.prompt))
        if number < len(self._parts):
            expected = self._parts[number]
            # Most results agree, and hashes of columns are computed twenty times as fast as those of items.
            is_same = (facts_sha256 or items_sha256(records)) == expected.facts_sha256
            if is_same and expected.requests_sha256 in (None, asked_sha256(records)):
                self._last_index = self._ends[number] - 1
                return
        for row, hashed in enumerate(item_hashes(records, with_requests=has_known_requests(self._signature))):
            index = known.index_by_hash.get(hashed.tobytes())
            if index is not None and index > self._last_index:
                self._last_index = index
                continue
            where = f"{self._where}: row {records.first_row + row}: item '{records[row].item_id[:60]}'"
            if index is not None:
                raise DataError(f"{where} stands in another order than in the dataset; run the model again")
            raise DataError(
                f"{where} is not asked or described as in {dataset_name(self._signature)}: its request, target, "
                f"cluster, pair, groups, split or options differ from the answer key of {known.origin}; run the model "
                "again"
            )
        if self._limit is not None:
            raise DataError(
                f"{self._where}: part {number + 1} does not have the items that are asked with a limit of "
                f"{self._limit}; run the model again"
            )


_CHOSEN = ("splits", "items_sha256", "n_items", "parts", "examples_sha256")
"""Fields of a signature in which a result on some of the items may differ from one on all of them."""


def write_key(folder: Path, made: MadeKey) -> Path:
    """Write an answer key and its item hashes below the folder of all keys, and return the path of the key."""
    signature = made.key.signature
    path = folder / dataset_name(signature) / f"{key_name(signature)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    contract.check(made.key, where=str(path))
    with held(path.parent):
        with replacing(path.with_name(made.key.items_path)) as temporary:
            temporary.write_bytes(made.items)
        strict_json.write(path, contract.dump(made.key))
    return path


@cache
def embedded_folder() -> Path:
    """Return the folder in which this code builds its datasets: in the memory of this machine, or else a temporary one.

    Other code may build other datasets, so that each version of it has a folder of its own.
    """
    memory = machine_memory().folder
    if memory is None:
        folder = Path(tempfile.mkdtemp(prefix="biasboard-datasets-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    for other in (memory / "datasets").glob("*"):
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > 24 * 3600:
                shutil.rmtree(other)
    return memory / "datasets" / code_sha256()[:16]


def _build_embedded(signature: Signature, folder: Path) -> None:
    """Build the dataset of a result if the code holds one of its name.

    The dataset that a builder makes of its default source has the name of its benchmark, which names the others that
    need no input. A builder that fails or needs an input builds none.
    """
    # A stranger may have written the signature, so that nothing but what a known benchmark names is run.
    name = signature.dataset
    benchmark = next((known for known in benchmarks() if known.name == signature.benchmark), None)
    if benchmark is None or name not in (benchmark.name, *benchmark.embedded_sources):
        return
    if (folder / name / MANIFEST).is_file() or importlib.util.find_spec(f"builders.{benchmark.name}") is None:
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    print(f"building the dataset {name}, with which results are compared", file=sys.stderr)
    command = [sys.executable, "-m", f"builders.{benchmark.name}", "--out", str(folder / name)]
    if name in benchmark.embedded_sources:
        command += ["--source", benchmark.embedded_sources[name]]
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, check=False, timeout=600)
