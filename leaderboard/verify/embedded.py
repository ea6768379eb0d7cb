"""Builds the datasets that the code itself holds, to compare results with them without a copy of their keys."""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from biasboard.ground.memory import code_sha256, machine_memory
from evaluators.benchmark import benchmarks
from schemas.documents.result import Signature
from schemas.folders.dataset_folder import MANIFEST

_SECONDS = 600
_OLDEST_SECONDS = 24 * 3600


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
            if time.time() - other.stat().st_mtime > _OLDEST_SECONDS:
                shutil.rmtree(other)
    return memory / "datasets" / code_sha256()[:16]


def build_embedded(signature: Signature, folder: Path) -> None:
    """Build the dataset of a result if the code holds one of its name.

    The dataset that a builder makes of nothing but its own texts has the name of its benchmark. A builder that fails or
    needs an input builds none.

    Args:
        signature: Signature of the result, which a stranger may have written: it names none but a known benchmark.
        folder: Folder of the datasets.
    """
    name = signature.dataset
    is_known = name == signature.benchmark and name in {benchmark.name for benchmark in benchmarks()}
    if not is_known or (folder / name / MANIFEST).is_file() or importlib.util.find_spec(f"builders.{name}") is None:
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    print(f"building the dataset {name}, with which results are compared", file=sys.stderr)
    command = [sys.executable, "-m", f"builders.{name}", "--out", str(folder / name)]
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS)
