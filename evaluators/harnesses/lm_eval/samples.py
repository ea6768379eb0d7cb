"""Reads the samples of lm-evaluation-harness: one line per question, with what was asked and what came back."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.files import check_readable
from evaluators.backend import ChoiceRequest, Response
from evaluators.harness import LoggedAnswer, validated

_AGAIN = "import the file as lm-eval wrote it"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """A question as it was exported."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """A line of samples."""

    doc: _Document
    target: str
    arguments: dict[str, dict[str, str]]
    """Arguments of each call of the model by ``gen_args_N``: its context ``arg_0`` and one option ``arg_1``."""
    resps: tuple[tuple[tuple[str, str], ...], ...]
    """Responses of each call: a log-probability as a text, and whether the option is the greedy continuation."""


def read_samples(path: Path, task_hash: str | None) -> tuple[list[LoggedAnswer], str | None]:
    """Return the answers in a file of samples, and why it is not as the harness wrote it; None if it is.

    Args:
        path: The file.
        task_hash: Hash of all samples in the file of results; None if there is none.

    Raises:
        DataError: a line is no sample, or has values that are no log-probabilities.
    """
    check_readable(path)
    try:
        whole = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name}: byte {error.start} is not UTF-8; {_AGAIN}") from error
    adapter = TypeAdapter(_Sample)
    answers = []
    digest = hashlib.sha256()
    # Not splitlines(), which also splits at other characters, and a text may hold these.
    for number, line in enumerate(whole.removesuffix("\n").split("\n") if whole else [], start=1):
        where = f"{path.name}:{number}"
        value: Any = strict_json.loads(line, where=where, remedy=_AGAIN)
        sample = validated(adapter, value, where, _AGAIN)
        answers.append(_answer(sample, where))
        # The harness hashes the hashes of document, context and target, one after the other.
        for text in (json.dumps(value["doc"], indent=2, ensure_ascii=False), answers[-1].asked.prompt, sample.target):
            digest.update(hashlib.sha256(text.encode()).hexdigest().encode())
    doubt = None
    if digest.hexdigest() != task_hash:
        doubt = (
            f"{path.name}: the file of results has another hash of its samples, so one of both was changed; {_AGAIN}"
        )
    return answers, doubt


def _answer(sample: _Sample, where: str) -> LoggedAnswer:
    calls = [_call(sample.arguments, number, where) for number in range(len(sample.arguments))]
    if not calls:
        raise DataError(f"{where}: question {sample.doc.id} was asked without options; {_AGAIN}")
    contexts = {context for context, _ in calls}
    if len(contexts) > 1:
        raise DataError(f"{where}: the options of question {sample.doc.id} have different contexts; {_AGAIN}")
    if len(sample.resps) != len(calls):
        raise DataError(
            f"{where}: question {sample.doc.id} has {len(sample.resps)} responses to {len(calls)} options; {_AGAIN}"
        )
    logprobs = tuple(
        _logprob(responses, f"{where}: option '{option}' of question {sample.doc.id}")
        for responses, (_, option) in zip(sample.resps, calls, strict=True)
    )
    asked = ChoiceRequest(prompt=calls[0][0], options=tuple(option for _, option in calls), outcomes=())
    unknown = (None,) * len(calls)
    response = Response(
        status="answered",
        option_logprobs=logprobs,
        # The harness scores the options alone, without an end token.
        option_end_logprobs=unknown,
        option_token_counts=unknown,
    )
    return LoggedAnswer(where=where, question_id=sample.doc.id, asked=asked, response=response)


def _call(arguments: Mapping[str, Mapping[str, str]], number: int, where: str) -> tuple[str, str]:
    """Return the context and the option of a call of the model."""
    call = arguments.get(f"gen_args_{number}", {})
    if call.keys() != {"arg_0", "arg_1"}:
        raise DataError(f"{where}: gen_args_{number} is not one context and one option; {_AGAIN}")
    return call["arg_0"], call["arg_1"]


def _logprob(responses: tuple[tuple[str, str], ...], where: str) -> float:
    if len(responses) != 1:
        raise DataError(f"{where} has {len(responses)} responses; ask each question once")
    text = responses[0][0]
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(f"{where} has '{text}', which is no number; {_AGAIN}") from error
    if math.isnan(value):
        raise DataError(f"{where} has a log-probability of NaN; ask the model in float32 or bfloat16")
    if value > 0:
        raise DataError(f"{where} has {text}, which is above 0 and so no log-probability; {_AGAIN}")
    return value
