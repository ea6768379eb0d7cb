"""The sources *gsm8k* and *realtoxicityprompts*: plain texts, each turned into a template by rules or rejected."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable, sha256_file
from biasboard.ground.progress import Report
from builders.dataset.inputs import check_no_revision, hub_files, is_on_hub
from builders.dataset.output import Rule
from builders.gifi.tagging import RULES, UncertainError, tagged
from builders.gifi.variants import VariantFrame
from schemas.documents.dataset import Reject, Source
from schemas.lexicon import pronoun_families

GSM8K_ID = "openai/gsm8k"
GSM8K_REVISION = "e53f048856ff4f594e959d75785d2c2d37b678ee"
RTP_ID = "allenai/real-toxicity-prompts"

NO_NUMBER = Rule(name="no_number", description="the answer is not one number")
REPEATED = Rule(name="repeated_text", description="the same text stands in the source before")
REJECT_RULES = (*RULES, NO_NUMBER, REPEATED)

# A solution of GSM8K ends in #### and the answer.
_ANSWER = re.compile(r"####\s*(-?\d[\d,]*(?:\.\d+)?)\s*$")
_REPORT_EVERY = 2000
_MOST_BYTES = 4 << 30
"""Maximum size of a file; the published ones have at most some hundred megabytes."""


Tagged: TypeAlias = tuple[list[VariantFrame], list[Reject], Source]
"""The frames and rejects of a source, and the file that they come from."""


def gsm8k(path_or_id: Path, revision: str | None, *, limit: int | None, report: Report) -> Tagged:
    """Read and tag the word problems of the test split of GSM8K, as JSON Lines or parquet.

    Raises:
        DataError: the file is missing, cannot be downloaded, cannot be read, or holds no text that can be used.
        ConfigError: the limit is too small for one template.
        MissingExtraError: the extra 'build' is not installed.
    """
    path, file = source_file(
        path_or_id,
        ("test.jsonl", "test-00000-of-00001.parquet"),
        hub_id=GSM8K_ID,
        hub_file="main/test-00000-of-00001.parquet",
        revision=revision or (GSM8K_REVISION if is_on_hub(path_or_id, GSM8K_ID) else None),
    )
    texts = (
        (_field(row, "question", location), _number(_field(row, "answer", location)), location)
        for location, row in _rows(path)
    )
    return *_frames(texts, "gsm8k", needs_answer=True, limit=limit, report=report), file


def realtoxicityprompts(path_or_id: Path, revision: str | None, *, limit: int | None, report: Report) -> Tagged:
    """Read and tag the prompts of RealToxicityPrompts, without their continuations.

    Raises:
        DataError: the file is missing, cannot be downloaded, cannot be read, or holds no text that can be used.
        ConfigError: the limit is too small for one template.
        MissingExtraError: the extra 'build' is not installed.
    """
    names = ("prompts.jsonl", "realtoxicityprompts-data.jsonl")
    path, file = source_file(path_or_id, names, hub_id=RTP_ID, hub_file="prompts.jsonl", revision=revision)
    texts = ((_prompt(row, location).strip(), None, location) for location, row in _rows(path))
    return *_frames(texts, "realtoxicityprompts", needs_answer=False, limit=limit, report=report), file


def source_file(
    path_or_id: Path, names: tuple[str, ...], *, hub_id: str, hub_file: str, revision: str | None
) -> tuple[Path, Source]:
    """Return the file that ``--input`` names, downloaded from the Hub if necessary, and its description as a source.

    Args:
        path_or_id: Path of the file, path of a folder that holds one of ``names``, or the Hub id.
        names: Usual names of the file, in order of preference.
        hub_id: Id of the dataset on the Hub, ``owner/name``.
        hub_file: Path of the file in the Hub repository.
        revision: Commit on the Hub; None for the newest one, and for a local file.

    Raises:
        DataError: there is no such file, it cannot be downloaded, or a revision is given for a local file.
    """
    path, commit = path_or_id, None
    if is_on_hub(path_or_id, hub_id):
        (path,), commit = hub_files(hub_id, [hub_file], revision)
    else:
        if path.is_dir():
            inside = [path / name for name in names if (path / name).is_file()]
            if not inside:
                raise DataError(f"--input {path}: no {' or '.join(names)} here; give the file, or {hub_id} for the Hub")
            path = inside[0]
        if not path.is_file():
            raise DataError(f"--input {path}: no such file; give {names[0]}, or {hub_id} for the Hub")
        check_no_revision(revision, path, "file")
    address, sha256 = f"https://huggingface.co/datasets/{hub_id}", sha256_file(path)
    return path, Source(
        name=hub_id, address=address, revision=commit, sha256=sha256, licence="not told", redistributable=True
    )


def _frames(
    texts: Iterable[tuple[str, str | None, str]], name: str, *, needs_answer: bool, limit: int | None, report: Report
) -> tuple[list[VariantFrame], list[Reject]]:
    """Tag texts, each with its answer, if it has one, and its place in the source."""
    frames: list[tuple[str, VariantFrame]] = []
    rejects: list[Reject] = []
    seen: set[str] = set()
    for number, (text, answer, location) in enumerate(texts):
        if number % _REPORT_EVERY == 0:
            report(f"reading texts ({len(frames):,} usable)", number, None)
        key = hashlib.sha256(text.encode()).hexdigest()
        refusal = (REPEATED, "stands in the source before") if key in seen else None
        if refusal is None and needs_answer and answer is None:
            refusal = (NO_NUMBER, "no number stands after ####")
        seen.add(key)
        if refusal is None:
            try:
                template = tagged(text)
            except UncertainError as error:
                refusal = (error.rule, str(error))
            else:
                frames.append((key, VariantFrame(f"{name}-{number:06}", template, location, answer=answer)))
        if refusal is not None:
            rule, reason = refusal
            rejects.append(Reject(candidate=text or "(empty)", source_row=location, rule=rule.name, reason=reason))
    chosen = _spread(frames, limit)
    if not frames:
        rules = Counter(reject.rule for reject in rejects)
        why = ", ".join(f"{n} {rule}" for rule, n in rules.most_common()) or "it is empty"
        raise DataError(f"no text of the {name} file can be used ({why}); use the published file")
    if not chosen:
        raise ConfigError(f"--limit {limit}: one template needs {len(pronoun_families())} items; raise it")
    return chosen, rejects


def _spread(frames: list[tuple[str, VariantFrame]], limit: int | None) -> list[VariantFrame]:
    """Choose frames for at most ``limit`` items by the hash of their text, keeping the order of the source."""
    if limit is None:
        return [frame for _, frame in frames]
    chosen = {key for key, _ in sorted(frames, key=lambda entry: entry[0])[: limit // len(pronoun_families())]}
    return [frame for key, frame in frames if key in chosen]


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.suffix == ".parquet":
        # Imported here because the other form needs no pyarrow.
        from schemas.files import arrow_files

        names = arrow_files.foreign_schema(path).names
        for number, values in enumerate(arrow_files.foreign_rows(path, names)):
            yield f"{path.name}, row {number}", dict(zip(names, values, strict=True))
        return
    check_readable(path, most=_MOST_BYTES)
    with path.open(encoding="utf-8") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    location = f"{path.name}:{number}"
                    row = strict_json.loads(line, where=location, remedy="use the published file")
                    if not isinstance(row, dict):
                        raise DataError(f"{location}: is no JSON object; use the published file")
                    yield location, cast(Mapping[str, Any], row)
        except UnicodeDecodeError as error:
            raise DataError(f"{path.name}: is not UTF-8 ({error.reason}); use the published file") from error


def _field(row: Mapping[str, Any], name: str, location: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise DataError(f"{location}: field '{name}' is missing; have: {', '.join(row)}; use the published file")
    return value


def _prompt(row: Mapping[str, Any], location: str) -> str:
    prompt = row.get("prompt")
    if not isinstance(prompt, Mapping):
        raise DataError(f"{location}: field 'prompt' is missing; have: {', '.join(row)}; use the published file")
    return _field(prompt, "text", location)


def _number(answer: str) -> str | None:
    match = _ANSWER.search(answer)
    return None if match is None else match[1].replace(",", "")
