"""Reads the output of lm-evaluation-harness with --log_samples: a file of samples per task, and one of results.

Both have the time of the evaluation in their names. The results say which model was asked and how, and hold the
metadata of each task, which for an exported task includes our facts. A file of samples has a line per question, with
the requests and responses.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.files import check_readable, sha256_file
from evaluators.backend import ChoiceRequest, Response, Runtime
from evaluators.harness import (
    FACTS,
    HarnessLog,
    LoggedAnswer,
    argument_fields,
    commit_of_weights,
    exported_facts,
    precision_of,
    validated,
    without_path,
)

HOW_TO_ASK = "lm_eval run --log_samples --output_path FOLDER"
NAME = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.jsonl")
"""Name of a file of samples."""
_AGAIN = "import the folder as lm-eval wrote it"
_FILE_AGAIN = "import the file as lm-eval wrote it"
_SHOWN = (
    *("add_bos_token", "attn_implementation", "autogptq", "backend", "delta", "dtype", "gguf_file", "gptqmodel"),
    *("load_in_4bit", "load_in_8bit", "max_length", "max_model_len", "mixed_precision_dtype", "parallelize", "peft"),
    *("prefix_token_id", "quantization", "revision", "softmax_dtype", "subfolder", "tokenizer"),
)
"""Arguments of models that results may show. Others may be keys or addresses, of which only a hash is kept."""
_TORCH = re.compile(r"PyTorch version: (\S+)")


def read_log(path: Path) -> HarnessLog | None:
    """Read a file of samples and the results next to it; see :class:`~evaluators.harness.Harness`."""
    name = NAME.fullmatch(path.name)
    if name is None:
        raise ConfigError(
            f"--input {path}: is not called samples_TASK_TIME.jsonl, as lm-eval names its logs; ask with {HOW_TO_ASK}"
        )
    results_files = sorted(path.parent.glob(f"*_{name['time']}.json"))
    if len(results_files) != 1:
        raise ConfigError(
            f"{path}: needs one file results_{name['time']}.json beside it, which says who answered; found "
            f"{len(results_files)}; {_AGAIN}"
        )
    results, task = _read_results(results_files[0]), name["task"]
    config = results["configs"].get(task)
    metadata = config.get("metadata") if isinstance(config, dict) else None
    facts = metadata.get(FACTS) if isinstance(metadata, dict) else None
    if facts is None:
        return None
    _check_unmodified(results, task, path.name)
    answers, doubt = read_samples(path, results["task_hashes"].get(task))
    length, end_id = results.get("max_length"), results.get("eot_token_id")
    return HarnessLog(
        name=path.name,
        task=task,
        exported=exported_facts(facts, path.name),
        answers=answers,
        identity=_identity(results_files[0], results),
        runtime=_runtime(path, results_files[0], results),
        # The last token of an option is only predicted, so one token more than the model's length fits.
        context_tokens=length + 1 if isinstance(length, int) and length > 0 else None,
        end_id=end_id if isinstance(end_id, int) else None,
        doubt=doubt,
    )


def _read_results(path: Path) -> dict[str, Any]:
    check_readable(path)
    try:
        # Not strict: the harness writes NaN for values that it could not compute.
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON ({error}); {_AGAIN}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: is no JSON object; {_AGAIN}")
    for name in ("configs", "config", "task_hashes", "n-shot"):
        if not isinstance(value.get(name), dict):
            raise DataError(f"{path}: has no '{name}', which lm-eval writes; {_AGAIN}")
    return value


def _check_unmodified(results: Mapping[str, Any], task: str, where: str) -> None:
    """Check that nothing was added around the questions."""
    for name, words, option in (
        ("chat_template", "through a chat template", "--apply_chat_template"),
        ("system_instruction", "with a system instruction", "--system_instruction"),
    ):
        if results.get(f"{name}_sha") is not None or results.get(name) is not None:
            raise DataError(f"{where}: asked {words}; ask again without {option}")
    n_shots = results["n-shot"].get(task)
    if n_shots != 0:
        raise DataError(f"{where}: asked with {n_shots} examples before each question; ask again without --num_fewshot")


def _identity(path: Path, results: Mapping[str, Any]) -> dict[str, str | None]:
    config = results["config"]
    given = config.get("model_args")
    # Older versions write them as a single text.
    pairs = (pair.partition("=")[::2] for pair in given.split(",") if pair) if isinstance(given, str) else ()
    arguments = {str(name): str(value) for name, value in (given.items() if isinstance(given, dict) else pairs)}
    loaded = arguments.get("pretrained") or arguments.get("model")
    if not loaded:
        raise DataError(f"{path}: does not say which model answered; {_AGAIN}")
    # Weights without a commit have only a name, which others may share. The evaluation then identifies them, so that
    # two models are never taken for one.
    commit = commit_of_weights(config.get("model_sha"), arguments)
    return {
        "backend": "import",
        "harness": "lm-eval",
        "harness_version": _text(results.get("lm_eval_version")),
        "model_type": _text(config.get("model")),
        "model": without_path(loaded),
        "commit": commit,
        "peft_commit": config.get("peft_sha") or None,
        "precision": precision_of(config.get("model_dtype") or arguments.get("dtype")),
        "device": str(config.get("device") or "").partition(":")[0] or None,
        **argument_fields(
            {name: arguments[name] for name in _SHOWN if name in arguments},
            {name: value for name, value in arguments.items() if name not in (*_SHOWN, "pretrained", "model")},
        ),
        "evaluation": None if commit is not None else sha256_file(path),
    }


def _runtime(samples: Path, path: Path, results: Mapping[str, Any]) -> Runtime:
    """Return the device, packages and settings of an evaluation, and the hashes of its files."""
    config = results["config"]
    torch = _TORCH.search(str(results.get("pretty_env_info") or ""))
    packages = {
        "lm_eval": results.get("lm_eval_version"),
        "transformers": results.get("transformers_version"),
        "torch": None if torch is None else torch[1],
    }
    settings = {
        "harness": "lm-eval",
        "samples": samples.name,
        "samples_sha256": sha256_file(samples),
        "results_sha256": sha256_file(path),
        "batch_size": config.get("batch_size"),
        "max_length": results.get("max_length"),
    }
    return Runtime(
        device=_text(config.get("device")),
        packages={name: str(value) for name, value in packages.items() if value is not None},
        settings={name: str(value) for name, value in settings.items() if value is not None},
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    """A question as it was exported."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _SampleLine:
    """A line of samples."""

    doc: _Document
    target: str
    arguments: dict[str, dict[str, str]]
    """Arguments of each call of the model by ``gen_args_N``: its context ``arg_0`` and one option ``arg_1``."""
    resps: tuple[tuple[tuple[str, str], ...], ...]
    """Responses of each call: a log-probability as a text, and whether the option is the greedy continuation."""
    filtered_resps: tuple[tuple[str, str], ...] | None = None
    """First response of each call, which the harness scores; None if the line lacks them."""
    acc: float | None = None
    """The score of the harness: 1 if the target has the first of the highest log-probabilities, else 0."""


def read_samples(path: Path, task_hash: str | None) -> tuple[list[LoggedAnswer], str | None]:
    """Return the answers in a file of samples, and why it must have been changed; None if nothing shows that.

    ``task_hash`` is the hash of all samples in the file of results.

    Raises:
        DataError: a line is no sample, or has values that are no log-probabilities.
    """
    check_readable(path)
    try:
        whole = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name}: byte {error.start} is not UTF-8; {_FILE_AGAIN}") from error
    answers = []
    digest = hashlib.sha256()
    # Not splitlines(): it also splits at characters that a text may hold, such as U+2028.
    for number, line in enumerate(whole.removesuffix("\n").split("\n") if whole else [], start=1):
        where = f"{path.name}:{number}"
        value: Any = strict_json.loads(line, where=where, remedy=_FILE_AGAIN)
        sample = validated(_SampleLine, value, where, _FILE_AGAIN)
        answers.append(_answer(sample, where))
        # The harness hashes the hashes of document, context and target, one after the other.
        document = json.dumps(value["doc"], indent=2, ensure_ascii=False)
        for name, text in (("doc", document), ("prompt", answers[-1].asked.prompt), ("target", sample.target)):
            text_hash = hashlib.sha256(text.encode()).hexdigest()
            if value.get(f"{name}_hash", text_hash) != text_hash:
                raise DataError(f"{where}: {name}_hash is not the hash of what the line holds; {_FILE_AGAIN}")
            digest.update(text_hash.encode())
    doubt = None
    if digest.hexdigest() != task_hash:
        changed = "the file of results has another hash of its samples, so one of both was changed"
        doubt = f"{path.name}: {changed}; {_FILE_AGAIN}"
    return answers, doubt


def _answer(sample: _SampleLine, where: str) -> LoggedAnswer:
    calls = []
    for number in range(len(sample.arguments)):
        call = sample.arguments.get(f"gen_args_{number}", {})
        if call.keys() != {"arg_0", "arg_1"}:
            raise DataError(f"{where}: gen_args_{number} is not one context and one option; {_FILE_AGAIN}")
        calls.append((call["arg_0"], call["arg_1"]))
    if not calls:
        raise DataError(f"{where}: question {sample.doc.id} was asked without options; {_FILE_AGAIN}")
    contexts = {context for context, _ in calls}
    if len(contexts) > 1:
        raise DataError(f"{where}: the options of question {sample.doc.id} have different contexts; {_FILE_AGAIN}")
    if len(sample.resps) != len(calls):
        n_given = f"{len(sample.resps)} responses to {len(calls)} options"
        raise DataError(f"{where}: question {sample.doc.id} has {n_given}; {_FILE_AGAIN}")
    logprobs = tuple(
        _logprob(responses, f"{where}: option '{option}' of question {sample.doc.id}")
        for responses, (_, option) in zip(sample.resps, calls, strict=True)
    )
    # The hash of all samples leaves out their responses. Whoever edits these may leave what follows from them.
    scored = sample.filtered_resps is None or sample.filtered_resps == tuple(first for (first,) in sample.resps)
    if not scored or sample.acc not in (None, float(sample.target == str(logprobs.index(max(logprobs))))):
        raise DataError(
            f"{where}: question {sample.doc.id} has other responses than were scored as filtered_resps and acc; "
            f"{_FILE_AGAIN}"
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


def _logprob(responses: tuple[tuple[str, str], ...], where: str) -> float:
    if len(responses) != 1:
        raise DataError(f"{where} has {len(responses)} responses; ask each question once")
    text = responses[0][0]
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(f"{where} has '{text}', which is no number; {_FILE_AGAIN}") from error
    if math.isnan(value):
        raise DataError(f"{where} has a log-probability of NaN; ask the model in float32 or bfloat16")
    if value > 0:
        raise DataError(f"{where} has {text}, which is above 0 and so no log-probability; {_FILE_AGAIN}")
    return value
