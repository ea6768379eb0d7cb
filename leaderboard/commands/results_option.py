"""The option ``--results``: accepted results in folders, and in datasets of the Hugging Face Hub."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.hub import downloaded, hub_dataset
from leaderboard.verify.board_files import results_folder
from leaderboard.verify.intake import FILES_OF_RESULTS
from leaderboard.verify.submissions import read_register, write_register
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.board import Acceptance, Register
from schemas.folders.run_folder import REGISTER


@contextmanager
def accepted_results(given: Sequence[str] | None) -> Iterator[Path]:
    """Yield one folder with all accepted results that a user names, or those of the board if none are named.

    A single folder is yielded as it is. Everything else is brought together in a temporary folder: a cache of the Hub
    consists of links, which a board does not follow, and a result at the same place must not stand for two.

    Args:
        given: Folders, or datasets of the Hub as ``hf://datasets/ORG/NAME`` with ``@REVISION`` for a branch, tag or
            commit.

    Raises:
        ConfigError: an address has another form.
        DataError: a dataset cannot be downloaded and is not in the cache, two folders hold different files at the same
            place, or two registers decide differently about a result.
    """
    if not given:
        yield results_folder()
        return
    if len(given) == 1 and "://" not in given[0]:
        yield Path(given[0])
        return
    with tempfile.TemporaryDirectory(prefix="biasboard-results-") as name:
        whole, decisions = Path(name), dict[str, Acceptance]()
        for text in given:
            folder = _downloaded(text) if "://" in text else Path(text)
            if not folder.is_dir():
                raise ConfigError(f"--results {text}: no such folder; correct it")
            for decision in read_register(folder).results:
                if decisions.setdefault(decision.place, decision) != decision:
                    raise DataError(
                        f"--results {text}: decides otherwise about {decision.place}; take one decision out"
                    )
            _add(folder, whole, text)
        write_register(whole, Register(schema_version=SCHEMA_VERSION, results=tuple(decisions.values())))
        yield whole


def _downloaded(text: str) -> Path:
    dataset = hub_dataset(text)
    if dataset is None:
        raise ConfigError(f"--results {text}: write hf://datasets/ORG/NAME, or hf://datasets/ORG/NAME@REVISION")
    patterns = [REGISTER, *(f"*/{name}" for name in FILES_OF_RESULTS)]
    return downloaded(dataset, patterns, named=f"--results {text}")


def _add(folder: Path, whole: Path, text: str) -> None:
    """Add the results in a folder to the whole; the same result may be in several folders."""
    is_cache = "://" in text
    for below, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in set(files) & set(FILES_OF_RESULTS):
            source = Path(below, name)
            target = whole / source.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                if sha256_file(target) != sha256_file(source):
                    other = target.relative_to(whole)
                    raise DataError(f"--results {text}: has another {other} than a folder before it; keep one of them")
            elif source.is_symlink() and not is_cache:
                target.symlink_to(source.absolute())  # Stays a link, which verification refuses.
            else:
                _link(source.resolve(), target)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # On another file system.
        shutil.copyfile(source, target)
