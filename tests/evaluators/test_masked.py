"""Masked models: pseudo-log-likelihoods against one pass for each token, and the way from a CSV file to a share."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from biasboard.ground.errors import ConfigError
from evaluators.backend import ChoiceRequest, GenerateRequest, Request
from evaluators.backend_options import BackendOptions
from evaluators.backends.masked import MaskedBackend, open_backend
from evaluators.backends.transformers.option_scoring import wanted_logprobs
from schemas.folders.run_folder import read_run
from tests import commands
from tests.evaluators.asking import all_answers_of, answers_of
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_masked import plain_pseudo_logprob, save_masked

torch = pytest.importorskip("torch", reason="the extra hf is not installed")

EXACT = 1e-5
ROUNDING = 2.0**-22
"""Relative: two units in the last place of float32, of which one at -146 is 1.5e-5 already."""


def choice(*options: str, prompt: str = "") -> ChoiceRequest:
    return ChoiceRequest(prompt=prompt, options=options, outcomes=tuple(map(str, range(len(options)))))


REQUESTS = [
    choice("The nurse thanked the guard.", "The doctor thanked the guard because she was kind."),
    choice("Souvenirs!", "A baker left souvenirs for electricians, and all electricians left."),
    choice(" He waited.", " She waited for the souvenirs", prompt="The people are not kind."),
    choice("a", "the", "kind"),
]


@pytest.fixture(scope="module", params=["Bert", "Roberta"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_masked(tmp_path_factory.mktemp("models") / "masked", request.param)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_masked(tmp_path_factory.mktemp("models") / "bert")


def opened(folder: Path, **options: Any) -> MaskedBackend:
    return open_backend(str(folder), BackendOptions(device="cpu", **options))


@pytest.mark.slow
@pytest.mark.parametrize("batch_tokens", [None, 60])
def test_scores_equal_one_pass_for_each_token(model: Path, batch_tokens: int | None) -> None:
    backend = opened(model, batch_tokens=batch_tokens)
    for request, answer in zip(REQUESTS, all_answers_of(backend, REQUESTS), strict=True):
        expected = [plain_pseudo_logprob(model, request.prompt, option) for option in request.options]
        assert answer.option_logprobs == pytest.approx([value for value, _ in expected], rel=ROUNDING, abs=EXACT)
        assert answer.option_token_counts == tuple(n for _, n in expected)
        assert answer.option_end_logprobs == (None,) * len(expected)


def test_an_answer_depends_on_no_other_that_is_missing_or_cannot_be_scored(bert: Path) -> None:
    backend = opened(bert, batch_tokens=400)
    answers = all_answers_of(backend, REQUESTS)
    # Longest first: the last request is in the last batch.
    assert answers_of(backend, REQUESTS, frozenset({0, 3})) == [answers[0], None, None, answers[3]]
    requests: list[Request] = [
        choice("a " * 70, "kind"),
        GenerateRequest(prompt="the nurse", max_tokens=3),
        choice("", "kind"),
        choice("kind", "the"),
    ]
    long, text, empty, whole = all_answers_of(backend, requests)
    assert (long.status, long.error) == ("failed", "the text takes 72 tokens, the model 64")
    assert text.error == "a masked model writes no text; take a prompt that scores whole texts"
    assert empty.error == "option '' has no tokens of its own"
    assert whole == all_answers_of(backend, requests[3:])[0]


def test_positions_of_roberta_begin_after_its_padding(tmp_path: Path) -> None:
    backend = opened(save_masked(tmp_path, "Roberta"))
    assert backend.context_tokens == 64
    assert all_answers_of(backend, [choice("a" + " a" * 61, "the")])[0].status == "answered"
    assert "takes 65 tokens, the model 64" in str(all_answers_of(backend, [choice("a" + " a" * 62, "the")])[0].error)


def test_what_is_no_masked_model_is_refused_in_one_line(bert: Path, tiny_llama: Path, tmp_path: Path) -> None:
    import transformers

    with pytest.raises(ConfigError, match=r"LlamaForCausalLM is no masked .*; ask it with --backend transformers$"):
        opened(tiny_llama)
    causal = tmp_path / "causal"
    shutil.copytree(bert, causal)
    config = transformers.BertConfig.from_pretrained(bert, is_decoder=True)
    transformers.BertForMaskedLM(config).save_pretrained(causal)
    with pytest.raises(ConfigError, match=r"BertForMaskedLM is no masked language model"):
        opened(causal)
    with pytest.raises(ConfigError, match=r"tokenizer '.*' has no mask token, which hides"):
        opened(bert, tokenizer=str(tiny_llama))
    with pytest.raises(ConfigError, match=r"has no use for --chat"):
        opened(bert, chat=True)


PAIRS = [
    (f"The {one} {what}.", f"The {other} {what}.", biased)
    for one, other in (("nurse", "guard"), ("doctor", "baker"), ("people", "town"))
    for what, biased in (("waited for souvenirs", "A"), ("are kind", "B"), ("left a town", "A"))
]


def built(folder: Path, text: str, *more: str) -> Path:
    (folder / "pairs.csv").write_text(text, encoding="utf-8")
    built = commands.run(
        *("-m", "biasboard", "build", "own_questions", "--input", folder / "pairs.csv", "--licence", "CC-BY-4.0"),
        *("--out", folder / "datasets/pairs", *more),
    )
    assert built.returncode == 0, built.stderr
    return folder / "datasets/pairs"


@pytest.mark.slow
def test_pairs_of_sentences_get_their_share_and_are_verified(bert: Path, tmp_path: Path) -> None:
    lines = ["One,Another,Biased", *(f"{one},{other},{biased}" for one, other, biased in PAIRS)]
    mapped = ("--map", "option1=One", "--map", "option2=Another", "--map", "stereotyped=Biased")
    dataset = built(tmp_path, "\n".join([*lines, ""]), *mapped)
    asked = ("run", "--dataset", dataset, "--backend", "masked", "--model", bert, "--out", tmp_path / "runs")
    told = evaluators(*asked)
    assert told.exit_code == 0, told.stderr
    assert "whole-pll-v1, because letters-v1 needs option_logprobs" in told.stderr
    (found,) = (tmp_path / "runs").rglob("result.json")
    result, records = read_run(found.parent)
    assert (result.signature.prompt, result.signature.scoring) == ("whole-pll-v1", "pseudo_log_likelihood")
    assert result.signature.normalisation == "sum"
    n = 0
    for one, other, biased in PAIRS:
        is_first = plain_pseudo_logprob(bert, "", one)[0] > plain_pseudo_logprob(bert, "", other)[0]
        n += is_first == (biased == "A")
    (share,) = [one for one in result.metrics if (one.name, one.group) == ("stereotype_rate", {})]
    assert share.value == pytest.approx(n / len(PAIRS))
    assert share.n == len(records) == len(PAIRS)
    verify = ("-m", "biasboard", "verify", found.parent, "--datasets", dataset.parent)
    commands.run(*verify, "--rerun", "4", "--model", bert, status=0, with_torch=True)


@pytest.mark.slow
def test_a_question_is_refused_in_one_line_before_anything_is_asked(bert: Path, tmp_path: Path) -> None:
    dataset = built(tmp_path, "Question,Option A,Option B,Answer\nWho left?,The nurse,The guard,A\n")
    asked = ("run", "--dataset", dataset, "--backend", "masked", "--model", bert, "--out", tmp_path / "runs")
    for prompt, said in (
        ("whole-pll-v1", "has a question, and prompt 'whole-pll-v1' asks which whole text is likelier"),
        ("letters-v1", "backend 'masked' cannot do option_logprobs, which prompt 'letters-v1' needs"),
    ):
        told = evaluators(*asked, "--prompt", prompt)
        assert told.exit_code == 1
        (line,) = [line for line in told.stderr.splitlines() if line.startswith("error")]
        assert said in line
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_pass_that_is_too_large_is_halved_and_a_single_text_fails(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opened(bert)
    whole = all_answers_of(backend, REQUESTS)
    most_rows = 3

    def limited(network: Any, arguments: Any, wanted: Any) -> list[float]:
        if len(arguments["input_ids"]) > most_rows:
            raise torch.OutOfMemoryError("too many rows")
        return wanted_logprobs(network, arguments, wanted)

    monkeypatch.setattr("evaluators.backends.masked.wanted_logprobs", limited)
    for answer, expected in zip(all_answers_of(backend, REQUESTS), whole, strict=True):
        assert answer.option_logprobs == pytest.approx(expected.option_logprobs, abs=EXACT)
    most_rows = 0
    assert {(answer.status, answer.error) for answer in all_answers_of(backend, REQUESTS)} == {
        ("failed", "out of memory on a single request; use a smaller model, --dtype bfloat16 or another device")
    }
