"""Option log-probabilities against plain forward passes, and models that predict from both sides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.load import looks_ahead
from evaluators.backends.transformers.transformers_backend import TransformersBackend, open_backend
from evaluators.runs.ask.pipeline import run
from evaluators.runs.plan.plan import Plan
from evaluators.runs.plan.run_options import RunOptions
from evaluators.runs.plan.selection import select
from evaluators.task import Asked, prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.folders.dataset_folder import read_manifest
from schemas.folders.run_folder import read_run
from tests.evaluators.asking import all_answers_of
from tests.evaluators.made_data import made_items, save_tiny_llama, write_dataset
from tests.evaluators.single_passes import ROUNDING

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")


def requests_of(prompt_id: str, n_pairs: int = 40) -> list[ChoiceRequest]:
    prompt = prompt_of(TASK, prompt_id)
    requests = [request for item in made_items(n_pairs) for request in TASK.requests(item, Asked(prompt))]
    return [request for request in requests if isinstance(request, ChoiceRequest)]


def test_models_that_show_no_output_layer_score_the_same(tiny_llama: Path) -> None:
    backend = open_backend(str(tiny_llama), BackendOptions(device="cpu"))
    requests = requests_of("intrinsic-v1", 3)

    class FullLogits(torch.nn.Module):  # type: ignore[misc, name-defined]
        """The same network whose output layer cannot be told."""

        def __init__(self, network: Any) -> None:
            super().__init__()
            self.inner, self.config, self.device = network, network.config, network.device

        def get_input_embeddings(self) -> Any:
            return self.inner.get_input_embeddings()

        def get_output_embeddings(self) -> None:
            return None

        def forward(self, input_ids: Any, attention_mask: Any, use_cache: bool) -> Any:
            return self.inner(input_ids=input_ids, attention_mask=attention_mask, use_cache=use_cache)

    full = TransformersBackend(
        network=FullLogits(backend.network),
        tokenizer=backend.tokenizer,
        device="cpu",
        batch_tokens=512,
        model=backend.model,
        scoring="plain",
    )
    for one, other in zip(all_answers_of(backend, requests), all_answers_of(full, requests), strict=True):
        assert one.option_logprobs == pytest.approx(other.option_logprobs, abs=ROUNDING)


def test_what_does_not_fit_fails_alone(tiny_llama: Path) -> None:
    backend = open_backend(str(tiny_llama), BackendOptions(device="cpu"))
    sound = requests_of("intrinsic-v1", 1)[0]
    long = ChoiceRequest(prompt="The guard waited. " * 80, options=(" a", " b"), outcomes=("guard", "nurse"))
    empty = ChoiceRequest(prompt="The guard", options=(" waited", ""), outcomes=("guard", "nurse"))
    answers = all_answers_of(backend, [long, sound, empty])
    assert [answer.status for answer in answers] == ["failed", "answered", "failed"]
    assert "tokens, the model 256" in str(answers[0].error)
    assert answers[2].error == "option '' has no tokens of its own"


def test_another_precision_or_weight_is_another_model(tiny_llama: Path, tmp_path: Path) -> None:
    changed = save_tiny_llama(tmp_path / "tiny-llama", seed=1)
    full, half, other = (
        open_backend(str(folder), BackendOptions(device="cpu", dtype=name)).model
        for folder, name in ((tiny_llama, "float32"), (tiny_llama, "bfloat16"), (changed, "float32"))
    )
    assert (full.precision, half.precision) == ("float32", "bfloat16")
    assert full.id == other.id == "local/tiny-llama"
    assert len({full.identity_sha256, half.identity_sha256, other.identity_sha256}) == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dtype": "int3"}, r"--dtype int3 .* have: float32"),
        ({"device": "abacus"}, "use cpu, cuda"),
        ({"device": "meta"}, "--device meta cannot be used"),
        ({"revision": "main"}, "has no revision"),
        ({"name": "baseline/uniform"}, "'baseline/' is reserved for the baselines"),
    ],
)
def test_options_that_cannot_be_met_are_refused(tiny_llama: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_backend(str(tiny_llama), BackendOptions(**options))


@pytest.mark.slow
def test_a_run_with_a_language_model_is_scored_and_valid(tiny_llama: Path, tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", {"type2": made_items(6)})
    selection = select(dataset, read_manifest(dataset), "type2")
    finished = run(
        Plan(selection, TASK, prompt_of(TASK, "mcq2-v1")),
        open_backend(str(tiny_llama), BackendOptions(device="cpu")),
        RunOptions(root=tmp_path / "runs", command="test"),
    )
    result, records = read_run(finished.folder)
    assert result.counts.scored == len(records) == 12
    assert result.model.revision is not None
    assert result.model.revision.startswith("sha256:")
    assert result.environment.packages["transformers"] == transformers.__version__
    assert json.loads((finished.folder / "result.json").read_text())["usage"]["n_requests"] == 24


def test_not_a_number_is_a_failure_of_the_request(tiny_llama: Path) -> None:
    backend = open_backend(str(tiny_llama), BackendOptions(device="cpu"))
    with torch.no_grad():
        backend.network.lm_head.weight.fill_(float("nan"))
    (answer,) = all_answers_of(backend, requests_of("intrinsic-v1", 1)[:1])
    assert answer.status == "failed"
    assert answer.error == "a log-probability is NaN in float32; use --dtype float32 or bfloat16"


def test_the_arguments_open_the_same_model_and_hold_no_path(tiny_llama: Path) -> None:
    backend = open_backend(str(tiny_llama), BackendOptions(device="cpu", name="acme/tiny"))
    assert backend.model.id == "acme/tiny"
    assert backend.arguments == ("--model tiny-llama", "--name acme/tiny", "--dtype float32", "--device cpu")


SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
DECODERS = {
    "Llama": SIZES,
    # Its tokens meet in the products of experts, in groups that depend on all of them.
    "Olmoe": SIZES | {"num_experts": 8, "bos_token_id": 0, "eos_token_id": 1},
    # Without a mask: state-space layers.
    "Mamba": {"hidden_size": 32, "num_hidden_layers": 2},
    # Encoders by name, made causal.
    "Bert": SIZES | {"is_decoder": True},
}


def made(kind: str, settings: dict[str, Any], scale: float, dtype: str) -> Any:
    torch.manual_seed(5)
    config = getattr(transformers, f"{kind}Config")(vocab_size=300, **settings)
    config.initializer_range = scale
    network = transformers.AutoModelForCausalLM.from_config(config)
    return network.to(getattr(torch, dtype)).eval()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_encoders_are_found_out_however_small_their_effects(dtype: str) -> None:
    for scale in (0.02, 0.2):
        assert looks_ahead(made("Bert", SIZES, scale, dtype)), scale


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", sorted(DECODERS))
def test_causal_models_pass_in_every_precision(kind: str, dtype: str) -> None:
    for scale in (0.02, 0.2):
        assert not looks_ahead(made(kind, DECODERS[kind], scale, dtype)), scale


def test_rounding_that_depends_on_other_texts_is_no_look_ahead(tmp_path: Path) -> None:
    network = transformers.AutoModelForCausalLM.from_pretrained(save_tiny_llama(tmp_path), dtype=torch.bfloat16).eval()
    calls = [0]

    def rounded(_module: Any, _args: Any, output: Any) -> Any:
        # As if each pass added up in another order, down to the last bit of bfloat16.
        calls[0] += 1
        torch.manual_seed(calls[0])
        output.logits = output.logits * (1 + torch.randn_like(output.logits) / 256)
        return output

    network.register_forward_hook(rounded)
    assert not looks_ahead(network)
    assert calls[0] == 7


def test_a_model_of_few_positions_and_tokens_can_be_probed() -> None:
    small = {"vocab_size": 9, "n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 4}
    config = transformers.GPT2Config(**small, bos_token_id=0, eos_token_id=1)
    assert not looks_ahead(transformers.AutoModelForCausalLM.from_config(config).eval())
