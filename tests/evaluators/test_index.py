"""The index: the mean of seven metrics of four results, its interval, and what it is not computed from."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biasboard.ground.errors import ConfigError
from evaluators.benchmark import IndexDefinition, Part, PartSource, ShownContext, load_benchmark
from evaluators.runs.measure.index_values import (
    ModelResults,
    ScoredResult,
    SetTable,
    _chosen,
    index_of,
    results_by_model,
    set_tables,
)
from evaluators.runs.measure.stored_results import measurement_of
from evaluators.statistics.jackknife import Deviations, deviations_of
from evaluators.statistics.record_tables import mean
from schemas.documents.result import Interval, Metric
from schemas.folders.run_folder import finished_runs, read_parts, read_result
from tests.leaderboard.gifi_results import CONFIGS
from tests.schemas import examples
from tests.suites.commands import told

GIFI = load_benchmark("gifi")
CAREFUL, PAPER, REPO = GIFI.indices


def metric(name: str, value: float | None, *, version: str = "1.0", n_clusters: int = 44) -> Metric:
    interval = Interval(low=0.0, high=1.0, level=0.95, method="m", n_clusters=n_clusters, n_resamples=None)
    return replace(
        examples.metric() if value is not None else examples.undefined_metric(),
        name=name,
        version=version,
        value=value,
        interval=None if value is None else interval,
    )


def scored(
    task: str, prompt: str = "sampled-v1", model: str = "org/name", n_items: int = 44, **values: Any
) -> ScoredResult:
    """A result of one task whose metrics have given values, .5 if none is given."""
    signature = replace(
        examples.signature(n_items), benchmark="gifi", dataset="gifi", config=CONFIGS[task], task=task, prompt=prompt
    )
    result = examples.result()
    result = replace(
        result,
        signature=signature,
        signature_sha256=signature.sha256(),
        model=replace(result.model, id=model, identity_sha256=f"{sum(map(ord, model)):064x}"),
    )
    rng = np.random.default_rng(7)
    names = GIFI.index_metrics(task)
    metrics = {name: metric(name, values.get(name, 0.5)) for name in names}
    noise = rng.normal(size=400)
    # A standard error of .1, from the same deviations for all metrics.
    deviations = deviations_of(np.column_stack([2.0 * noise / noise.std(ddof=1), np.ones(400)]), mean)
    assert isinstance(deviations, Deviations)
    return ScoredResult(result, metrics, {name: deviations for name in names if metrics[name].interval is not None})


def all_four(**values: Any) -> dict[PartSource, ScoredResult]:
    return {PartSource(task): scored(task, **values) for task in CONFIGS}


def changed(task: str, **metrics: Metric) -> dict[PartSource, ScoredResult]:
    """All four results, of which one has other metrics, without deviations of those that have no interval."""
    results = all_four()
    one = results[PartSource(task)]
    deviations = {name: of for name, of in one.deviations.items() if getattr(metrics.get(name, of), "interval", of)}
    return results | {PartSource(task): one._replace(metrics={**one.metrics, **metrics}, deviations=deviations)}


def test_the_index_is_the_mean_of_its_parts_and_its_version_changes_with_theirs() -> None:
    values = dict(zip(("gdr", "sn", "nts", "cf", "sa", "of", "pe"), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0), strict=True))
    index = index_of(CAREFUL, all_four(**values))
    assert index.metric.value == pytest.approx(sum(values.values()) / 7)
    assert [part.name for part in index.parts] == list(values)
    interval = index.metric.interval
    assert interval is not None
    assert index.metric.value is not None
    assert interval.low < index.metric.value < interval.high
    # The other variants take none of these.
    assert index_of(PAPER, all_four(**values)).metric.value == pytest.approx(0.5)
    assert index_of(REPO, all_four(gdr_gifi_repo=1.0)).metric.value == pytest.approx((1 + 6 * 0.5) / 7)
    other = metric("sn", 0.5, version="1.0+careful-1.roberta-abc")
    assert index_of(CAREFUL, all_four()).metric.version == index.metric.version
    assert index_of(CAREFUL, changed("continuation", sn=other)).metric.version != index.metric.version


def test_an_interval_takes_metrics_of_one_config_together_and_needs_one_of_each() -> None:
    """The same noise in all seven: three of continuation add up, those of other configs only as independent ones do."""
    index = index_of(CAREFUL, all_four())
    weights = np.array([1, 3, 2, 1])
    expected = 0.1 * float(np.sqrt((weights**2).sum())) / 7
    assert index.deviations is not None
    assert index.deviations.variance == pytest.approx(expected**2)
    # A part without an interval or value leaves the index without one.
    lone = replace(metric("of", 0.5), interval=None, interval_reason="there is 1 cluster")
    found = index_of(CAREFUL, changed("assignment", of=lone)).metric
    assert found.value == pytest.approx(0.5)
    assert (found.interval, found.interval_reason) == (None, "of: there is 1 cluster")
    index = index_of(CAREFUL, all_four(sn=None))
    assert (index.metric.value, index.metric.reason, index.deviations) == (None, "sn: no negatives", None)
    assert (index.metric.n, index.metric.n_excluded) == (6, 1)


def of_prompts(**fields: Any) -> IndexDefinition:
    """The mean of one metric over two prompts."""
    prompts = ("sampled-v1", "sampled-twice-v1")
    parts = tuple(Part("nts", "continuation", prompt=prompt) for prompt in prompts)
    return IndexDefinition(name="mean", parts=parts, description="", **fields)


def under_prompts(first: float, second: float, **fields: Any) -> dict[PartSource, ScoredResult]:
    values = {"sampled-v1": first, "sampled-twice-v1": second}
    found = {}
    for prompt, value in values.items():
        one = scored("continuation", prompt, nts=value)
        metrics = {**one.metrics, "nts": replace(one.metrics["nts"], **fields)}
        found[PartSource("continuation", prompt)] = one._replace(metrics=metrics)
    return found


def test_parts_can_be_named_by_prompt_and_paired_over_the_same_items() -> None:
    results = under_prompts(0.2, 0.6)
    apart, paired = (index_of(of_prompts(paired=is_paired), results) for is_paired in (False, True))
    assert apart.metric.value == paired.metric.value == pytest.approx(0.4)
    # The same noise in both: as independent results it cancels in part, as paired ones it does not.
    assert paired.deviations is not None
    assert apart.deviations is not None
    assert paired.deviations.variance == pytest.approx(0.1**2)
    assert apart.deviations.variance == pytest.approx(0.1**2 / 2)
    second = results[PartSource("continuation", "sampled-twice-v1")]
    signature = replace(second.result.signature, items_sha256="0" * 64)
    other = second._replace(result=replace(second.result, signature=signature))
    index = index_of(of_prompts(paired=True), results | {PartSource("continuation", "sampled-twice-v1"): other})
    assert index.metric.reason == "the results under sampled-v1 and sampled-twice-v1 are of different items"
    assert index.deviations is None


def test_paired_results_are_of_common_items_where_there_are_such() -> None:
    """The largest result of each prompt is preferred, but not if the other prompt has none of the same items."""
    definition = of_prompts(paired=True)
    prompts = [part.prompt or "" for part in definition.parts]

    def of_items(prompt: str, n_items: int) -> ScoredResult:
        one = scored("continuation", prompt, n_items=n_items)
        items = f"{n_items:064}"
        return one._replace(result=replace(one.result, signature=replace(one.result.signature, items_sha256=items)))

    found = {
        PartSource("continuation", prompts[0]): [of_items(prompts[0], 447), of_items(prompts[0], 372)],
        PartSource("continuation", prompts[1]): [of_items(prompts[1], 372)],
    }
    chosen = _chosen([definition], found)
    assert {one.result.signature.n_items for one in chosen.values()} == {372}
    assert index_of(definition, chosen).metric.value is not None
    apart = _chosen([of_prompts()], found)
    assert {one.result.signature.n_items for one in apart.values()} == {447, 372}


def test_an_index_has_the_ideal_and_range_that_it_declares() -> None:
    results = under_prompts(-0.5, -0.1, ideal=0.0, minimum=-1.0, maximum=1.0)
    index = index_of(of_prompts(ideal=0.0, minimum=-1.0), results)
    assert index.metric.value == pytest.approx(-0.3)
    assert (index.metric.ideal, index.metric.minimum, index.metric.maximum) == (0.0, -1.0, 1.0)
    assert index.metric.interval is not None
    assert index.metric.interval.low < -0.3 < index.metric.interval.high
    for fields in ({"ideal": 1.0, "minimum": -1.0}, {"ideal": 0.0}):
        with pytest.raises(ConfigError, match=r"its part nts lies in \[-1, 1\] and has the ideal 0\.0; the index is"):
            index_of(of_prompts(**fields), results)


def test_results_of_one_model_protocol_and_normalisation_belong_together() -> None:
    results = [
        *(scored(task) for task in ("recognition", "assignment")),
        scored("continuation", prompt="sampled-twice-v1"),
        scored("word_problem", prompt="zero-shot-sampled-v1"),
        scored("recognition", prompt="greedy-v1"),
        scored("recognition", model="org/other"),
    ]
    found = {(family.protocol, family.results[0].model.id): family for family in results_by_model(results)}
    assert set(found) == {("sampled-v1", "org/name"), ("greedy-v1", "org/name"), ("sampled-v1", "org/other")}
    assert found["sampled-v1", "org/name"].missing == ()
    missing = map(PartSource, ("continuation", "assignment", "word_problem"))
    assert found["greedy-v1", "org/name"].missing == tuple(missing)
    whole = list(all_four().values())
    other = whole[0]
    signature = replace(other.result.signature, normalisation="token_mean", items_sha256="1" * 64)
    mixed = other._replace(result=replace(other.result, signature=signature))
    families = results_by_model([*whole, mixed])
    usual = whole[1].result.signature.normalisation or ""
    n_missing = {family.normalisation: len(family.missing) for family in families}
    assert n_missing == {usual: 0, "token_mean": 3}


def test_whole_results_plain_prompts_and_values_come_before_slices_others_and_none() -> None:
    results = [
        scored("recognition", n_items=11),
        scored("recognition", n_items=44),
        scored("word_problem", prompt="zero-shot-sampled-v1"),
        scored("word_problem", prompt="sampled-v1"),
    ]
    (family,) = results_by_model(results)
    assert family.scored[PartSource("recognition")].result.signature.n_items == 44
    assert family.scored[PartSource("word_problem")].result.signature.prompt == "sampled-v1"
    empty = scored("recognition", n_items=4400, gdr=None, gdr_paper=None, gdr_gifi_repo=None)
    (family,) = results_by_model([*all_four().values(), empty])
    assert family.scored[PartSource("recognition")].metrics["gdr"].value == 0.5


def check_index(folder: Path) -> ModelResults:
    """The results of the only model of some runs, after its indices were recomputed from what the results say."""
    scored = []
    for run in finished_runs(folder):
        result = read_result(run)
        measurement = measurement_of(run, result, read_parts(run, result))
        overall = {metric.name: metric for metric in measurement.metrics() if not metric.group}
        names = load_benchmark(result.signature.benchmark).index_metrics(result.signature.task)
        scored.append(ScoredResult(result, overall, measurement.deviations(names)))
    (of_model,) = results_by_model(scored)
    indices = [index_of(definition, of_model.scored).metric for definition in of_model.definitions]
    metrics = (one for path in folder.rglob("result.json") for one in told(path)["metrics"])
    stored = {one["name"]: one for one in metrics if not one["group"]}
    for definition, index in zip(GIFI.indices, indices, strict=True):
        parts = {part.metric: stored[part.metric]["value"] for part in definition.parts}
        if None in parts.values():
            # A model that solves no problem has no pe, one that writes no pronoun has no of, and neither has an index.
            assert index.value is None
            assert index.reason in {
                f"{name}: {stored[name]['reason']}" for name, value in parts.items() if value is None
            }
            continue
        assert index.value == pytest.approx(sum(parts.values()) / 7)
        assert index.value is not None
        if index.interval is not None:
            assert index.interval.low <= index.value <= index.interval.high
        else:
            # Three templates: a metric may be undefined on some resamples.
            assert "undefined on" in str(index.interval_reason) or "at least 6 clusters" in str(index.interval_reason)
    assert len({index.version for index in indices}) == 3
    return of_model


NAN = float("nan")
IDEALS = {"f1": 1.0, "spread": 0.0}


def tables(
    sets: Sequence[Mapping[str, Sequence[float]]],
    parts: Sequence[tuple[str, ...]] = (("a", "b", "c"),) * 3,
    *,
    benchmark: str = "made",
    task: str = "task",
    contexts: Sequence[int] = (8,),
) -> list[SetTable]:
    """The tables of results after some numbers of examples, one for each set, of which each has its parts."""
    made, scored = examples.result(), {}
    for k, (number, one) in itertools.product(contexts, enumerate(sets)):
        of_suite = replace(made, signature=replace(made.signature, config="suite", parts=parts[number]))
        values = {name: np.array(value) for name, value in one.items()}
        scored[PartSource(task, context=ShownContext(k, number))] = ScoredResult(of_suite, {}, {}, values)
    return set_tables(ModelResults(benchmark, benchmark, "1.0.0", "made", "", scored), IDEALS)


def means(table: SetTable) -> dict[str, tuple[float | None, ...]]:
    return {row.name: tuple(one.value for one in row.means.values()) for row in table.rows}


THREE = (
    {"f1": (0.1, 0.6, 0.9), "spread": (1.0, 0.2, 0.3)},
    {"f1": (0.3, 0.5, 0.9), "spread": (0.4, 0.6, NAN)},
    {"f1": (0.2, 0.1, 0.6), "spread": (0.7, 0.1, 0.5)},
)


def test_each_part_takes_the_set_that_is_best_for_it() -> None:
    (table,) = tables(THREE)
    assert (table.n_examples, table.n_sets, table.n_parts) == (8, 3, 3)
    found = means(table)
    assert found["mean of the sets"] == pytest.approx(((0.2 + 0.4 + 0.8) / 3, (0.7 + 0.3 + 0.4) / 3))
    # By F1: the second set, the first one, and of two equal ones the first.
    assert found["best f1"] == pytest.approx(((0.3 + 0.6 + 0.9) / 3, (0.4 + 0.2 + 0.3) / 3))
    assert found["worst f1"] == pytest.approx(((0.1 + 0.1 + 0.6) / 3, (1.0 + 0.1 + 0.5) / 3))
    # The second set has a median in the third part, where it has no spread.
    assert found["median f1"] == pytest.approx(((0.2 + 0.5 + 0.9) / 3, (0.7 + 0.6) / 2))
    assert found["least spread"] == pytest.approx(((0.3 + 0.1 + 0.9) / 3, (0.4 + 0.1 + 0.3) / 3))
    assert found["most spread"] == pytest.approx(((0.1 + 0.5 + 0.6) / 3, (1.0 + 0.6 + 0.5) / 3))
    deviations = [np.std(values, ddof=1) for values in ([0.1, 0.3, 0.2], [0.6, 0.5, 0.1], [0.9, 0.9, 0.6])]
    assert found["standard deviation over the sets"][0] == pytest.approx(np.mean(deviations))
    # The number of sets is told beside that of the indices, of which this benchmark has none.
    assert (table.n_defined, table.of_sets) == (3, "3 sets")
    several = tables(THREE, benchmark="superni", task="classification", contexts=(8, 2))
    assert [(table.n_examples, table.of_sets) for table in several] == [(2, "3 sets"), (8, "3 of 5 sets")]


def test_a_part_without_any_value_counts_nowhere_and_one_set_or_other_items_are_not_compared() -> None:
    (table,) = tables([{"f1": (0.5, NAN), "spread": (NAN, NAN)}] * 2, [("a", "b")] * 2)
    for row in table.rows:
        assert row.means["spread"].value is None
    best = next(row for row in table.rows if row.name == "best f1").means["f1"]
    assert (best.value, best.n) == (0.5, 1)
    assert tables(THREE[:1]) == tables([dict.fromkeys(IDEALS, (0.0, 0.0))] * 2, [("a", "b"), ("a", "c")]) == []
