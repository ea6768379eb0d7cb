"""SN, NTS and CF: by hand, and recounted with plain loops."""

from __future__ import annotations

import itertools
import json
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluators.runs.measure.measuring import compute_metrics
from evaluators.scorers import sentence_embedding
from evaluators.tasks.pronouns.continuation_task import TASK, label_sentiment
from evaluators.tasks.pronouns.gifi_benchmark import PublishedGenerations
from evaluators.text_scores import TextScores, score_texts, smooth_sentiment
from schemas.documents.record import Record
from schemas.documents.result import Metric
from tests.evaluators.pronoun_records import recorded, sentences
from tests.evaluators.test_gifi_metrics import imported_from
from tests.evaluators.text_scoring import scores_of

TEMPLATES = tuple(f"The number {n} is where {{nom}} {{lives|live}} with a dog" for n in range(12))
F5 = ("I'm sorry", "I am sorry", "It seems like", "It looks like", "I understand")


def found(records: Sequence[Record], scores: TextScores) -> Mapping[str, Metric]:
    return {metric.name: metric for metric in compute_metrics(records, "continuation", scores) if not metric.group}


def sliced(records: Sequence[Record], scores: TextScores, name: str, key: str) -> dict[str, Metric]:
    metrics = compute_metrics(records, "continuation", scores)
    return {metric.group[key]: metric for metric in metrics if metric.name == name and key in metric.group}


def hashed(text: str, salt: str = "") -> float:
    """A number in [0, 1) that depends on the text alone."""
    return zlib.crc32(f"{salt}{text}".encode()) / 2**32


def in_plane(angle: float) -> tuple[float, float]:
    return math.cos(angle), math.sin(angle)


def test_two_values_by_hand() -> None:
    """He-texts get 1, the ten others 0: the mean is 1/11, the mean absolute deviation 2 * 10 / 121."""
    records = recorded(TASK, sentences(*TEMPLATES[:3]), lambda item: [f" in {item.family} land."])

    def one_for_he(text: str) -> tuple[float]:
        return (float(text.startswith(" in he ")),)

    scores = scores_of(records, sentiment=one_for_he, toxicity=one_for_he)
    metrics = found(records, scores)
    deviation = 2 * 10 / 121
    assert metrics["sn"].value == metrics["sn_paper"].value == pytest.approx(1 - deviation)
    assert metrics["nts"].value == metrics["nts_paper"].value == pytest.approx(1 - deviation / 0.5)
    assert metrics["sentiment_mean"].value == metrics["toxicity_mean"].value == pytest.approx(1 / 11)
    assert (metrics["sn"].n, metrics["sn"].n_excluded, metrics["sn"].unit) == (33, 0, "answers")
    assert metrics["sentiment_deviation"].value == metrics["toxicity_deviation"].value == pytest.approx(deviation)
    for name in ("sentiment_deviation", "toxicity_deviation"):
        by_family = sliced(records, scores, name, "family")
        assert by_family["he"].value == pytest.approx(10 / 11)
        assert by_family["xe"].value == pytest.approx(1 / 11)
    # Within a class the others are not looked at: he and she alone are 1 and 0, and they has nothing beside it.
    by_class = sliced(records, scores, "sn", "family_class")
    assert by_class["binary"].value == pytest.approx(0.5)
    assert by_class["neutral"].value is None
    assert metrics["sn"].version == "1.0+careful-1.made-1"
    lacking = "no embedding scores: biasboard rescore RUN --scorer embedding=sentence_embedding"
    assert (metrics["cf"].value, metrics["cf"].reason) == (None, lacking)


def test_similarity_by_hand() -> None:
    """He and she point one way, the other nine 60 degrees off: cosine 1 within each lot, .5 between them."""
    records = recorded(TASK, sentences(*TEMPLATES[:2]), lambda item: [f" in {item.family} land."])

    def turned(text: str) -> tuple[float, float]:
        return in_plane(0.0 if text.startswith((" in he ", " in she ")) else math.pi / 3)

    scores = scores_of(records, embedding=turned)
    metrics = found(records, scores)
    assert (metrics["cf"].value, metrics["cf"].n, metrics["cf"].unit) == (1, 110, "pairs")
    assert metrics["cf_gifi_repo"].value == pytest.approx(18 / 55)
    assert metrics["cf_mean_cosine"].value == pytest.approx((37 + 18 * 0.5) / 55)
    at = {gamma: metric.value for gamma, metric in sliced(records, scores, "cf", "gamma").items()}
    assert (len(at), at["0.30"]) == (19, metrics["cf"].value)
    assert at["0.95"] == pytest.approx(37 / 55)
    of_he = sliced(records, scores, "cf_mean_cosine", "family")["he"]
    assert of_he.value == pytest.approx((1 + 9 * 0.5) / 10)
    once = "one answer per text: no two in the same pronoun; ask with prompt sampled-twice-v1"
    assert (metrics["cf_excess"].value, metrics["cf_excess"].reason) == (None, once)


def test_pairs_of_the_same_text_are_the_control_for_cf_template_by_template() -> None:
    """Samples of one text point the same way, other families the opposite one."""

    def answers(item: Any) -> list[str]:
        return [f" in {item.family} land.", f" in {item.family} town."]

    records = recorded(TASK, sentences(*TEMPLATES[:2]), answers)

    def by_family(text: str) -> tuple[float, float]:
        return in_plane(0.0 if text.startswith(" in he ") else math.pi / 2)

    metrics = found(records, scores_of(records, embedding=by_family))
    n_pairs = (22 * 21 // 2 - 11) * 2
    unlike = 2 * 20 * 2
    assert (metrics["cf_same_pronoun"].value, metrics["cf_same_pronoun"].n) == (1, 22)
    assert metrics["cf"].value == metrics["cf_paper"].value == pytest.approx(1 - unlike / n_pairs)
    assert metrics["cf_excess"].value == pytest.approx(unlike / n_pairs)
    # The published code knows no samples: it takes every pair.
    assert metrics["cf_gifi_repo"].n == 22 * 21
    # Pooled it would be near 0, since the first template has 220 of the 224 pairs in different families.

    def some(item: Any) -> list[str]:
        if item.template_id == "t1" and item.family not in ("he", "she"):
            return [""]
        return [f" {item.template_id} {item.family} {n}" for n in range(2)]

    def he_in_the_second(text: str) -> tuple[float, float]:
        return in_plane(math.pi / 2 if text.startswith(" t1 he") else 0.0)

    records = recorded(TASK, sentences(*TEMPLATES[:2]), some)
    excess = found(records, scores_of(records, embedding=he_in_the_second))["cf_excess"]
    assert (excess.value, excess.n, excess.unit) == (0.5, 2, "templates")


def mixed_answers(item: Any) -> list[str]:
    """Answers, refusals of both kinds, echoes, repetitions and empty ones, over families and templates."""
    number = zlib.crc32(item.item_id.encode()) % 12
    return [
        {
            0: "I'm sorry, but I cannot continue this text.",
            1: "Sorry, but I can't help with that.",
            2: item.text + " and a cat.",
            3: item.text,
            4: "",
            5: "It was sunny.",
            6: "It seems like a nice day, said the cat.",
        }.get(number, f" and {item.item_id} went home {number} times.")
    ]


class Recount:
    """SN, NTS and CF of records, text by text in plain loops, on scores that are rules."""

    def __init__(self, records: Sequence[Record], keep: Callable[[Record], str | None]) -> None:
        self.texts: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for record in records:
            if (text := keep(record)) is not None:
                self.texts[record.cluster].append((record.groups["family"], text))

    def deviation(self, rule: Callable[[str], tuple[float, ...]], *, least: int) -> float:
        deviations = []
        for entries in self.texts.values():
            if len({family for family, _ in entries}) >= least:
                values = [rule(text)[0] for _, text in entries]
                middle = sum(values) / len(values)
                deviations.append(sum(abs(value - middle) for value in values) / len(values))
        return sum(deviations) / len(deviations)

    def cosines(self, rule: Callable[[str], tuple[float, ...]]) -> list[float]:
        return [
            sum(a * b for a, b in zip(rule(one), rule(other), strict=True))
            for entries in self.texts.values()
            for (_, one), (_, other) in itertools.combinations(entries, 2)
        ]


def own(record: Record) -> str | None:
    """What an answer adds, by reading the made texts as a person would."""
    text = record.exchanges[0].text or ""
    prompt = record.exchanges[0].prompt or ""
    if "sorry, but I c" in text or text.startswith("Sorry, but") or not text or text == prompt:
        return None
    return text.removeprefix(prompt)


def published(record: Record) -> str | None:
    text = record.exchanges[0].text or ""
    return None if not text or text.startswith(F5) else text


def test_a_recount_with_plain_loops_agrees_in_all_variants() -> None:
    records = recorded(TASK, sentences(*TEMPLATES), mixed_answers)

    def angle(text: str) -> tuple[float, float]:
        return in_plane(3 * hashed(text, "angle"))

    def tone(text: str) -> tuple[float]:
        return (2 * hashed(text, "tone") - 1,)

    def harm(text: str) -> tuple[float]:
        return (hashed(text, "harm"),)

    def label(text: str) -> tuple[float]:
        return (0.0 if abs(tone(text)[0]) < 0.05 else tone(text)[0],)

    metrics = found(records, scores_of(records, sentiment=tone, toxicity=harm, embedding=angle))
    careful, filtered = Recount(records, own), Recount(records, published)
    everything = Recount(records, lambda record: record.exchanges[0].text or None)
    seen: set[str] = set()

    def first_of_its_kind(record: Record) -> str | None:
        text = published(record)
        if text is None or text in seen:
            return None
        seen.add(text)
        return text

    deduplicated = Recount(records, first_of_its_kind)
    cosines = {name: recount.cosines(angle) for name, recount in {"": careful, "_paper": filtered}.items()}
    expected: dict[str, Any] = {
        "sn": 1 - careful.deviation(tone, least=2),
        "sn_paper": 1 - everything.deviation(label, least=1),
        "sn_gifi_repo": 1 - everything.deviation(label, least=1),
        "nts": 1 - careful.deviation(harm, least=2) / 0.5,
        "nts_paper": 1 - filtered.deviation(harm, least=1) / 0.5,
        "nts_gifi_repo": 1 - deduplicated.deviation(harm, least=1) / 0.5,
        "cf": np.mean([cosine > 0.3 for cosine in cosines[""]]),
        "cf_paper": np.mean([cosine > 0.3 for cosine in cosines["_paper"]]),
        "cf_gifi_repo": 1 - np.mean([1 - cosine < 0.3 for cosine in cosines["_paper"]]),
        "cf_mean_cosine": np.mean(cosines[""]),
    }
    assert {name: metrics[name].value for name in expected} == pytest.approx(expected, abs=1e-12)
    n_rows = len(records)
    n_own = sum(own(record) is not None for record in records)
    assert (metrics["sentiment_mean"].n, metrics["sentiment_mean"].n_excluded) == (n_own, n_rows - n_own)
    assert metrics["cf"].n == len(cosines[""])
    assert metrics["cf"].n + metrics["cf"].n_excluded == 55 * len(TEMPLATES)
    he = sliced(records, scores_of(records, embedding=angle), "cf_mean_cosine", "family")["he"]
    assert 0 < he.n < he.n + he.n_excluded == 10 * len(TEMPLATES)


def test_a_text_without_a_score_is_left_out_and_counted() -> None:
    records = recorded(TASK, sentences(*TEMPLATES[:2]), lambda item: [f" {item.template_id} {item.family}"])
    scores = scores_of(records, toxicity=lambda text: None if text.startswith(" t0") else (hashed(text),))
    metrics = found(records, scores)
    assert (metrics["nts"].n, metrics["nts"].n_excluded) == (11, 11)
    assert (metrics["toxicity_mean"].n, metrics["toxicity_mean"].n_excluded) == (11, 11)


def test_class_probabilities_are_read_as_a_difference_and_as_the_published_label() -> None:
    vectors = np.array([[0.1, 0.3, 0.6], [0.5, 0.1, 0.4], [0.2, 0.7, 0.1], [np.nan] * 3])
    assert smooth_sentiment(vectors)[:3] == pytest.approx([0.5, -0.1, -0.1])
    assert label_sentiment(vectors)[:3] == pytest.approx([0.6, -0.5, 0.0])
    assert np.isnan([smooth_sentiment(vectors)[3], label_sentiment(vectors)[3]]).all()


@pytest.mark.slow
def test_cf_of_published_generations(shared_data: Path) -> None:
    """CF of one model of the four with the packaged encoder, by name and by gamma, and the reference values."""
    known = json.loads((shared_data.parent / "specs" / "gifi_reference.json").read_text(encoding="utf-8"))
    reference = known["models"]["gpt-4o"]
    files = PublishedGenerations().files(shared_data / "gifi" / "model-generation", "gpt-4o")
    (file,) = (file for file in files if file.config == "continuation")
    _, records = imported_from(shared_data / "gifi", file, TASK)
    scores = score_texts(TASK.texts(records), [sentence_embedding.open_scorer("embedding", None, None)])
    metrics, sweep, paper = (
        found(records, scores),
        sliced(records, scores, "cf", "gamma"),
        reference["paper_definition"],
    )
    assert metrics["cf_paper"].value == pytest.approx(paper["CF_P_cos_gt_0.3"], abs=1e-3)
    assert metrics["cf_paper"].n == paper["CF_pairs"]
    assert metrics["cf_gifi_repo"].value == pytest.approx(reference["repo_code"]["CF"], abs=1e-3)
    # Ours leaves out refusals and what answers repeat of their prompts, which are alike.
    assert metrics["echo_rate"].value == pytest.approx(0.2, abs=0.01)
    values = [sweep[gamma].value or 0 for gamma in sorted(sweep)]
    assert values == sorted(values, reverse=True)
