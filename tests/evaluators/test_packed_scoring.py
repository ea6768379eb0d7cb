"""Options scored by causal models, packed and plain, against single passes; and models that look ahead."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError
from evaluators.backend import Answers, BlockLimits, ChoiceRequest, GenerateRequest, Response, RunContext
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.load import looks_ahead
from evaluators.backends.transformers.option_scoring import MAX_TREE, prefix_groups, trees_of
from evaluators.backends.transformers.transformers_backend import open_backend
from evaluators.models.tokenizer import TokenRows, load_tokenizer
from evaluators.stores.store import ResponseStore
from evaluators.task import Asked, prompt_of
from evaluators.tasks.coreference.coreference_task import TASK
from schemas.folders.run_folder import read_run
from tests.evaluators.asking import all_answers_of, answers_of, groups_of
from tests.evaluators.logging_backend import ask
from tests.evaluators.made_data import made_items, save_tiny_llama, write_dataset
from tests.evaluators.made_tokenizers import save_trained
from tests.evaluators.single_passes import ROUNDING, plain_logprob

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")

TEXTS = [
    f"The {one} met the {other} near the {place}, and they talked about {thing}."
    for one in ("baker", "teacher", "pilot", "painter")
    for other in ("farmer", "judge", "singer")
    for place in ("river", "market", "old station")
    for thing in ("bread", "music", "the long winter")
]
HEADER = "Read the story and go on from where it stops. The answer is one of several, each as good as any other. "


def choice(prompt: str, *options: str) -> ChoiceRequest:
    return ChoiceRequest(prompt=prompt, options=options, outcomes=tuple(map(str, range(len(options)))))


def made_requests() -> list[ChoiceRequest]:
    """Shared header, shared contexts, options of one and of many tokens, and options that begin others."""
    return [
        choice(
            f"{HEADER}{text} Later the",
            " baker" if number % 2 else " farmer",
            " baker who talked about bread",
            " baker who talked about the long winter",
            " market",
        )
        for number, text in enumerate(TEXTS[:24])
    ] + [choice(TEXTS[30], " A", " B"), choice(TEXTS[30], " The market", " A")]


def save_model(folder: Path, network: str, *, tokenizer: str = "byte-level", **changes: Any) -> Path:
    """A tiny model of an architecture, with random weights."""
    special = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    kind: Any = "pieces" if tokenizer == "sentencepiece" else "bytes"
    single = None if tokenizer == "byte-level without BOS" else "<s> $A"
    texts = [HEADER, *TEXTS, "A B C"]
    fast = save_trained(
        folder, kind, texts, [*special.values()], size=400, single=single, knows_all_bytes=False, **special
    )
    config_class = getattr(transformers, f"{network}Config")
    sizes = {
        "vocab_size": len(fast),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 256,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    torch.manual_seed(3)
    config = config_class(**{**sizes, **changes})
    # Weights larger than usual, so that a wrong mask or position moves every number.
    config.initializer_range = 0.2
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def assert_equals_single_passes(
    folder: Path, *, scoring: str, requests: list[ChoiceRequest] | None = None, wanted: str | None = None
) -> list[Response]:
    requests = made_requests() if requests is None else requests
    backend = open_backend(str(folder), BackendOptions(device="cpu", batch_tokens=512, scoring=wanted))
    answers = all_answers_of(backend, requests)
    assert backend.runtime.settings["option_scoring"] == scoring, backend.runtime.settings
    network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for request, answer in zip(requests, answers, strict=True):
        assert answer.status == "answered", answer.error
        for option, logprob, end in zip(
            request.options, answer.option_logprobs, answer.option_end_logprobs, strict=True
        ):
            plain, plain_end = plain_logprob(network, tokenizer, request, option)
            assert [logprob, end] == pytest.approx([plain, plain_end], abs=ROUNDING)
    return answers


PACKED: dict[str, tuple[str, dict[str, Any]]] = {
    "tied embeddings": ("Llama", {"tie_word_embeddings": True}),
    "pieces of SentencePiece": ("Llama", {"tokenizer": "sentencepiece", "tie_word_embeddings": False}),
    "one key head": ("Qwen2", {"num_key_value_heads": 1}),
    "learned positions": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}),
    "window wider than any text": ("Mistral", {"sliding_window": 200, "num_key_value_heads": 2}),
    "experts": ("Mixtral", {"num_key_value_heads": 2, "num_local_experts": 2, "num_experts_per_tok": 1}),
    "biased projections": ("OPT", {"ffn_dim": 64, "word_embed_proj_dim": 32}),
}
PLAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "sliding window": ("Mistral", {"sliding_window": 8, "num_key_value_heads": 2}),
    "every other layer slides": ("Gemma2",
        {"sliding_window": 8, "num_key_value_heads": 2, "head_dim": 8, "query_pre_attn_scalar": 8}),
    "positions in the attention": ("Bloom", {"n_layer": 2, "n_head": 4}),
    "local layers": ("GPTNeo",
        {"num_layers": 2, "attention_types": [[["global", "local"], 1]], "window_size": 24, "num_heads": 4}),
    "state space": ("Mamba", {"state_size": 4}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PACKED, *PLAIN])
def test_packed_scoring_or_what_models_that_cannot_be_packed_fall_back_to_equals_single_passes(
    tmp_path: Path, name: str
) -> None:
    network, changes = (PACKED | PLAIN)[name]
    folder = save_model(tmp_path / "model", network, **changes)
    assert_equals_single_passes(folder, scoring="packed" if name in PACKED else "plain")
    if name in PLAIN:
        backend = open_backend(str(folder), BackendOptions(device="cpu", scoring="packed"))
        with pytest.raises(ConfigError, match=r"--scoring packed cannot be used: .*; leave it out"):
            answers_of(backend, made_requests())


@pytest.mark.slow
@pytest.mark.parametrize("scoring", ["packed", "plain"])
def test_tokens_that_span_a_prompt_and_its_options(tmp_path: Path, scoring: str) -> None:
    merging = save_tiny_llama(tmp_path / "merging", merge_words=True)
    answers = assert_equals_single_passes(merging, scoring=scoring, requests=requests_of(12), wanted=scoring)
    assert any(answer.n_moved_tokens for answer in answers), "this tokenizer merges no prompt with an option"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "llama", "Llama")


def test_a_model_that_takes_the_place_in_the_row_for_the_place_in_the_text_is_found_out(llama: Path) -> None:
    """Whatever its configuration says: positions are those of the row here, as if none had been given."""
    backend = open_backend(str(llama), BackendOptions(device="cpu"))
    # Long texts of their own, in which place and column agree, and then texts that share a beginning.
    lone = [choice(f"{number} {TEXTS[number]} {TEXTS[number + 20]}", " A", " B") for number in range(8)]
    shared = [choice(f"{HEADER} {word}", " The baker", " The market") for word in ("bread", "music", "river")]
    whole = all_answers_of(open_backend(str(llama), BackendOptions(device="cpu", scoring="plain")), [*lone, *shared])

    def forget_positions(_module: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if "position_ids" in kwargs:
            n_rows, width = kwargs["input_ids"].shape
            start = kwargs["attention_mask"].shape[-1] - width
            kwargs["position_ids"] = torch.arange(start, start + width)[None].expand(n_rows, width)
        return args, kwargs

    handle = backend.network.register_forward_pre_hook(forget_positions, with_kwargs=True)
    answers = all_answers_of(backend, [*lone, *shared])
    handle.remove()
    assert backend.runtime.settings["option_scoring"] == "plain"
    assert "differs by" in backend.runtime.settings["packed_scoring_left_out"]
    for one, other in zip(whole, answers, strict=True):
        assert other.option_logprobs == pytest.approx(one.option_logprobs, abs=ROUNDING)


@pytest.mark.slow
def test_half_precision_is_packed_where_rounding_alone_tells_both_ways_apart(llama: Path) -> None:
    backend = open_backend(str(llama), BackendOptions(device="cpu", dtype="bfloat16"))
    assert all(answer.status == "answered" for answer in all_answers_of(backend, made_requests()[-12:]))
    assert backend.runtime.settings["option_scoring"] == "packed"


def test_tokens_that_the_model_does_not_know_fail_alone(llama: Path, tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    tokenizer.add_tokens(["zzyzx"])
    tokenizer.save_pretrained(tmp_path / "larger")
    backend = open_backend(str(llama), BackendOptions(device="cpu", tokenizer=str(tmp_path / "larger")))
    text = GenerateRequest(prompt="The zzyzx", max_tokens=4)
    answers = all_answers_of(backend, [choice(TEXTS[0], " zzyzx", " The"), text, choice(TEXTS[0], " The", " A")])
    assert [answer.status for answer in answers] == ["failed", "failed", "answered"]
    assert all("name the tokenizer that it was trained with" in str(answer.error) for answer in answers[:2])


@pytest.mark.slow
def test_a_chat_template_gets_one_date_whatever_the_day(llama: Path, tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    tokenizer.chat_template = "{{ strftime_now('%d %B %Y') }} {{ messages[0]['content'] }} Answer:"
    tokenizer.save_pretrained(tmp_path / "dated")
    dated = load_tokenizer(str(tmp_path / "dated"), chat=True)
    expected = tokenizer("01 January 2025 The baker Answer:", add_special_tokens=False)["input_ids"]
    assert dated.context_ids("The baker") == expected
    plain = load_tokenizer(str(tmp_path / "dated"))
    assert (dated.chat_template_sha256 is None, plain.chat_template_sha256 is None) == (False, True)
    # The space before an option separates it from a prompt that it continues; an answer begins without.
    rows = dated.rows(choice("The baker", " The", " A"))
    assert not isinstance(rows, str)
    assert [dated.pretrained.decode(ids[rows.n_context :]) for ids in rows.ids] == ["The", "A"]


@pytest.mark.slow
def test_an_empty_context_is_scored_after_the_token_that_starts_a_text(llama: Path, tmp_path: Path) -> None:
    requests = [choice("", "The baker", "The judge", "A"), choice("", "A B", "B C")]
    for left_out, start in (((), "<s>"), (("bos_token",), "</s>")):
        without = without_tokens(tmp_path / f"without-{len(left_out)}", left_out)
        assert_equals_single_passes(without, scoring="packed", requests=requests)
        backend = open_backend(str(without), BackendOptions(device="cpu"))
        answers = all_answers_of(backend, requests)
        assert backend.runtime.settings["start_token"] == start
        assert {answer.n_prompt_tokens for answer in answers} == {1}
        tokenizer = load_tokenizer(str(without))
        longest = max(len(tokenizer.context_ids(option)) for option in requests[0].options)
        assert (backend.needed_tokens(requests)[0], tokenizer.count_tokens(requests).n_prompt) == (longest + 1, 2)
    # Of a tokenizer that begins texts itself, and of one without such a token.
    requests = [choice("", "The baker", "The judge")]
    assert_equals_single_passes(llama, scoring="packed", requests=requests)
    begun = open_backend(str(llama), BackendOptions(device="cpu"))
    all_answers_of(begun, requests)
    assert "start_token" not in begun.runtime.settings
    without = without_tokens(tmp_path / "without-any", ("bos_token", "eos_token"))
    (answer,) = all_answers_of(open_backend(str(without), BackendOptions(device="cpu")), requests)
    assert answer.status == "failed"
    assert str(answer.error).endswith("and the tokenizer has none for the start or the end of a text")


def without_tokens(folder: Path, left_out: Sequence[str]) -> Path:
    """A model whose tokenizer begins no text, and has no special token of some kinds."""
    save_model(folder, "Llama", tokenizer="byte-level without BOS")
    config = strict_json.read(folder / "tokenizer_config.json")
    assert isinstance(config, dict)
    strict_json.write(folder / "tokenizer_config.json", {key: config[key] for key in config if key not in left_out})
    (folder / "special_tokens_map.json").unlink(missing_ok=True)
    return folder


@pytest.mark.slow
def test_what_is_missing_gets_the_answer_of_the_whole_run(llama: Path) -> None:
    requests = made_requests()
    whole = all_answers_of(open_backend(str(llama), BackendOptions(device="cpu", batch_tokens=256)), requests)
    again = open_backend(str(llama), BackendOptions(device="cpu", batch_tokens=256))
    groups = groups_of(open_backend(str(llama), BackendOptions(device="cpu", batch_tokens=256)), requests)
    assert len(groups) > 2
    missing = frozenset(place for group in groups[1:] for place in group.responses)
    rest = answers_of(again, requests, missing)
    assert [rest[place] for place in sorted(missing)] == [whole[place] for place in sorted(missing)]
    assert all(rest[place] is None for place in groups[0].responses)


def test_too_little_memory_halves_batches_and_loses_nothing(llama: Path) -> None:
    backend = open_backend(str(llama), BackendOptions(device="cpu"))
    requests = made_requests()
    whole = all_answers_of(backend, requests)

    def at_most_three_rows(_module: Any, _args: Any, kwargs: dict[str, Any]) -> None:
        if kwargs["input_ids"].shape[0] > 3:
            raise torch.OutOfMemoryError("made to be out of memory")

    handle = backend.network.register_forward_pre_hook(at_most_three_rows, with_kwargs=True)
    small = all_answers_of(backend, requests)
    handle.remove()
    for one, other in zip(whole, small, strict=True):
        assert other.option_logprobs == pytest.approx(one.option_logprobs, abs=ROUNDING)


def test_a_stopped_run_goes_on_with_the_way_of_scoring_that_it_chose(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a comparison says on the requests that are left: a second half must not be computed in another way."""
    # Blocks are sorted by prompt: the longest texts are in the first of two.
    long = [choice(f"A {HEADER} {HEADER} {number} {TEXTS[number]}", " bread", " music") for number in range(10)]
    requests = [*long, *(choice(f"B {number} {TEXTS[number]}", " bread", " music") for number in range(10))]
    backend = open_backend(str(llama), BackendOptions(device="cpu"))
    backend.block_limits = BlockLimits(n_texts=20, n_characters=10**6)
    with ResponseStore(tmp_path / "store.sqlite", backend.model) as store:
        backend.begin(RunContext(tmp_path, 0.0, store.choices(), store.keep_choice))
        with closing(backend.ask(requests, frozenset(range(len(requests))))) as events:
            while not isinstance(next(events), Answers):
                pass
    assert backend.runtime.settings["option_scoring"] == "packed"

    def never_alike(*arguments: Any) -> str:
        return "it differs"

    monkeypatch.setattr("evaluators.backends.transformers.option_scoring.difference", never_alike)
    resumed = open_backend(str(llama), BackendOptions(device="cpu"))
    resumed.block_limits = backend.block_limits
    with ResponseStore(tmp_path / "store.sqlite", backend.model) as store:
        kept = store.choices()
        assert len(kept) == 1
        resumed.begin(RunContext(tmp_path, 0.0, kept, store.keep_choice))
        assert all(answer.status == "answered" for answer in all_answers_of(resumed, requests))
        assert len(store.choices()) == 2
    assert resumed.runtime.settings["option_scoring"] == "packed"
    resumed.begin(RunContext(tmp_path, 0.0, {}, lambda name, value: None))
    all_answers_of(resumed, requests)
    assert resumed.runtime.settings["option_scoring"] == "plain"


def rows_of(context: list[int], *options: list[int]) -> TokenRows:
    return TokenRows(tuple([*context, *option] for option in options), len(context), 0)


def test_long_headers_become_prefixes_and_contexts_that_go_on_together_one_tree_within_its_limit() -> None:
    # Two long headers, each with many endings, and a loose text; every request is in one group.
    headers = [list(range(40)), list(range(100, 160))]
    encoded = {
        number: rows_of([*headers[number % 2], 1000 + number % 7, 2000 + number], [1, 2], [1, 3], [4])
        for number in range(80)
    }
    groups = prefix_groups(encoded | {80: rows_of([5080, 7], [1], [2])})
    assert sorted(place for requests, _ in groups for place in requests) == list(range(81))
    assert {(n_prefix, len(requests)) for requests, n_prefix in groups} == {(40, 40), (60, 40), (0, 1)}
    # The last token of each context predicts the options, and is computed with them.
    equal = {number: rows_of([*headers[0], 7], [number], [1000]) for number in range(20)}
    assert prefix_groups(equal) == [(tuple(range(20)), 40)]
    sentence = list(range(30))
    encoded = {order: rows_of([*sentence, 50 + order], [1], [2]) for order in range(6)}
    assert trees_of(range(6), 0, encoded) == [(0, 1, 2, 3, 4, 5)]
    long = {order: rows_of([*sentence, *range(100 * order, 100 * order + 300)], [1], [2]) for order in range(3)}
    assert trees_of(range(3), 0, long) == [(0,), (1,), (2,)]
    assert MAX_TREE < 2 * 300 + 30


def requests_of(n_pairs: int) -> list[ChoiceRequest]:
    asked = Asked(prompt_of(TASK, "intrinsic-v1"))
    requests = [request for item in made_items(n_pairs) for request in TASK.requests(item, asked)]
    return [request for request in requests if isinstance(request, ChoiceRequest)]


def test_models_that_show_no_output_layer_score_the_same(tiny_llama: Path) -> None:
    backend = open_backend(str(tiny_llama), BackendOptions(device="cpu"))
    requests = requests_of(3)
    full = open_backend(str(tiny_llama), BackendOptions(device="cpu"))
    full.network.get_output_embeddings = lambda: None  # type: ignore[method-assign]
    for one, other in zip(all_answers_of(backend, requests), all_answers_of(full, requests), strict=True):
        assert one.option_logprobs == pytest.approx(other.option_logprobs, abs=ROUNDING)


def test_what_does_not_fit_or_is_no_number_fails_alone(tiny_llama: Path) -> None:
    backend = open_backend(str(tiny_llama), BackendOptions(device="cpu"))
    sound = requests_of(1)[0]
    long = ChoiceRequest(prompt="The guard waited. " * 80, options=(" a", " b"), outcomes=("guard", "nurse"))
    empty = ChoiceRequest(prompt="The guard", options=(" waited", ""), outcomes=("guard", "nurse"))
    answers = all_answers_of(backend, [long, sound, empty])
    assert [answer.status for answer in answers] == ["failed", "answered", "failed"]
    assert "tokens, the model 256" in str(answers[0].error)
    assert answers[2].error == "option '' has no tokens of its own"
    with torch.no_grad():
        backend.network.lm_head.weight.fill_(float("nan"))
    (answer,) = all_answers_of(backend, [sound])
    assert answer.status == "failed"
    assert answer.error == "a log-probability is NaN in float32; use --dtype float32 or bfloat16"


def test_another_precision_weight_or_insisted_way_is_another_model(tiny_llama: Path, tmp_path: Path) -> None:
    changed = save_tiny_llama(tmp_path / "tiny-llama", seed=1)
    full, half, plain, packed, other = (
        open_backend(str(folder), BackendOptions(device="cpu", dtype=name, scoring=way)).model
        for folder, name, way in (
            *((tiny_llama, "float32", None), (tiny_llama, "bfloat16", None), (tiny_llama, "float32", "plain")),
            *((tiny_llama, "float32", "packed"), (changed, "float32", None)),
        )
    )
    assert (full.precision, half.precision) == ("float32", "bfloat16")
    assert full.id == other.id == "local/tiny-llama"
    assert len({model.identity_sha256 for model in (full, half, plain, other)}) == 4
    assert packed.identity_sha256 == full.identity_sha256
    backend = open_backend(str(tiny_llama), BackendOptions(device="cpu", name="acme/tiny"))
    assert backend.model.id == "acme/tiny"
    assert backend.arguments == ("--model tiny-llama", "--name acme/tiny", "--dtype float32", "--device cpu")


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
    folder = ask(dataset, tmp_path / "runs", open_backend(str(tiny_llama), BackendOptions(device="cpu")))
    result, records = read_run(folder)
    assert result.counts.scored == len(records) == 12
    assert result.model.revision is not None
    assert result.model.revision.startswith("sha256:")
    assert result.environment.packages["transformers"] == transformers.__version__
    assert result.usage.n_requests == 24


SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
NETWORKS: dict[str, dict[str, Any]] = {
    "Llama": SIZES,
    # Its tokens meet in the products of experts, in groups that depend on all of them.
    "Olmoe": SIZES | {"num_experts": 8, "bos_token_id": 0, "eos_token_id": 1},
    # Without a mask: state-space layers.
    "Mamba": {"hidden_size": 32, "num_hidden_layers": 2},
    # Few positions and tokens.
    "GPT2": {"vocab_size": 9, "n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 4, "bos_token_id": 0,
        "eos_token_id": 1},
    # Encoders by name, made causal.
    "Bert": SIZES | {"is_decoder": True},
    "Bert, an encoder": SIZES,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", NETWORKS)
def test_encoders_are_found_out_however_small_their_effects_and_causal_models_pass(name: str, dtype: str) -> None:
    for scale in (0.02, 0.2):
        torch.manual_seed(5)
        kind = name.partition(",")[0]
        config = getattr(transformers, f"{kind}Config")(**{"vocab_size": 300, **NETWORKS[name]})
        config.initializer_range = scale
        network = transformers.AutoModelForCausalLM.from_config(config).to(getattr(torch, dtype)).eval()
        assert looks_ahead(network) == (name == "Bert, an encoder"), scale


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
