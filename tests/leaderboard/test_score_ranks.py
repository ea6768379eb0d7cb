"""Ranks of anybody's scores: what is read, what is computed, and what is said of tables that cannot be used."""

from __future__ import annotations

import csv
import io
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from biasboard import ranks
from biasboard.ground.errors import ConfigError, DataError
from leaderboard.ranking.rank_ranges import RankRange
from tests.commands import run

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
        assert pair.p_adjusted is not None
        assert alone <= pair.p_adjusted <= 3 * alone + 0.01
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
    transposed = table.set_index("Model").T.rename_axis("task").reset_index()
    csv_path, parquet, semicolons = (tmp_path / name for name in ("long.csv", "long.parquet", "s.csv"))
    long(table).to_csv(csv_path, index=False)
    long(table).to_parquet(parquet)
    table.to_csv(semicolons, index=False, sep=";", encoding="utf-8-sig")
    shuffled = long(table).sample(frac=1, random_state=1)
    for source in (long(table), shuffled, table.set_index("Model"), transposed, csv_path, parquet, str(semicolons)):
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
        assert row.rank is not None
        assert (row.rank.best == 1) == (row.model in ranked.tied_for_first)
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
        assert pair.high is not None
        assert pair.low is not None
        return pair.high - pair.low

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
    assert widened["m0"].low is not None
    assert widened["m0"].high is not None
    assert widened["m0"].low < 0.5 < 0.8 < widened["m0"].high
    assert widened["m1"].rank == RankRange(1, 2, 3)
    common = ranks(lacking, common=True)
    assert [(row.model, str(row.rank)) for row in common.models] == [("m0", "1"), ("m1", "2"), ("m2", "3")]
    assert common.n_items == 28
    mostly = table[~((table.model == "m0") & table.task.isin([f"task {number}" for number in range(25)]))]
    assert ranks(mostly, range=(0, 2)).models[-1].reason == "15 of 40 scores; a rank needs half of them"


def test_right_and_wrong_answers_have_a_known_range() -> None:
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


def test_equal_scores_are_tied_and_claim_no_interval() -> None:
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
    assert ranked.notes == (f"{LEFT_OUT}: 'Average', 'Rank (Borda)'.",)
    transposed = with_summaries.set_index("Model").T.rename_axis("task").reset_index()
    assert summary(ranks(transposed)) == expected
    numbered = ranks(table.reset_index(names=""))
    assert summary(numbered) == expected
    assert numbered.notes == (f"{LEFT_OUT}: ''.",)


LEFT_OUT = "Left out, since by their names they sum up the others or number the rows"


def published_like() -> pd.DataFrame:
    """Twelve models on fifty tasks in percent, as published per-task tables have them."""
    rng = np.random.default_rng(5)
    skill = np.array([66, 65.6, 65.2, 64.9, 63.5, 63, 62, 60.5, 65, 64, 57, 42.0])
    values = np.clip(skill[:, None] + rng.normal(0, 14, 50) + rng.normal(0, 2.5, (12, 50)), 0, 100)
    frame = pd.DataFrame(values.round(2), columns=[f"Task{number:02d}" for number in range(50)])
    frame.insert(0, "Model", [f"org/model-{number}" for number in range(12)])
    frame.insert(1, "Mean (Task)", values.mean(axis=1).round(2))
    return frame


@pytest.mark.slow
def test_the_command_prints_a_table_or_csv(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    published_like().to_csv(path, index=False)
    shown = command(path, status=0).stdout
    assert "12 models, 50 items; the highest mean is the best" in shown
    assert "1\N{EN DASH}5 │ org/model-1" in shown
    assert "not beaten: org/model-1, org/model-0, " in shown
    assert "47 of 66 comparisons tell two models apart" in shown
    assert "have to differ by about 2.1 in mean score to be told apart in 8 of 10 cases" in shown
    assert len(shown.splitlines()) <= 40 - (30 - 12)
    rows = list(csv.DictReader(io.StringIO(command(path, "--format", "csv", status=0).stdout)))
    assert [row["model"] for row in rows] == [row.model for row in ranks(path).models]
    assert (rows[0]["rank_best"], rows[0]["rank_worst"], rows[0]["tier"]) == ("1", "5", "1")


LONG, WIDE = long(wide()).to_csv(index=False), wide().to_csv(index=False)
HEADER, FIRST_ROW, *_ = LONG.splitlines()
INFINITE, NO_ITEMS = "in column 'score' is no finite number", "no column of items is recognised; name it with --item"
CLUSTERED = wide().assign(c="x").to_csv(index=False)
NO_SCORES = wide().assign(**dict.fromkeys(wide().columns[1:], "")).to_csv(index=False)
UNCOMMON = f"{HEADER}\n" + "".join(f"m{i},t{i},1.5\n" for i in range(20))
UNUSABLE: dict[str, tuple[str | None, str, str]] = {
    "no file": (None, "", "no such file; name a CSV or Parquet file"),
    "empty": ("", "", "is empty; give a header"),
    "header alone": (f"{HEADER}\n", "", "no rows below the header; give a row"),
    "one column": ("model\na\nb\n", "", "no column of scores beside 'model'"),
    "binary": ("PAR1 and no more", "", "not a readable parquet file"),
    "not UTF-8": ("mod\udcffel,task\na,1\n", "", "is neither text in UTF-8 nor Parquet; export it again"),
    "short line": (f"{HEADER}\na,t1,1\na,t2\n", "", "line 3 has 2 fields, the header 3; correct"),
    "long line": (f"{HEADER}\na,t1,1,7\n", "", "line 2 has 4 fields, the header 3; correct"),
    "one model": (wide(1).to_csv(index=False), "", "ranks compare at least two models; the table has 1"),
    "a score twice": (f"{LONG}{FIRST_ROW}\n", "", "model 'm0' has several scores for item 'task 0'; average them"),
    "a model twice": (wide().assign(Model="x").to_csv(index=False), "", "model 'x' has 4 rows in a wide table; keep"),
    "a column twice": ("model,t,t\na,1,2\nb,1,2\n", "", "column 't' stands 2 times; keep one, or rename it"),
    "no model": (f"{LONG},task 99,1\n", "", "has nothing in column 'model'; complete or remove it"),
    "a text": (f"{LONG}m9,task 1,good\n", "", f"model 'm9', item 'task 1': 'good' {INFINITE}"),
    "decimal comma": ("model;t1\na;0,5\nb;0,7\n", "", "'a': '0,5' in column 't1' is no finite number; write a number"),
    "infinite": (f"{LONG}m9,task 1,inf\n", "", f"'inf' {INFINITE}"),
    "huge": (f"{LONG}m9,task 1,1e300\n", "", f"'1e300' {INFINITE}"),
    "text column": (wide().assign(License="mit").to_csv(index=False), "", "or remove the column"),
    "no scores": (NO_SCORES, "", "there are 0 items"),
    "two items": (
        wide(4, 2).to_csv(index=False),
        "",
        "there are 2 items with scores, and ranks need at least 10; give",
    ),
    "nobody complete": (UNCOMMON, "", "give --range MIN MAX"),
    "nothing common": (f"{LONG}m9,task 1,0.5\n", "--common", "least 10; remove models with few scores, such as 'm9'"),
    "unknown column": (LONG, "--item question", "no column 'question'; have: model, task, score"),
    "no items": (LONG, "--score score --cluster task", NO_ITEMS),
    "clusters for items": (LONG, "--cluster task", NO_ITEMS),
    "few clusters": (LONG, "--cluster model", "lies in the clusters 'm0' and 'm3' of column 'model'"),
    "cluster of columns": (CLUSTERED, "--cluster c", "clusters need a row for each item"),
    "range upside down": (LONG, "--range 1 0", "--range 1 0: give the smallest and then the largest score"),
    "outside the range": (LONG, "--range -1 0.5", "is outside --range -1 0.5; give the smallest"),
}


@pytest.mark.parametrize(("content", "options", "line"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_table_that_cannot_be_used_is_one_line_with_the_remedy(
    tmp_path: Path, content: str | None, options: str, line: str
) -> None:
    path = tmp_path / "scores.csv"
    if content is not None:
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
    done = command(path, *options.split(), status=1)
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert line in done.stderr


def test_nested_columns_are_named(tmp_path: Path) -> None:
    path, table = tmp_path / "nested.parquet", long(wide())
    lists = pa.array([[value, value] for value in table.score])
    pq.write_table(pa.table({"model": table.model, "task": table.task, "score": lists}), path)
    with pytest.raises(DataError, match="column 'score' is no finite number"):
        ranks(path)
    with pytest.raises(DataError, match="column 'score' holds nested values"):
        ranks(path, item="score", score="task")
    with pytest.raises(ConfigError, match="no column 'x'; have: model, task, score"):
        ranks(path, model="x")


def test_names_cannot_act_on_a_terminal_or_a_spreadsheet(tmp_path: Path) -> None:
    table = wide()
    table["Model"] = ["\x1b[31mred", "[bold]b[/bold]", "two\nlines", "=\u202eback"]
    path = tmp_path / "scores.csv"
    table.to_csv(path, index=False)
    for options in ((), ("--format", "csv")):
        shown = command(path, *options, status=0).stdout
        for name in ("\\x1b[31mred", "[bold]b[/bold]", "two\\nlines", "=\\u202eback"):
            assert name in shown
        assert "\x1b" not in shown
    assert "\n'=\\u202eback," in shown
    assert ranks(table).models[0].model == "\x1b[31mred"


@pytest.mark.slow
def test_the_example_of_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "site/docs/python.md").read_text(encoding="utf-8")
    _, example, *_ = page.split("```python\n")[1:]
    shown = run("-W", "error", "-c", example.partition("```")[0], cwd=tmp_path, status=0).stdout
    assert "not beaten: " in shown
