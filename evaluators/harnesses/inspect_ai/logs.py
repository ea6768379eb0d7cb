"""Reads logs of inspect_ai: ``.eval``, a zip archive with an entry per sample, or ``.json``, a file with all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.strict_json import JsonValue
from evaluators.harness import FoundLogs, HarnessLog, check_logs, exported_facts
from evaluators.harnesses.inspect_ai.archive import AGAIN, Archive
from evaluators.harnesses.inspect_ai.header import Header, check_asked_plainly, facts_of, read_header
from evaluators.harnesses.inspect_ai.models import logged_model, logged_runtime
from evaluators.harnesses.inspect_ai.samples import ReadSample, read_sample

_ASK = "ask with inspect eval --log-dir FOLDER"
_HEADER = "header.json"
_START = "_journal/start.json"
_SAMPLES = "samples/"
_TIMED = re.compile(r"\d{4}-\d\d-\d\dT.*\.json")
"""Names that inspect_ai gives to logs in JSON; a folder of logs may hold other JSON."""
_REMARK = (
    "asked as messages of a chat, in a template that the log does not tell: compare the result with those of models "
    "that were asked in a chat"
)


class _Place(NamedTuple):
    """A sample and its place in a log."""

    where: str
    value: JsonValue


def read_logs(path: Path) -> FoundLogs:
    """Read the logs of one model; see ``Harness.read``."""
    logs: list[HarnessLog] = []
    left_out: list[str] = []
    for file in _files(path):
        log = _read_archive(file) if file.suffix == ".eval" else _read_json(file)
        if log is None:
            left_out.append(file.name)
        else:
            logs.append(log)
    check_logs(path, logs, left_out, "inspect-ai")
    return FoundLogs(logs, left_out)


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise ConfigError(f"--input {path}: no such file or folder; {_ASK}, and name what it wrote")
    if not path.is_dir():
        if path.suffix not in (".eval", ".json"):
            raise ConfigError(
                f"--input {path}: is no log, which ends in .eval or .json; {_ASK}, and name what it wrote"
            )
        return [path]
    found = [one for one in sorted(path.rglob("*")) if one.suffix == ".eval" or _TIMED.fullmatch(one.name)]
    if not found:
        raise ConfigError(f"--input {path}: no log that ends in .eval or .json here; {_ASK}")
    return found


def _read_archive(path: Path) -> HarnessLog | None:
    with Archive(path) as archive:
        if _HEADER not in archive.names and _START in archive.names:
            raise DataError(
                f"{path.name}: the evaluation has not ended; wait for it, or finish it with inspect eval-retry, and "
                "import the log that this writes"
            )
        header = read_header(archive.read(_HEADER), path.name)
        names = [name for name in archive.names if name.startswith(_SAMPLES)]
        return _read(path, header, (_Place(f"{path.name}: {name}", archive.read(name)) for name in names))


def _read_json(path: Path) -> HarnessLog | None:
    value = strict_json.read(path)
    header = read_header(value, path.name)
    samples = value.get("samples") if isinstance(value, dict) else None
    if not isinstance(samples, list):
        raise DataError(f"{path.name}: holds no samples; ask without --no-log-samples, and {AGAIN}")
    return _read(path, header, (_Place(f"{path.name}: sample {n}", one) for n, one in enumerate(samples, start=1)))


def _read(path: Path, header: Header, samples: Iterator[_Place]) -> HarnessLog | None:
    """Return a log; None if its task was not exported by us."""
    facts = facts_of(header)
    if facts is None:
        return None
    exported = exported_facts(facts, path.name)
    check_asked_plainly(header, facts, path.name)
    read = [read_sample(value, where, model=header.eval.model, settings=header.plan.config) for where, value in samples]
    return HarnessLog(
        name=path.name,
        task=header.eval.task,
        exported=exported,
        answers=[one.answer for one in read],
        model=logged_model(header),
        runtime=logged_runtime(path, header, {one.model for one in read if one.model is not None}),
        remarks=(_REMARK, *_reasoning(read)),
    )


def _reasoning(read: Sequence[ReadSample]) -> Iterator[str]:
    n = sum(one.has_reasoning for one in read)
    if n:
        yield f"the texts of {n} answers are without the reasoning that inspect_ai keeps apart"
