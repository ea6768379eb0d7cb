"""Scorers of texts: what they say, who they are, and what they refuse."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from biasboard.ground.errors import ConfigError
from evaluators.models.model_files import folder_revision
from evaluators.scorer import NONE, REFERENCE, named_scorers, open_scorers, quick_scorers
from evaluators.scorers import classifier, judge, lexicon, sentence_embedding, vader
from schemas.lexicon import pronoun_families
from schemas.lexicon.pronoun_template import parse
from tests.evaluators.fake_endpoint import MODEL, FakeEndpoint, Received, save_tokenizer
from tests.evaluators.made_data import save_tiny_llama
from tests.evaluators.made_tokenizers import save_trained

TEXTS = (
    "Kim sold the car. It was a wonderful day!",
    "A dull report.",
    "The weather turned awful, and nobody was happy about it at all, least of all the two children.",
)


def scored(scorer: Any, texts: tuple[str, ...] = TEXTS) -> np.ndarray[Any, Any]:
    found = dict(scorer.score(texts))
    assert sorted(found) == list(range(len(texts)))
    return np.array([found[index] for index in range(len(texts))])


def test_command_lines_name_sets_kinds_models_and_revisions_of_what_metrics_read() -> None:
    (wanted,) = named_scorers(["toxicity=classifier:folder@home/model@2026-11"])
    assert wanted == ("toxicity", "classifier", "folder@home/model", "2026-11")
    assert [wanted.kind for wanted in named_scorers([REFERENCE])] == ["sentiment", "toxicity", "embedding"]
    assert named_scorers([NONE]) == ()
    # What is named takes the place of its kind in a set, wherever it stands.
    mixed = named_scorers(["toxicity=classifier", "default"])
    assert {wanted.kind: wanted.name for wanted in mixed} == {
        "sentiment": "vader",
        "toxicity": "classifier",
        "embedding": "sentence_embedding",
    }
    # Only kinds that metrics read are opened, and a named one that nothing reads is an error.
    for given in (None, ["default"]):
        assert [scorer.identity.kind for scorer in open_scorers(given, {"toxicity"}).scorers] == ["toxicity"]
    assert open_scorers(None, set()) == ((), ())
    with pytest.raises(ConfigError, match="--scorer sentiment=vader: no metric reads sentiment; leave it out"):
        open_scorers(["default", "sentiment=vader"], {"toxicity"})
    assert [scorer.identity.kind for scorer in quick_scorers({"sentiment", "embedding"})] == ["sentiment"]


def test_vader_takes_seconds_for_emojis_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = vader.open_scorer("sentiment", None, None)
    analyser = scorer._analyser
    scored: list[str] = []

    def polarity_scores(text: str) -> dict[str, float]:
        scored.append(text)
        return {"compound": 1.0}

    monkeypatch.setattr(analyser, "polarity_scores", polarity_scores)
    assert list(scorer.score(["\N{GRINNING FACE}" * 5_000, "so " * 1_666])) == [(0, (1.0,)), (1, (1.0,))]
    assert "".join(scored[:-1]) == "\N{GRINNING FACE}" * 5_000
    assert scored[-1] == "so " * 1_666
    # Each is replaced by its name, and the time grows with the square of the characters.
    assert max(sum(len(analyser.emojis.get(sign, " ")) for sign in part) for part in scored) <= 5_000


def test_vader_takes_the_mean_over_sentences() -> None:
    scorer = vader.open_scorer("sentiment", None, None)
    (both, one, other) = scored(scorer, ("It was wonderful! It was awful.", "It was wonderful!", "It was awful."))[:, 0]
    assert both == pytest.approx((one + other) / 2)
    assert one > 0.5 > -0.4 > other
    # Ten times the same sentence says no more than once; the sum that VADER takes would run to 1.
    (many,) = scored(scorer, ("It was fine. " * 10,))[:, 0]
    assert many == pytest.approx(scored(scorer, ("It was fine.",))[0, 0])
    assert scorer.identity.label == "vader-sentences-3.3.2"
    whole = vader.open_scorer("sentiment", "whole", None)
    (ten, one) = scored(whole, ("It was fine. " * 10, "It was fine."))[:, 0]
    assert ten > 0.9 > one == pytest.approx(scored(scorer, ("It was fine.",))[0, 0])
    assert whole.identity.label == "vader-whole-3.3.2"


def test_the_lexicon_matches_words_phrases_and_endings_alike_in_every_family() -> None:
    clean = ("", "Scunthorpe is a town in Lincolnshire.", "Pass the cocktail, the assassin fled, a classic.", "hello")
    assert {lexicon.toxicity(text) for text in clean} == {0.0}
    assert lexicon.toxicity("What an IDIOT") == lexicon.toxicity("idiotic") == pytest.approx(0.5)
    # A threat, and the word in it: 1 - (1 - .8) (1 - .2).
    assert lexicon.toxicity("I\N{RIGHT SINGLE QUOTATION MARK}ll  kill it") == pytest.approx(0.84)
    # The same word twice counts once, another one adds.
    assert lexicon.toxicity("idiot, idiot") == lexicon.toxicity("idiot")
    assert 1 > lexicon.toxicity("idiot, moron") > lexicon.toxicity("idiot")
    template = "{Nom} {is|are} an idiot, and {pos} friends will kill {acc}; it is {psi}, and {nom} hurt {ref}."
    assert len({lexicon.toxicity(parse(template).fill(family)) for family in pronoun_families()}) == 1
    forms = [form for each in pronoun_families().values() for form in {*each.forms.values(), *each.gifi_repo.values()}]
    assert {lexicon.toxicity(f"{form} {form}.") for form in forms} == {0.0}


def save_classifier(folder: Path, labels: dict[int, str], problem: Any) -> Path:
    """A tiny text classifier of random weights."""
    import torch
    import transformers

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    texts = ["kim sold the car a dull report was it day"] * 2
    fast = save_trained(folder, "words", texts, special, size=0, pad_token="[PAD]", unk_token="[UNK]")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    named = {"id2label": labels, "label2id": {label: n for n, label in labels.items()}, "problem_type": problem}
    more = {"vocab_size": len(fast), "initializer_range": 2.0, "max_position_embeddings": 128}
    config = transformers.BertConfig(**{**sizes, **named, **more})
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def logits_of(folder: Path, text: str) -> np.ndarray[Any, Any]:
    import torch
    import transformers

    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return np.asarray(model(**tokenizer(text, return_tensors="pt")).logits[0].double().numpy())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["vader"], "--scorer vader: give default, reference, none or KIND=NAME"),
        (["toxicity=lexicon", "toxicity=classifier"], "two scorers of kind toxicity"),
        (["toxicity=lexicon:@2"], "a revision belongs to a model; give KIND=NAME:MODEL@REVISION"),
        (["sentiment=afinn"], "scorer 'afinn' does not exist; have: classifier"),
        (["toxicity=vader"], "scorer 'vader' gives no toxicity; it gives: sentiment"),
        (["sentiment=vader:large"], "has one lexicon, no model 'large'"),
        (["toxicity=lexicon:large"], "has one list, no model 'large'"),
        (["embedding=sentence_embedding:./none"], "embedding model folder './none' does not exist"),
    ],
)
def test_bad_names_are_errors_with_a_remedy(given: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        open_scorers(given)


@pytest.mark.slow
def test_the_packaged_encoder_is_mean_pooling_of_its_tokens(tmp_path: Path) -> None:
    """An oracle that pools by hand, one text at a time."""
    import torch
    import transformers

    scorer = sentence_embedding.open_scorer("embedding", None, None)
    long = "word after word " * 200
    found = scored(scorer, (*TEXTS, long, long + "and an end that is cut off"))
    assert scorer.identity.label == "all-minilm-l6-v2-6434feb240a6"
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-6)
    tokenizer = transformers.AutoTokenizer.from_pretrained(scorer._location)
    model = transformers.AutoModel.from_pretrained(scorer._location).eval()
    for text, vector in zip((*TEXTS, long), found, strict=False):
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt", truncation=True, max_length=256)).last_hidden_state
        pooled = states[0].mean(dim=0)
        assert vector == pytest.approx((pooled / pooled.norm()).numpy(), abs=1e-5)
    assert found[3] == pytest.approx(found[4], abs=1e-6)
    # Equal files have one name, and another pooling has another.
    folder = shutil.copytree(scorer._location, tmp_path / "my-copy")
    assert sentence_embedding.open_scorer("embedding", str(folder), None).identity == scorer.identity
    (config,) = folder.glob("*_Pooling/config.json")
    config.write_text(json.dumps({"word_embedding_dimension": 384, "pooling_mode": "cls"}))
    other = sentence_embedding.open_scorer("embedding", str(folder), None).identity
    assert other.name == "my-copy"
    assert other.revision != scorer.identity.revision


@pytest.mark.slow
def test_a_sentiment_classifier_gives_probabilities_by_label(tmp_path: Path) -> None:
    labels = {0: "Positive", 1: "negative", 2: "neutral"}
    folder = save_classifier(tmp_path / "tone_model", labels, "single_label_classification")
    scorer = classifier.open_scorer("sentiment", str(folder), None)
    for text, values in zip(TEXTS, scored(scorer), strict=True):
        exponents = np.exp(logits_of(folder, text))
        positive, negative, neutral = exponents / exponents.sum()
        assert values == pytest.approx([negative, neutral, positive], abs=1e-5)
    assert (scorer.identity.name, len(scorer.identity.revision)) == ("tone-model", 12)
    wrong = json.loads((folder / "config.json").read_text())
    wrong["id2label"] = {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}
    (folder / "config.json").write_text(json.dumps(wrong))
    again = classifier.open_scorer("sentiment", str(folder), None)
    assert again.identity.revision != scorer.identity.revision
    with pytest.raises(ConfigError, match=r"has the labels label_0, .*, sentiment needs negative, neutral, positive"):
        list(again.score(TEXTS))


@pytest.mark.slow
def test_a_toxicity_classifier_of_several_labels_is_not_normalised_over_them(tmp_path: Path) -> None:
    two = save_classifier(tmp_path / "two", {0: "fine", 1: "toxic"}, "single_label_classification")
    exponents = [np.exp(logits_of(two, text)) for text in TEXTS]
    shares = [float(each[1] / each.sum()) for each in exponents]
    assert scored(classifier.open_scorer("toxicity", str(two), None))[:, 0] == pytest.approx(shares, abs=1e-5)

    labels = {0: "insult", 1: "toxicity", 2: "threat"}
    folder = save_classifier(tmp_path / "model", labels, "multi_label_classification")
    # The last has more words than the model has positions: cut off, not broken.
    found = scored(classifier.open_scorer("toxicity", str(folder), None), (*TEXTS, "kim sold the car " * 300))
    by_hand = [1 / (1 + np.exp(-logits_of(folder, text)[1])) for text in TEXTS]
    assert found[:-1, 0] == pytest.approx(by_hand, abs=1e-5)


@pytest.mark.slow
def test_regard_is_the_probability_of_positive_less_that_of_negative(tmp_path: Path) -> None:
    labels = {0: "Negative", 1: "neutral", 2: "positive", 3: "other"}
    folder = save_classifier(tmp_path / "model", labels, "single_label_classification")
    of_all = classifier.open_scorer("regard", str(folder), None)
    pipeline = of_all._load()
    outputs = [{one["label"]: one["score"] for one in pipeline(text, top_k=None)} for text in TEXTS]
    expected = [output["positive"] - output["Negative"] for output in outputs]
    assert scored(of_all)[:, 0] == pytest.approx(expected, abs=1e-5)
    with pytest.raises(ConfigError, match="regard=classifier: has no default model; name one"):
        classifier.open_scorer("regard", None, None)


@pytest.mark.slow
def test_a_judge_is_asked_in_both_orders_and_may_decline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai", reason="the extra openai is not installed")
    texts = ("She was kind.", "He was rude.", "They left.", "A secret.")
    orders = (("very negatively", "very positively"), ("very positively", "very negatively"))

    def judged(received: Received, answer: dict[str, Any]) -> dict[str, Any]:
        prompt = str(received.body.get("messages", [{}])[-1].get("content", ""))
        wanted = {"kind": "very positively", "rude": "very negatively"}
        side = next((side for word, side in wanted.items() if word in prompt), None)
        lines = prompt.splitlines()
        letter = next((line[0] for line in lines if side is not None and line[3:] == side), "A")
        refuses = "secret" in prompt and f"A. {orders[0][0]}" in lines
        answer["choices"][0]["message"]["content"] = "I'm sorry, but I can't judge that." if refuses else f"{letter}."
        return answer

    tokenizer = Tokenizer.from_file(str(save_tokenizer(tmp_path / "tokenizer") / "tokenizer.json"))
    with FakeEndpoint(tokenizer, serves=frozenset({"chat", "models"}), alter=judged) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        scorer = judge.open_scorer("regard", MODEL, None)
        found = dict(scorer.score(texts))
    # Who always takes the first answer contradicts itself, and what is declined once has no regard.
    assert found == {0: (1.0, 1.0), 1: (-1.0, -1.0), 2: (-1.0, 1.0)}
    assert (scorer.identity.kind, scorer.identity.name) == ("regard", "judge-model")
    assert scorer.identity.revision.startswith("endpoint-")
    with pytest.raises(ConfigError, match="regard=judge: needs a model; give regard=judge:MODEL"):
        judge.open_scorer("regard", None, None)


@pytest.mark.slow
def test_a_local_model_judges_as_its_weights_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    folder = save_tiny_llama(tmp_path / "model")
    scorer = judge.open_scorer("regard", str(folder), None)
    assert scorer.identity.revision == folder_revision(folder).removeprefix("sha256:")[:12]
    # Random weights write nothing that can be read.
    assert dict(scorer.score(TEXTS)) == {}


def test_a_classifier_that_would_say_anything_is_refused(tmp_path: Path) -> None:
    import safetensors.torch

    labels = {0: "fine", 1: "toxic"}
    folder = save_classifier(tmp_path / "model", labels, "single_label_classification")
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    headless = {name: value for name, value in weights.items() if not name.startswith("classifier")}
    safetensors.torch.save_file(headless, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"lacks weights, such as classifier.bias, which would be random"):
        list(classifier.open_scorer("toxicity", str(folder), None).score(TEXTS))
    (folder / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(ConfigError, match=r"cannot be loaded: .*; name another model"):
        list(classifier.open_scorer("toxicity", str(folder), None).score(TEXTS))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(ConfigError, match="has no tokenizer"):
        classifier.open_scorer("toxicity", str(folder), None)
