"""Where a run lives on disk, and how its files are written and read."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from evaluators.backend import Runtime
from schemas import contract, strict_json, tables
from schemas.errors import ConfigError, DataError
from schemas.files import sha256_file
from schemas.record import Record
from schemas.result import Environment, Model, Result, Signature

RESULT = "result.json"
RECORDS = "records.parquet"
LOCK = ".lock"
STATE = "pending.json"
_MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


class Run(NamedTuple):
    """A finished run."""

    result: Result
    records: list[Record]


def check_model_id(model_id: str) -> str:
    """The id itself, if a folder can be named after it.

    Raises:
        ConfigError: it is neither ``name`` nor ``org/name`` of letters, digits, dot, dash and underscore, or it would
            pass for a baseline.
    """
    if model_id.startswith("baseline/"):
        raise ConfigError(
            f"model id '{model_id}': 'baseline/' is kept for the baselines; give another name with --name"
        )
    if not _MODEL_ID.fullmatch(model_id) or "__" in model_id:
        raise ConfigError(
            f"model id '{model_id}' must be NAME or ORG/NAME of letters, digits, '.', '-' and single '_'; "
            "for a local model give a name with --name"
        )
    return model_id


def run_folder(root: Path, signature: Signature, model: Model) -> Path:
    """The folder of a run: the same command finds it again, another model or prompt never does."""
    dataset = f"{signature.dataset}@{signature.dataset_version}"
    key = hashlib.sha256(f"{signature.sha256()}:{model.identity_sha256}".encode()).hexdigest()[:8]
    return root / dataset / model.id.replace("/", "__") / f"{signature.config}-{signature.prompt}-{key}"


def read_run(folder: Path) -> Run:
    """Read and check a finished run.

    Raises:
        DataError: a file is missing, unsound, or the records are not those of the result.
    """
    path = folder / RESULT
    if not path.is_file():
        raise DataError(f"{folder}: no {RESULT} here; name the folder of a finished run")
    result = contract.load(strict_json.read(path), Result, where=str(path))
    if result.records.path.startswith("https://"):
        raise DataError(
            f"{path}: its records lie at {result.records.path}; fetch them, and name the file in records.path"
        )
    records_path = folder / result.records.path
    records = tables.read_rows(records_path, Record)
    found = sha256_file(records_path)
    if found != result.records.sha256:
        raise DataError(
            f"{records_path}: sha256 {found[:12]} is not the {result.records.sha256[:12]} of {RESULT}; "
            "the records were changed after scoring: run or import the model again"
        )
    if len(records) != result.records.n_rows:
        raise DataError(
            f"{records_path}: {len(records)} rows, {RESULT} says {result.records.n_rows}; run the model again"
        )
    return Run(result, records)


def finished_runs(path: Path) -> list[Path]:
    """The folders of finished runs at or below a path, sorted.

    Args:
        path: Folder of a run, its result.json, or a folder above runs.

    Raises:
        DataError: there is none.
    """
    if path.name == RESULT:
        path = path.parent
    if (path / RESULT).is_file():
        return [path]
    found = sorted(
        result.parent
        for result in path.glob(f"**/{RESULT}")
        if not any(part.startswith(".") for part in result.relative_to(path).parts)
    )
    if not found:
        raise DataError(f"{path}: no {RESULT} here; name the folder of a finished run")
    return found


def environment(runtimes: Sequence[Runtime]) -> Environment:
    """What computed the answers: where several sessions differ, every value that one of them had."""
    numpy = {"numpy": importlib.metadata.version("numpy")}
    devices = [runtime.device for runtime in runtimes if runtime.device is not None]
    return Environment(
        biasboard=importlib.metadata.version("biasboard"),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        device=" / ".join(dict.fromkeys(devices)) or None,
        packages=_merged([numpy, *(runtime.packages for runtime in runtimes)]),
        settings=_merged([runtime.settings for runtime in runtimes]),
    )


def _merged(mappings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    values: dict[str, dict[str, None]] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            values.setdefault(key, {})[value] = None
    return {key: " / ".join(values[key]) for key in sorted(values)}
