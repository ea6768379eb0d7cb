"""Questions for lm-evaluation-harness 0.4.13, and logs in its format, made without it, as results."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest
import yaml
from typer.testing import Result

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest
from evaluators.models.harness_borders import move_borders
from evaluators.models.tokenizer import load_tokenizer
from evaluators.runs.plan.exported_questions import exported_task
from evaluators.runs.plan.plan import Plan, select
from evaluators.task import Asked, load_task
from leaderboard.ranking.rank_ranges import why_unranked
from leaderboard.verify.entries import Root
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from schemas.validate import problems
from tests.commands import run
from tests.evaluators.harnesses import importing
from tests.evaluators.harnesses.importing import only_run, refused
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import made_items, save_tiny_llama, write_dataset
from tests.evaluators.single_passes import ROUNDING
from tests.leaderboard.made_keys import load_known

HARNESS = "lm-eval"
NAME = "biasboard_made_type2_mcq2-v1"
Sample: TypeAlias = dict[str, Any]
TIME = "2026-01-02T03-04-05.678901"


def settings_of(task: Path) -> dict[str, Any]:
    """The settings in the YAML of a task, with its functions as texts."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: str(node.value))
    settings: dict[str, Any] = yaml.load(task.read_text(encoding="utf-8"), Loader=Loader)
    return settings


def sample_of(number: int, question: Sample, logprobs: list[float]) -> Sample:
    """A line of samples; log-probabilities are texts, as the harness writes them."""
    calls = {
        f"gen_args_{place}": {"arg_0": question["context"], "arg_1": option}
        for place, option in enumerate(question["options"])
    }
    return {
        "doc_id": number,
        "doc": question,
        "target": str(question["target"]),
        "arguments": calls,
        "resps": [[[str(value), "False"]] for value in logprobs],
        "filtered_resps": [[str(value), "False"] for value in logprobs],
        "filter": "none",
        "metrics": ["acc"],
        "acc": float(logprobs.index(max(logprobs)) == question["target"]),
    }


def task_hash(samples: list[Sample]) -> str:
    """The hash of all samples, as the harness stores it in its results."""
    joined = ""
    for sample in samples:
        document = json.dumps(sample["doc"], indent=2, ensure_ascii=False)
        for text in (document, sample["arguments"]["gen_args_0"]["arg_0"], sample["target"]):
            joined += hashlib.sha256(text.encode()).hexdigest()
    return hashlib.sha256(joined.encode()).hexdigest()


def write_log(
    exported: Path,
    folder: Path,
    logprobs: Callable[[Sample], list[float]],
    *,
    change: Callable[[list[Sample]], object] = lambda samples: None,
    rehash: bool = True,
    **told: Any,
) -> Path:
    """Write the log of the only task in an exported folder, and return its file of samples.

    What the results tell otherwise may be given, of which ``config`` is merged. With ``rehash``, they hold the hash of
    the changed samples, as those of somebody who covers up the change.
    """
    (task,) = exported.glob("*.yaml")
    settings = settings_of(task)
    lines = task.with_suffix(".jsonl").read_text(encoding="ascii").splitlines()
    questions = [json.loads(line) for line in lines]
    samples = [sample_of(number, question, logprobs(question)) for number, question in enumerate(questions)]
    first_hash = task_hash(samples)
    change(samples)
    config = {
        "model": "hf",
        "model_args": {"pretrained": "/home/somebody/models/made", "dtype": "float32", "token": "hf_secret"},
        "model_dtype": "torch.float32",
        "model_revision": "main",
        "model_sha": "",
        "batch_size": 1,
        "device": "cpu",
    }
    results = {
        "results": {task.stem: {"alias": task.stem, "acc,none": 0.5, "acc_stderr,none": float("nan")}},
        "configs": {task.stem: settings},
        "n-shot": {task.stem: 0},
        "config": {**config, **told.pop("config", {})},
        "pretty_env_info": "PyTorch version: 2.13.0+cpu\nOS: made",
        "transformers_version": "5.23.0",
        "lm_eval_version": "0.4.13",
        "eot_token_id": 2,
        "max_length": 256,
        "task_hashes": {task.stem: task_hash(samples) if rehash else first_hash},
        "system_instruction_sha": None,
        "chat_template": None,
        "chat_template_sha": None,
        **told,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task.stem}_{TIME}.jsonl"
    path.write_text("".join(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples), encoding="utf-8")
    (folder / f"results_{TIME}.json").write_text(json.dumps(results), encoding="utf-8")
    return path


def export(dataset: Path, tokenizer: Path, folder: Path, *arguments: str) -> str:
    return importing.export(HARNESS, dataset, folder, "--tokenizer", tokenizer, *arguments)


class Exchanged(NamedTuple):
    """A dataset, the tokenizer for which the task of one config is exported, and where logs of it are imported."""

    dataset: Path
    tokenizer: Path
    exported: Path
    place: Path

    def imported(self, log: Path, *arguments: object) -> Result:
        tokenizer = ("--tokenizer", self.tokenizer)
        return importing.import_log(HARNESS, self.dataset, log, self.place / "runs", *tokenizer, *arguments)

    def of_log(self, *arguments: object, **changes: Any) -> Result:
        """Import the log of the task, with changes."""
        return self.imported(write_log(self.exported, self.place / "log", known_logprobs, **changes), *arguments)

    @property
    def questions(self) -> list[Sample]:
        (path,) = self.exported.glob("*.jsonl")
        return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


@pytest.fixture(scope="session")
def mcq2(dataset: Path, tiny_llama: Path) -> Path:
    """The task of one config, whose prompt asks each item in two orders."""
    folder = dataset.parent / "for-lm-eval"
    export(dataset, tiny_llama, folder, "--config", "type2", "--prompt", "mcq2-v1")
    return folder


@pytest.fixture
def here(dataset: Path, tiny_llama: Path, mcq2: Path, tmp_path: Path) -> Exchanged:
    return Exchanged(dataset, tiny_llama, mcq2, tmp_path)


def known_logprobs(question: Sample) -> list[float]:
    """Probabilities that follow from the question alone: 0.6 and 0.3, turned around by its length."""
    values = [math.log(0.6), math.log(0.3)]
    return values if len(question["context"]) % 2 else values[::-1]


def test_contexts_and_options_are_those_of_the_task_byte_for_byte(here: Exchanged) -> None:
    task = load_task("coreference")
    plan = Plan(select(here.dataset, read_manifest(here.dataset), "type2"), task, task.prompts["mcq2-v1"])
    assert here.questions == [
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
    assert len(here.questions) == 24
    settings = settings_of(here.exported / f"{NAME}.yaml")
    # Fields are named, so that the harness renders no template, and nothing is put around them.
    fields = [settings[name] for name in ("doc_to_text", "doc_to_choice", "doc_to_target")]
    assert fields == ["context", "options", "target"]
    assert (settings["target_delimiter"], settings["description"], settings["num_fewshot"]) == ("", "", 0)
    told = settings["metadata"]["biasboard"]["signature"]
    assert (told["dataset"], told["prompt"], told["n_items"]) == ("made", "mcq2-v1", 12)
    manifest = json.loads((here.exported / "biasboard.json").read_text(encoding="utf-8"))
    assert manifest["tasks"][NAME] == settings["metadata"]["biasboard"]
    written = "".join(path.read_text(encoding="utf-8") for path in here.exported.iterdir())
    assert str(here.exported) not in written


def test_items_without_a_right_answer_get_no_accuracy(dataset: Path, tiny_llama: Path, tmp_path: Path) -> None:
    assert "licence of the items: Apache-2.0" in export(dataset, tiny_llama, tmp_path / "out", "--limit", "2")
    closed = write_dataset(tmp_path / "closed", {"type2": made_items(1)}, redistributable=False)
    told = f"keep {tmp_path / 'again'} to yourself, they may not be passed on: the licence forbids it"
    assert told in export(closed, tiny_llama, tmp_path / "again")
    settings = settings_of(tmp_path / "out/biasboard_made_type1_intrinsic-v1.yaml")
    assert [metric["metric"] for metric in settings["metric_list"]] == ["bypass"]
    lines = (tmp_path / "out/biasboard_made_type1_intrinsic-v1.jsonl").read_text(encoding="ascii").splitlines()
    assert {json.loads(line)["target"] for line in lines} == {-1}


def test_what_cannot_be_exchanged_is_one_line_and_leaves_nothing(dataset: Path, tmp_path: Path) -> None:
    for options, message in (
        (("--prompt", "mcq2-generate-v1"), "asks for a text, and lm-eval does not log why a text ended"),
        ((), "--tokenizer: lm-eval leaves tokens out of an option where the tokenizer merges them with the"),
    ):
        done = evaluators("export", HARNESS, dataset, "--out", tmp_path / "out", *options)
        refused(done, message, tmp_path / "out")


@pytest.mark.slow
def test_a_log_becomes_a_result_that_is_valid_and_visibly_imported(here: Exchanged) -> None:
    done = here.imported(write_log(here.exported, here.place / "log", known_logprobs).parent)
    assert done.exit_code == 0, done.stderr
    runs = here.place / "runs"
    assert list(problems(runs)) == []
    run = only_run(runs)
    model, settings = run.result.model, run.result.environment.settings
    assert (model.id, model.backend, model.endpoint, model.precision) == ("lab/made", "import", "replay", "float32")
    assert (model.revision, model.chat_template_sha256) == (None, None)
    assert (settings["harness"], run.result.environment.packages["lm_eval"]) == ("lm-eval", "0.4.13")
    written = next(runs.rglob("result.json")).read_text(encoding="utf-8")
    assert [told for told in ("/home/somebody", "hf_secret") if told in written] == []
    assert model.identity is not None
    assert model.identity["model"] == "made"
    exchange = run.records[0].exchanges[0]
    assert exchange.option_logprobs == tuple(known_logprobs(here.questions[0]))
    assert exchange.option_byte_counts == (2, 2)
    (entry,) = load_known(Root(runs, "local")).entries
    assert (entry.claim, entry.is_replayed) == ("the answers come from a file", True)
    assert str(why_unranked(entry)).startswith("replayed")


def logprob(text: str) -> Callable[[list[Sample]], object]:
    return lambda samples: samples[3]["resps"][1].__setitem__(0, [text, "False"])


def call(**arguments: str) -> Callable[[list[Sample]], object]:
    return lambda samples: samples[1]["arguments"]["gen_args_1"].update(arguments)


HOSTILE: dict[str, tuple[Callable[[list[Sample]], object] | dict[str, Any], str]] = {
    "a chat": ({"chat_template_sha": "0" * 64}, "asked through a chat template; ask again without --apply_chat"),
    "a system": ({"system_instruction_sha": "0" * 64}, "asked with a system instruction"),
    "examples": ({"n-shot": {NAME: 5}}, "asked with 5 examples before each question"),
    "another task": ({"configs": {NAME: {"task": NAME, "metadata": {"version": 1.0}}}},
        "a task that biasboard did not export"),
    "no model": ({"config": {"model_args": {}}}, "does not say which model answered"),
    "NaN": (logprob("nan"), ":4: option ' B' of question made-0-she#1 has a log-probability of NaN"),
    "above 0": (logprob("0.25"), ":4: option ' B' of question made-0-she#1 has 0.25, which is above 0"),
    "a word": (logprob("low"), "has 'low', which is no number"),
    "asked twice": (lambda samples: samples[0]["resps"][0].append(["-1.0", "False"]), "has 2 responses; ask each"),
    "edited": (lambda samples: samples[3]["resps"].reverse(), ":4: question made-0-she#1 has other responses than"),
    "edited twice": (lambda samples: [samples[3][name].reverse() for name in ("resps", "filtered_resps")],
        ":4: question made-0-she#1 has other responses than were scored as filtered_resps and acc"),
    "hash": (lambda samples: samples[3].update(doc_hash="0" * 64), ":4: doc_hash is not the hash of what"),
    "swapped": (lambda samples: samples[0].update(arguments=samples[2]["arguments"]),
        ":1: question made-0-he#0 was asked in other words: from character "),
    "contexts": (call(arg_0="Think."), ":2: the options of question made-0-he#1 have different contexts"),
    "options": (call(arg_1=" C"), "was asked with the options [' A', ' C'], and the task offers [' A', ' B']"),
    "no option": (lambda samples: samples[1]["arguments"].pop("gen_args_1"), "he#1 has 2 responses to 1 options"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_log_is_one_line_and_leaves_nothing(here: Exchanged, name: str) -> None:
    change, message = HOSTILE[name]
    changes = change if isinstance(change, dict) else {"change": change}
    refused(here.of_log(**changes), message, here.place / "runs")


def test_broken_lines_and_changed_files_are_named(here: Exchanged) -> None:
    done = here.of_log(change=lambda samples: samples.reverse(), rehash=False)
    assert "the file of results has another hash" in done.stderr
    (log,), (results,) = ((here.place / "log").glob(f"{name}_*") for name in ("samples", "results"))
    whole = log.read_bytes()
    for content, message in (
        (whole[:-40], ":24: not strict JSON"),
        (whole.replace(b'"doc_id": 0', b'"doc_id": NaN'), "NaN is not JSON"),
        (b"\xff" + whole, "byte 0 is not UTF-8"),
    ):
        log.write_bytes(content)
        done = here.imported(log)
        assert (done.exit_code, message in done.stderr) == (1, True), done.stderr
    results.write_text("{", encoding="utf-8")
    assert "is not JSON" in here.imported(log).stderr
    results.unlink()
    assert "needs one file results_" in here.imported(log).stderr
    assert "no such file or folder" in here.imported(here.place / "nothing").stderr
    assert not (here.place / "runs").exists()


@pytest.mark.slow
def test_only_the_commit_of_the_weights_that_answered_is_shown(here: Exchanged) -> None:
    for commit, arguments, revision in (
        ("a" * 40, {}, "a" * 40),
        ("a" * 40, {"peft": "lab/x"}, None),
        ("\x1b[2Jmain", {}, None),
    ):
        told = {"model_sha": commit, "model_args": {"pretrained": "lab/base", **arguments}}
        place = here._replace(place=here.place / str(len(arguments)) / commit[1:4])
        assert place.of_log(config=told).exit_code == 0
        assert only_run(place.place / "runs").result.model.revision == revision


def test_normalisations_need_what_a_log_does_not_hold(here: Exchanged) -> None:
    done = here.of_log("--normalisation", "sum_with_end")
    assert (done.exit_code, "a log has no log-probability of the end token" in done.stderr) == (1, True)
    done = here.of_log("--normalisation", "token_mean")
    assert done.exit_code == 0, done.stderr
    exchange = only_run(here.place / "runs").records[0].exchanges[0]
    # The space is a token of its own, as the sentences that the tokenizer was made from hold no such letters.
    assert (exchange.option_token_counts, exchange.n_moved_tokens) == ((2, 2), 0)


@pytest.mark.slow
def test_a_text_that_the_harness_has_cut_is_no_answer(here: Exchanged) -> None:
    asked = [ChoiceRequest(prompt=one["context"], options=tuple(one["options"]), outcomes=()) for one in here.questions]
    rows = load_tokenizer(str(here.tokenizer)).rows_of_all(asked)
    longest = max(len(ids) for of_question in rows if not isinstance(of_question, str) for ids in of_question.ids)
    # The last token of an option is only predicted.
    assert here.of_log(max_length=longest - 1).exit_code == 0
    cut = f"context and option take {longest} tokens, and the harness cut them to {longest - 1}"
    assert cut in here.of_log("--max-failure-rate", 0, max_length=longest - 2).stderr


@pytest.mark.slow
def test_merged_borders_are_found_and_moved(here: Exchanged, tmp_path: Path) -> None:
    merging = save_tiny_llama(tmp_path / "model", merge_words=True)
    plain = here._replace(tokenizer=merging, exported=tmp_path / "plain", place=tmp_path / "1")
    export(here.dataset, here.tokenizer, plain.exported, "--config", "type2")
    # Before exports needed a tokenizer, they named none.
    (task,) = plain.exported.glob("*.yaml")
    told = settings_of(task)["metadata"]["biasboard"]["tokenizer_sha256"]
    task.write_text(task.read_text(encoding="utf-8").replace(told, "null"), encoding="utf-8")
    done = plain.of_log()
    assert "the tokenizer merges the end of the context with an option" in done.stderr
    assert "export again, which moves such borders" in done.stderr

    moved = plain._replace(exported=tmp_path / "moved", place=tmp_path / "2")
    printed = export(here.dataset, merging, moved.exported, "--config", "type2")
    assert "12 items, 12 questions, 12 with a moved border" in printed
    done = moved.of_log()
    assert done.exit_code == 0, done.stderr
    run = only_run(moved.place / "runs")
    assert (run.result.counts.scored, run.result.counts.failed) == (12, 0)
    assert all((exchange.n_moved_tokens or 0) > 0 for record in run.records for exchange in record.exchanges)
    assert "exported for another tokenizer" in moved._replace(tokenizer=here.tokenizer).of_log().stderr


def test_questions_in_which_nothing_but_an_option_is_a_token_are_left_out(dataset: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(str(save_tiny_llama(tmp_path / "model", merge_words=True)))
    task = load_task("coreference")
    plan = Plan(select(dataset, read_manifest(dataset), "type2"), task, task.prompts["intrinsic-v1"])

    def move(asked: Sequence[ChoiceRequest]) -> list[ChoiceRequest | None]:
        first, *rest = asked
        # The first word is one token with the space behind it, and so with the option.
        short = replace(first, prompt="The", options=tuple(f" {option.strip()}" for option in first.options))
        return move_borders(tokenizer, lambda request: request, [short, *rest])

    written = exported_task(plan, move, "0" * 64)
    assert (written.n_left_out, len(written.questions)) == (1, 11)
    with pytest.raises(ConfigError, match="merges the context and the options of every question"):
        exported_task(plan, lambda asked: [None] * len(asked), "0" * 64)


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
    rate = ("--max-failure-rate", "0.5" if merge_words else "0", "--tokenizer", model)
    importing.imported(HARNESS, dataset, tmp_path / "log", tmp_path / "theirs", *rate)
    ours = ["--backend", "transformers", "--model", str(model), "--name", "lab/made", "--device", "cpu"]
    asked_here = ("-m", "evaluators", "run", "--dataset", dataset, "--out", tmp_path / "ours")
    run(*asked_here, *ours, *chosen, cwd=tmp_path, status=0)
    for prompt in prompts:
        paths = [next((tmp_path / name).rglob(f"type2-{prompt}-*/result.json")) for name in ("theirs", "ours")]
        theirs, own = (read_run(path.parent) for path in paths)
        assert theirs.result.signature == own.result.signature
        n_compared = 0
        for one, other in zip(theirs.records, own.records, strict=True):
            for a, b in zip(one.exchanges, other.exchanges, strict=True):
                if one.status == "scored":
                    assert a.option_logprobs == pytest.approx(b.option_logprobs, abs=ROUNDING)
                    assert (a.option_token_counts, a.n_moved_tokens) == (b.option_token_counts, b.n_moved_tokens)
                    n_compared += 1
        assert n_compared >= (6 if merge_words else 12)
