"""The measures and calibrations of the task *classification*, recounted with plain loops from stored rows.

Written from the papers and not from the code: lists and dicts only, one item after the other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow.parquet as pq

TIE = 1e-12
SMALLEST = 1e-6
CLASS_MEASURES = (
    "accuracy",
    "macro_f1",
    "rsd_paper",
    "rsd_release",
    "cobias_paper",
    "gini",
    "top_class_dominance",
    "smallest_class_accuracy",
    "worst_quarter_accuracy",
    "second_quarter_accuracy",
    "third_quarter_accuracy",
    "best_quarter_accuracy",
)
CLASS_FLOORS = ("rsd_paper_floor", "cobias_paper_floor", "gini_floor")
# Squared RSD and squared CV have tests of their own (tests/evaluators/test_jackknife.py).
FOLD_MEASURES = ("cobias",)
N_FOLDS = 4
OF_PAPER = ("cc", "dc")
"""Calibrations that the paper runs, and writes with a softmax, beside the one that it proposes."""
CORRELATIONS = {
    "f1_rsd_correlation": ("macro_f1", "rsd_paper"),
    "f1_bias_score_correlation": ("macro_f1", "bias_score"),
}
PRIOR_MEASURES = ("bias_score", "bias_score_normalised")
Shares: TypeAlias = dict[str, float]
Correct: TypeAlias = "Callable[[Row], Shares | None]"


class Row(NamedTuple):
    """An item with its answer; a label that the item does not offer has no entry in ``p``."""

    config: str
    split: str
    target: str | None
    offered: tuple[str, ...]
    p: Shares | None
    kind: str
    place: int | None
    n_shown: int
    is_cut: bool
    in_words: bool


def rows_of(path: Path) -> dict[str, list[Row]]:
    """The rows of each config."""
    found: dict[str, list[Row]] = {}
    for row in pq.read_table(path).to_pylist():
        groups = dict(row["groups"])
        reading = row["reading"]
        one = Row(
            config=row["config"],
            split=row["split"],
            target=row["target"],
            offered=tuple(row["exchanges"][0]["outcomes"]),
            p=None if reading is None else dict(zip(reading["outcomes"], reading["probabilities"], strict=True)),
            kind=groups.get("content_free", ""),
            place=int(groups["shown_place"]) if "shown_place" in groups else None,
            n_shown=len(json.loads(groups.get("shown_labels", "[]"))),
            is_cut="cut" in groups,
            in_words=row["exchanges"][0]["kind"] == "generate",
        )
        found.setdefault(one.config, []).append(one)
    return found


def credits(p: Shares) -> Shares:
    """1 for the most probable label; 1/t for each of t that tie."""
    best = max(p.values())
    top = [label for label, value in p.items() if value >= best - TIE]
    return {label: 1 / len(top) if label in top else 0.0 for label in p}


def class_measures(pairs: Sequence[tuple[str, Shares]]) -> dict[str, float | None]:
    """Measures of (right label, distribution) of each item of the split *test*."""
    classes = sorted({target for target, _ in pairs})
    n = {c: sum(1 for target, _ in pairs if target == c) for c in classes}
    right = {c: sum(credits(p).get(c, 0.0) for target, p in pairs if target == c) for c in classes}
    predicted = {c: sum(credits(p).get(c, 0.0) for _, p in pairs) for c in classes}
    if not classes:
        return dict.fromkeys((*CLASS_MEASURES, *CLASS_FLOORS))
    size = len(classes)
    accuracies = sorted(right[c] / n[c] for c in classes)
    overall = sum(right.values()) / len(pairs)
    mean = sum(accuracies) / size
    f1 = []
    for c in classes:
        precision = right[c] / predicted[c] if predicted[c] else 0.0
        recall = right[c] / n[c]
        f1.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    n_pairs = size * (size - 1) // 2
    gaps = [accuracies[j] - accuracies[i] for i in range(size) for j in range(i + 1, size)]
    variance = {c: overall * (1 - overall) / n[c] for c in classes}
    chance_gaps = [
        math.sqrt(2 / math.pi) * math.sqrt(variance[classes[i]] + variance[classes[j]])
        for i in range(size)
        for j in range(i + 1, size)
    ]
    # Four copies of each class, cut into four parts of the same size.
    copies = [a for a in accuracies for _ in range(4)]
    quarters = [sum(copies[q * size : (q + 1) * size]) / size for q in range(4)]
    ranked = sum((2 * i - size - 1) * a for i, a in enumerate(accuracies, start=1))
    return {
        "accuracy": overall,
        "macro_f1": sum(f1) / size,
        "rsd_paper": math.sqrt(sum((a - overall) ** 2 for a in accuracies) / size) / overall if overall else None,
        "rsd_release": math.sqrt(sum((a - mean) ** 2 for a in accuracies) / size) / overall if overall else None,
        "cobias_paper": sum(gaps) / n_pairs if n_pairs and overall else None,
        "gini": ranked / (size * sum(accuracies)) if mean and n_pairs else None,
        "top_class_dominance": accuracies[-1] / mean if mean else None,
        "smallest_class_accuracy": accuracies[0],
        **dict(zip(CLASS_MEASURES[-4:], quarters, strict=True)),
        "rsd_paper_floor": math.sqrt(sum(variance.values()) / size) / overall if overall else None,
        "cobias_paper_floor": sum(chance_gaps) / n_pairs if n_pairs and overall else None,
        "gini_floor": (size - 1) / (2 * size) * sum(chance_gaps) / n_pairs / mean if mean and n_pairs else None,
    }


def fold_measures(answers: Sequence[tuple[str, Shares | None]]) -> dict[str, float | None]:
    """The mean squared gap of two classes over all items of the split *test*, of which some have no answer.

    The items of each class go to the folds in turn. Noise is what the products of two answers of one fold add.
    """
    n_seen: dict[str, int] = {}
    of_class: dict[str, list[tuple[int, float]]] = {}
    for target, p in answers:
        fold = n_seen.get(target, 0) % N_FOLDS
        n_seen[target] = n_seen.get(target, 0) + 1
        if p is not None:
            of_class.setdefault(target, []).append((fold, credits(p).get(target, 0.0)))
    own = {c: found for c, found in of_class.items() if len({fold for fold, _ in found}) > 1}
    accuracies = {c: sum(credit for _, credit in found) / len(found) for c, found in own.items()}
    if not own or not any(accuracies.values()):
        return dict.fromkeys(FOLD_MEASURES)
    # The mean of the products of all pairs of answers in different folds.
    squares = {}
    for c, found in own.items():
        products = [x * y for i, (a, x) in enumerate(found) for j, (b, y) in enumerate(found) if i != j and a != b]
        squares[c] = sum(products) / len(products)

    def product(c: str, d: str) -> float:
        return squares[c] if c == d else accuracies[c] * accuracies[d]

    gaps = [product(c, c) + product(d, d) - 2 * product(c, d) for c in own for d in own if c < d]
    return {"cobias": sum(gaps) / len(gaps) if gaps else None}


def class_mean(rows: Sequence[tuple[str, Shares]], labels: Sequence[str]) -> Shares:
    """The mean over the classes that occur of the mean over their items."""
    classes = sorted({target for target, _ in rows})
    means = []
    for c in classes:
        own = [p for target, p in rows if target == c]
        means.append({label: sum(p.get(label, 0.0) for p in own) / len(own) for label in labels})
    return {label: sum(one[label] for one in means) / len(means) for label in labels}


def evenly(row: Row) -> Shares:
    return dict.fromkeys(row.offered, 1 / len(row.offered))


def prior_measures(found: Sequence[tuple[Row, Shares]], labels: Sequence[str]) -> dict[str, float | None]:
    """Measures of the items of the split *bias*."""
    if not found:
        return dict.fromkeys(("bias_score", "bias_score_normalised", "bias_score_floor"))
    prior = class_mean([(str(row.target), p) for row, p in found], labels)
    even = class_mean([(str(row.target), evenly(row)) for row, _ in found], labels)
    score = sum(abs(prior[label] - even[label]) for label in labels) / 2
    classes = sorted({str(row.target) for row, _ in found})
    total = 0.0
    sizes = {c: sum(row.target == c for row, _ in found) for c in classes}
    for label in labels:
        squares = dict.fromkeys(classes, 0.0)
        for c in classes:
            values = [p.get(label, 0.0) for row, p in found if row.target == c]
            mean = sum(values) / len(values)
            squares[c] = sum((v - mean) ** 2 for v in values)
        # A class with a single item is taken to vary as the others do.
        degrees = sum(size - 1 for size in sizes.values())
        pooled = sum(squares.values()) / degrees if degrees else 0.0
        of_classes = sum(squares[c] / (sizes[c] - 1) / sizes[c] if sizes[c] > 1 else pooled for c in classes)
        total += math.sqrt(2 / math.pi) * math.sqrt(of_classes) / len(classes)
    return {
        "bias_score": score,
        "bias_score_normalised": score / largest_bias([row for row, _ in found]),
        "bias_score_floor": total / 2 if max(sizes.values()) > 1 else None,
    }


def word_measures(rows: Sequence[Row], labels: Sequence[str]) -> dict[str, float | None]:
    """Domain-label bias, of the inputs of random English words and of random words of the task, and that by chance."""
    kinds = [[row.p for row in rows if row.kind == kind and row.p] for kind in ("english_words", "random_words")]
    distance, by_chance = 0.0, 0.0
    for label in labels:
        means, variance = [], 0.0
        for shares in kinds:
            values = [p.get(label, 0.0) for p in shares]
            means.append(sum(values) / max(len(values), 1))
            variance += sum((v - means[-1]) ** 2 for v in values) / max(len(values) - 1, 1) / max(len(values), 1)
        distance += abs(means[0] - means[1]) / 2
        by_chance += math.sqrt(2 / math.pi * variance) / 2
    n = min(map(len, kinds))
    return {"domain_label_bias": distance if n > 0 else None, "domain_label_bias_floor": by_chance if n > 1 else None}


def largest_bias(rows: Sequence[Row]) -> float:
    """The largest BiasScore of any model, by trying every set of labels that it could put all its probability on."""
    labels = sorted({label for row in rows for label in row.offered})
    targets = [row.target for row in rows]
    n_classes = len(set(targets))
    most = 0.0
    for chosen in range(1, 2 ** len(labels)):
        favoured = {label for place, label in enumerate(labels) if chosen >> place & 1}
        distance = 0.0
        for row in rows:
            inside = len(favoured & set(row.offered))
            weight = 1 / n_classes / targets.count(row.target)
            distance += weight * ((1.0 if inside else 0.0) - inside / len(row.offered))
        most = max(most, distance)
    return most


def ratios(rows: Sequence[Row], weights: Sequence[float], labels: Sequence[str]) -> Shares:
    """The prior of each label over its probability in a uniform distribution; 1 for labels that no item offers."""
    prior = {label: sum(w * (row.p or {}).get(label, 0.0) for w, row in zip(weights, rows)) for label in labels}  # noqa: B905
    even = {label: sum(w * evenly(row).get(label, 0.0) for w, row in zip(weights, rows)) for label in labels}  # noqa: B905
    return {label: prior[label] / even[label] if even[label] else 1.0 for label in labels}


def divided(row: Row, ratio: Shares, strength: float = 1.0) -> Shares | None:
    """``p`` over a power of the prior, renormalised over the labels that the item offers."""
    if row.p is None:
        return None
    odds = {label: p / max(ratio[label], SMALLEST) ** strength for label, p in row.p.items()}
    return {label: value / sum(odds.values()) for label, value in odds.items()}


def softmax_of(row: Row, ratio: Shares) -> Shares | None:
    """The softmax of ``p`` over the prior."""
    if row.p is None:
        return None
    n = len(row.offered)
    quotients = {label: p / max(ratio[label] / n, SMALLEST) for label, p in row.p.items()}
    most = max(quotients.values())
    odds = {label: math.exp(value - most) for label, value in quotients.items()}
    return {label: value / sum(odds.values()) for label, value in odds.items()}


def leave_one_out(rows: Sequence[Row], n_shown: int, labels: Sequence[str]) -> Shares | None:
    """The ratios from the first examples: the mean over the labels that occur of the mean over their examples."""
    own = [row for row in rows if row.split == "pool" and row.p and row.place is not None and row.place < n_shown]
    if not own:
        return None
    targets = [row.target for row in own]
    return ratios(own, [1 / len(set(targets)) / targets.count(row.target) for row in own], labels)


def fitted_strength(pool: Sequence[Row], ratio: Shares) -> float:
    """The strength from -5 to 5 that is right most often; of equals the one nearest to 1, and then the smaller one."""
    best: tuple[float, Fraction, Fraction] | None = None
    for step in range(101):
        strength = Fraction(step, 10) - 5
        n_right = sum(credits(divided(row, ratio, float(strength)) or {}).get(str(row.target), 0.0) for row in pool)
        found = (-round(n_right, 6), abs(strength - 1), strength)
        best = found if best is None else min(best, found)
    assert best is not None
    return float(best[2])


def corrections(rows: Sequence[Row], labels: Sequence[str]) -> dict[str, Correct | None]:
    """The correction of each calibration, and of the softmax of the paper; None where it cannot be fitted."""
    known = [row for row in rows if row.p is not None]
    sources = {
        "cc": [row for row in known if row.kind == "placeholder"],
        "dc": [row for row in known if row.kind == "random_words"],
        "bc": [row for row in known if row.split == "test"],
        "bcl": [row for row in known if row.split == "pool" and row.place is None],
    }
    found: dict[str, Correct | None] = {}
    for name, own in sources.items():
        if not own:
            found |= {name: None} | ({f"{name}_softmax": None} if name in OF_PAPER else {})
            continue
        ratio = ratios(own, [1 / len(own)] * len(own), labels)
        strength = fitted_strength(own, ratio) if name == "bcl" else 1.0
        found[name] = lambda row, ratio=ratio, strength=strength: divided(row, ratio, strength)  # type: ignore[misc]
        if name in OF_PAPER:
            found[f"{name}_softmax"] = lambda row, ratio=ratio: softmax_of(row, ratio)  # type: ignore[misc]
    by_n = {n: leave_one_out(rows, n, labels) for n in sorted({row.n_shown for row in rows})}
    is_shown = any(ratio is not None for ratio in by_n.values())

    def looc(row: Row, how: Callable[[Row, Shares], Shares | None]) -> Shares | None:
        ratio = by_n[row.n_shown]
        return None if ratio is None else how(row, ratio)

    found["looc"] = (lambda row: looc(row, divided)) if is_shown else None
    found["looc_softmax"] = (lambda row: looc(row, softmax_of)) if is_shown else None
    return found


def reweighted(row: Row, weights: Shares) -> Shares | None:
    """The shares of ``p`` times the weight of each label."""
    if row.p is None:
        return None
    odds = {label: p * weights[label] for label, p in row.p.items()}
    return {label: value / sum(odds.values()) for label, value in odds.items()}


def measures(rows: Sequence[Row], weights: Shares | None = None) -> dict[str, float | None]:
    """Every metric of the task by name, with the stored weights of its labels, if there are any."""
    labels = sorted({label for row in rows for label in row.offered})
    test = [row for row in rows if row.split == "test"]
    found = measured(rows, lambda row: row.p, labels, "")
    answered = [(row, credits(row.p)) for row in rows if row.split == "bias" and row.target is not None and row.p]
    of_answers = prior_measures(answered, labels)
    found |= {f"bias_score_answers{end}": of_answers[f"bias_score{end}"] for end in ("", "_floor")}
    found |= word_measures(rows, labels)
    # Correlations are over the tasks of a suite.
    found |= dict.fromkeys(CORRELATIONS)
    found["n_shown"] = sum(row.n_shown for row in test) / len(test) if test else None
    found["cut_rate"] = sum(row.is_cut for row in test) / len(test) if test else None
    for name, correct in corrections(rows, labels).items():
        own = measured(rows, correct or (lambda row: None), labels, f"_{name}")
        wanted = ("bias_score",) if name.endswith("_softmax") else (*CLASS_MEASURES, *FOLD_MEASURES, *PRIOR_MEASURES)
        found |= {key: own[key] for key in (f"{one}_{name}" for one in wanted)}
    correct = (lambda row: None) if weights is None else (lambda row: reweighted(row, weights))
    own = measured(rows, correct, labels, "_gini")
    found |= {name: own[name] for name in (f"{one}_gini" for one in (*CLASS_MEASURES, *FOLD_MEASURES))}
    if any(row.in_words for row in rows):
        known = {*CLASS_MEASURES, *CLASS_FLOORS, *FOLD_MEASURES, "n_shown", "cut_rate"}
        known |= {name for name in found if name.startswith("bias_score_answers")}
        return {name: value if name in known else None for name, value in found.items()}
    return found


def measured(rows: Sequence[Row], correct: Correct, labels: Sequence[str], ending: str) -> dict[str, float | None]:
    pairs = [(row, correct(row)) for row in rows if row.target is not None]
    tested = [(str(row.target), p) for row, p in pairs if row.split == "test" and p is not None]
    biased = [(row, p) for row, p in pairs if row.split == "bias" and p is not None]
    answers = [(str(row.target), p) for row, p in pairs if row.split == "test"]
    found = class_measures(tested) | fold_measures(answers) | prior_measures(biased, labels)
    return {f"{name}{ending}": value for name, value in found.items()}


def shown(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """The values that a result has: an estimate below 0 is 0."""
    return {
        name: max(value, 0.0) if value is not None and name.startswith(FOLD_MEASURES) else value
        for name, value in values.items()
    }


def mean_over(parts: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """The mean of a measure over the tasks that have a value."""
    known = [part[name] for part in parts if part[name] is not None]
    return sum(known) / len(known) if known else None


def correlation(parts: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """The Pearson correlation of two measures over the tasks that have both."""
    pairs = [(part[x], part[y]) for part in parts for x, y in [CORRELATIONS[name]]]
    known = [(float(a), float(b)) for a, b in pairs if a is not None and b is not None]
    if len(known) < 2:
        return None
    means = [sum(one) / len(known) for one in zip(*known, strict=True)]
    across = sum((a - means[0]) * (b - means[1]) for a, b in known)
    squares = [sum((pair[place] - means[place]) ** 2 for pair in known) for place in (0, 1)]
    return across / math.sqrt(squares[0] * squares[1]) if min(squares) > 1e-12 else None
