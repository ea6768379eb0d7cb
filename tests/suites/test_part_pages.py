"""The pages about the parts of a suite: what they say follows from the records, part by part."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from schemas.files.record_files import read_records
from tests.suites.commands import SIZES, ask, board, chosen, copied, run_of, told

pytestmark = pytest.mark.slow

PARTS = [f"wood{number:03}" for number in range(6)]


@pytest.fixture(scope="module")
def built(dataset: Path, runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board with the runs of the suite, and with one whose answers to a part failed."""
    root = tmp_path_factory.mktemp("parts")
    all_runs = copied(runs, root / "runs")
    lost = ("--prompt", "shown-v1", "--max-failure-rate", "0.9")
    ask(dataset, all_runs, *lost, model="lab/lost-0.8", PLANTED_FAILS="wood003")
    ask(dataset, all_runs, "--prompt", "shown-v1", model="lab/first-0.8")
    board(all_runs, dataset=dataset, out=root)
    return root / "built"


def folder_of(built: Path) -> Path:
    return built / "files" / "parts" / "labels-1.0.0-woods"


def context_of(built: Path, prompt: str) -> Any:
    index = told(folder_of(built) / "index.json")
    (found,) = [one for one in index["contexts"] if one["title"] == prompt]
    return found


def result_of(built: Path, part: str, model: str, prompt: str = "plain-v1") -> Any:
    context = context_of(built, prompt)
    (name,) = [one["id"] for one in context["results"] if one["model"] == model]
    return told(folder_of(built) / f"{part}.json")["contexts"][context["id"]]["results"][name]


def test_a_part_has_the_values_and_intervals_of_a_run_on_it_alone(built: Path, runs: Path) -> None:
    alone = {one["name"]: one for one in told(run_of(runs, "lab/first-0.8", "wood001-") / "result.json")["metrics"]}
    names = context_of(built, "plain-v1")["metrics"]
    found = dict(zip(names, result_of(built, "wood001", "lab/first-0.8")["values"], strict=True))
    assert set(found) == {"accuracy", "confidence"}
    for name, (value, low, high, reason, floor) in found.items():
        expected = alone[name]
        assert value == pytest.approx(expected["value"], abs=1e-5)
        assert [low, high] == pytest.approx([expected["interval"]["low"], expected["interval"]["high"]], abs=1e-5)
        assert (reason, floor) == (None, None)


def test_labels_are_those_of_the_records(built: Path, runs: Path) -> None:
    records = read_records(run_of(runs, "lab/second-0.8") / "records.parquet")
    context = context_of(built, "plain-v1")
    for part in PARTS:
        own = [one for one in records if one.config == part and one.split == "test"]
        right, said = Counter(one.target for one in own), Counter(map(chosen, own))
        file = told(folder_of(built) / f"{part}.json")["contexts"][context["id"]]
        names, supports = file["labels"]
        assert dict(zip(names, supports, strict=True)) == right
        result = result_of(built, part, "lab/second-0.8")
        assert result["shares"] == pytest.approx([said[name] / len(own) for name in names], abs=1e-5)
        assert result["priors"] == [None] * len(names)
        assert result["why_none"] == [None, "no prior is measured"]
        assert file["n_items"] == {"test": len(own), "bias": 32, "pool": 64, "content_free": 23}


def table_of(built: Path, prompt: str) -> list[Any]:
    (path,) = (built / "files").glob(f"parts-labels-woods-{prompt}-*.parquet")
    return list(pq.read_table(path).to_pylist())


def test_the_table_of_parts_has_mean_and_range_of_the_ranked_models(built: Path, runs: Path) -> None:
    rows = table_of(built, "plain-v1")
    assert [row["part"] for row in rows] == PARTS
    assert [row["n_items"] for row in rows] == list(SIZES)
    assert [row["n_labels"] for row in rows] == [2, 3, 4, 5, 2, 3]
    shares: dict[str, list[float]] = {part: [] for part in PARTS}
    for model in ("lab/first-0.8", "lab/second-0.8"):
        records = read_records(run_of(runs, model) / "records.parquet")
        for part in PARTS:
            own = [one for one in records if one.config == part and one.split == "test"]
            shares[part].append(sum(chosen(one) == one.target for one in own) / len(own))
    for row in rows:
        values = shares[row["part"]]
        assert row["accuracy"] == pytest.approx(sum(values) / 2, abs=1e-12)
        assert [row["accuracy_low"], row["accuracy_high"]] == pytest.approx([min(values), max(values)], abs=1e-12)
        assert row["accuracy_n_models"] == 2


def page_of(built: Path, prompt: str) -> str:
    (path,) = (built / "suites").glob(f"labels-woods-{prompt}-*.html")
    return path.read_text(encoding="utf-8")


def test_the_page_is_a_plain_table_whose_rows_lead_to_the_parts(built: Path) -> None:
    page = page_of(built, "plain-v1")
    assert "mean and the range of 2 models. Only ranked models count." in re.sub(r"\s+", " ", page)
    links = re.findall(r'href="(?:\.\./)?part\.html#([^"]+)">(wood\d+)</a>', page)
    context = context_of(built, "plain-v1")["id"]
    expected = [(f"suite=labels-1.0.0-woods&amp;part={part}&amp;context={context}", part) for part in PARTS]
    assert links == expected
    assert "The same parts under another prompt" in page


def test_a_lost_part_is_unknown_with_the_reason(built: Path) -> None:
    result = result_of(built, "wood003", "lab/lost-0.8", "shown-v1")
    assert [value[:4] for value in result["values"]] == [[None, None, None, "no items to compute it from"]] * 2
    assert result["why_none"][0] == "nothing was answered"
    assert result["n_missing"] == {"test": 20, "bias": 32, "pool": 64, "content_free": 23}
    assert result_of(built, "wood002", "lab/lost-0.8", "shown-v1")["n_missing"] == {}
    row = next(row for row in table_of(built, "shown-v1") if row["part"] == "wood003")
    assert row["accuracy_n_models"] == 1


def test_an_instruction_is_shown_where_the_dataset_may_be_and_only_there(
    built: Path, dataset: Path, tmp_path: Path
) -> None:
    file = told(folder_of(built) / "wood000.json")
    assert file["text"] == "Say which kind of wood the text of wood000 is about: ash, birch."
    assert file["why_no_text"] is None
    assert file["sources"] == [["builder", "builders/labels"]]
    closed = copied(dataset, tmp_path / "closed" / "labels")
    manifest = told(closed / "dataset.json")
    manifest |= {"redistributable": False, "publish_refusal": "texts of others; ask them"}
    (closed / "dataset.json").write_text(json.dumps(manifest), encoding="utf-8")
    ask(closed, tmp_path / "runs")
    board(tmp_path / "runs", dataset=closed, out=tmp_path)
    hidden = told(folder_of(tmp_path / "built") / "wood000.json")
    assert (hidden["text"], hidden["why_no_text"]) == (None, "texts of others")
    everything = [path for path in (tmp_path / "built").rglob("*") if path.suffix in (".html", ".json")]
    assert not [path for path in everything if "Say which kind of wood" in path.read_text(encoding="utf-8")]


def test_pages_lead_to_the_parts_and_back(built: Path) -> None:
    (suite,) = (path.relative_to(built).as_posix() for path in (built / "suites").glob("labels-woods-plain-v1-*.html"))
    assert f'href="../{suite}"' in (built / "datasets/labels-1.0.0.html").read_text(encoding="utf-8")
    results = [path.read_text(encoding="utf-8") for path in (built / "models" / "lab__first-0.8").glob("*.html")]
    assert any(f'href="../../{suite}"' in page for page in results)
    # Each prompt has a table on a page of its own, which leads to the parts under that prompt.
    tables = {path: path.read_text(encoding="utf-8") for path in (built / "benchmarks").rglob("labels*.html")}
    (table,) = (path.relative_to(built).as_posix() for path, text in tables.items() if f'/{suite}"' in text)
    page = (built / suite).read_text(encoding="utf-8")
    for path in (table, "datasets/labels-1.0.0.html"):
        assert f'href="../{path}' in page
    linked = set(re.findall(r'href="\.\./([^"#]+)', page))
    assert [path for path in linked if not (built / path).is_file()] == []
    fallback = (built / "part.html").read_text(encoding="utf-8")
    files = set(re.findall(r'href="(files/parts/[^"]+)"', fallback))
    assert len(files) == len(PARTS) + 1
    assert [path for path in files if not (built / path).is_file()] == []
