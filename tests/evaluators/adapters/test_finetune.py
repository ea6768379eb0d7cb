"""Training of adapters: what it trains on, that it changes nothing else, that it goes on, and what it refuses."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import BiasboardError, ConfigError
from evaluators.backend import ChoiceRequest
from evaluators.backend_options import BackendOptions
from evaluators.runs.ask.finetuning import finetune
from evaluators.runs.plan.plan import PlannedPart
from evaluators.tasks.labels.classification_task import TASK
from evaluators.tasks.labels.label_prompts import training_items
from evaluators.trainer import open_trainer
from schemas.documents.adapters import PUBLISHED, Adapters
from schemas.files import contract
from schemas.items.label import LabelItem
from tests.commands import REPOSITORY, run, started
from tests.evaluators.adapted import (
    CONFIGS,
    NO_EXAMPLES,
    QUICK,
    SOME_EXAMPLES,
    merged,
    train,
    twin_dataset,
    twin_items,
    twin_plans,
    weights_sha256,
)
from tests.evaluators.label_data import made_dataset, planned
from tests.evaluators.made_data import save_tiny_llama
from tests.evaluators.single_passes import ROUNDING, plain_logprob

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")
pytest.importorskip("peft", reason="the extra train is not installed")


def told(out: Path) -> Adapters:
    path = out / "adapters.json"
    return contract.load(strict_json.read(path), Adapters, where=str(path))


def pool_of(n_items: int) -> list[LabelItem]:
    (item,) = twin_items("left", "pool")[:1]
    return [replace(item, item_id=str(number)) for number in range(n_items)]


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
    pool = pool_of(n_pool)
    shown = [pool[place % n_pool] for place in range(k * number, k * (number + 1))]
    found = training_items(pool, shown, k, number, 16)
    assert [int(item.item_id) for item in found] == expected
    assert not {item.item_id for item in found} & {item.item_id for item in shown}


def test_examples_that_a_rule_chooses_are_skipped() -> None:
    pool = twin_items("left", "pool")
    for prompt in TASK.prompts.values():
        shown = TASK.chosen_examples(pool, prompt) if prompt.example_rule is not None else ()
        found = TASK.training_items(pool, prompt, shown, 16)
        assert len({item.item_id for item in found}) == 16
        assert not {item.item_id for item in found} & {item.item_id for item in shown}


@pytest.mark.slow
def test_the_labels_become_more_likely_as_plain_passes_say(model: Path, dataset: Path, adapters: Path) -> None:
    found = told(adapters)
    assert [adapter.name for adapter in found.adapters] == [
        f"{config}/{prompt}" for config in CONFIGS for prompt in (NO_EXAMPLES, SOME_EXAMPLES)
    ]
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    parts = {(part.config, plan.prompt.id): part for plan in twin_plans(dataset) for part in plan.parts}
    for adapter in found.adapters:
        part = parts[adapter.config, adapter.prompt]
        assert adapter.logprob_after > adapter.logprob_before + 0.5
        for folder, said in ((None, adapter.logprob_before), (adapters / adapter.path, adapter.logprob_after)):
            expected = mean_of(part, adapter.item_ids, merged(model, folder), tokenizer)
            assert said == pytest.approx(expected, abs=ROUNDING)


def mean_of(part: PlannedPart, item_ids: tuple[str, ...], network: Any, tokenizer: Any) -> float:
    """The mean over items of the log-probability of the right label and the end token, asked as in an evaluation."""
    values = []
    for (split, item), (request,) in zip(part.items, part.requests, strict=True):
        if split == "pool" and item.item_id in item_ids:
            assert isinstance(item, LabelItem)
            assert isinstance(request, ChoiceRequest)
            values.append(sum(plain_logprob(network, tokenizer, request, f" {item.target}")))
    assert len(values) == len(item_ids) == 16
    return sum(values) / len(values)


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


def test_the_published_numbers_are_the_defaults_and_are_told(adapters: Path) -> None:
    assert (PUBLISHED.epochs, PUBLISHED.learning_rate, PUBLISHED.rank, PUBLISHED.alpha) == (5, 2e-4, 64, 16)
    found = told(adapters)
    assert found.hyperparameters == QUICK
    assert found.target_modules == ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj")
    settings = (adapters / "left" / NO_EXAMPLES / "adapter_config.json").read_text(encoding="utf-8")
    assert str(REPOSITORY) not in settings + (adapters / "adapters.json").read_text(encoding="utf-8")


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
    assert len(told(out).adapters) == 4
    assert not list(out.glob("*/.*")), "what the killed process left is removed"


def test_other_numbers_and_other_files_in_the_folder_are_refused(
    model: Path, dataset: Path, adapters: Path, tmp_path: Path
) -> None:
    plans = twin_plans(dataset)
    with pytest.raises(ConfigError, match=r"trained with hyperparameters\.seed 42, and now it is 7"):
        train(model, plans, adapters, replace(QUICK, seed=7))
    other = twin_dataset(tmp_path / "other", version="1.1.0")
    with pytest.raises(ConfigError, match=r"trained with data\.version 1\.0\.0, and now it is 1\.1\.0"):
        train(model, twin_plans(other), adapters)
    strange = save_tiny_llama(tmp_path / "strange", seed=1, positions=1024)
    with pytest.raises(ConfigError, match=r"trained with base\.id tiny-llama, and now it is strange"):
        train(strange, plans, adapters)
    with pytest.raises(ConfigError, match=r"holds config\.json and no setup\.json"):
        train(model, plans, strange.rename(tmp_path / "full"))


@pytest.mark.slow
def test_an_adapter_that_was_changed_is_not_taken_for_complete(
    model: Path, dataset: Path, adapters: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(adapters, tmp_path / "copy"))
    path = folder / "left" / NO_EXAMPLES / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(ConfigError, match=r"adapter_model\.safetensors: sha256 .* remove the folder and train"):
        train(model, twin_plans(dataset), folder)
    shutil.rmtree(path.parent)
    train(model, twin_plans(dataset), folder)
    assert (folder / "adapters.json").read_bytes() == (adapters / "adapters.json").read_bytes()


def without_labels(config: str, split: str) -> tuple[LabelItem, ...]:
    items = twin_items(config, split)
    return tuple(replace(item, target=None, content_free="placeholder") for item in items) if split == "pool" else items


def with_a_small_pool(config: str, split: str) -> tuple[LabelItem, ...]:
    return twin_items(config, split)[:15]


@pytest.mark.parametrize(
    ("items", "splits", "expected"),
    [
        (without_labels, ("test", "pool"),
            r"item 'left-pool-00' of config 'left' has label None, which is none of its opt"),
        (with_a_small_pool, ("test", "pool"), r"trained on 16 items of split 'pool' .* config 'left' has 15 of them"),
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


def test_a_model_without_linear_layers_is_refused() -> None:
    from evaluators.backends.transformers.lora import linear_layers

    class Flat(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = torch.nn.Embedding(4, 2), torch.nn.Linear(2, 4)

        def get_output_embeddings(self) -> Any:
            return self.head

    with pytest.raises(ConfigError, match="Flat has no linear layers besides its output layer"):
        linear_layers(Flat())
