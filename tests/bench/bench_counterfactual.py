"""What CF costs: every text encoded once and all pairs from one product, against encoding both texts of every pair.

CPU time of the whole process, side by side in one run, on published answers where they are at hand and on made ones
elsewhere. With the published answers the values of whole files are compared with the reference too: ``make bench
ARGS='-k counterfactual'`` takes some minutes for the four models.
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluators.metric import TableSource
from evaluators.scorers import sentence_embedding
from evaluators.tasks.pronouns.answer_words import own_words
from evaluators.tasks.pronouns.continuation_metrics import CF
from evaluators.tasks.pronouns.continuation_task import TASK, ContinuationTable
from evaluators.tasks.pronouns.published_generations import PublishedGenerations
from evaluators.tasks.pronouns.text_readings import answers_of
from evaluators.text_scores import score_texts
from schemas.documents.record import Record
from tests.evaluators.pronoun_records import recorded, sentences
from tests.evaluators.test_gifi_metrics import imported_from
from tests.evaluators.test_neutrality_and_counterfactual import found, sliced

MODELS = ("gpt-4o", "claude3-haiku", "Phi-3-mini-4k", "gpt2")
N_TEMPLATES = 8
N_ROUNDS = 2
WORDS = (
    *("the", "a", "dog", "cat", "house", "river", "walked", "ran", "saw", "old", "young", "red"),
    *("green", "happy", "went", "home", "again", "and", "then"),
)


def cpu_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def made_answers(n_words: int) -> list[Record]:
    rng = random.Random(n_words)
    templates = [f"The number {n} is where {{nom}} {{lives|live}} with a dog" for n in range(N_TEMPLATES)]
    return recorded(TASK, sentences(*templates), lambda item: [" ".join(rng.choices(WORDS, k=n_words)) + "."])


def continuations(shared_data: Path, model: str) -> Sequence[Record]:
    files = PublishedGenerations().files(shared_data / "gifi" / "model-generation", model)
    (file,) = (file for file in files if file.config == "continuation")
    return imported_from(shared_data / "gifi", file, TASK).records


def published_answers(shared_data: Path, model: str) -> list[Record]:
    """Answers to some templates, spread over the file."""
    records = continuations(shared_data, model)
    clusters = sorted({record.cluster for record in records})
    chosen = set(clusters[:: len(clusters) // N_TEMPLATES][:N_TEMPLATES])
    return [record for record in records if record.cluster in chosen]


def pair_by_pair(records: Sequence[Record], encode: Callable[[str], Any]) -> tuple[int, int]:
    """CF as the published code computes it: both texts of every pair encoded anew."""
    n_above = n_pairs = 0
    by_cluster: dict[str, list[str]] = {}
    for answer in answers_of(records):
        if words := own_words(answer):
            by_cluster.setdefault(records[answer.record].cluster, []).append(words)
    for texts in by_cluster.values():
        for one, other in itertools.combinations(texts, 2):
            n_above += float(encode(one) @ encode(other)) > 0.3
            n_pairs += 1
    return n_above, n_pairs


def compare(label: str, records: Sequence[Record]) -> None:
    import torch

    torch.set_num_threads(1)
    scorer = sentence_embedding.open_scorer("embedding", None, None)
    dict(scorer.score(["A text, so that the weights are loaded."]))

    def all_at_once() -> tuple[float | None, int]:
        scores = score_texts([words for answer in answers_of(records) if (words := own_words(answer))], [scorer])
        found = CF.compute(TableSource(ContinuationTable.of(records, scores=scores)), {})
        return found.value, found.n

    def one_by_one() -> tuple[int, int]:
        return pair_by_pair(
            records, lambda text: scorer._model.encode(text, normalize_embeddings=True, show_progress_bar=False)
        )

    n_above, n_pairs = one_by_one()
    value, n = all_at_once()
    assert n == n_pairs
    assert value == pytest.approx(n_above / n_pairs, abs=2 / n_pairs)
    shares = [cpu_seconds(all_at_once) / cpu_seconds(one_by_one) for _ in range(N_ROUNDS)]
    shown = ", ".join(f"{share:.3f}" for share in shares)
    print(f"\n{label}: {n_pairs} pairs, CPU time {shown} of encoding both texts of every pair")


@pytest.mark.parametrize("n_words", [10, 30, 150])
def bench_counterfactual_of_made_answers(n_words: int) -> None:
    """Texts of three lengths."""
    compare(f"CF, made answers of {n_words} words", made_answers(n_words))


@pytest.mark.parametrize("model", MODELS)
def bench_counterfactual_of_published_answers(shared_data: Path, model: str) -> None:
    """Some templates of a real model."""
    compare(f"CF, {model}, {N_TEMPLATES} templates", published_answers(shared_data, model))


@pytest.mark.parametrize("model", MODELS)
def bench_counterfactual_equals_the_reference(shared_data: Path, model: str) -> None:
    """Whole files: the values, and the CPU time that they take."""
    start = time.process_time()
    references = json.loads((shared_data.parent / "specs" / "gifi_reference.json").read_text(encoding="utf-8"))
    reference = references["models"][model]
    records = continuations(shared_data, model)
    scores = score_texts(TASK.texts(records), [sentence_embedding.open_scorer("embedding", None, None)])
    metrics, sweep = found(records, scores), sliced(records, scores, "cf", "gamma")
    seconds = time.process_time() - start
    paper = reference["paper_definition"]
    expected = {"cf_paper": paper["CF_P_cos_gt_0.3"], "cf_gifi_repo": reference["repo_code"]["CF"]}
    assert {name: metrics[name].value for name in expected} == pytest.approx(expected, abs=1e-3)
    assert metrics["cf_paper"].n == paper["CF_pairs"]
    differences = [(metrics[name].value or 0) - value for name, value in expected.items()]
    careful = f"cf {metrics['cf'].value:.4f}, at .5 {sweep['0.50'].value:.4f}"
    print(f"\n{model}: cf_paper and cf_gifi_repo off by {differences}; {careful}; {seconds:.0f} CPU seconds")
