"""Reads logs of inspect_ai: ``.eval``, a zip archive with an entry per sample, or ``.json``, a single file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import sha256_file
from biasboard.ground.strict_json import JsonValue
from evaluators.backend import Runtime
from evaluators.harness import (
    FACTS,
    HarnessLog,
    argument_fields,
    commit_of_weights,
    exported_facts,
    precision_of,
    validated,
    without_path,
)
from evaluators.harnesses.inspect_ai.archive import AGAIN, Archive
from evaluators.harnesses.inspect_ai.eval_samples import read_sample

HOW_TO_ASK = "inspect eval --log-dir FOLDER"
_VERSION = 2
"""Version of the format of logs."""
_HEADER = "header.json"
_START = "_journal/start.json"
_SAMPLES = "samples/"
_SHOWN = (
    *("attn_implementation", "chat_template", "device", "dtype", "enable_thinking", "gguf_file", "max_model_len"),
    *("model_path", "quantization", "revision", "tokenizer", "tokenizer_path", "torch_dtype"),
)
"""Arguments of models that results may show. Others may be keys or addresses, of which only a hash is kept."""
_LONGEST_SHOWN = 80
"""Largest number of characters of an argument that is shown; a chat template is longer."""
_REMARK = (
    "asked as messages of a chat, in a template that the log does not tell: compare the result with those of models "
    "that were asked in a chat"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Config:
    """The settings of an evaluation."""

    epochs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spec:
    """The task and the model."""

    run_id: str
    task: str
    model: str
    config: _Config
    model_args: dict[str, Any] = field(default_factory=dict)
    model_base_url: str | None = None
    packages: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A solver of the task."""

    solver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """The solvers of the task and the settings of its calls."""

    steps: tuple[_Step, ...]
    finish: _Step | None = None
    config: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """The header of a log, as far as it is read."""

    version: int
    status: str
    eval: _Spec
    plan: _Plan
    invalidated: bool = False
    error: dict[str, Any] | None = None


_HEADER_TYPE = TypeAdapter(_Header)


def read_log(path: Path) -> HarnessLog | None:
    """Read a log; see ``Harness.read_log``."""
    if path.suffix == ".eval":
        return _read_archive(path)
    if path.suffix == ".json":
        return _read_json(path)
    raise ConfigError(
        f"--input {path}: is no log, which ends in .eval or .json; ask with {HOW_TO_ASK}, and name what it wrote"
    )


def _read_archive(path: Path) -> HarnessLog | None:
    with Archive(path) as archive:
        if _HEADER not in archive.names and _START in archive.names:
            raise DataError(
                f"{path.name}: the evaluation has not ended; wait for it, or finish it with inspect eval-retry, and "
                "import the log that this writes"
            )
        header = _read_header(archive.read(_HEADER), path.name)
        names = [name for name in archive.names if name.startswith(_SAMPLES)]
        return _read(path, header, ((f"{path.name}: {name}", archive.read(name)) for name in names))


def _read_json(path: Path) -> HarnessLog | None:
    log = strict_json.read(path)
    header = _read_header(log, path.name)
    samples = log.get("samples") if isinstance(log, dict) else None
    if not isinstance(samples, list):
        raise DataError(f"{path.name}: holds no samples; ask without --no-log-samples, and {AGAIN}")
    return _read(path, header, ((f"{path.name}: sample {n}", sample) for n, sample in enumerate(samples, start=1)))


def _read(path: Path, header: _Header, samples: Iterable[tuple[str, JsonValue]]) -> HarnessLog | None:
    """Return the log of a header and of its samples with their locations; None if its task was not exported by us."""
    facts = (header.eval.metadata or {}).get(FACTS)
    if facts is None:
        return None
    exported = exported_facts(facts, path.name)
    _check_unmodified(header, facts, path.name)
    read = [
        read_sample(sample, where, model=header.eval.model, settings=header.plan.config) for where, sample in samples
    ]
    n_reasoned = sum(sample.has_reasoning for sample in read)
    reasoning_remark = f"the texts of {n_reasoned} answers are without the reasoning that inspect_ai keeps apart"
    return HarnessLog(
        name=path.name,
        task=header.eval.task,
        exported=exported,
        answers=[sample.answer for sample in read],
        identity=_identity(header.eval),
        runtime=_runtime(path, header.eval, {sample.model for sample in read if sample.model is not None}),
        remarks=(_REMARK, reasoning_remark) if n_reasoned else (_REMARK,),
    )


def _read_header(value: JsonValue, where: str) -> _Header:
    """Return the header of a log; ``value`` may also be the whole log."""
    version = value.get("version") if isinstance(value, dict) else None
    if version != _VERSION:
        raise DataError(
            f"{where}: is a log of version {version!r}, and {_VERSION} is read; convert it with inspect log convert"
        )
    return validated(_HEADER_TYPE, value, where, AGAIN)


def _check_unmodified(header: _Header, facts: object, where: str) -> None:
    """Check that an evaluation is complete, and that nothing was added around the questions."""
    if header.status != "success":
        raise DataError(
            f"{where}: the evaluation has the status '{header.status}', so that answers are missing; finish it with "
            "inspect eval-retry, and import the log that this writes"
        )
    if header.invalidated or header.error is not None:
        raise DataError(f"{where}: the log is marked as invalid or has an error; ask again")
    solvers = [step.solver for step in (*header.plan.steps, header.plan.finish) if step is not None]
    if solvers != ["generate"]:
        raise DataError(f"{where}: asked with the solvers {solvers}; ask the exported task without --solver")
    epochs, exported = header.eval.config.epochs or 1, facts.get("epochs") if isinstance(facts, dict) else None
    if epochs != exported:
        raise DataError(f"{where}: asked in {epochs} epochs, and exported for {exported!r}; ask again without --epochs")


def _identity(spec: _Spec) -> dict[str, str | None]:
    provider, _, name = spec.model.partition("/")
    arguments = {name: str(value) for name, value in spec.model_args.items()}
    shown = {key: arguments[key] for key in _SHOWN if key in arguments and len(arguments[key]) <= _LONGEST_SHOWN}
    hidden = {key: value for key, value in arguments.items() if key not in shown}
    if spec.model_base_url is not None:
        hidden["base_url"] = spec.model_base_url
    commit = commit_of_weights(arguments.get("revision"), arguments)
    return {
        "backend": "import",
        "harness": "inspect-ai",
        "harness_version": spec.packages.get("inspect_ai"),
        "provider": provider,
        "model": without_path(name or provider),
        "commit": commit,
        "precision": precision_of(arguments.get("dtype") or arguments.get("torch_dtype")),
        # The provider applies the model's chat template, which is not in the log.
        "api": "chat",
        **argument_fields(shown, hidden),
        # Without a commit, other models may share the name, so the evaluation identifies the model.
        "evaluation": None if commit is not None else spec.run_id,
    }


def _runtime(path: Path, spec: _Spec, answered: Iterable[str]) -> Runtime:
    """Return the packages and settings of an evaluation; ``answered`` are the names under which models answered."""
    settings = {
        "harness": "inspect-ai",
        "api": "chat",
        "log": path.name,
        "log_sha256": sha256_file(path),
        "reported_model": ", ".join(sorted({without_path(name) for name in answered})),
    }
    return Runtime(
        device=None,
        packages=dict(sorted(spec.packages.items())),
        settings={name: value for name, value in settings.items() if value},
    )
