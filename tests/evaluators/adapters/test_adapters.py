"""Runs with an adapter for each context: which answers they give, that none is shared, and what they refuse."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from biasboard.ground.errors import ConfigError, DataError
from evaluators.adapter_set import open_adapters, trained_items
from evaluators.backend import ChoiceRequest, GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.runs.ask.pipeline import Finished
from evaluators.runs.measure.rescoring import rescore
from evaluators.runs.plan.earlier_answers import AnswerStores, unanswered
from evaluators.stores.answer_files import export
from evaluators.stores.store import store_key
from schemas import validate
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import read_parts, read_result, read_run
from tests.commands import output_of
from tests.evaluators.adapted import (
    CONFIGS,
    NO_EXAMPLES,
    QUICK,
    SOME_EXAMPLES,
    asked,
    label_logprob,
    merged,
    opened,
    train,
    twin_plans,
)
from tests.evaluators.asking import all_answers_of
from tests.evaluators.label_data import planned
from tests.evaluators.single_passes import ROUNDING

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")
pytest.importorskip("peft", reason="the extra train is not installed")
CONTEXTS = [f"{config}/{prompt}" for config in CONFIGS for prompt in (NO_EXAMPLES, SOME_EXAMPLES)]


@pytest.fixture(scope="module")
def runs(model: Path, dataset: Path, adapters: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Finished]:
    """The run of each context, all in one folder of runs and with one cache."""
    root, backend = tmp_path_factory.mktemp("runs"), opened(model, lora=adapters)
    return {plan.prompt.id: asked(plan, backend, root / "runs", root / "cache") for plan in twin_plans(dataset)}


def logprobs(folder: Path, config: str) -> dict[str, tuple[float, ...]]:
    """The log-probabilities of the labels of each item, by its id without the config."""
    found = {}
    for record in read_run(folder).records:
        if record.config == config:
            values = record.exchanges[0].option_logprobs
            found[record.item_id.removeprefix(f"{config}-")] = tuple(value or 0.0 for value in values)
    return found


def prompts(folder: Path, config: str) -> dict[str, str | None]:
    return {
        record.item_id.removeprefix(f"{config}-"): record.exchanges[0].prompt
        for record in read_run(folder).records
        if record.config == config
    }


@pytest.mark.slow
def test_contexts_that_ask_the_same_share_no_answer(runs: dict[str, Finished]) -> None:
    texts = [prompts(runs[prompt].folder, config) for prompt in runs for config in CONFIGS]
    assert all(one == texts[0] for one in texts), "all contexts ask the same texts"
    answers = [logprobs(runs[prompt].folder, config) for prompt in runs for config in CONFIGS]
    for place, one in enumerate(answers):
        for other in answers[:place]:
            assert all(one[item] != other[item] for item in one)
    for finished in runs.values():
        usage = finished.result.usage
        assert usage.n_requests == usage.n_attempts == finished.result.counts.items, "nothing was taken over"


@pytest.mark.slow
@pytest.mark.parametrize("scoring", ["packed", "plain"])
def test_each_context_is_answered_as_plain_passes_with_its_adapter_say(
    model: Path, dataset: Path, adapters: Path, tmp_path: Path, scoring: str
) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    backend = opened(model, lora=adapters, scoring=scoring)
    for plan in twin_plans(dataset):
        folder = asked(plan, backend, tmp_path).folder
        assert read_result(folder).environment.settings["option_scoring"] == scoring
        for config in CONFIGS:
            network = merged(model, adapters / config / plan.prompt.id)
            texts, answers = prompts(folder, config), logprobs(folder, config)
            for item in ("test-00", "pool-08"):
                expected = [
                    label_logprob(network, tokenizer, texts[item] or "", option, with_end=False)
                    for option in (" waited", " leave")
                ]
                assert answers[item] == pytest.approx(expected, abs=ROUNDING)


def test_the_adapter_is_part_of_the_store_key_and_of_nothing_else() -> None:
    from schemas.documents.result import Model

    model = Model(
        id="m",
        revision=None,
        backend="b",
        precision=None,
        chat_template_sha256=None,
        endpoint="local",
        identity_sha256="0" * 64,
    )
    choice = ChoiceRequest(prompt="p", options=(" a", " b"), outcomes=("a", "b"))
    text = GenerateRequest(prompt="p", max_tokens=1)
    for request in (choice, text):
        named = [request, replace(request, adapter="x/y"), replace(request, adapter="x/z")]
        assert len({one.sha256 for one in named}) == 1
        assert len({store_key(model, one, with_facts=with_facts) for one in named for with_facts in (False, True)}) == 6
    # The key of a request without an adapter, as it was before there were any.
    told = f"{'0' * 64}:{choice.sha256}:"
    assert store_key(model, choice, with_facts=False) == hashlib.sha256(told.encode()).digest()


@pytest.mark.slow
def test_answers_of_the_base_and_of_other_adapters_are_not_found(
    model: Path, dataset: Path, adapters: Path, runs: dict[str, Finished], tmp_path: Path
) -> None:
    (plan, _) = twin_plans(dataset)
    root = runs[NO_EXAMPLES].folder.parents[2]
    stores = AnswerStores(root=root, cache=root.parent / "cache")
    same, base = opened(model, lora=adapters), opened(model)
    assert not unanswered(plan.for_backend(same), list(plan.for_backend(same).parts), same, stores).requests
    # Under the name of the model with adapters, in the same folders.
    named = opened(model, name=same.model.id)
    other = tmp_path / "other"
    train(model, twin_plans(dataset), other, replace(QUICK, seed=1))
    for backend in (base, named, opened(model, lora=other)):
        for_backend = plan.for_backend(backend)
        # The base answers both configs at once, since they ask the same.
        n_distinct = sum(len(part.requests) for part in for_backend.parts) // (2 if backend.adapters is None else 1)
        assert len(unanswered(for_backend, list(for_backend.parts), backend, stores).requests) == n_distinct


def test_the_identity_names_the_adapters_and_that_of_the_base_is_as_before(model: Path, adapters: Path) -> None:
    base, adapted = opened(model).model, opened(model, lora=adapters).model
    sha256 = hashlib.sha256((adapters / "adapters.json").read_bytes()).hexdigest()
    assert base.identity is not None
    assert {*base.identity} == {"backend", "model", "precision", "device", "chat_template", "tokenizer", "scoring"}
    assert adapted.identity == {**base.identity, "adapters": sha256}
    assert adapted.identity_sha256 != base.identity_sha256
    assert (base.id, adapted.id) == ("local/tiny-llama", "local/tiny-llama-LoRA")


@pytest.mark.slow
def test_the_run_keeps_the_list_of_its_adapters(adapters: Path, runs: dict[str, Finished], tmp_path: Path) -> None:
    finished = runs[SOME_EXAMPLES]
    assert (finished.folder / "adapters.json").read_bytes() == (adapters / "adapters.json").read_bytes()
    assert trained_items(finished.folder, read_result(finished.folder)) == {
        config: frozenset(f"{config}-pool-{number:02}" for number in range(8, 24)) for config in CONFIGS
    }
    assert list(validate.problems(finished.folder)) == []
    again = rescore(finished.folder, normalisation="sum", root=tmp_path)
    assert again.folder != finished.folder
    assert list(validate.problems(again.folder)) == []
    assert trained_items(again.folder, again.result) == trained_items(finished.folder, finished.result)


@pytest.mark.slow
def test_a_result_without_adapters_has_the_bytes_of_before(model: Path, dataset: Path, tmp_path: Path) -> None:
    finished = asked(planned(dataset, "left", NO_EXAMPLES), opened(model), tmp_path)
    assert "adapters" not in json.loads((finished.folder / "result.json").read_text(encoding="utf-8"))
    assert trained_items(finished.folder, finished.result) == {}


def test_a_list_that_was_changed_or_lost_is_noticed(runs: dict[str, Finished], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(runs[NO_EXAMPLES].folder, tmp_path / "run"))
    result, path = read_result(folder), folder / "adapters.json"
    path.write_text(path.read_text(encoding="utf-8").replace("pool-00", "test-00"), encoding="utf-8")
    for read in (lambda: trained_items(folder, result), lambda: RecordColumns.joined(read_parts(folder, result))):
        with pytest.raises(DataError, match=r"adapters\.json: sha256 .* is not the .* run the model again"):
            read()
    path.unlink()
    with pytest.raises(DataError, match=r"adapters\.json: no such file, though result\.json names it"):
        trained_items(folder, result)


def test_a_single_adapter_answers_everything(model: Path, dataset: Path, adapters: Path) -> None:
    folder = adapters / "right" / NO_EXAMPLES
    backend, bare = opened(model, lora=folder), opened(model)
    assert backend.model.identity_sha256 != bare.model.identity_sha256
    assert f"--lora {NO_EXAMPLES}" in backend.arguments
    (part, _) = planned(dataset, "tasks", NO_EXAMPLES).parts
    request = part.requests[0][0]
    assert isinstance(request, ChoiceRequest)
    (answer,) = all_answers_of(backend, [request])
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network = merged(model, folder)
    expected = [label_logprob(network, tokenizer, request.prompt, one, with_end=False) for one in request.options]
    assert answer.option_logprobs == pytest.approx(expected, abs=ROUNDING)
    (without,) = all_answers_of(bare, [request])
    assert answer.option_logprobs != pytest.approx(without.option_logprobs, abs=0.1)


@pytest.mark.slow
def test_texts_are_generated_with_the_adapter_of_each_request(model: Path, adapters: Path) -> None:
    backend = opened(model, lora=adapters)
    text = GenerateRequest(prompt="The nurse waited", max_tokens=3)
    requests = [replace(text, adapter=name) for name in CONTEXTS]
    answers = all_answers_of(backend, requests)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    for name, answer in zip(CONTEXTS, answers, strict=True):
        network, ids = merged(model, adapters / name), tokenizer(text.prompt)["input_ids"]
        n_prompt = len(ids)
        for _ in range(3):
            ids.append(int(network(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
        assert answer.text == tokenizer.decode(ids[n_prompt:], skip_special_tokens=True)


def test_a_request_without_a_context_is_not_answered_by_the_base(model: Path, adapters: Path) -> None:
    with pytest.raises(ConfigError, match="has no adapter for a request that names no context"):
        all_answers_of(opened(model, lora=adapters), [GenerateRequest(prompt="The", max_tokens=1)])


def test_answers_with_adapters_are_not_replayed_as_those_of_one_model(
    runs: dict[str, Finished], tmp_path: Path
) -> None:
    from evaluators.backends.replay import open_backend as open_replay

    folder = runs[NO_EXAMPLES].folder
    with pytest.raises(ConfigError, match="one question has an answer for each adapter"):
        open_replay(str(folder), BackendOptions())
    with pytest.raises(ConfigError, match=r"with an adapter for each context; write \.parquet"):
        export(folder / "responses.sqlite", tmp_path / "answers.jsonl")
    n_rows = export(folder / "responses.sqlite", tmp_path / "answers.parquet")
    assert n_rows == runs[NO_EXAMPLES].result.counts.items


@pytest.mark.slow
def test_the_commands_train_ask_and_verify(model: Path, dataset: Path, tmp_path: Path) -> None:
    out, runs = tmp_path / "adapters", tmp_path / "runs"
    common = ("--dataset", dataset, "--model", model, "--name", "lab/twin", "--prompt", NO_EXAMPLES, "--device", "cpu")
    output_of("-m", "evaluators", "finetune", *common, "--config", "left", "--out", out, "--rank", "4")
    asked_with = ("-m", "evaluators", "run", *common, "--backend", "transformers", "--lora", out, "--out", runs)
    refused = output_of(*asked_with, status=1)
    assert (
        "has no adapter for config 'right' with prompt 'release-1024b-k0-v1'; train it with: biasboard finetune"
        in refused
    )
    assert not runs.exists()
    trained = output_of("-m", "evaluators", "finetune", *common, "--config", "right", "--out", out, "--rank", "4")
    output_of(*asked_with)
    (result,) = (read_result(path.parent) for path in runs.rglob("result.json"))
    assert result.model.id == "lab/twin"
    # The command that comes next asks the same model under the same name.
    (following,) = re.findall(r"(?m)^next: biasboard (.*)$", trained)
    output_of("-m", "biasboard", *shlex.split(following), "--out", tmp_path / "following")
    (path,) = (tmp_path / "following").rglob("result.json")
    assert read_result(path.parent).model == result.model
    assert f"--lora {out.name} " in result.command
    verified = output_of("-m", "leaderboard", "verify", runs, "--datasets", dataset.parent)
    assert verified.startswith("accepted: ")


def test_the_list_names_what_was_trained(adapters: Path, dataset: Path) -> None:
    document = open_adapters(str(adapters)).document
    manifest = json.loads((dataset / "dataset.json").read_text(encoding="utf-8"))
    assert (document.data.name, document.data.version) == ("tasks", "1.0.0")
    assert document.data.content_sha256 == manifest["content_sha256"]
