"""Models that predict from both sides, told from causal ones by their logits alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backends.transformers.load import check_causal, looks_ahead
from tests.evaluators.made_data import save_tiny_llama

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
ENCODERS = {
    "Bert": SIZES,
    "Roberta": SIZES | {"max_position_embeddings": 40},
    "Electra": SIZES | {"embedding_size": 32},
}
DECODERS = {
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "bos_token_id": 0, "eos_token_id": 1},
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


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("kind", sorted(ENCODERS))
def test_encoders_are_found_out_however_small_their_effects(kind: str, dtype: str) -> None:
    for scale in (0.02, 0.2):
        assert looks_ahead(made(kind, ENCODERS[kind], scale, dtype)), scale


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("kind", sorted(DECODERS))
def test_causal_models_pass_in_every_precision(kind: str, dtype: str) -> None:
    for scale in (0.02, 0.2):
        assert not looks_ahead(made(kind, DECODERS[kind], scale, dtype)), scale


def test_the_effect_that_used_to_pass_is_small_and_the_refusal_names_the_way_out() -> None:
    network = made("Bert", ENCODERS["Bert"], 0.02, "float32")
    with torch.no_grad():
        one, other = (network(torch.tensor([[1, 2, last]])).logits[0, 1] for last in (3, 4))
    assert 1e-5 < (one - other).abs().max() < 0.05
    with pytest.raises(ConfigError) as error:
        check_causal(network)
    assert str(error.value) == (
        "BertLMHeadModel is no causal language model: a token changes what was predicted before it; give a decoder, or "
        "ask a masked model which text is likelier with --backend masked"
    )


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
