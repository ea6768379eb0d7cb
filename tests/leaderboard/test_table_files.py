"""The files of tables for programs and papers: Parquet, LaTeX and BibTeX."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leaderboard.pages.dataset_views import BuiltDataset
from leaderboard.pages.exports import DownloadTable, Files
from leaderboard.pages.latex import escape
from leaderboard.pages.publishing import SiteSettings
from leaderboard.pages.rendering import View, generate, make_view, parquet_files, tables_of
from leaderboard.pages.table_files import result_tables
from leaderboard.ranking.boards import assemble
from leaderboard.ranking.fields import Columns
from leaderboard.verify.entries import Root
from schemas.documents.dataset import Manifest
from tests.leaderboard.forging import accepted
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import leaning, uniform, write_model
from tests.schemas import examples

HOSTILE = r"evil/50%_&#~^\input{x}$<|>"
COLUMNS: Columns = {"first": str, "second": str, "difference": float, "separable": bool}
TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def manifest() -> Manifest:
    made = examples.manifest(())
    source = replace(made.sources[0], name="made", address="https://data.test/x", revision=None, licence="MIT")
    return replace(
        made,
        name="synthbias",
        version="9.0.0",
        title="Made",
        seed=None,
        sources=(source,),
        licence="CC0-1.0",
        splits=(),
    )


def view_of(root: Path, address: str | None = None) -> View:
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    write_model(root, "acme/small", leaning(1.0, 0.5))
    write_model(root, "acme/large", leaning(2.0, 0.1))
    write_model(root, "acme/mute", lambda reference, other, gender, pair: None)
    hostile = write_model(root / "hostile", "acme/tmp", leaning(1.0, 0.6))
    text = hostile.read_text(encoding="utf-8")
    hostile.write_text(text.replace('"acme/tmp"', json.dumps(HOSTILE)), encoding="utf-8")
    write_gifi_model(root, "lab/even", 0.5)
    board = assemble(load_known(Root(root, "local"), any_name=True).entries)
    return make_view(board, (), (BuiltDataset(manifest()),), settings=SiteSettings(address))


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    return view_of(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def texts(view: View) -> dict[str, str]:
    return generate(view, {})


@pytest.fixture(scope="module")
def parquet(view: View) -> dict[str, bytes]:
    return parquet_files(view)


@pytest.mark.slow
def test_every_table_is_there_as_csv_and_as_parquet_with_its_numbers(
    view: View, texts: dict[str, str], parquet: dict[str, bytes]
) -> None:
    tables = {table.files.stem: table for table in tables_of(view)}
    exported = {path for path in texts if re.fullmatch(r"files/[^/]+\.csv(\.gz)?", path)}
    assert exported == {table.files.csv for table in tables.values()}
    assert any(path.endswith("-comparisons.parquet") for path in parquet)
    frames = {f"files/{name}": frame for name, frame in view.frames._asdict().items()}
    for path, content in parquet.items():
        stem = path.removesuffix(".parquet")
        read = pq.read_table(io.BytesIO(content))
        if stem in frames:
            assert read.num_rows == len(frames[stem]) > 0
            assert read.schema.names == [*frames[stem].columns]
            continue
        assert read.to_pylist() == list(tables[stem].lines), path
        header = next(csv.reader(io.StringIO(texts[tables[stem].files.csv])), [])
        assert header == (read.schema.names if read.num_rows else []), path


@pytest.mark.slow
def test_columns_have_their_type_even_where_they_are_all_null(view: View, parquet: dict[str, bytes]) -> None:
    of_results = {table.files for table in result_tables(view.tables, view.frames.values)}
    of_results |= {
        placement.of_classes.table.files
        for model in view.models
        for placement in model.placements
        if placement.of_classes is not None
    }
    assert len(of_results) > 1
    n_empty = 0
    for table in tables_of(view):
        if table.files in of_results:  # Each result has one: in two formats they would fill a site.
            assert table.files.parquet not in parquet
            continue
        read = pq.read_table(io.BytesIO(parquet[table.files.parquet]))
        assert dict(zip(read.schema.names, read.schema.types, strict=True)) == {
            name: TYPES[kind] for name, kind in table.columns.items()
        }
        n_empty += sum(column.null_count == len(column) for column in read.columns)
    assert n_empty > 10


def test_a_parquet_file_says_what_it_is_about(view: View, parquet: dict[str, bytes]) -> None:
    section = next(one for one in view.sections if one.table.primary is not None)
    schema = pq.read_schema(io.BytesIO(parquet[section.files.parquet]))
    told = schema.metadata
    assert told[b"biasboard.signature"].decode() == str(section.table.signature)
    assert told[b"biasboard.licence"] == b"CC0-1.0"
    assert told[b"biasboard.sources"] == b"https://data.test/x (MIT)"
    of_metric = json.loads(told[b"biasboard.metrics"])["accuracy_anti"]
    assert of_metric == {"metric": "accuracy", "slice": "stereotype=anti", "unit": "items", "ideal": 1}
    assert pq.read_table(io.BytesIO(parquet[section.files.parquet])).to_pylist()[0]["accuracy_anti_version"] == "1.0"
    unbuilt = next(one for one in view.sections if one.table.signature.benchmark != "synthbias")
    assert b"biasboard.licence" not in pq.read_schema(io.BytesIO(parquet[unbuilt.files.parquet])).metadata


@pytest.mark.slow
def test_the_same_results_give_the_same_bytes(parquet: dict[str, bytes], tmp_path: Path) -> None:
    again = view_of(tmp_path)
    assert parquet_files(again) == parquet


def test_a_row_without_a_value_for_each_column_is_an_error() -> None:
    table = DownloadTable(Files("files/x"), COLUMNS, [("a", "b", 0.5, True), ("a", "b", 0.5)])
    for written in ("csv", "parquet"):
        with pytest.raises(ValueError, match="shorter"):
            getattr(table, written)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a_b", r"a\_b"),
        ("100% & #1 $x", r"100\% \& \#1 \$x"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("a~b^c", r"a\textasciitilde{}b\textasciicircum{}c"),
        ("a--b---c", "a-{}-b-{}-{}-c"),
        ('<|"`', r"\textless{}\textbar{}\char34{}{`}"),
        ("a\nb\x1b", r"a\textbackslash{}nb\textbackslash{}x1b"),
        ("x" * 500, "x" * 400 + r" \ldots{} (100 more characters)"),
    ],
)
def test_latex_of_strangers_cannot_act(text: str, written: str) -> None:
    assert escape(text) == written


def test_the_table_for_papers_has_value_interval_and_rank_range(view: View, texts: dict[str, str]) -> None:
    section = next(one for one in view.sections if one.table.primary is not None)
    tex = texts[section.files.tex]
    rows = [line for line in tex.splitlines() if line.startswith(r"\texttt{")]
    assert len(rows) == len(section.table.rows) == 5
    row = next(one for one in section.table.rows if one.entry.result.model.id == "acme/large")
    metric = row.entry.metric("ucerf")
    assert metric is not None
    assert metric.interval is not None
    assert row.rank is not None
    line = next(line for line in rows if "acme/large" in line)
    assert f"& {metric.value:.3f} [{metric.interval.low:.3f}, {metric.interval.high:.3f}] &" in line
    assert line.endswith(rf"& {str(row.rank).replace(chr(0x2013), '--')} \\")
    assert {line.count(" & ") for line in rows} == {len(section.headlines) + 1}


def test_the_caption_names_the_signature_in_words(view: View, texts: dict[str, str]) -> None:
    section = next(one for one in view.sections if one.table.primary is not None)
    caption = next(line for line in texts[section.files.tex].splitlines() if line.startswith(r"\caption{"))
    items = section.table.signature.items_sha256[:8]
    assert f"config type2, split test: 100 items (sha256 {items}). Task coreference 1.1, prompt intrinsic-v1" in caption
    assert "log-probabilities of the options, normalised as sum, 2 outcomes" in caption
    assert "(UCerF) 1.0" in caption
    assert "95\\% intervals" in caption


def test_what_is_unknown_is_a_dash_with_a_footnote(view: View, texts: dict[str, str]) -> None:
    section = next(one for one in view.sections if one.table.primary is not None)
    tex = texts[section.files.tex]
    mute = next(line for line in tex.splitlines() if "acme/mute" in line)
    rank = re.search(r"---\\textsuperscript\{(\w+)\} \\\\$", mute)
    assert rank is not None
    assert rf"\textsuperscript{{{rank[1]}}} 0 of 100 items scored; a rank needs at least half\par" in tex
    marks = set(re.findall(r"---\\textsuperscript\{(\w+)\}", tex))
    notes = re.findall(r"^\\textsuperscript\{(\w+)\} ", tex, re.MULTILINE)
    assert marks <= set(notes)
    assert len(notes) == len(set(notes))
    assert "nan" not in tex.lower()


def test_special_characters_of_names_are_escaped(view: View, texts: dict[str, str]) -> None:
    section = next(one for one in view.sections if one.table.primary is not None)
    written = (
        r"evil/50\%\_\&\#\textasciitilde{}\textasciicircum{}\textbackslash{}input\{x\}\$\textless{}\textbar{}"
        r"\textgreater{}"
    )
    assert rf"\texttt{{{written} (" in texts[section.files.tex]


def test_an_index_has_a_table_for_papers_too(view: View, texts: dict[str, str]) -> None:
    (index,) = view.indices
    tex = texts[index.files.tex]
    assert "The index is the mean of the metrics beside it" in tex
    assert " & ".join(["Model", *(column.heading for column in index.headlines), "Rank"]) in tex


def entries(bibtex: str) -> dict[str, dict[str, str]]:
    found = {}
    for key, body in re.findall(r"^@\w+\{([^,]+),\n(.*?)^\}$", bibtex, re.MULTILINE | re.DOTALL):
        assert body.count("{") == body.count("}")
        found[key] = dict(re.findall(r"^  (\w+) = \{(.*)\},$", body, re.MULTILINE))
    return found


def test_a_table_is_cited_with_the_hash_of_its_numbers(view: View, texts: dict[str, str]) -> None:
    section = next(one for one in view.sections if one.table.primary is not None)
    cited, paper = entries(texts[section.files.bib]).items()
    sha256 = hashlib.sha256(texts[section.files.csv].encode()).hexdigest()
    assert cited[0] == f"biasboard-{section.anchor}-{sha256[:8]}"
    # A BibTeX style reads \_ and _ alike; the path holds none.
    assert f"SHA-256 of {section.files.csv}: {sha256}" in cited[1]["note"]
    assert "year" not in cited[1]
    assert "url" not in cited[1]
    assert paper[1]["eprint"] == "2505.23996"
    assert paper[1]["author"].startswith("Wang, Yinong Oliver and ")


@pytest.mark.slow
def test_a_citation_names_the_address_and_the_date_if_they_are_known(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/small", leaning(1.0, 0.5))
    accepted(tmp_path, "synthbias@9.0.0/acme__small/type2", "2026-03-04")
    board = assemble(load_known(Root(tmp_path, "accepted")).entries)
    view = make_view(board, (), (), settings=SiteSettings("https://board.test/x/"))
    texts = generate(view, {})
    (section,) = view.sections
    (cited, _) = entries(texts[section.files.bib]).values()
    assert (cited["year"], cited["date"]) == ("2026", "2026-03-04")
    assert cited["url"] == f"https://board.test/x/benchmarks/synthbias.html#{section.anchor}"


@pytest.mark.slow
def test_braces_in_a_title_leave_an_entry_whole(tmp_path: Path) -> None:
    write_model(tmp_path, "acme/small", leaning(1.0, 0.5))
    board = assemble(load_known(Root(tmp_path, "local")).entries)
    table = board.tables[0]
    board = replace(board, tables=(replace(table, signatures=(replace(table.signature, config="a{b"),)),))
    view = make_view(board, (), ())
    (cited, _) = entries(generate(view, {})[view.sections[0].files.bib]).values()
    assert r"a\char123{}b" in cited["title"]


def test_pages_offer_the_files_and_the_citation(view: View, texts: dict[str, str]) -> None:
    page = texts["benchmarks/synthbias.md"]
    for section in view.sections:
        if section.table.signature.benchmark == "synthbias":
            for path in (section.files.parquet, section.files.markdown, section.files.tex, section.files.bib):
                assert f'href="../{path}"' in page
    assert page.count("<summary>Share</summary>") == 1
    assert "@inproceedings{wang2025ucerf," in page
    # Markdown must see one unbroken HTML block.
    block = page[page.index("<summary>Share</summary>") :]
    assert "\n\n" not in block[: block.index("</details>")]
