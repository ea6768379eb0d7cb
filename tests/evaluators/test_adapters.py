"""Adapters for contexts: their training, which answers they give, that none is shared, and which are refused."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import BiasboardError, ConfigError, DataError
from evaluators.adapter_set import open_adapters, trained_items
from evaluators.backend import ChoiceRequest, GenerateRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.replay import open_backend as open_replay
from evaluators.backends.transformers.lora import open_trainer
from evaluators.runs.ask.finetuning import finetune
from evaluators.runs.ask.pipeline import Finished
from evaluators.runs.measure.rescoring import rescore
from evaluators.runs.plan.earlier_answers import AnswerStores, unanswered
from evaluators.stores.store import store_key
from evaluators.tasks.labels.classification_task import TASK
from schemas import validate
from schemas.documents.adapters import PUBLISHED
from schemas.documents.record import Exchange
from schemas.files.record_columns import RecordColumns
from schemas.folders.run_folder import read_parts, read_result, read_run
from schemas.items.label import LabelItem
from tests.commands import REPOSITORY, output_of, run, started
from tests.evaluators.adapted import (
    CONFIGS,
    NO_EXAMPLES,
    QUICK,
    SOME_EXAMPLES,
    asked,
    merged,
    opened,
    train,
    twin_dataset,
    twin_items,
    twin_plans,
    weights_sha256,
)
from tests.evaluators.asking import all_answers_of
from tests.evaluators.label_data import made_dataset, planned
from tests.evaluators.made_data import save_tiny_llama
from tests.evaluators.single_passes import ROUNDING, plain_logprob
from tests.schemas import examples

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")
pytest.importorskip("peft", reason="the extra train is not installed")
LEFT = f"left/{NO_EXAMPLES}"
WEIGHTS, SETTINGS = "adapter_model.safetensors", "adapter_config.json"
CONTEXTS = [f"{config}/{prompt}" for config in CONFIGS for prompt in (NO_EXAMPLES, SOME_EXAMPLES)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("models") / "tiny-llama", positions=1024)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return twin_dataset(tmp_path_factory.mktemp("twins") / "tasks")


@pytest.fixture(scope="module")
def adapters(model: Path, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Adapters for both configs in both contexts."""
    folder = tmp_path_factory.mktemp("adapters") / "tiny"
    train(model, twin_plans(dataset), folder)
    return folder


@pytest.fixture(scope="module")
def runs(model: Path, dataset: Path, adapters: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Finished]:
    """The run of each context, all in one folder of runs and with one cache."""
    root, backend = tmp_path_factory.mktemp("runs"), opened(model, lora=adapters)
    return {plan.prompt.id: asked(plan, backend, root / "runs", root / "cache") for plan in twin_plans(dataset)}


def asked_of(folder: Path, config: str) -> dict[str, Exchange]:
    """What each item of a config was asked and answered, by its id without the config."""
    records = (record for record in read_run(folder).records if record.config == config)
    return {record.item_id.removeprefix(f"{config}-"): record.exchanges[0] for record in records}


def logprobs(folder: Path, config: str) -> dict[str, tuple[float, ...]]:
    """The log-probabilities of the labels of each item."""
    found = asked_of(folder, config)
    return {item: tuple(value or 0.0 for value in one.option_logprobs) for item, one in found.items()}


@pytest.mark.slow
def test_each_context_is_answered_as_plain_passes_with_its_adapter_say_and_shares_no_answer(
    model: Path, adapters: Path, runs: dict[str, Finished]
) -> None:
    texts = [
        {item: one.prompt for item, one in asked_of(runs[prompt].folder, config).items()}
        for prompt in runs
        for config in CONFIGS
    ]
    assert all(one == texts[0] for one in texts), "all contexts ask the same texts"
    found = [logprobs(runs[prompt].folder, config) for prompt in runs for config in CONFIGS]
    for place, one in enumerate(found):
        for other in found[:place]:
            assert all(one[item] != other[item] for item in one)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    for prompt, finished in runs.items():
        usage = finished.result.usage
        assert usage.n_requests == usage.n_attempts == finished.result.counts.items, "nothing was taken over"
        assert finished.result.environment.settings["option_scoring"] == "packed"
        for config in CONFIGS:
            network = merged(model, adapters / config / prompt)
            answers = logprobs(finished.folder, config)
            for item in ("test-00", "pool-08"):
                request = ChoiceRequest(prompt=texts[0][item] or "", options=(" waited", " leave"), outcomes=())
                expected = [plain_logprob(network, tokenizer, request, option)[0] for option in request.options]
                assert answers[item] == pytest.approx(expected, abs=ROUNDING)


def test_the_adapter_is_part_of_the_store_key_and_of_nothing_else() -> None:
    model = replace(examples.result().model, identity_sha256="0" * 64)
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
    assert not unanswered(plan.for_backend(same), list(plan.for_backend(same).parts), same, stores)[0]
    # Under the name of the model with adapters, in the same folders.
    named = opened(model, name=same.model.id)
    other = Path(shutil.copytree(adapters, tmp_path / "other"))
    in_list(lambda value: value["adapters"][0].update(logprob_after=-1.0))(other)
    for backend in (base, named, opened(model, lora=other)):
        for_backend = plan.for_backend(backend)
        # The base answers both configs at once, since they ask the same.
        n_distinct = sum(len(part.requests) for part in for_backend.parts) // (2 if backend.adapters is None else 1)
        assert len(unanswered(for_backend, list(for_backend.parts), backend, stores)[0]) == n_distinct


def test_the_identity_names_adapters_and_their_list_tells_their_training(model: Path, adapters: Path) -> None:
    base, adapted = opened(model).model, opened(model, lora=adapters).model
    sha256 = hashlib.sha256((adapters / "adapters.json").read_bytes()).hexdigest()
    assert base.identity is not None
    assert {*base.identity} == {"backend", "model", "precision", "device", "chat_template", "tokenizer", "scoring"}
    assert adapted.identity == {**base.identity, "adapters": sha256}
    assert adapted.identity_sha256 != base.identity_sha256
    assert (base.id, adapted.id) == ("local/tiny-llama", "local/tiny-llama-LoRA")
    assert (PUBLISHED.epochs, PUBLISHED.learning_rate, PUBLISHED.rank, PUBLISHED.alpha) == (5, 2e-4, 64, 16)
    found = open_adapters(str(adapters)).document
    assert found.hyperparameters == QUICK
    assert found.target_modules == ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj")
    settings = (adapters / "left" / NO_EXAMPLES / "adapter_config.json").read_text(encoding="utf-8")
    assert str(REPOSITORY) not in settings + (adapters / "adapters.json").read_text(encoding="utf-8")


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


def test_answers_with_adapters_need_their_list_and_are_not_replayed_as_those_of_one_model(
    runs: dict[str, Finished], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="one question has an answer for each adapter"):
        open_replay(str(runs[NO_EXAMPLES].folder), BackendOptions())
    folder = Path(shutil.copytree(runs[NO_EXAMPLES].folder, tmp_path / "run"))
    result, path = read_result(folder), folder / "adapters.json"
    path.write_text(path.read_text(encoding="utf-8").replace("pool-00", "test-00"), encoding="utf-8")
    for read in (lambda: trained_items(folder, result), lambda: RecordColumns.joined(read_parts(folder, result))):
        with pytest.raises(DataError, match=r"adapters\.json: sha256 .* is not the .* run the model again"):
            read()
    path.unlink()
    with pytest.raises(DataError, match=r"adapters\.json: no such file, though result\.json names it"):
        trained_items(folder, result)


@pytest.mark.slow
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
    expected = [plain_logprob(network, tokenizer, request, option)[0] for option in request.options]
    assert answer.option_logprobs == pytest.approx(expected, abs=ROUNDING)
    (without,) = all_answers_of(bare, [request])
    assert answer.option_logprobs != pytest.approx(without.option_logprobs, abs=0.1)


@pytest.mark.slow
def test_texts_are_generated_with_the_adapter_of_each_request(model: Path, adapters: Path) -> None:
    backend = opened(model, lora=adapters)
    with pytest.raises(ConfigError, match="has no adapter for a request that names no context"):
        all_answers_of(backend, [GenerateRequest(prompt="The", max_tokens=1)])
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


@pytest.mark.slow
def test_the_commands_train_ask_and_verify(model: Path, dataset: Path, tmp_path: Path) -> None:
    out, runs = tmp_path / "adapters", tmp_path / "runs"
    common = ("--dataset", dataset, "--model", model, "--name", "lab/twin", "--prompt", NO_EXAMPLES, "--device", "cpu")
    trained = output_of("-m", "evaluators", "finetune", *common, "--out", out, "--rank", "4")
    # The command that comes next asks the same model under the same name.
    (following,) = re.findall(r"(?m)^next: biasboard (.*)$", trained)
    output_of("-m", "biasboard", *shlex.split(following), "--out", runs)
    (result,) = (read_result(path.parent) for path in runs.rglob("result.json"))
    assert result.model.id == "lab/twin"
    assert f"--lora {out.name} " in result.command


def in_list(change: Callable[[Any], object]) -> Callable[[Path], None]:
    """A change of the list of adapters."""

    def damage(folder: Path) -> None:
        path = folder / "adapters.json"
        value = json.loads(path.read_text(encoding="utf-8"))
        change(value)
        path.write_text(json.dumps(value), encoding="utf-8")

    return damage


def noted(change: Callable[[Path], None], file: str = WEIGHTS) -> Callable[[Path], None]:
    """A change of a file of one adapter, whose new hash stands in the list."""

    def damage(folder: Path) -> None:
        change(folder / LEFT / file)
        sha256 = hashlib.sha256((folder / LEFT / file).read_bytes()).hexdigest()
        name = "weights_sha256" if file == WEIGHTS else "settings_sha256"
        in_list(lambda value: [one.update({name: sha256}) for one in value["adapters"] if one["path"] == LEFT])(folder)

    return damage


def set_settings(folder: Path, **settings: Any) -> None:
    path = folder / SETTINGS
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | settings), encoding="utf-8")


def of_weights(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        from safetensors.torch import load_file, save_file

        save_file(change(load_file(path)), path)

    return damage


@pytest.mark.slow
def test_adapters_for_other_data_or_another_model_are_refused(
    model: Path, dataset: Path, adapters: Path, tmp_path: Path
) -> None:
    backend = opened(model, lora=adapters)
    newer = twin_dataset(tmp_path / "newer", version="1.0.1")
    with pytest.raises(ConfigError, match=r"was trained on version 1\.0\.0, and version 1\.0\.1 is asked"):
        planned(newer, "tasks", NO_EXAMPLES).for_backend(backend)
    with pytest.raises(
        ConfigError,
        match=r"no adapter for config 'left' with prompt 'release-1024b-k8-set1-v1'; train it with: "
        r"biasboard finetune --dataset out/datasets/tasks .*--config left --prompt release-1024b-k8-set1-v1",
    ):
        planned(dataset, "left", "release-1024b-k8-set1-v1").for_backend(backend)
    other = save_tiny_llama(tmp_path / "other", seed=1, positions=1024)
    with pytest.raises(ConfigError, match=r"was trained for model tiny-llama .*, and --model names another one"):
        opened(other, lora=adapters)
    with pytest.raises(ConfigError, match="was trained with another --tokenizer"):
        opened(model, lora=adapters, tokenizer=other)
    with pytest.raises(
        ConfigError, match=r"holds neither adapter_config\.json nor adapters\.json; name the folder of "
    ):
        opened(model, lora=model)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "doubled": (in_list(lambda value: value["adapters"].append(value["adapters"][0])),
        r"adapters: context left/release-1024b-k0-v1 stands twice"),
    "outside": (in_list(lambda value: value["adapters"][0].update(path="../elsewhere")), r"adapters\[0\]\.path"),
    "lost weights": (lambda folder: (folder / LEFT / WEIGHTS).unlink(),
        r"adapter_model\.safetensors: no such file; train the adapter again"),
    "swapped weights": (lambda folder: shutil.copy(folder / "right" / NO_EXAMPLES / WEIGHTS, folder / LEFT / WEIGHTS),
        r"adapter_model\.safetensors: sha256 .* remove the folder and train the adapter again"),
    "another scale": (lambda folder: set_settings(folder / LEFT, lora_alpha=80),
        r"adapter_config\.json: sha256 .* remove the folder and train the adapter again"),
    "other settings": (noted(lambda path: set_settings(path.parent, init_lora_weights="pissa"), SETTINGS),
        r"adapter_config\.json: has other settings than finetune writes; remove the folder and "),
    "another shape": (noted(of_weights(lambda held: {name: weights[..., :3].contiguous() for name,
        weights in held.items()})), r"does not fit LlamaForCausalLM: .*size mismatch"),
    "fewer layers": (noted(of_weights(lambda held: {name: one for name,
        one in held.items() if "layers.1" not in name})),
        r"lacks .*layers\.1.*; give one that was trained for this model"),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "expected"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_adapters_are_refused(
    model: Path, dataset: Path, adapters: Path, tmp_path: Path, damage: Callable[[Path], None], expected: str
) -> None:
    folder = Path(shutil.copytree(adapters, tmp_path / "copy"))
    damage(folder)
    with pytest.raises(BiasboardError, match=expected) as error:
        asked(planned(dataset, "tasks", NO_EXAMPLES), opened(model, lora=folder), tmp_path / "runs")
    assert "\n" not in str(error.value)
    assert not list((tmp_path / "runs").rglob("result.json"))


HEAD, SLOW = "base_model.model.lm_head.weight", r"([\w.]+)+!"
SETTINGS_OF_STRANGERS: dict[str, tuple[dict[str, Any], str]] = {
    "ranks that would fill the memory": ({"r": 10**9}, "states rank 1000000000, and its weights have 4"),
    "ranks of some layers": ({"rank_pattern": {"q_proj": 10**9}}, "states rank 1000000000, and its weights have 4"),
    "a rank in words": ({"r": "2"}, "states rank '2', and its weights have 4"),
    "no finite rank": ({"r": float("inf")}, "names no rank 'r'"),
    "ranks by a slow pattern": ({"rank_pattern": {SLOW: 1}}, r"names layers by the pattern '\(\["),
    "scales by a slow pattern": ({"alpha_pattern": {SLOW: 1}}, r"names layers by the pattern '\(\["),
    "copies by a slow pattern": ({"modules_to_save": [SLOW]}, r"names layers by the pattern '\(\["),
    "a module to import": ({"megatron_config": {"a": 1}, "megatron_core": "this"}, "changes more of a model than its"),
    "layers many times": ({"layer_replication": [[0, 2]] * 10**5}, "changes more of a model than its weights"),
}
WEIGHTS_OF_STRANGERS = {
    "a layer of the model": (HEAD, {}),
    "a layer below an adapted one": ("base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight", {}),
    "a layer beside its copy": ("base_model.model.lm_head.original_module.weight", {"modules_to_save": ["lm_head"]}),
}


@pytest.fixture
def single(adapters: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(adapters / "left" / NO_EXAMPLES, tmp_path / "single"))


@pytest.mark.parametrize(("settings", "said"), SETTINGS_OF_STRANGERS.values(), ids=SETTINGS_OF_STRANGERS)
def test_settings_of_a_strangers_adapter(model: Path, single: Path, settings: dict[str, Any], said: str) -> None:
    set_settings(single, **settings)
    with pytest.raises(ConfigError, match=said) as error:
        opened(model, lora=single)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "settings"), WEIGHTS_OF_STRANGERS.values(), ids=WEIGHTS_OF_STRANGERS)
def test_an_adapter_replaces_no_weight_of_its_model(
    model: Path, single: Path, name: str, settings: dict[str, Any]
) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    path = single / "adapter_model.safetensors"
    before = load_file(model / "model.safetensors")
    own = before[name.removeprefix("base_model.model.").replace(".base_layer", "").replace(".original_module", "")]
    copied = {HEAD: torch.zeros_like(own)} if settings else {}
    set_settings(single, **settings)
    save_file(load_file(path) | copied | {name: torch.ones_like(own)}, path)
    with pytest.raises(ConfigError, match=r"replaces a weight of the model \(base_model\.model\."):
        opened(model, lora=single)
    # As peft saves the embeddings of a model beside an adapter for them, or with copies of layers.
    save_file(load_file(path) | copied | {name: own.clone()}, path)
    opened(model, lora=single)


@pytest.mark.parametrize(
    "settings",
    [
        {"target_modules": SLOW},
        {"exclude_modules": SLOW},
        {"layers_to_transform": [0], "layers_pattern": [SLOW]},
        {"alpha_pattern": {"^model.layers.*.q_proj": 4}},
    ],
)
def test_layers_are_those_that_the_weights_name(model: Path, single: Path, settings: dict[str, Any]) -> None:
    set_settings(single, **settings)
    opened(model, lora=single)


@pytest.mark.parametrize(
    ("n_pool", "k", "number", "expected"),
    [
        # From the rule of the code of Reif & Schwartz, by hand.
        (64, 0, 0, [*range(16)]),
        (64, 2, 2, [*range(34, 50)]),
        (64, 8, 1, [*range(24, 40)]),
        # Around the end of the pool, where the examples of the context are skipped.
        (64, 16, 3, [*range(16)]),
        (30, 8, 2, [*range(10, 16), *range(24, 30), *range(4)]),
        (20, 8, 0, [*range(8, 20)]),
    ],
)
def test_the_items_of_a_training_by_hand(n_pool: int, k: int, number: int, expected: list[int]) -> None:
    pool = [replace(twin_items("left", "pool")[0], item_id=str(place)) for place in range(n_pool)]
    shown = [pool[place % n_pool] for place in range(k * number, k * (number + 1))]
    prompt = replace(TASK.prompts["release-4096b-k0-v1"], n_examples=k, example_set=number)
    found = TASK.training_items(pool, prompt, shown, 16)
    assert [int(item.item_id) for item in found] == expected
    assert not {item.item_id for item in found} & {item.item_id for item in shown}


@pytest.mark.slow
def test_the_labels_become_more_likely_as_plain_passes_say(model: Path, dataset: Path, adapters: Path) -> None:
    found = open_adapters(str(adapters)).document
    assert [adapter.name for adapter in found.adapters] == [
        f"{config}/{prompt}" for config in CONFIGS for prompt in (NO_EXAMPLES, SOME_EXAMPLES)
    ]
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    parts = {(part.config, plan.prompt.id): part for plan in twin_plans(dataset) for part in plan.parts}
    for adapter in found.adapters:
        part = parts[adapter.config, adapter.prompt]
        assert adapter.logprob_after > adapter.logprob_before + 0.5
        for folder, said in ((None, adapter.logprob_before), (adapters / adapter.path, adapter.logprob_after)):
            network, values = merged(model, folder), []
            # The right label and the end token, asked as in an evaluation.
            for (split, item), (request,) in zip(part.items, part.requests, strict=True):
                if split == "pool" and item.item_id in adapter.item_ids:
                    assert isinstance(item, LabelItem)
                    assert isinstance(request, ChoiceRequest)
                    values.append(sum(plain_logprob(network, tokenizer, request, f" {item.target}")))
            assert len(values) == len(adapter.item_ids) == 16
            assert said == pytest.approx(sum(values) / 16, abs=ROUNDING)


@pytest.mark.slow
def test_one_step_goes_against_the_gradient_of_label_and_end_alone(model: Path, dataset: Path, tmp_path: Path) -> None:
    # B is 0 at first, so that A has no gradient and only decays, and B moves by the learning rate in each place, as the
    # first step of AdamW does whatever the size of the gradient, which is that of W times A.
    rate, decay = 0.01, 0.03
    told_of = replace(QUICK, epochs=1, accumulation=16, learning_rate=rate, weight_decay=decay)
    plan = planned(dataset, "left", SOME_EXAMPLES)
    trainer: Any = open_trainer(str(model), BackendOptions(device="cpu"), told_of)
    base = trainer.loaded.network
    before, layers = weights_sha256(base), [type(module) for module in base.modules()]
    (adapter,) = finetune([plan], trainer, tmp_path).document.adapters
    assert weights_sha256(base) == before, "the base is left as it was"
    assert [type(module) for module in base.modules()] == layers
    (part,) = plan.parts
    network, tokenizer = merged(model, None), transformers.AutoTokenizer.from_pretrained(model)
    losses = []
    for (_, item), (request,) in zip(part.items, part.requests, strict=True):
        if item.item_id in adapter.item_ids:
            assert isinstance(item, LabelItem)
            context = tokenizer(request.prompt)["input_ids"]
            ids = [*tokenizer(f"{request.prompt} {item.target}")["input_ids"], tokenizer.eos_token_id]
            logprobs = network(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
            places = range(len(context), len(ids))
            losses.append(-sum(logprobs[place - 1, ids[place]] for place in places) / len(places))
    (sum(losses) / len(losses)).backward()
    from safetensors.torch import load_file

    weights = load_file(tmp_path / adapter.path / "adapter_model.safetensors")
    compared = 0
    for name in (name.removesuffix(".lora_A.weight") for name in weights if name.endswith(".lora_A.weight")):
        gradient = network.get_submodule(name.removeprefix("base_model.model.")).weight.grad
        a, b = weights[f"{name}.lora_A.weight"], weights[f"{name}.lora_B.weight"]
        of_b = gradient @ a.T
        certain = of_b.abs() > 1e-3 * of_b.abs().max()
        assert torch.equal(b.sign()[certain], -of_b.sign()[certain])
        assert torch.allclose(b.abs()[certain], torch.tensor(rate), rtol=1e-2)
        assert 0 < a.abs().max() <= (1 - rate * decay) / a.shape[1] ** 0.5 * (1 + 1e-6)
        compared += int(certain.sum())
    assert compared > 1000


def command(model: Path, dataset: Path, out: Path, *more: str) -> list[str]:
    words = ["-m", "evaluators", "finetune", "--dataset", str(dataset), "--model", str(model), "--out", str(out)]
    words += ["--device", "cpu", "--rank", "4", "--alpha", "8", "--learning-rate", "0.02"]
    return [*words, "--prompt", NO_EXAMPLES, "--prompt", SOME_EXAMPLES, *more]


@pytest.mark.slow
def test_kill_9_loses_only_the_context_that_was_being_trained(model: Path, dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    with started(*command(model, dataset, out), OMP_NUM_THREADS="1") as training:
        while not (list(out.glob("*/*/adapter.json")) and list(out.glob("*/.release*"))):
            assert training.poll() is None, "it ended before it was killed"
            time.sleep(0.002)
        training.kill()
        assert training.wait() == -signal.SIGKILL
    assert not (out / "adapters.json").exists()
    kept = {path: path.stat().st_mtime_ns for path in out.glob("*/*/adapter.json")}
    again = run(*command(model, dataset, out), status=0, OMP_NUM_THREADS="1")
    assert again.stderr.count("log-probability of a label") == 4 - len(kept)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "a complete adapter was trained again"
    assert len(open_adapters(str(out)).document.adapters) == 4
    assert not list(out.glob("*/.*")), "what the killed process left is removed"


@pytest.mark.slow
def test_a_context_is_trained_alike_whatever_was_trained_before_and_never_over_something_else(
    model: Path, dataset: Path, adapters: Path, tmp_path: Path
) -> None:
    plans = twin_plans(dataset)
    with pytest.raises(ConfigError, match=r"trained with hyperparameters\.seed 42, and now it is 7"):
        train(model, plans, adapters, replace(QUICK, seed=7))
    with pytest.raises(ConfigError, match=r"and no setup\.json; name an empty folder with --out"):
        train(model, plans, Path(shutil.copytree(dataset, tmp_path / "full")))
    folder = Path(shutil.copytree(adapters, tmp_path / "copy"))
    (folder / LEFT / WEIGHTS).write_bytes(b"changed")
    with pytest.raises(ConfigError, match=r"adapter_model\.safetensors: sha256 .* remove the folder and train"):
        train(model, plans, folder)
    shutil.rmtree(folder / LEFT)
    train(model, plans, folder)
    assert (folder / "adapters.json").read_bytes() == (adapters / "adapters.json").read_bytes()


def without_labels(config: str, split: str) -> tuple[LabelItem, ...]:
    items = twin_items(config, split)
    return tuple(replace(item, target=None, content_free="placeholder") for item in items) if split == "pool" else items


@pytest.mark.parametrize(
    ("items", "splits", "expected"),
    [
        (without_labels, ("test", "pool"),
            r"item 'left-pool-00' of config 'left' has label None, which is none of its opt"),
        (lambda config, split: twin_items(config, split)[:15], ("test", "pool"),
            r"trained on 16 items of split 'pool' .* config 'left' has 15 of them"),
        (twin_items, ("test", "bias"), r"config 'left' has no split 'pool'"),
    ],
)  # fmt: skip
def test_a_dataset_without_what_a_training_needs_is_refused(
    model: Path, tmp_path: Path, items: Callable[..., Any], splits: tuple[str, ...], expected: str
) -> None:
    dataset = made_dataset(tmp_path / "tasks", CONFIGS, items, splits)
    with pytest.raises(BiasboardError, match=expected):
        train(model, [planned(dataset, "tasks", NO_EXAMPLES)], tmp_path / "out")
    assert not (tmp_path / "out").exists(), "nothing was written before it was refused"


def test_a_prompt_that_is_too_long_is_refused_before_any_training(dataset: Path, tmp_path: Path) -> None:
    short = save_tiny_llama(tmp_path / "short", positions=64)
    with pytest.raises(
        ConfigError, match=r"item 'left-pool-00' of left/.* cannot be trained on: context and option take"
    ):
        train(short, twin_plans(dataset), tmp_path / "out")
    assert not (tmp_path / "out").exists()
