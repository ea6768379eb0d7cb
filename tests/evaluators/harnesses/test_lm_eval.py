"""Questions for lm-evaluation-harness, and its logs as results."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest
from evaluators.models.harness_borders import move_borders
from evaluators.models.tokenizer import load_tokenizer
from evaluators.runs.plan.exported_questions import Borders, exported_task
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.selection import select
from evaluators.task import Asked, load_task
from leaderboard.ranking.unranked import why_unranked
from leaderboard.verify.entries import Root
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import Run, read_run
from schemas.validate import problems
from tests.commands import run
from tests.evaluators.harnesses import importing
from tests.evaluators.harnesses.importing import only_run, refused
from tests.evaluators.harnesses.lm_eval_logs import Sample, settings_of, write_log
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, save_tiny_llama, write_dataset
from tests.evaluators.single_passes import ROUNDING
from tests.leaderboard.made_keys import load_known

HARNESS = "lm-eval"
NAME = "biasboard_made_type2_mcq2-v1"


@pytest.fixture(scope="module")
def exported(dataset: Path, tiny_llama: Path) -> Path:
    """The task of one config, whose prompt asks each item in two orders."""
    folder = dataset.parent / "for-lm-eval"
    export(dataset, tiny_llama, folder, "--config", "type2", "--prompt", "mcq2-v1")
    return folder


def export(dataset: Path, tokenizer: Path, folder: Path, *arguments: str) -> str:
    return importing.export(HARNESS, dataset, folder, "--tokenizer", tokenizer, *arguments)


def import_log(dataset: Path, tokenizer: Path, log: Path, out: Path, *arguments: str) -> Result:
    return importing.import_log(HARNESS, dataset, log, out, "--tokenizer", tokenizer, *arguments)


def known_logprobs(question: Sample) -> list[float]:
    """Probabilities that follow from the question alone: 0.6 and 0.3, turned around by its length."""
    values = [math.log(0.6), math.log(0.3)]
    return values if len(question["context"]) % 2 else values[::-1]


def test_contexts_and_options_are_those_of_the_task_byte_for_byte(dataset: Path, exported: Path) -> None:
    task = load_task("coreference")
    plan = Plan(select(dataset, read_manifest(dataset), "type2"), task, task.prompts["mcq2-v1"])
    asked = [
        {
            "id": f"{item.item_id}#{number}",
            "context": request.prompt,
            "options": list(request.options),  # type: ignore[union-attr]
            "target": request.outcomes.index(item.referent),  # type: ignore[attr-defined]
            "request_sha256": request.sha256,
        }
        for _, item in plan.selection.items
        for number, request in enumerate(task.requests(item, Asked(plan.prompt)))
    ]
    lines = (exported / f"{NAME}.jsonl").read_text(encoding="ascii").splitlines()
    assert [json.loads(line) for line in lines] == asked
    assert len(asked) == 24
    settings = settings_of(exported / f"{NAME}.yaml")
    # Fields are named, so that the harness renders no template, and nothing is put around them.
    assert [settings[name] for name in ("doc_to_text", "doc_to_choice", "doc_to_target")] == [
        "context",
        "options",
        "target",
    ]
    assert (settings["target_delimiter"], settings["description"], settings["num_fewshot"]) == ("", "", 0)
    told = settings["metadata"]["biasboard"]["signature"]
    assert (told["dataset"], told["prompt"], told["n_items"]) == ("made", "mcq2-v1", 12)
    manifest = json.loads((exported / "biasboard.json").read_text(encoding="utf-8"))
    assert manifest["tasks"][NAME] == settings["metadata"]["biasboard"]
    assert str(exported) not in "".join(path.read_text(encoding="utf-8") for path in exported.iterdir())


def test_items_without_a_right_answer_get_no_accuracy(dataset: Path, tiny_llama: Path, tmp_path: Path) -> None:
    printed = export(dataset, tiny_llama, tmp_path / "out", "--limit", "2")
    assert "biasboard_made_type1_intrinsic-v1: 2 items, 2 questions" in printed
    assert "licence of the items: Apache-2.0" in printed
    settings = settings_of(tmp_path / "out/biasboard_made_type1_intrinsic-v1.yaml")
    assert [metric["metric"] for metric in settings["metric_list"]] == ["bypass"]
    lines = (tmp_path / "out/biasboard_made_type1_intrinsic-v1.jsonl").read_text(encoding="ascii").splitlines()
    assert {json.loads(line)["target"] for line in lines} == {-1}


def test_the_licence_of_items_that_may_not_be_passed_on_is_told(tiny_llama: Path, tmp_path: Path) -> None:
    closed = write_dataset(tmp_path / "closed", {"type2": made_items(1)}, redistributable=False)
    assert "keep" in export(closed, tiny_llama, tmp_path / "out")
    assert "may not be passed on: the licence forbids it" in export(closed, tiny_llama, tmp_path / "again")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt", "mcq2-generate-v1"], "asks for a text, and lm-eval does not log why a text ended"),
        (["--config", "type3"], "config 'type3' is not in dataset 'made'"),
        (["--prompt", "none-v1"], "prompt 'none-v1' does not exist"),
    ],
)
def test_what_cannot_be_asked_is_refused_and_leaves_nothing(
    dataset: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    refused(evaluators("export", HARNESS, dataset, "--out", tmp_path / "out", *arguments), message, tmp_path)


def test_a_folder_that_holds_something_is_not_overwritten(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    done = evaluators("export", HARNESS, dataset, "--out", tmp_path)
    assert (done.exit_code, "exists already" in done.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.slow
def test_a_log_becomes_a_result_that_is_valid_and_visibly_imported(
    dataset: Path, tiny_llama: Path, exported: Path, tmp_path: Path
) -> None:
    log = write_log(exported, tmp_path / "log", known_logprobs)
    done = import_log(dataset, tiny_llama, log.parent, tmp_path / "runs")
    assert done.exit_code == 0, done.stderr
    assert list(problems(tmp_path / "runs")) == []
    run = only_run(tmp_path / "runs")
    model, settings = run.result.model, run.result.environment.settings
    assert (model.id, model.backend, model.endpoint, model.precision) == ("lab/made", "import", "replay", "float32")
    assert (model.revision, model.chat_template_sha256) == (None, None)
    assert (settings["harness"], run.result.environment.packages["lm_eval"]) == ("lm-eval", "0.4.13")
    written = next((tmp_path / "runs").rglob("result.json")).read_text(encoding="utf-8")
    assert "/home/somebody" not in written
    assert "hf_secret" not in written
    assert model.identity is not None
    assert model.identity["model"] == "made"
    # An item is right if the referent has more of the two probabilities together, and half right if both are equal.
    lines = (exported / f"{NAME}.jsonl").read_text(encoding="ascii").splitlines()
    questions = [json.loads(line) for line in lines]
    values = []
    for first, second in zip(questions[::2], questions[1::2], strict=True):
        shares = [2 / 3 if known_logprobs(one)[one["target"]] > math.log(0.5) else 1 / 3 for one in (first, second)]
        values.append(0.5 if abs(sum(shares) - 1) < 1e-9 else float(sum(shares) > 1))
    accuracy = next(metric for metric in run.result.metrics if metric.name == "accuracy" and not metric.group)
    assert accuracy.value == pytest.approx(sum(values) / len(values))
    exchange = run.records[0].exchanges[0]
    assert exchange.option_logprobs == tuple(known_logprobs(questions[0]))
    assert exchange.option_byte_counts == (2, 2)
    (entry,) = load_known(Root(tmp_path / "runs", "local")).entries
    assert (entry.claim, entry.is_replayed) == ("the answers come from a file", True)
    assert str(why_unranked(entry)).startswith("replayed")


def whole_texts(exported: Path) -> list[list[str]]:
    """Every context with each of its options, wherever the border is."""
    (path,) = exported.glob("*.jsonl")
    questions = map(json.loads, path.read_text(encoding="ascii").splitlines())
    return [[question["context"] + option for option in question["options"]] for question in questions]


def _swap(samples: list[Sample]) -> None:
    samples[0]["arguments"], samples[2]["arguments"] = samples[2]["arguments"], samples[0]["arguments"]


def _set_logprob(text: str) -> Callable[[list[Sample]], None]:
    def change(samples: list[Sample]) -> None:
        samples[3]["resps"][1][0][0] = text

    return change


def _longer_context(samples: list[Sample]) -> None:
    for call in samples[1]["arguments"].values():
        call["arg_0"] = "Think. " + call["arg_0"]


def _one_context(samples: list[Sample]) -> None:
    samples[1]["arguments"]["gen_args_1"]["arg_0"] += " "


def _no_option(samples: list[Sample]) -> None:
    del samples[1]["arguments"]["gen_args_1"]


def _no_option_and_response(samples: list[Sample]) -> None:
    _no_option(samples)
    del samples[1]["resps"][1], samples[1]["filtered_resps"][1], samples[1]["acc"]


def _edited(samples: list[Sample]) -> None:
    samples[3]["resps"].reverse()


def _edited_twice(samples: list[Sample]) -> None:
    _edited(samples)
    samples[3]["filtered_resps"].reverse()


def _other_id(samples: list[Sample]) -> None:
    samples[1]["doc"]["id"] = "nobody#0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set_logprob("nan"), ":4: option ' B' of question made-0-she#1 has a log-probability of NaN"),
        (_set_logprob("0.25"), ":4: option ' B' of question made-0-she#1 has 0.25, which is above 0"),
        (_set_logprob("inf"), "has inf, which is above 0"),
        (_set_logprob("low"), "has 'low', which is no number"),
        (lambda samples: samples[0]["resps"][0].append(["-1.0", "False"]), "has 2 responses; ask each question once"),
        (_edited, ":4: question made-0-she#1 has other responses than were scored as filtered_resps and acc"),
        (_edited_twice, ":4: question made-0-she#1 has other responses than were scored as filtered_resps and acc"),
        (lambda samples: samples[3].update(doc_hash="0" * 64), ":4: doc_hash is not the hash of what the line holds"),
        (_swap, ":1: question made-0-he#0 was asked in other words: from character "),
        (lambda samples: samples.append(samples[0]), ":25: question made-0-he#0 was answered before, at samples_"),
        (_longer_context, ":2: question made-0-he#1 was asked in other words: from character 1 on it has 'Think. "),
        (_one_context, ":2: the options of question made-0-he#1 have different contexts"),
        (_no_option, ":2: question made-0-he#1 has 2 responses to 1 options"),
        (_no_option_and_response, "was asked with the options [' A'], and the task offers [' A', ' B']"),
        (_other_id, "1 questions belong to no item of made type2, such as nobody#0"),
        (lambda samples: samples[0].pop("resps"), ":1: resps: Field required"),
    ],
)
def test_a_hostile_log_is_one_line_and_leaves_nothing(
    dataset: Path,
    tiny_llama: Path,
    exported: Path,
    tmp_path: Path,
    change: Callable[[list[Sample]], None],
    message: str,
) -> None:
    log = write_log(exported, tmp_path / "log", known_logprobs, change=change)
    refused(import_log(dataset, tiny_llama, log, tmp_path / "runs"), message, tmp_path / "runs")


def test_broken_lines_and_changed_files_are_named(
    dataset: Path, tiny_llama: Path, exported: Path, tmp_path: Path
) -> None:
    log = write_log(exported, tmp_path / "log", known_logprobs, change=lambda samples: samples.reverse(), rehash=False)
    assert "the file of results has another hash" in import_log(dataset, tiny_llama, log, tmp_path / "runs").stderr
    whole = log.read_bytes()
    for content, message in (
        (whole[:-40], ":24: not strict JSON"),
        (whole.replace(b'"doc_id": 0', b'"doc_id": NaN'), "NaN is not JSON"),
        (b"\xff" + whole, "byte 0 is not UTF-8"),
    ):
        log.write_bytes(content)
        done = import_log(dataset, tiny_llama, log, tmp_path / "runs")
        assert (done.exit_code, message in done.stderr) == (1, True), done.stderr
    (results,) = log.parent.glob("results_*.json")
    results.write_text("{", encoding="utf-8")
    assert "is not JSON" in import_log(dataset, tiny_llama, log, tmp_path / "runs").stderr
    results.unlink()
    assert "needs one file results_" in import_log(dataset, tiny_llama, log, tmp_path / "runs").stderr
    assert "no such file or folder" in import_log(dataset, tiny_llama, tmp_path / "nothing", tmp_path / "runs").stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"chat_template_sha": "0" * 64}, "asked through a chat template; ask again without --apply_chat_template"),
        ({"system_instruction_sha": "0" * 64}, "asked with a system instruction"),
        ({"n-shot": {NAME: 5}}, "asked with 5 examples before each question"),
        ({"configs": {NAME: {"task": NAME, "metadata": {"version": 1.0}}}}, "a task that biasboard did not export"),
        ({"configs": {}}, "a task that biasboard did not export"),
        ({"config": {"model_args": {}}}, "does not say which model answered"),
    ],
)
def test_questions_that_were_asked_in_another_way_are_refused(
    dataset: Path, tiny_llama: Path, exported: Path, tmp_path: Path, told: dict[str, Any], message: str
) -> None:
    log = write_log(exported, tmp_path / "log", known_logprobs, **told)
    refused(import_log(dataset, tiny_llama, log, tmp_path / "runs"), message, tmp_path / "runs")


@pytest.mark.parametrize(
    ("commit", "arguments", "revision"),
    [
        ("a" * 40, {}, "a" * 40),
        ("a" * 40, {"peft": "lab/x"}, None),
        ("a" * 40, {"lora_local_path": "x"}, None),
        ("\x1b[2Jmain", {}, None),
    ],
)
def test_only_the_commit_of_the_weights_that_answered_is_shown(
    dataset: Path,
    tiny_llama: Path,
    exported: Path,
    tmp_path: Path,
    commit: str,
    arguments: dict[str, str],
    revision: str | None,
) -> None:
    told = {"model_sha": commit, "model_args": {"pretrained": "lab/base", **arguments}}
    log = write_log(exported, tmp_path / "log", known_logprobs, config=told)
    assert import_log(dataset, tiny_llama, log, tmp_path / "runs").exit_code == 0
    assert only_run(tmp_path / "runs").result.model.revision == revision


def test_another_dataset_than_was_exported_is_refused(
    dataset: Path, tiny_llama: Path, exported: Path, tmp_path: Path
) -> None:
    log = write_log(exported, tmp_path / "log", known_logprobs)
    other = write_dataset(tmp_path / "other", {"type2": made_items(7)})
    done = import_log(other, tiny_llama, log, tmp_path / "runs")
    assert "the log answers items with items_sha256" in done.stderr
    named = write_dataset(tmp_path / "named", {"type2": made_items(6)}, name="named")
    assert "with dataset made, and here it is named" in import_log(named, tiny_llama, log, tmp_path / "runs").stderr


@pytest.mark.slow
def test_missing_answers_are_failed_records_up_to_the_rate(
    dataset: Path, tiny_llama: Path, exported: Path, tmp_path: Path
) -> None:
    log = write_log(exported, tmp_path / "log", known_logprobs, change=lambda samples: samples.__delitem__(-1))
    done = import_log(dataset, tiny_llama, log, tmp_path / "runs")
    assert "1 of 12 items failed, more than --max-failure-rate 0.05 allows: the log has no answer to it" in done.stderr
    assert import_log(dataset, tiny_llama, log, tmp_path / "runs", "--max-failure-rate", "0.1").exit_code == 0
    run = only_run(tmp_path / "runs")
    assert (run.result.counts.scored, run.result.counts.failed) == (11, 1)
    assert [record.item_id for record in run.records if record.status == "failed"] == ["made-5-she"]


def test_normalisations_need_what_a_log_does_not_hold(
    dataset: Path, tiny_llama: Path, exported: Path, tmp_path: Path
) -> None:
    log = write_log(exported, tmp_path / "log", known_logprobs)
    done = import_log(dataset, tiny_llama, log, tmp_path / "runs", "--normalisation", "sum_with_end")
    assert (done.exit_code, "a log has no log-probability of the end token" in done.stderr) == (1, True)
    done = import_log(dataset, tiny_llama, log, tmp_path / "runs", "--normalisation", "token_mean")
    assert done.exit_code == 0, done.stderr
    exchange = only_run(tmp_path / "runs").records[0].exchanges[0]
    # The space is a token of its own, as the sentences that the tokenizer was made from hold no such letters.
    assert (exchange.option_token_counts, exchange.n_moved_tokens) == ((2, 2), 0)


@pytest.mark.parametrize("command", ["export", "import"])
def test_nothing_is_exported_or_imported_without_the_tokenizer(dataset: Path, tmp_path: Path, command: str) -> None:
    told = {"export": (dataset,), "import": ("--input", tmp_path, "--model", "lab/made", "--dataset", dataset)}[command]
    done = evaluators(command, HARNESS, *told, "--out", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: --tokenizer: lm-eval leaves tokens out of an option")
    assert "give the folder or Hub id of the model's tokenizer" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_merged_borders_are_found_and_moved(dataset: Path, tiny_llama: Path, tmp_path: Path) -> None:
    tokenizer = save_tiny_llama(tmp_path / "model", merge_words=True)
    export(dataset, tiny_llama, tmp_path / "plain", "--config", "type2")
    # Before exports needed a tokenizer, they named none.
    (task,) = (tmp_path / "plain").glob("*.yaml")
    told = settings_of(task)["metadata"]["biasboard"]["tokenizer_sha256"]
    task.write_text(task.read_text(encoding="utf-8").replace(told, "null"), encoding="utf-8")
    log = write_log(tmp_path / "plain", tmp_path / "log", lambda question: [-3.0, -4.0])
    done = import_log(dataset, tokenizer, log, tmp_path / "runs")
    assert "the tokenizer merges the end of the context with an option" in done.stderr
    assert "export again, which moves such borders" in done.stderr

    printed = export(dataset, tokenizer, tmp_path / "moved", "--config", "type2")
    assert "12 items, 12 questions, 12 with a moved border" in printed
    assert whole_texts(tmp_path / "moved") == whole_texts(tmp_path / "plain")
    log = write_log(tmp_path / "moved", tmp_path / "log", lambda question: [-3.0, -4.0])
    done = import_log(dataset, tokenizer, log, tmp_path / "runs")
    assert done.exit_code == 0, done.stderr
    run = only_run(tmp_path / "runs")
    assert (run.result.counts.scored, run.result.counts.failed) == (12, 0)
    scored = [record for record in run.records if record.status == "scored"]
    assert all((exchange.n_moved_tokens or 0) > 0 for record in scored for exchange in record.exchanges)
    assert "exported for another tokenizer" in import_log(dataset, tiny_llama, log, tmp_path / "no").stderr


def test_questions_in_which_nothing_but_an_option_is_a_token_are_left_out(dataset: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(str(save_tiny_llama(tmp_path / "model", merge_words=True)))
    task = load_task("coreference")
    plan = Plan(select(dataset, read_manifest(dataset), "type2"), task, task.prompts["intrinsic-v1"])

    def move(asked: Sequence[ChoiceRequest]) -> list[ChoiceRequest | None]:
        first, *rest = asked
        # The first word is one token with the space behind it, and so with the option.
        short = replace(first, prompt="The", options=tuple(f" {option.strip()}" for option in first.options))
        return move_borders(tokenizer, lambda request: request, [short, *rest])

    written = exported_task(plan, Borders(move, "0" * 64))
    assert (written.n_left_out, len(written.questions)) == (1, 11)
    with pytest.raises(ConfigError, match="merges the context and the options of every question"):
        exported_task(plan, Borders(lambda asked: [None] * len(asked), "0" * 64))


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("lm_eval") is None, reason="lm-eval is not installed (extra: bench)")
@pytest.mark.parametrize("merge_words", [False, True])
def test_the_harness_itself_scores_what_run_scores(dataset: Path, tmp_path: Path, merge_words: bool) -> None:
    model = save_tiny_llama(tmp_path / "model", merge_words=merge_words)
    prompts = ["intrinsic-v1"] if merge_words else ["intrinsic-v1", "mcq2-v1"]
    chosen = ["--config", "type2", *(word for prompt in prompts for word in ("--prompt", prompt))]
    export(dataset, model, tmp_path / "tasks", *chosen)
    names = ",".join(path.stem for path in sorted((tmp_path / "tasks").glob("*.yaml")))
    asked = ["--model", "hf", "--model_args", f"pretrained={model},dtype=float32", "--device", "cpu", "--tasks", names]
    files = ["--include_path", str(tmp_path / "tasks"), "--log_samples", "--output_path", str(tmp_path / "log")]
    run("-m", "lm_eval", "run", *asked, *files, cwd=tmp_path, status=0, fresh=True)
    rate = ["--max-failure-rate", "0.5" if merge_words else "0"]
    done = import_log(dataset, model, tmp_path / "log", tmp_path / "theirs", *rate)
    assert done.exit_code == 0, done.stderr
    ours = ["--backend", "transformers", "--model", str(model), "--name", "lab/made", "--device", "cpu"]
    asked_here = ("-m", "evaluators", "run", "--dataset", dataset, "--out", tmp_path / "ours")
    run(*asked_here, *ours, *chosen, cwd=tmp_path, status=0)
    for prompt in prompts:
        theirs, own = (run_of(tmp_path / name, prompt) for name in ("theirs", "ours"))
        assert theirs.result.signature == own.result.signature
        n_compared = 0
        for one, other in zip(theirs.records, own.records, strict=True):
            for a, b in zip(one.exchanges, other.exchanges, strict=True):
                if one.status == "scored":
                    assert a.option_logprobs == pytest.approx(b.option_logprobs, abs=ROUNDING)
                    assert (a.option_token_counts, a.n_moved_tokens) == (b.option_token_counts, b.n_moved_tokens)
                    n_compared += 1
        assert n_compared >= (6 if merge_words else 12)


def run_of(folder: Path, prompt: str) -> Run:
    (path,) = folder.rglob(f"type2-{prompt}-*/result.json")
    return read_run(path.parent)
