"""Results of models with adapters: how they are handed on, verified and named on the board."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import ConfigError
from biasboard.ground.memory import Memory
from evaluators.backend import model_identity
from evaluators.backend_options import BackendOptions
from evaluators.benchmark import ShownContext
from evaluators.runs.ask.pipeline import RunOptions, run
from leaderboard.benchmark_figures import Shown
from leaderboard.pages.figures import subjects_of
from leaderboard.ranking.boards import assemble
from leaderboard.ranking.profiles import tables_of
from leaderboard.verify.comparisons import rerun
from leaderboard.verify.entries import Root, model_label
from leaderboard.verify.keys import KeyBook
from leaderboard.verify.verdicts import judge, load
from tests.evaluators.adapted import NO_EXAMPLES, SOME_EXAMPLES, train, twin_dataset, twin_plans
from tests.evaluators.made_data import save_tiny_llama
from tests.leaderboard.handed_in import hand_in
from tests.leaderboard.synthetic import present

pytest.importorskip("torch", reason="the extra hf is not installed")
pytest.importorskip("peft", reason="the extra train is not installed")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, a dataset, adapters, and the runs of the model with and without them."""
    from evaluators.backends.transformers.transformers_backend import open_backend

    folder = tmp_path_factory.mktemp("adapted")
    model = save_tiny_llama(folder / "tiny-llama", positions=1024)
    dataset = twin_dataset(folder / "datasets" / "tasks")
    plans = twin_plans(dataset)
    train(model, plans, folder / "adapters")
    for chosen in (str(folder / "adapters"), None):
        backend = open_backend(str(model), BackendOptions(device="cpu", lora=chosen))
        for plan in plans:
            words = " ".join(["python -m evaluators run", *backend.arguments])
            run(plan.for_backend(backend), backend, RunOptions(root=folder / "runs", command=words))
    return folder


def run_of(root: Path, prompt: str, model: str = "tiny-llama-LoRA") -> Path:
    (found,) = (root / "runs").glob(f"*/local__{model}/tasks-{prompt}-*")
    return found


def reason(folder: Path, root: Path) -> str:
    """Why a result is refused; empty if it is not."""
    (found,) = judge([folder], KeyBook(None, root / "datasets"), Memory(None))
    return found.reason or ""


def forged(folder: Path, target: Path, change: Callable[[Any], None]) -> Path:
    """A copy of a result that tells something else about its adapters, with all hashes as they should be."""
    shutil.copytree(folder, target)
    adapters, path = target / "adapters.json", target / "result.json"
    value, result = (json.loads(file.read_text(encoding="utf-8")) for file in (adapters, path))
    change(value)
    adapters.write_text(json.dumps(value), encoding="utf-8")
    sha256 = hashlib.sha256(adapters.read_bytes()).hexdigest()
    result["adapters"]["sha256"] = result["model"]["identity"]["adapters"] = sha256
    result["model"]["identity_sha256"] = model_identity(result["model"]["identity"])
    path.write_text(json.dumps(result), encoding="utf-8")
    return target


def trained_on(item_id: str) -> Callable[[Any], None]:
    def change(value: Any) -> None:
        for adapter in value["adapters"]:
            if (adapter["config"], adapter["prompt"]) == ("left", SOME_EXAMPLES):
                adapter["item_ids"][-1] = item_id

    return change


def of_other_data(value: Any) -> None:
    value["data"]["version"] = "1.0.1"


def of_another(part: str) -> Callable[[Any], None]:
    return lambda value: value["base"].update({f"{part}_sha256": "0" * 64})


def without_a_config(value: Any) -> None:
    value["adapters"] = [adapter for adapter in value["adapters"] if adapter["config"] != "right"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (trained_on("left-test-01"), "was trained on item 'left-test-01', which is of split test, which is measured"),
        (trained_on("left-pool-03"), "was trained on item 'left-pool-03', which is an example that the prompt shows"),
        (trained_on("elsewhere"), "was trained on item 'elsewhere', which is no item of split pool"),
        (of_another("identity"), "was trained for another model than the one that answered"),
        (of_another("chat_template"), "was trained for another chat template"),
        (of_other_data, "was trained on tasks 1.0.1 for task classification, the result is on tasks 1.0.0"),
        (without_a_config, "has no adapter for config 'right' with prompt 'release-1024b-k8-set0-v1'"),
    ],
)
def test_a_result_that_was_trained_on_what_it_measures_is_refused(
    root: Path, tmp_path: Path, change: Callable[[Any], None], expected: str
) -> None:
    assert expected in reason(forged(run_of(root, SOME_EXAMPLES), tmp_path / "run", change), root)


@pytest.mark.slow
def test_an_honest_result_is_handed_on_with_its_list_and_refused_without(root: Path, tmp_path: Path) -> None:
    for prompt in (NO_EXAMPLES, SOME_EXAMPLES):
        folder = run_of(root, prompt)
        assert reason(folder, root) == ""
        handed = hand_in(folder, tmp_path / "results")
        assert (handed / "adapters.json").read_bytes() == (root / "adapters" / "adapters.json").read_bytes()
        assert reason(handed, root) == ""
    folder = Path(shutil.copytree(run_of(root, NO_EXAMPLES), tmp_path / "run"))
    path = folder / "result.json"
    result = json.loads(path.read_text(encoding="utf-8"))
    del result["adapters"]
    path.write_text(json.dumps(result), encoding="utf-8")
    assert "adapters: are not those that the model's identity names" in reason(folder, root)


@pytest.mark.slow
def test_figures_and_the_board_keep_base_and_adapters_apart(root: Path) -> None:
    found = load([Root(root / "runs", "local")], KeyBook(None, root / "datasets"), Memory(None))
    (subject,) = subjects_of(tables_of(assemble(found.entries), "superni"))
    for prompt, context in ((NO_EXAMPLES, ShownContext(0, None)), (SOME_EXAMPLES, ShownContext(8, 0))):
        for model, with_adapters in (("tiny-llama", False), ("tiny-llama-LoRA", True)):
            metrics = json.loads((run_of(root, prompt, model) / "result.json").read_text(encoding="utf-8"))["metrics"]
            (stored,) = (one["value"] for one in metrics if one["name"] == "bias_score" and not one["group"])
            asked = Shown("", "bias_score", contexts=(context,), with_adapters=with_adapters)
            assert present(subject.metric(asked)).value == pytest.approx(stored, abs=1e-12)
    # A result that stands in two tables counts once, and a mean needs all of its results: one set of eight was asked.
    twice = subject._replace(entries=(*subject.entries, *subject.entries))
    assert twice.metric(Shown("", "bias_score", contexts=(ShownContext(8, 0),))) is not None
    assert subject.metric(Shown("", "bias_score", contexts=(ShownContext(8, 0), ShownContext(8, 1)))) is None
    assert subject._replace(adapted=None).metric(Shown("", "bias_score", with_adapters=True)) is None
    assert not found.left_out
    labels: dict[str, set[str]] = {}
    for entry in found.entries:
        labels.setdefault(model_label(entry), set()).add(entry.result.model.identity_sha256)
    sha256 = hashlib.sha256((root / "adapters" / "adapters.json").read_bytes()).hexdigest()
    assert len(found.entries) == 4
    assert [len(identities) for identities in labels.values()] == [1, 1]
    assert sorted(label.split(" ")[0] for label in labels) == ["local/tiny-llama", "local/tiny-llama-LoRA"]
    assert [label.endswith(f", LoRA {sha256[:8]})") for label in sorted(labels)] == [False, True]


@pytest.mark.slow
def test_a_maintainer_asks_again_with_the_adapters(root: Path) -> None:
    from evaluators.backends.transformers.transformers_backend import open_backend

    path = run_of(root, SOME_EXAMPLES) / "result.json"
    model, adapters = str(root / "tiny-llama"), str(root / "adapters")
    with_adapters = open_backend(model, BackendOptions(device="cpu", lora=adapters))
    asked_again, _ = rerun(path, with_adapters, root / "datasets", 10, seed=1)
    assert (asked_again.n_items, asked_again.n_agreeing) == (10, 10)
    with pytest.raises(ConfigError, match=r"with adapters_sha256 .* the opened model has None"):
        rerun(path, open_backend(model, BackendOptions(device="cpu")), root / "datasets", 10, seed=1)
