"""Questions for inspect_ai, and logs in the format of inspect_ai 0.3.285 as results: made without it, also hostile."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from biasboard.ground.errors import ConfigError, DataError
from evaluators.backend import GenerateRequest
from evaluators.harness import load_harness
from evaluators.runs.plan.plan import Plan, select
from evaluators.task import Asked, load_task
from leaderboard.ranking.rank_ranges import why_unranked
from leaderboard.verify.entries import Root
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from schemas.validate import problems
from tests.commands import run
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Received, save_tokenizer
from tests.evaluators.harnesses.importing import export, import_log, imported, only_run, refused
from tests.evaluators.invoking import evaluators
from tests.leaderboard.made_keys import load_known

HARNESS = "inspect-ai"
NAME = "biasboard_made_type2_mcq2-generate-v1"
"""The task of the config ``type2`` of the dataset under the prompt."""
PROMPT = ("--prompt", "mcq2-generate-v1")
Sample: TypeAlias = dict[str, Any]
Log: TypeAlias = dict[str, Any]
LOGGED_MODEL = "openai-api/local/made"
STARTED = "2026-01-02T03-04-05-00-00"


class Answered(NamedTuple):
    """What a model says to a question."""

    text: str
    stop_reason: str = "stop"
    refusal: bool = False


def facts_of(exported: Path) -> dict[str, Any]:
    """The facts of the only task in an exported folder."""
    (facts,) = json.loads((exported / "biasboard.json").read_text(encoding="utf-8"))["tasks"].values()
    return dict(facts)


def rows_of(exported: Path) -> list[Sample]:
    """The questions of the only task in an exported folder."""
    (path,) = exported.glob("*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def sample_of(row: Sample, epoch: int, said: Answered, settings: dict[str, Any]) -> Sample:
    """A sample: a long prompt is kept apart from the event of the call, as the harness does it."""
    key = hashlib.md5(row["input"].encode()).hexdigest()
    content: Any = [{"type": "text", "text": said.text, "refusal": True}] if said.refusal else said.text
    message = {"id": "b", "content": content, "source": "generate", "role": "assistant", "model": LOGGED_MODEL}
    output = {
        "model": "made-2026",
        "choices": [{"message": message, "stop_reason": said.stop_reason}],
        "completion": said.text,
        "usage": {"input_tokens": 5, "output_tokens": 3, "total_tokens": 10, "input_tokens_cache_read": 2},
    }
    call = {
        "event": "model",
        "model": LOGGED_MODEL,
        "input": [],
        "input_refs": [[0, 1]],
        "config": settings,
        "output": output,
    }
    return {
        "id": row["id"],
        "epoch": epoch,
        "input": row["input"],
        "target": row["target"],
        "messages": [{"id": "a", "content": row["input"], "role": "user"}, message],
        "output": output,
        "metadata": row["metadata"],
        "events": [{"event": "span_begin", "name": "solvers"}, call, {"event": "span_end"}],
        "attachments": {key: row["input"]},
        "events_data": {"messages": [{"content": f"attachment://{key}", "role": "user"}], "calls": []},
    }


def made_log(exported: Path, says: Callable[[Sample, int], Answered]) -> Log:
    """The log of the only task in an exported folder, with the answer to each row in an epoch, counted from 1."""
    facts = facts_of(exported)
    samples = [
        sample_of(row, epoch, says(row, epoch), facts["settings"])
        for epoch in range(1, facts["epochs"] + 1)
        for row in rows_of(exported)
    ]
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "run_id": "made-run",
            "created": "2026-01-02T03:04:05+00:00",
            "task": facts["file"].removesuffix(".jsonl"),
            "dataset": {"location": "/home/somebody/questions.jsonl", "samples": len(samples)},
            "model": LOGGED_MODEL,
            "model_args": {"api_key": "sk-secret", "dtype": "bfloat16", "model_path": "/home/somebody/made"},
            "model_base_url": "http://somebody:secret@10.0.0.1/v1",
            "config": {"epochs": facts["epochs"], "fail_on_error": False},
            "packages": {"inspect_ai": "0.3.285"},
            "metadata": {"biasboard": facts},
        },
        "plan": {"steps": [{"solver": "generate", "params": {"tool_calls": "loop"}}], "config": facts["settings"]},
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": []},
        "samples": samples,
    }


def write_json(log: Log, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{STARTED}_{log['eval']['task']}_made.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    return path


def right(row: Sample, epoch: int) -> Answered:
    """The letter of the right option."""
    return Answered("AB"[row["choices"].index(row["target"])])


@pytest.fixture(scope="session")
def exported(dataset: Path) -> Path:
    """The task of one config for inspect_ai, whose prompt asks each item in two orders."""
    folder = dataset.parent / "for-inspect-ai"
    export("inspect-ai", dataset, folder, "--config", "type2", *PROMPT)
    return folder


@pytest.fixture(scope="module")
def pronouns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set with a task that is asked eleven times per item."""
    folder = tmp_path_factory.mktemp("pronouns") / "gifi"
    run("-m", "builders.gifi", "--out", folder, "--limit", "160", status=0)
    return folder


def test_texts_and_settings_are_those_of_the_task(dataset: Path, exported: Path) -> None:
    task = load_task("coreference")
    plan = Plan(select(dataset, read_manifest(dataset), "type2"), task, task.prompts["mcq2-generate-v1"])
    wanted = []
    for _, item in plan.selection.items:
        for number, request in enumerate(task.requests(item, Asked(plan.prompt))):
            key = f"{item.item_id}#{number}"
            row = {"id": key, "input": request.prompt, "target": item.referent, "metadata": {"questions": [key]}}  # type: ignore[attr-defined]
            wanted.append({**row, "choices": list(request.outcomes)})
    assert rows_of(exported) == wanted
    assert len(wanted) == 24
    facts = facts_of(exported)
    assert isinstance(request, GenerateRequest)
    settings = {"max_tokens": request.max_tokens, "temperature": 0.0, "top_p": 1.0, "stop_seqs": list(request.stop)}
    assert (facts["epochs"], facts["settings"]) == (1, settings)
    assert (facts["signature"]["prompt"], facts["signature"]["n_items"]) == ("mcq2-generate-v1", 12)
    assert str(exported) not in "".join(path.read_text(encoding="utf-8") for path in exported.iterdir())


def test_what_cannot_be_asked_is_refused_and_leaves_nothing(dataset: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ((), "cannot ask with prompt 'intrinsic-v1', which scores options"),
        (("--prompt", "cot-logprob-v1"), "scores options after the model's own answers, which no file of questions"),
        ((*PROMPT, "--tokenizer", "made"), "--tokenizer: inspect-ai scores no options"),
    ):
        done = evaluators("export", HARNESS, dataset, "--out", tmp_path / "out", *arguments)
        refused(done, message, tmp_path / "out")


def test_what_is_no_log_in_json_is_refused(tmp_path: Path) -> None:
    harness = load_harness("inspect-ai")
    (tmp_path / "2026.eval").write_bytes(b"PK")
    (tmp_path / "empty").mkdir()
    for path, message in (
        (tmp_path / "none", "no such file or folder"),
        (tmp_path / "empty", "no log that ends in .json here"),
        (Path(__file__), "is no log, which ends in .json"),
        (tmp_path, r"2026\.eval: only logs in JSON are read; .* inspect log convert \S+2026.eval --to json"),
    ):
        with pytest.raises(ConfigError, match=message):
            harness.read(path)
    (tmp_path / "2026-01-02T03.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(DataError, match="nested too deeply"):
        harness.read(tmp_path / "2026-01-02T03.json")


@pytest.mark.slow
def test_a_log_becomes_a_result_that_is_valid_and_visibly_imported(
    dataset: Path, exported: Path, tmp_path: Path
) -> None:
    log = made_log(exported, right)
    message = log["samples"][0]["output"]["choices"][0]["message"]
    message["content"] = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": message["content"]}]
    # Weights below an adapter do not name the model.
    log["eval"]["model_args"] |= {"revision": "a" * 40, "lora_path": "lab/x"}
    printed = imported(HARNESS, dataset, write_json(log, tmp_path / "log").parent, tmp_path / "runs")
    assert "asked as messages of a chat, in a template that the log does not tell" in printed
    assert "the texts of 1 answers are without the reasoning that inspect_ai keeps apart" in printed
    assert list(problems(tmp_path / "runs")) == []
    run = only_run(tmp_path / "runs")
    model, settings, identity = run.result.model, run.result.environment.settings, run.result.model.identity
    assert (model.id, model.backend, model.endpoint, model.precision) == ("lab/made", "import", "replay", "bfloat16")
    assert (model.revision, model.chat_template_sha256) == (None, None)
    assert identity is not None
    assert (identity["api"], identity["model"], identity["evaluation"]) == ("chat", "local/made", "made-run")
    assert (settings["harness"], settings["api"], settings["reported_model"]) == ("inspect-ai", "chat", "made-2026")
    assert run.result.environment.packages["inspect_ai"] == "0.3.285"
    written = next((tmp_path / "runs").rglob("result.json")).read_text(encoding="utf-8")
    assert not any(told in written for told in ("/home/somebody", "sk-secret", "somebody:", "10.0.0.1"))
    accuracy = next(metric for metric in run.result.metrics if metric.name == "accuracy" and not metric.group)
    assert (accuracy.value, accuracy.n) == (1.0, 12)
    exchange, expected = run.records[0].exchanges[0], right(rows_of(exported)[0], 1).text
    assert (exchange.text, exchange.finish_reason, exchange.status) == (expected, "stop", "answered")
    assert (exchange.n_prompt_tokens, exchange.n_completion_tokens) == (7, 3)
    (entry,) = load_known(Root(tmp_path / "runs", "local")).entries
    assert entry.is_replayed
    assert str(why_unranked(entry)).startswith("replayed")


def first(**fields: Any) -> Callable[[list[Sample]], object]:
    return lambda samples: samples[0].update(fields)


def said(text: str, stop_reason: str = "stop", **part: bool) -> Callable[[list[Sample]], object]:
    def change(samples: list[Sample]) -> None:
        (choice,) = samples[0]["output"]["choices"]
        choice["message"]["content"] = [{"type": "text", "text": text, **part}] if part else text
        choice["stop_reason"] = stop_reason

    return change


@pytest.mark.parametrize(
    ("change", "status", "finish", "told"),
    [
        (said("A", "max_tokens"), "answered", "length", None),
        # The endpoint has not stopped where the task asks it to.
        (said("A\nQuestion: B", "max_tokens"), "answered", "stop", None),
        (said("A", "content_filter"), "refused", "content_filter", "the answer ended with finish_reason 'content_filt"),
        (said("I will not.", refusal=True), "refused", None, "I will not."),
        (said("", "max_tokens"), "failed", None, "all tokens were generated without visible text"),
        (said("", "tool_calls"), "failed", None, "the model called a tool"),
        (first(error={"message": "APIError('key sk-secret')"}), "failed", None, "inspect_ai stopped with APIError"),
        (first(limit={"type": "time", "limit": 3}), "failed", None, "inspect_ai stopped at its limit of time"),
        (first(invalidation={"author": "somebody"}), "failed", None, "the log marks it as invalid"),
        (first(output={"model": "m", "choices": []}), "failed", None, "the log has 0 answers to it"),
        (lambda samples: samples.pop(0), "failed", None, "the log has no answer to it"),
    ],
)
def test_each_end_of_an_answer_has_its_own_status(
    dataset: Path,
    exported: Path,
    tmp_path: Path,
    change: Callable[[list[Sample]], object],
    status: str,
    finish: str | None,
    told: str | None,
) -> None:
    log = made_log(exported, right)
    change(log["samples"])
    imported(HARNESS, dataset, write_json(log, tmp_path), tmp_path / "runs", "--max-failure-rate", 0.1)
    record, *others = only_run(tmp_path / "runs").records
    exchange = record.exchanges[0]
    assert (exchange.status, exchange.finish_reason, record.truncated) == (status, finish, finish == "length")
    assert (exchange.error is None) if told is None else str(exchange.error).startswith(told)
    assert "sk-secret" not in str(exchange.error)
    assert {other.status for other in others} == {"scored"}


def test_too_many_failures_are_refused_with_the_way_out(dataset: Path, exported: Path, tmp_path: Path) -> None:
    log = made_log(exported, right)
    log["samples"].pop()
    done = import_log(HARNESS, dataset, write_json(log, tmp_path), tmp_path / "runs")
    told = "the log has no answer to it; ask all questions, without a limit"
    refused(done, f"1 of 12 items failed, more than --max-failure-rate 0.05 allows: {told}", tmp_path / "runs")


@pytest.mark.slow
def test_epochs_are_the_samples_of_a_text(pronouns: Path, tmp_path: Path) -> None:
    # The plain prompts are texts to continue, which make no sense as messages.
    prompt = ("--prompt", "instructed-sampled-v1")
    printed = export(HARNESS, pronouns, tmp_path / "out", "--config", "assignment", *prompt, "--limit", "3")
    assert "3 items, 33 questions" in printed
    facts = facts_of(tmp_path / "out")
    assert facts["epochs"] == 11
    # Nothing to stop at is left out, since some endpoints refuse an empty list.
    assert facts["settings"] == {"max_tokens": 200, "temperature": 0.95, "top_p": 0.95}
    assert [len(row["metadata"]["questions"]) for row in rows_of(tmp_path / "out")] == [11, 11, 11]
    log = made_log(tmp_path / "out", lambda row, epoch: Answered(f"sample {epoch} of {row['id']}"))
    log["samples"].reverse()
    log["eval"]["model_args"] |= {"revision": "a" * 40}
    printed = imported(HARNESS, pronouns, write_json(log, tmp_path / "log"), tmp_path / "runs")
    records = only_run(tmp_path / "runs").records
    assert only_run(tmp_path / "runs").result.model.revision == "a" * 40
    assert [exchange.sample for exchange in records[0].exchanges] == list(range(11))
    assert [[exchange.text for exchange in record.exchanges] for record in records] == [
        [f"sample {epoch} of {record.item_id}#0" for epoch in range(1, 12)] for record in records
    ]


def spoken(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
    """Answers of all kinds, which follow from the prompt alone."""
    choice = answer["choices"][0]
    texts = ["A", "(B) the nurse", "  and she said hello. \n", "I cannot answer that.", "", "They went 😀 home"]
    kind = zlib.crc32(received.body["messages"][0]["content"].encode()) % 9
    if kind < 6:
        choice["message"]["content"] = texts[kind]
    elif kind == 6:
        choice["message"].update(refusal="I decline.", content=None)
    else:
        choice["finish_reason"] = ("length", "content_filter")[kind - 7]
    answer["usage"]["total_tokens"] = answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]
    return {**answer, "id": "made", "object": "chat.completion", "created": 1}


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is None, reason="inspect_ai is not installed (extra: bench)")
def test_the_harness_itself_is_told_what_run_is_told(dataset: Path, pronouns: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(save_tokenizer(tmp_path / "tokenizer") / "tokenizer.json"))
    configs = ("--config", "assignment", "--config", "recognition")
    asked = [(dataset, PROMPT), (pronouns, (*configs, "--prompt", "instructed-sampled-v1", "--limit", "22"))]
    with FakeEndpoint(tokenizer, alter=spoken) as endpoint:
        for folder, chosen in asked:
            export(HARNESS, folder, tmp_path / folder.name, *chosen)
            files = [f"{path}@biasboard" for path in (tmp_path / folder.name).glob("*.py")]
            model = ["--model", f"openai-api/local/{MODEL}", "--display", "none", "--log-format", "json"]
            command = ("-m", "inspect_ai", "eval", *files, *model, "--log-dir", tmp_path / "log")
            run(*command, cwd=tmp_path, status=0, fresh=True, LOCAL_API_KEY="sk-secret", LOCAL_BASE_URL=endpoint.url)
            ours = ["--backend", "openai", "--model", MODEL, "--base-url", endpoint.url, "--api", "chat"]
            where = ["--name", "lab/made", "--out", str(tmp_path / "ours")]
            run("-m", "evaluators", "run", "--dataset", folder, *ours, *where, *chosen, cwd=tmp_path)
            for log in sorted((tmp_path / "log").iterdir()):
                imported(HARNESS, folder, log, tmp_path / "theirs")
                log.unlink()
    assert not any(b"sk-secret" in path.read_bytes() for path in (tmp_path / "theirs").rglob("*.json"))
    theirs, own = (
        {
            str(one.result.signature): one
            for path in (tmp_path / name).rglob("result.json")
            for one in [read_run(path.parent)]
        }
        for name in ("theirs", "ours")
    )
    assert len(own) == 4
    assert theirs.keys() == own.keys()
    for signature, own_run in own.items():
        assert list(theirs[signature].records) == list(own_run.records)
        assert theirs[signature].result.counts == own_run.result.counts


def _at(*path: str | int, **values: Any) -> Callable[[Log], None]:
    """A change of fields of what lies on a path in a log."""

    def change(log: Log) -> None:
        found: Any = log
        for key in path:
            found = found[key]
        found.update(values)

    return change


_facts = partial(_at, "eval", "metadata", "biasboard")
_sample = partial(_at, "samples", 2)
_call = partial(_sample, "events", 1)
_output = partial(_call, "output")


def _messages(*messages: dict[str, Any]) -> Callable[[Log], None]:
    return _call(input_refs=None, input=list(messages))


def _many_messages(log: Log) -> None:
    """Half a megabyte that names one message a billion times."""
    log["samples"][2]["events_data"]["messages"] = [{"role": "user", "content": "x"}] * 20_000
    log["samples"][2]["events"][1]["input_refs"] = [[0, 20_000]] * 50_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_facts(format="9"), "its task was exported in format '9'"),
        (_facts(requests_sha256="0" * 64), "asks type2 in other words than were exported"),
        (_facts(epochs=2), "asked in 1 epochs, and exported for 2; ask again without --epochs"),
        (_facts("signature", items_sha256="0" * 64), "the log answers items with items_sha256 0000"),
        (_facts("signature", prompt="mcq2-v1"), "the log answers items with prompt_sha256"),
        (_at("eval", metadata=None), "is the log of a task that biasboard did not export"),
        (_at(version=3), "is a log of version 3, and 2 is read"),
        (_at(status="cancelled"), "has the status 'cancelled', so that answers are missing"),
        (_at(samples=None), "holds no samples"),
        (_at(invalidated=True), "the log is marked as invalid or has an error"),
        (_at(error={"message": "E"}), "the log is marked as invalid or has an error"),
        (_at("plan", finish={"solver": "critique"}), "with the solvers ['generate', 'critique']"),
        (lambda log: log["samples"].append(log["samples"][2]), "question made-0-she#0 was answered before, at "),
        (_sample(epoch=2), "the question was exported for 1 epochs"),
        (_sample("metadata", questions=["nobody#0"]), "1 questions belong to no item of made type2, such as nobody"),
        (_sample(events=[]), "the model was called 0 times"),
        (_sample(error={"message": "E"}, input="Other."), "was asked in other words: from character 1 on it has 'Ot"),
        (_messages({"role": "user", "content": "Other."}), "was asked in other words: from character 1 on it has 'Ot"),
        (_messages({"role": "system", "content": "x"}, {"role": "user", "content": "y"}), "--system-message"),
        (_messages({"role": "user", "content": [{"type": "image", "image": "x"}]}), "sent with an image or a file"),
        (_many_messages, "sent as messages of ['user', 'user'], and the task sends one of the user"),
        (_sample("messages", 0, role="system"), "the sample has other messages than the call of the model"),
        (_call(input_refs=[[0, 9]]), "messages 0 to 9 of 1 are missing"),
        (_call(model="other"), "'other' answered, and the log is of"),
        (_call(tools=[{"name": "search"}]), "asked with tools, or another model took part"),
        (_sample(model_usage={LOGGED_MODEL: {}, "openai/other": {}}), "asked with tools, or another model took part"),
        (_sample(model_fallbacks=[{"model": "other"}]), "asked with tools, or another model took part"),
        (_call(error="refused"), "the sample has another answer than the call of the model"),
        (_output(model="other"), "the sample has another answer than the call"),
        (_output("usage", output_tokens=999), "the sample has another answer than the call"),
        (_output("choices", 0, stop_reason="max_tokens"), "the sample has another answer than the call"),
        (_output("choices", 0, "message", content="B A"), "the sample has another answer than the call"),
        (_call("config", temperature=0.7), "was asked with temperature 0.7 instead of 0.0"),
        (_call("config", stop_seqs=None), "was asked with stop () instead of ("),
        (_call("config", max_tokens=None), "asked without max_tokens"),
        (_call("config", seed=3, extra_body={"k": "sk-secret"}), "asked with extra_body, seed, which the task"),
    ],
)
def test_a_hostile_log_is_one_line_and_leaves_nothing(
    dataset: Path, exported: Path, tmp_path: Path, change: Callable[[Log], None], message: str
) -> None:
    # What stands twice in a log is one object of the made one, and a forger changes it in one place.
    log = json.loads(json.dumps(made_log(exported, right)))
    change(log)
    refused(import_log(HARNESS, dataset, write_json(log, tmp_path), tmp_path / "runs"), message, tmp_path / "runs")


@pytest.mark.slow
def test_logs_of_one_task_or_of_two_models_are_not_mixed(dataset: Path, exported: Path, tmp_path: Path) -> None:
    log = made_log(exported, right)
    (tmp_path / "log").mkdir()
    for copied in ("1", "2"):
        write_json(log, tmp_path / "log").rename(tmp_path / "log" / f"{STARTED}_{copied}.json")
    done = import_log(HARNESS, dataset, tmp_path / "log", tmp_path / "runs")
    refused(done, f"several logs of task {NAME}: {STARTED}", tmp_path / "runs")
    export(HARNESS, dataset, tmp_path / "other", "--config", "type1", *PROMPT)
    second = made_log(tmp_path / "other", lambda row, epoch: Answered("A"))
    write_json({**second, "eval": {**second["eval"], "run_id": "another"}}, tmp_path / "two")
    write_json(log, tmp_path / "two")
    refused(
        import_log(HARNESS, dataset, tmp_path / "two", tmp_path / "runs"), "need not be of one model", tmp_path / "runs"
    )
    write_json(second, tmp_path / "two")
    (tmp_path / "two" / "logs.json").write_text("{}", encoding="utf-8")
    done = import_log(HARNESS, dataset, tmp_path / "two", tmp_path / "runs")
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "runs").rglob("result.json"))) == 2
