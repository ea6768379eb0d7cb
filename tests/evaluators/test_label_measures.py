"""Every metric of the task *classification*, against plain loops, numbers worked out by hand, and properties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from biasboard.ground.errors import DataError
from evaluators.calibrator import LabelAnswers
from evaluators.statistics import class_accuracies
from evaluators.tasks.images.image_classification_task import TASK
from evaluators.tasks.labels.label_measures import ClassSums, gini_floor
from evaluators.tasks.labels.label_reading import class_report, part_report
from evaluators.tasks.labels.label_tables import ConfigTable
from evaluators.tasks.labels.metric_variants import Variant
from schemas.documents.record import Record
from tests.evaluators import label_oracle
from tests.evaluators.label_data import (
    Asked,
    drawn_answer,
    made_dataset,
    made_records,
    measured,
    planned,
    simple,
    stored_weights,
    values,
)
from tests.record_files import write_records

PLAIN, SHOWN = "release-4096b-k0-v1", "release-4096b-k2-set1-v1"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_dataset(tmp_path_factory.mktemp("tasks") / "tasks")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prompt", "seed", "p_missing"), [(PLAIN, 1, 0.0), (SHOWN, 4, 0.4), ("paper-1024b-k16-set0-v1", 2, 0.1)]
)
def test_every_metric_is_that_of_plain_loops(
    dataset: Path, tmp_path: Path, prompt: str, seed: int, p_missing: float
) -> None:
    parts = made_records(planned(dataset, "tasks", prompt), drawn_answer(seed, p_missing=p_missing))
    expected = []
    for number, records in enumerate(parts):
        write_records(tmp_path / f"{number}.parquet", records)
        (rows,) = label_oracle.rows_of(tmp_path / f"{number}.parquet").values()
        expected.append(label_oracle.measures(rows, stored_weights(records)))
    for records, wanted in zip(parts, expected, strict=True):
        found = values(records)
        assert {name: found[name] for name in wanted} == pytest.approx(label_oracle.shown(wanted), abs=1e-9)
    of_suite = measured(*parts, is_suite=True)
    for name in expected[0]:
        metric = of_suite[name]
        assert metric.unit == "tasks"
        if name in label_oracle.CORRELATIONS:
            assert metric.value == pytest.approx(label_oracle.correlation(expected, name), abs=1e-9), name
            continue
        wanted_mean = label_oracle.shown({name: label_oracle.mean_over(expected, name)})[name]
        assert metric.value == pytest.approx(wanted_mean, abs=1e-9), name
        known = [one[name] for one in expected if one[name] is not None]
        if known:
            assert (metric.n, metric.n_excluded) == (len(known), len(parts) - len(known))


def test_rsd_of_the_paper_and_of_its_code_differ_on_a_majority_and_gini_by_chance_is_that_of_the_paper() -> None:
    """90 of 100 items are a, and a is always predicted: accuracies 1 and 0, over all .9."""
    records = [simple("test", n, "a" if n < 90 else "b", {"a": 0.6, "b": 0.4}) for n in range(100)]
    found = values(records)
    assert found["rsd_paper"] == pytest.approx(math.sqrt((0.1**2 + 0.9**2) / 2) / 0.9, abs=1e-12)
    assert found["rsd_paper"] == pytest.approx(0.711, abs=5e-4)
    # All answers to a class are alike, so that nothing is due to chance.
    assert found["rsd"] == pytest.approx((0.1**2 + 0.9**2) / 2 / 0.9**2, abs=1e-12)
    assert [found["cobias"], found["squared_cv"]] == pytest.approx([1.0, 1.0])
    assert found["rsd_release"] == pytest.approx(0.5 / 0.9, abs=1e-12)
    assert found["rsd_release"] == pytest.approx(0.556, abs=5e-4)
    assert found["gini"] == pytest.approx(0.5, abs=1e-12)
    assert found["cobias_paper"] == pytest.approx(1.0, abs=1e-12)
    assert found["top_class_dominance"] == pytest.approx(2.0, abs=1e-12)
    # F1 of a is 2 · 90 / 190, and that of b is 0.
    assert found["macro_f1"] == pytest.approx(90 / 190, abs=1e-12)
    sums = ClassSums(np.full(100, 69.0), np.full(100, 100.0), np.full(100, 100.0))
    assert float(gini_floor(sums)) == pytest.approx(0.0374, abs=5e-5)


def test_always_the_same_label_has_the_largest_bias_also_where_items_offer_different_ones() -> None:
    records = [
        simple("bias", 0, "B", {"A": 1.0, "B": 0.0, "C": 0.0}),
        simple("bias", 1, "D", {"A": 1.0, "B": 0.0, "C": 0.0, "D": 0.0}),
    ]
    found = values(records)
    assert found["bias_score"] == pytest.approx(1 - (1 / 3 + 1 / 4) / 2, abs=1e-12)
    assert found["bias_score_normalised"] == pytest.approx(1.0, abs=1e-12)


def of_words(kind: str, *shares: Sequence[float]) -> list[Record]:
    """Answers to inputs of random words of one kind; those of both kinds have different ids."""
    return [
        simple("content_free", 2 * number + (kind == "english_words"), None, dict(zip("ab", row, strict=True)), kind)
        for number, row in enumerate(shares)
    ]


def test_domain_label_bias_is_the_distance_of_the_mean_answers_to_english_and_in_domain_words() -> None:
    """Means (.5, .5) for English words, over (.4, .6) and (.6, .4), and (.8, .2) for in-domain ones."""
    english = of_words("english_words", (0.4, 0.6), (0.6, 0.4))
    in_domain = of_words("random_words", (0.8, 0.2), (0.7, 0.3), (0.9, 0.1))
    others = [simple("content_free", 99, None, {"a": 1.0, "b": 0.0}, "placeholder"), *hand_made()[3:]]
    found = values([*english, *in_domain, *others])
    assert found["domain_label_bias"] == pytest.approx(0.3, abs=1e-12)
    # Variances .02 of two and .01 of three answers, for each of two labels.
    assert found["domain_label_bias_floor"] == pytest.approx(math.sqrt(2 / math.pi * (0.02 / 2 + 0.01 / 3)), abs=1e-12)
    opposite = values([*of_words("english_words", (1.0, 0.0)), *of_words("random_words", (0.0, 1.0))])
    assert (opposite["domain_label_bias"], opposite["domain_label_bias_floor"]) == (1.0, None)
    # As in results on superni 1.0.0.
    older = measured([*in_domain, *others])
    for name in ("domain_label_bias", "domain_label_bias_floor"):
        assert older[name].value is None
        assert "English words, which datasets have since version 1.1.0" in (older[name].reason or "")


def hand_made() -> list[Record]:
    """Two labels; priors: CC .8 / .2, DC .6 / .4, BC .65 / .35, LOOC (.9 + (.5 + .7) / 2) / 2 = .75 / .25."""
    rows: list[tuple[str, str | None, float, str, int | None]] = [
        ("content_free", None, 0.9, "placeholder", None),
        ("content_free", None, 0.7, "placeholder", None),
        ("content_free", None, 0.6, "random_words", None),
        ("pool", "a", 0.9, "", 0),
        ("pool", "b", 0.5, "", 1),
        ("pool", "b", 0.7, "", 2),
        ("pool", "a", 0.99, "", None),
        ("test", "b", 0.7, "", None),
        ("test", "a", 0.6, "", None),
        ("bias", "a", 0.8, "", None),
    ]
    return [
        simple(split, number, target, {"a": p, "b": 1 - p}, kind, place, 3)
        for number, (split, target, p, kind, place) in enumerate(rows)
    ]


def test_corrections_worked_out_by_hand() -> None:
    """The one item of the split *bias* has .8 of a, which becomes (.8 / prior) / (.8 / prior + .2 / (1 - prior))."""
    found = values(hand_made())
    # .7 and .6 of a become: CC .368 and .273; DC .609 and .5 (a tie); BC .557 and .447; LOOC .4375 and 1/3.
    for name, prior, accuracy in (("cc", 0.8, 0.5), ("dc", 0.6, 0.25), ("bc", 0.65, 0.0), ("looc", 0.75, 0.5)):
        corrected = (0.8 / prior) / (0.8 / prior + 0.2 / (1 - prior))
        assert found[f"bias_score_{name}"] == pytest.approx(abs(corrected - 0.5), abs=1e-12)
        assert found[f"accuracy_{name}"] == pytest.approx(accuracy, abs=1e-12)
        if name != "bc":
            odds = math.exp(0.8 / prior), math.exp(0.2 / (1 - prior))
            assert found[f"bias_score_{name}_softmax"] == pytest.approx(abs(odds[0] / sum(odds) - 0.5), abs=1e-12)


def test_a_label_that_placeholders_never_get_leads_to_a_number() -> None:
    records = [
        simple("content_free", 0, None, {"a": 1.0, "b": 0.0}, "placeholder"),
        simple("test", 0, "b", {"a": 0.9, "b": 0.1}),
        simple("bias", 0, "b", {"a": 0.9, "b": 0.1}),
    ]
    found = values(records)
    assert found["accuracy_cc"] == 1.0
    assert found["bias_score_cc"] == pytest.approx(0.5, abs=1e-4)


def test_what_divides_by_the_accuracy_is_null_where_all_is_wrong_and_looc_without_answers_to_examples(
    dataset: Path,
) -> None:
    def all_wrong(asked: Asked) -> list[float]:
        return [float(label != asked.item.target) / (len(asked.item.labels) - 1) for label in asked.item.labels]

    (wrong,) = made_records(planned(dataset, "three", PLAIN), all_wrong)
    found = measured(wrong)
    of_accuracy = ("rsd", "rsd_paper", "rsd_release", "squared_cv", "cobias", "cobias_paper", "gini")
    for name in (*of_accuracy, "top_class_dominance", "rsd_paper_floor"):
        assert found[name].value is None
        assert found[name].reason
    assert found["accuracy"].value == 0.0
    assert found["gini"].reason == "nothing is right, or there are fewer than two classes"
    assert found["squared_cv"].reason == "nothing is right, or fewer than two classes have two items"
    (plain,) = made_records(planned(dataset, "two", PLAIN), drawn_answer(1))
    (tested,) = made_records(planned(dataset, "two", SHOWN, splits=("test",)), drawn_answer(1))
    for records, reason in ((plain, "the prompt shows no examples"), (tested, "there are no answers to the examples")):
        for name, metric in measured(records).items():
            if "looc" in name:
                assert metric.value is None
                assert (metric.reason or "").startswith(reason)
    found = measured(tested)
    assert (found["accuracy"].unit, found["accuracy"].n) == ("items", 24)
    assert (found["accuracy_cc"].value, found["bias_score"].reason) == (None, "no items to compute it from")


def test_above_64_labels_all_is_measured_but_pairs_of_labels_and_above_128_nothing() -> None:
    for n, value, reason in (
        (64, 1 - 1 / 64, None),
        (65, None, "it compares each label with each other one, for at most 64 labels"),
    ):
        names = [f"label {number}" for number in range(n)]
        certain = dict.fromkeys(names, 0.0) | {names[0]: 1.0}
        found = measured([simple(split, 0, names[0], certain) for split in ("test", "bias")])
        assert found["bias_score"].value == (None if value is None else pytest.approx(value))
        assert (found["bias_score"].reason, found["accuracy"].value) == (reason, 1.0)
    names = [f"label {number}" for number in range(129)]
    many = simple("test", 0, names[0], dict.fromkeys(names, 1 / 129), k=0)
    with pytest.raises(DataError, match="its items offer 129 labels, and a task has at most 128"):
        TASK.table([many])


NONE = [np.nan] * 3
TEST = [("a", [0.6, 0.3, 0.1]), ("a", [0.4, 0.4, 0.2]), ("b", [0.1, 0.8, 0.1]), ("c", NONE)]
BIAS = [("a", [0.5, 0.25, 0.25]), ("a", [0.7, 0.15, 0.15]), ("b", [0.2, 0.6, 0.2])]


def answers(
    probabilities: FloatArray, targets: IntArray, splits: Sequence[str], offered: BoolArray | None = None
) -> LabelAnswers:
    n = len(probabilities)
    return LabelAnswers(
        config="letters",
        labels=("a", "b", "c"),
        probabilities=probabilities,
        offered=np.ones((n, 3), dtype=np.bool_) if offered is None else offered,
        targets=targets,
        splits=np.array(splits),
        content_free=np.array([""] * n),
        positions=np.full(n, -1),
        n_shown=np.zeros(n, dtype=np.int64),
        groups={"category": "Letters"},
        is_cut=np.zeros(n, dtype=np.bool_),
        is_trained=np.zeros(n, dtype=np.bool_),
    )


def of_rows(
    test: list[tuple[str, list[float]]], bias: list[tuple[str, list[float]]], offered: BoolArray | None = None
) -> LabelAnswers:
    rows = [*test, *bias]
    targets = np.array(["abc".index(target) for target, _ in rows])
    splits = ["test"] * len(test) + ["bias"] * len(bias)
    return answers(np.array([one for _, one in rows]), targets, splits, offered)


def test_labels_are_counted_and_half_the_distance_of_the_prior_from_equal_shares_is_the_bias_score() -> None:
    found = of_rows(TEST, BIAS)
    report = part_report(found)
    assert [(one.name, one.n_right) for one in report.labels] == [("a", 2), ("b", 1), ("c", 1)]
    # A tie counts in parts.
    assert [one.predicted_share for one in report.labels] == pytest.approx([1.5 / 3, 1.5 / 3, 0.0])
    assert (report.groups, report.are_same) == ({"category": "Letters"}, True)
    assert (report.why_no_share, report.why_no_prior) == (None, None)
    # Right labels count alike: (0.6, 0.2, 0.2) for a, (0.2, 0.6, 0.2) for b, and no item for c.
    assert [one.prior for one in report.labels] == pytest.approx([0.4, 0.4, 0.2])
    distance = (2 * (0.4 - 1 / 3) + (1 / 3 - 0.2)) / 2
    assert ConfigTable.of(found).values([Variant("bias_score")])["bias_score"] == pytest.approx(distance)
    # What is unknown is null with a reason.
    silent = part_report(of_rows([("a", NONE)], [("b", NONE)]))
    unknown = [(one.n_right, one.predicted_share, one.prior) for one in silent.labels]
    assert unknown == [(1, None, None), (0, None, None), (0, None, None)]
    assert silent.why_no_share == "no item of split test has a reading"
    assert silent.why_no_prior == "no item of split bias has a reading"
    # Labels that each item brings are told apart, and are no classes.
    offered = np.array([[1, 1, 0], [1, 0, 1]], dtype=np.bool_)
    own = of_rows([("a", [0.5, 0.5, 0.0]), ("c", [0.5, 0.0, 0.5])], [], offered)
    assert not part_report(own).are_same
    assert class_report(ConfigTable.of(own)) is None


def test_accuracies_of_classes_under_each_correction_are_what_plain_counting_gives() -> None:
    # 200 random answers with skewed labels: of 4 items 1 is of bias, 1 of the pool and 2 of the test.
    rng = np.random.default_rng(5)
    targets = rng.choice(3, size=200, p=np.array([0.7, 0.2, 0.1]))
    odds = rng.random((200, 3)) + 0.7 * np.eye(3)[targets] + [0.6, 0.0, 0.2]
    probabilities = odds / odds.sum(axis=1, keepdims=True)
    probabilities[:3] = np.nan
    found = answers(probabilities, targets, ["test", "bias", "test", "pool"] * 50)
    table = ConfigTable.of(found)
    report = class_report(table)
    assert report is not None
    assert [column.label for column in report.columns] == ["Uncorrected", "BC", "BCL", "CC", "DC", "Gini", "LOOC"]
    names = {"Uncorrected": "", "BC": "bc", "BCL": "bcl", "Gini": "gini"}
    for column in report.columns:
        if column.label not in names:
            assert (column.accuracies, bool(column.reason)) == ((), True)
            continue
        right, total = [0] * 3, [0] * 3
        shares = table.probabilities[names[column.label], False]
        for target, split, row in zip(found.targets, found.splits, shares, strict=True):
            if split == "test" and not np.isnan(row[0]):
                total[target] += 1
                right[target] += int(row[target] == max(row))
        assert [one.n_items for one in column.accuracies] == total
        values = np.array([one.value for one in column.accuracies], dtype=np.float64)
        assert values == pytest.approx(np.array(right) / np.array(total))
        for value, low, high in (one[1:] for one in column.accuracies):
            assert value in (0, 1) or (low or 0) < (value or 0) < (high or 0)
        # The metrics that it names are the measures of these accuracies.
        variants = [Variant(name, names[column.label]) for name in ("gini", "cobias_paper", "accuracy")]
        expected = (class_accuracies.gini_index(values), class_accuracies.cobias(values), sum(right) / sum(total))
        of_metrics = table.values(variants)
        assert [*of_metrics.values()] == pytest.approx([float(value) for value in expected])
        assert set(of_metrics) < set(column.metrics)
    gap = class_report(ConfigTable.of(found._replace(targets=np.minimum(found.targets, 1))))
    assert gap is not None
    assert gap.columns[0].accuracies[2] == (0, None, None, None)
