"""The files of tables for programs and papers: CSV, Parquet, LaTeX and BibTeX."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leaderboard.pages.publishing import SiteSettings, generate, make_view, tables_of
from leaderboard.pages.table_files import escape, result_tables
from leaderboard.pages.tables import TableView
from leaderboard.ranking.frames import Columns, DownloadTable, Files, to_csv
from leaderboard.verify.entries import Root
from tests.leaderboard.forging import Places, accepted, asking, board, constant, forge
from tests.leaderboard.synthetic import leaning, present, write_model
from tests.worlds import MadeBoard, table_rows

pytestmark = pytest.mark.slow

COLUMNS: Columns = {"first": str, "second": str, "difference": float, "separable": bool}
TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


@pytest.fixture(scope="module")
def section(strangers: MadeBoard) -> TableView:
    """The table that ranks models by pairs of occupations."""
    (found,) = (one for one in strangers.view.sections if one.table.signature.config == "type2")
    return found


def test_a_row_too_short_is_an_error_and_cells_that_a_spreadsheet_would_run_are_defused() -> None:
    table = DownloadTable(Files("files/x"), COLUMNS, [("a", "b", 0.5, True), ("a", "b", 0.5)])
    for written in ("csv", "parquet"):
        with pytest.raises(ValueError, match="shorter"):
            getattr(table, written)
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\uff1dHYPERLINK(1)", "plain", ""]
    lines = list(csv.reader(io.StringIO(to_csv([{"text": text} for text in texts]))))
    defused = [f"'{text}" for text in texts[:-2]]
    assert [line[0] if line else "" for line in lines[1:]] == [*defused, "plain", ""]
    assert to_csv([{"gap": -0.25, "known": True, "rank": None}]) == "gap,known,rank\n-0.25,true,\n"


def test_every_table_is_there_as_csv_and_parquet_with_its_numbers(strangers: MadeBoard, section: TableView) -> None:
    view, texts = strangers.view, strangers.texts
    tables = {table.files.stem: table for table in tables_of(view)}
    exported = {path for path in texts if re.fullmatch(r"files/[^/]+\.csv(\.gz)?", path)}
    assert exported == {table.files.csv for table in tables.values()}
    # Each result has tables: in two formats they would fill a site.
    of_results = {table.files.stem for table in result_tables(view.tables, view.frames.values)}
    placements = (placement for model in view.models for placement in model.placements)
    of_results |= {one.of_classes.table.files.stem for one in placements if one.of_classes is not None}
    assert len(of_results) > 1
    frames = {f"files/{name}": frame for name, frame in view.frames._asdict().items()}
    of_parquet = {path.removesuffix(".parquet"): content for path, content in strangers.parquet.items()}
    assert of_parquet.keys() == (tables.keys() | frames.keys()) - of_results
    n_empty = 0
    for stem, content in of_parquet.items():
        read = pq.read_table(io.BytesIO(content))
        if stem in frames:
            assert read.num_rows == len(frames[stem]) > 0
            assert read.schema.names == [*frames[stem].columns]
            continue
        assert read.to_pylist() == list(tables[stem].lines), stem
        header = next(csv.reader(io.StringIO(texts[tables[stem].files.csv])), [])
        assert header == (read.schema.names if read.num_rows else []), stem
        kinds = {name: TYPES[kind] for name, kind in tables[stem].columns.items()}
        assert dict(zip(read.schema.names, read.schema.types, strict=True)) == kinds
        n_empty += sum(column.null_count == len(column) for column in read.columns)
    assert n_empty > 10, "columns without a value have their type, too"
    lines, from_csv = strangers.rows(section.files.stem), strangers.csv(section.files.csv)
    for row, csv_line, line in zip(section.table.rows, from_csv, lines, strict=True):
        metric, counts = row.entry.metric("accuracy", {"stereotype": "anti"}), row.entry.result.counts
        assert metric is not None
        assert line["accuracy_anti"] == metric.value
        assert csv_line["accuracy_anti"] == ("" if metric.value is None else repr(metric.value))
        low = None if metric.interval is None else metric.interval.low
        assert line["accuracy_anti_low"] == low
        assert csv_line["accuracy_anti_low"] == ("" if low is None else repr(low))
        assert int(csv_line["n_scored"]) == line["n_scored"] == counts.scored
        assert line["unranked_reason"] == row.unranked
        assert line["model"] == row.model.id
    assert sum(line["n_scored"] == 100 for line in lines) == len(lines) - 1


def test_latex_of_strangers_cannot_act() -> None:
    for text, written in (
        ("a_b", r"a\_b"),
        ("100% & #1 $x", r"100\% \& \#1 \$x"),
        ("a~b^c", r"a\textasciitilde{}b\textasciicircum{}c"),
        ("a--b---c", "a-{}-b-{}-{}-c"),
        ('<|"`', r"\textless{}\textbar{}\char34{}{`}"),
        ("a\nb\x1b", r"a\textbackslash{}nb\textbackslash{}x1b"),
        ("x" * 500, "x" * 400 + r" \ldots{} (100 more characters)"),
    ):
        assert escape(text) == written


def test_the_table_for_papers_has_values_ranks_and_footnotes(strangers: MadeBoard, section: TableView) -> None:
    tex = strangers.texts[section.files.tex]
    rows = [line for line in tex.splitlines() if line.startswith(r"\texttt{")]
    assert len(rows) == len(section.table.rows) == 6
    row = next(one for one in section.table.rows if one.model.id == "acme/large")
    metric = present(row.entry.metric("ucerf"))
    interval = present(metric.interval)
    line = next(line for line in rows if "acme/large" in line)
    assert f"& {metric.value:.3f} [{interval.low:.3f}, {interval.high:.3f}] &" in line
    assert line.endswith(rf"& {str(present(row.rank)).replace(chr(0x2013), '--')} \\")
    assert {line.count(" & ") for line in rows} == {len(section.headlines) + 1}
    in_markdown = strangers.texts[section.files.markdown]
    assert rf"| {metric.value:.3f} \[{interval.low:.3f}, {interval.high:.3f}\] |" in in_markdown
    assert not re.search(r"(?<!\\)<", in_markdown)
    # Names of strangers are texts.
    assert r"\$50\%\_\&\#\textasciitilde{}\textasciicircum{}\textbackslash{}input\{x\}\$\textless{}\textbar{}" in tex
    mute = next(line for line in tex.splitlines() if "acme/mute" in line)
    rank = present(re.search(r"---\\textsuperscript\{(\w+)\} \\\\$", mute))
    assert rf"\textsuperscript{{{rank[1]}}} 0 of 100 items scored; a rank needs at least half\par" in tex
    marks = set(re.findall(r"---\\textsuperscript\{(\w+)\}", tex))
    notes = re.findall(r"^\\textsuperscript\{(\w+)\} ", tex, re.MULTILINE)
    assert marks <= set(notes)
    assert len(notes) == len(set(notes))
    assert not re.search(r"\bnan\b", tex.lower())


def cited_in(bibtex: str) -> dict[str, dict[str, str]]:
    found = {}
    for key, body in re.findall(r"^@\w+\{([^,]+),\n(.*?)^\}$", bibtex, re.MULTILINE | re.DOTALL):
        assert body.count("{") == body.count("}")
        found[key] = dict(re.findall(r"^  (\w+) = \{(.*)\},$", body, re.MULTILINE))
    return found


def test_a_table_is_cited_with_the_hash_of_its_numbers(strangers: MadeBoard, section: TableView) -> None:
    (key, cited), (_, paper) = cited_in(strangers.texts[section.files.bib]).items()
    sha256 = hashlib.sha256(strangers.texts[section.files.csv].encode()).hexdigest()
    assert key == f"biasboard-{section.anchor}-{sha256[:8]}"
    # A BibTeX style reads \_ and _ alike; the path holds none.
    assert f"SHA-256 of {section.files.csv}: {sha256}" in cited["note"]
    assert {"year", "url"}.isdisjoint(cited)
    assert paper["eprint"] == "2505.23996"
    assert paper["author"].startswith("Wang, Yinong Oliver and ")


def test_a_citation_names_address_and_date_if_they_are_known_and_braces_leave_it_whole(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/small", leaning(1.0, 0.5))
    accepted(tmp_path, "synthbias@9.0.0/acme__small/type2", "2026-03-04")
    made = MadeBoard(Root(tmp_path, "accepted"), settings=SiteSettings("https://board.test/x/"))
    (section,) = made.view.sections
    (cited, _) = cited_in(made.texts[section.files.bib]).values()
    assert (cited["year"], cited["date"]) == ("2026", "2026-03-04")
    assert cited["url"] == f"https://board.test/x/benchmarks/synthbias.html#{section.anchor}"
    table = replace(section.table, signatures=(replace(section.table.signature, config="a{b"),))
    view = make_view(replace(made.board, tables=(table,)), (), ())
    (cited, _) = cited_in(generate(view, {})[view.sections[0].files.bib]).values()
    assert r"a\char123{}b" in cited["title"]


def test_the_audit_gives_the_reason_of_each_result_without_a_rank_or_a_table(places: Places, tmp_path: Path) -> None:
    shutil.copytree(places.honest, tmp_path / "honest")
    forge(places, tmp_path / "unknown", constant(0.71), model="acme/unknown", **asking(dataset="elsewhere"))
    forge(places, tmp_path / "slice", lambda records: records[:100], **asking(n_items=100, items_sha256="1" * 64))
    forge(places, tmp_path / "withdrawn", constant(0.74), model="acme/withdrawn")
    accepted(tmp_path, "honest", "2026-01-01")
    accepted(tmp_path, "withdrawn", "2026-01-02", decision="withdrawn", reason="the tokenizer was wrong")
    view = make_view(board(tmp_path, places), (), ())
    told = {row["place"]: (row["state"], str(row["reason"] or "")) for row in table_rows(view, "files/audit")}
    begins = {
        "honest": ("shown", ""),
        "slice": ("shown", "a limited run, of 100 of 200 items of type2: ask all of them"),
        "unknown": ("apart", "the board has no answer key of elsewhere@1.0.0 type2 under prompt intrinsic-v1"),
        "withdrawn": ("shown", "withdrawn: the tokenizer was wrong"),
    }
    page = generate(view, {})["audit.md"]
    for place, (state, reason) in begins.items():
        assert told[place][0] == state
        assert reason in told[place][1]
        assert f'<span class="bb-reason">{html.escape(told[place][1], quote=False)}</span>' in page
    assert told["honest"] == ("shown", "")
