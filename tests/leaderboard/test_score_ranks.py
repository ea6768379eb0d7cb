"""Ranks of anybody's scores: what is read, what is computed, and what is said of tables that cannot be used."""

from __future__ import annotations

import csv
import io
import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from biasboard import ranks
from biasboard.ground.errors import BiasboardError, DataError
from leaderboard.ranking.rank_ranges import RankRange
from tests.commands import run
from tests.leaderboard.synthetic import present

command = partial(run, "-m", "biasboard", "ranks")


def wide(n_models: int = 4, n_items: int = 30, *, spread: float = 0.02, seed: int = 0) -> pd.DataFrame:
    """A row for each model; each is a little worse than the one before."""
    rng = np.random.default_rng(seed)
    means = 0.7 - spread * np.arange(n_models)
    values = means[:, None] + rng.normal(0, 0.1, n_items) + rng.normal(0, 0.02, (n_models, n_items))
    frame = pd.DataFrame(values, columns=[f"task {number}" for number in range(n_items)])
    frame.insert(0, "Model", [f"m{number}" for number in range(n_models)])
    return frame


def long(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.melt("Model", var_name="task", value_name="score").rename(columns={"Model": "model"})


def summary(ranked: Any) -> list[tuple[Any, ...]]:
    return [(row.model, str(row.rank), row.tier, round(row.score, 9), round(row.low, 9)) for row in ranked.models]


def test_means_intervals_and_comparisons_are_those_of_plain_loops() -> None:
    table = wide(3, 12, spread=0.03)
    scores = {row[1]: [float(value) for value in row[2:]] for row in table.itertuples()}
    ranked = ranks(table)
    for row in ranked.models:
        values = scores[row.model]
        mean = sum(values) / 12
        error = math.sqrt(sum((value - mean) ** 2 for value in values) / 11 / 12)
        assert row.score == pytest.approx(mean)
        assert (row.low, row.high) == pytest.approx((mean - 2.200985 * error, mean + 2.200985 * error), abs=1e-6)
    beaten: dict[str, set[str]] = {name: set() for name in scores}
    for pair in ranked.comparisons:
        differences = [b - a for a, b in zip(scores[pair.first], scores[pair.second], strict=True)]
        mean = sum(differences) / 12
        error = math.sqrt(sum((value - mean) ** 2 for value in differences) / 11 / 12)
        assert pair.lead == pytest.approx(-mean)
        assert pair.low == pytest.approx(-mean - 2.200985 * error, abs=1e-6)
        assert (pair.lead_at_worst, pair.lead_at_best) == pytest.approx((-mean, -mean))
        # Never smaller than the p-value of the pair alone, nor larger than Bonferroni's, but for what draws vary.
        alone = 2 * stats.t.sf(abs(mean) / error, 11)
        assert alone <= present(pair.p_adjusted) <= 3 * alone + 0.01
        if pair.separable:
            beaten[pair.second if mean < 0 else pair.first].add(pair.first if mean < 0 else pair.second)
    for row in ranked.models:
        n_worse = sum(row.model in winners for winners in beaten.values())
        assert row.rank == RankRange(1 + len(beaten[row.model]), 3 - n_worse, 3)
    assert ranked.tied_for_first == tuple(row.model for row in ranked.models if not beaten[row.model])
    assert sum(row.chance or 0.0 for row in ranked.models) == pytest.approx(1.0)


def test_every_layout_and_unit_gives_the_same_ranks(tmp_path: Path) -> None:
    table = wide()
    expected = summary(ranks(table))
    parquet, semicolons = tmp_path / "long.parquet", tmp_path / "s.csv"
    long(table).to_parquet(parquet)
    table.to_csv(semicolons, index=False, sep=";", encoding="utf-8-sig")
    shuffled = long(table).sample(frac=1, random_state=1)
    for source in (shuffled, table.set_index("Model"), parquet, str(semicolons)):
        assert summary(ranks(source)) == expected
    other = long(table).set_axis(["who", "what", "how_well"], axis=1)
    assert summary(ranks(other, model="who", item="what", score="how_well")) == expected
    for unit in (1e9, 1e-15):
        scaled = ranks(table.set_index("Model") * unit)
        assert [str(row.rank) for row in scaled.models] == [rank for _, rank, *_ in expected]
    worst_first = ranks(table.set_index("Model") * -1, lower_is_better=True)
    assert [(row.model, str(row.rank), row.tier) for row in worst_first.models] == [row[:3] for row in expected]


def test_no_two_models_of_a_tier_are_told_apart_and_the_first_tier_is_tied_for_the_top() -> None:
    ranked = ranks(wide(15, 40, spread=0.006))
    tiers = {row.model: row.tier or 0 for row in ranked.models}
    assert 2 < max(tiers.values()) < 15
    for pair in ranked.comparisons:
        winner, loser = (pair.first, pair.second) if pair.outcome == "first" else (pair.second, pair.first)
        assert not pair.separable or tiers[winner] < tiers[loser]
    for row in ranked.models:
        assert (present(row.rank).best == 1) == (row.model in ranked.tied_for_first)
    assert ranked.n_separable == sum(pair.separable for pair in ranked.comparisons) > 0


def test_instances_of_few_sources_are_less_evidence() -> None:
    rng = np.random.default_rng(4)
    sources = np.repeat(np.arange(12), 25)
    lead = np.repeat(rng.normal(0.1, 0.25, 12), 25)
    solved = {"a": rng.random(300) < 0.55 + lead, "b": rng.random(300) < 0.55}
    rows = [
        {"model": name, "instance_id": f"i{item}", "resolved": value, "repo": f"r{source}"}
        for name, values in solved.items()
        for item, (value, source) in enumerate(zip(values.tolist(), sources.tolist(), strict=True))
    ]
    table = pd.DataFrame(rows)

    def width(**options: Any) -> float:
        (pair,) = ranks(table, **options).comparisons
        return present(pair.high) - present(pair.low)

    assert width(cluster="repo") > 1.5 * width()
    assert ranks(table, cluster="repo").n_clusters == 12


def test_missing_scores_widen_ranks_leave_a_model_out_or_are_compared_on_common_items() -> None:
    table = long(wide(3, 40, spread=0.1))
    lacking = table[~((table.model == "m0") & table.task.isin([f"task {number}" for number in range(12)]))]
    plain = ranks(lacking)
    assert [(row.model, row.reason) for row in plain.models] == [("m1", None), ("m2", None), ("m0", "28 of 40 scores")]
    assert plain.models[-1].score is None
    assert "--range MIN MAX" in plain.notes[0]
    assert "--common to compare on the 28 items" in plain.notes[0]
    widened = {row.model: row for row in ranks(lacking, range=(0, 1.2)).models}
    # At worst its mean is .7 of .7, below m2; at best it is .7 of .7 and .3 of 1.2.
    assert widened["m0"].rank == RankRange(1, 3, 3)
    # So does its interval, with what is missing at the least and at the most.
    assert present(widened["m0"].low) < 0.5 < 0.8 < present(widened["m0"].high)
    assert widened["m1"].rank == RankRange(1, 2, 3)
    common = ranks(lacking, common=True)
    assert [(row.model, str(row.rank)) for row in common.models] == [("m0", "1"), ("m1", "2"), ("m2", "3")]
    assert common.n_items == 28
    mostly = table[~((table.model == "m0") & table.task.isin([f"task {number}" for number in range(25)]))]
    assert ranks(mostly, range=(0, 2)).models[-1].reason == "15 of 40 scores; a rank needs half of them"


def test_right_and_wrong_answers_have_a_known_range_and_equal_scores_claim_no_interval() -> None:
    solved = np.ones((2, 30))
    solved[1, :20] = 0
    table = pd.DataFrame(solved.astype(bool), index=["all", "some"], columns=[f"i{number}" for number in range(30)])
    ranked = ranks(table)
    # The interval of a share of 1 is Wilson's, not of length 0.
    assert ranked.models[0].high == 1.0
    assert ranked.models[0].low == pytest.approx(1 - 2.04523**2 / (30 + 2.04523**2), abs=1e-5)
    assert [str(row.rank) for row in ranked.models] == ["1", "2"]
    texts = table.map(str)
    texts.iloc[0, 3] = ""
    assert ranks(texts).models[0].n_scores == 29
    table = pd.DataFrame(0.3, index=["a", "b"], columns=[f"i{number}" for number in range(20)])
    ranked = ranks(table)
    assert [(str(row.rank), row.tier, row.low) for row in ranked.models] == [("1\N{EN DASH}2", 1, None)] * 2
    assert ranked.detectable == 0.0


def test_summaries_among_the_columns_are_left_out_and_named() -> None:
    table = wide()
    expected = summary(ranks(table))
    with_summaries = table.assign(Average=table.iloc[:, 1:].mean(axis=1), **{"Rank (Borda)": [1, 2, 3, 4]})
    ranked = ranks(with_summaries)
    assert summary(ranked) == expected
    left_out = "Left out, since by their names they sum up the others or number the rows"
    assert ranked.notes == (f"{left_out}: 'Average', 'Rank (Borda)'.",)
    transposed = with_summaries.set_index("Model").T.rename_axis("task").reset_index()
    assert summary(ranks(transposed)) == expected


@pytest.mark.slow
def test_the_command_prints_a_table_or_csv(tmp_path: Path) -> None:
    path, table = tmp_path / "scores.csv", wide(12, 50, spread=0.006)
    table.loc[:1, "Model"] = ["\x1b[31mred", "[bold]b[/bold]"]
    table.to_csv(path, index=False)
    shown = command(path, status=0).stdout
    assert "12 models, 50 items; the highest mean is the best" in shown
    assert "have to differ by about " in shown
    as_csv = command(path, "--format", "csv", status=0).stdout
    # No name acts on the terminal.
    for name in ("\\x1b[31mred", "[bold]b[/bold]"):
        assert name in shown
        assert name in as_csv
    rows = list(csv.DictReader(io.StringIO(as_csv)))
    assert [row["rank_worst"] for row in rows] == [str(row.rank and row.rank.worst) for row in ranks(path).models]
    assert (rows[0]["rank_best"], rows[0]["tier"]) == ("1", "1")


LONG = long(wide()).to_csv(index=False)
HEADER, FIRST_ROW, *_ = LONG.splitlines()
NO_ITEMS = "no column of items is recognised; name it with --item"
UNCOMMON = f"{HEADER}\n" + "".join(f"m{i},t{i},1.5\n" for i in range(20))
UNUSABLE: dict[str, tuple[str | None, dict[str, Any], str]] = {
    "no file": (None, {}, "no such file; name a CSV or Parquet file"),
    "empty": ("", {}, "is empty; give a header"),
    "header alone": (f"{HEADER}\n", {}, "no rows below the header; give a row"),
    "one column": ("model\na\nb\n", {}, "no column of scores beside 'model'"),
    "not UTF-8": ("mod\udcffel,task\na,1\n", {}, "is neither text in UTF-8 nor Parquet; export it again"),
    "short line": (f"{HEADER}\na,t1,1\na,t2\n", {}, "line 3 has 2 fields, the header 3; correct"),
    "one model": (wide(1).to_csv(index=False), {}, "ranks compare at least two models; the table has 1"),
    "a score twice": (f"{LONG}{FIRST_ROW}\n", {}, "model 'm0' has several scores for item 'task 0'; average them"),
    "a model twice": (wide().assign(Model="x").to_csv(index=False), {}, "model 'x' has 4 rows in a wide table; keep"),
    "a column twice": ("model,t,t\na,1,2\nb,1,2\n", {}, "column 't' stands 2 times; keep one, or rename it"),
    "no model": (f"{LONG},task 99,1\n", {}, "has nothing in column 'model'; complete or remove it"),
    "a text": (f"{LONG}m9,task 1,good\n", {}, "model 'm9', item 'task 1': 'good' in column 'score' is no finite"),
    "huge": (f"{LONG}m9,task 1,1e300\n", {}, "'1e300' in column 'score' is no finite number"),
    "two items": (wide(4, 2).to_csv(index=False), {}, "there are 2 items with scores, and ranks need at least 10"),
    "nobody complete": (UNCOMMON, {}, "give --range MIN MAX"),
    "nothing common": (f"{LONG}m9,task 1,0.5\n", {"common": True}, "remove models with few scores, such as 'm9'"),
    "unknown column": (LONG, {"item": "question"}, "no column 'question'; have: model, task, score"),
    "no items": (LONG, {"score": "score", "cluster": "task"}, NO_ITEMS),
    "few clusters": (LONG, {"cluster": "model"}, "lies in the clusters 'm0' and 'm3' of column 'model'"),
    "cluster of columns": (wide().assign(c="x").to_csv(index=False), {"cluster": "c"}, "clusters need a row for each"),
    "range upside down": (LONG, {"range": (1, 0)}, "--range 1 0: give the smallest and then the largest score"),
    "outside the range": (LONG, {"range": (-1, 0.5)}, "is outside --range -1 0.5; give the smallest"),
}


@pytest.mark.parametrize(("content", "options", "line"), UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_table_is_one_line(tmp_path: Path, content: str | None, options: dict[str, Any], line: str) -> None:
    path = tmp_path / "scores.csv"
    if content is not None:
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(BiasboardError, match=re.escape(line)) as raised:
        ranks(path, **options)
    assert "\n" not in str(raised.value)


def test_nested_columns_are_named() -> None:
    lists = pd.DataFrame({"model": [["a"], ["b"]], "task": ["t", "t"], "score": [1.0, 2.0]})
    with pytest.raises(DataError, match="column 'model' holds nested values"):
        ranks(lists)


@pytest.mark.slow
def test_the_example_of_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "site/docs/python.md").read_text(encoding="utf-8")
    _, example, *_ = page.split("```python\n")[1:]
    shown = run("-W", "error", "-c", example.partition("```")[0], cwd=tmp_path, status=0).stdout
    assert "not beaten: " in shown
