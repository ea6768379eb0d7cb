"""Builds the site: generates all texts in memory, runs MkDocs, and replaces the old site at the end."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import jinja2
import yaml
from markupsafe import Markup

from biasboard.ground.errors import ConfigError, import_extra
from biasboard.ground.files import DISK_FULL, replacing_folder, sha256_file, unfinished
from biasboard.ground.memory import Memory
from biasboard.ground.plain_text import visible
from biasboard.ground.progress import Report, silent
from biasboard.ground.strict_json import JsonValue
from evaluators.runs.plan.estimate import rough_duration
from evaluators.stores.store import STORE
from leaderboard.benchmark_pages import load_pages, pages_of_benchmarks
from leaderboard.model_facts import display_name, facts_of
from leaderboard.pages import compare, explorer, markup, table_files
from leaderboard.pages.badges import Badge, make_badges
from leaderboard.pages.compare import answers_link, compare_files, in_order
from leaderboard.pages.dataset_views import (
    BuiltDataset,
    DatasetView,
    computed_from,
    datasets_table,
    make_datasets,
    rule,
)
from leaderboard.pages.explorer import explored, explorer_files, explorer_link
from leaderboard.pages.figures import PageChart, figures_of, size_pictures
from leaderboard.pages.markup import BASELINES, anchor_of, dataset_page, model_page, permalink, row_anchor, row_page
from leaderboard.pages.model_views import (
    ModelView,
    listed_models,
    make_models,
    models_table,
    size_text,
    useless_predictors,
)
from leaderboard.pages.papers import STATUS_CLASSES, PaperView, assumptions, paper_views
from leaderboard.pages.profile import (
    TINTS,
    all_parts,
    facts_sentence,
    front_parts,
    front_table,
    leaders,
    portraits,
    profile_page,
    shown_findings,
)
from leaderboard.pages.suites import SuiteView, make_suites, part_files, suite_page
from leaderboard.pages.table_files import bibtex, paper_latex, paper_markdown
from leaderboard.pages.tables import TableView, table_views
from leaderboard.ranking.boards import Board, Incomplete
from leaderboard.ranking.frames import DownloadTable, Files, Frames, frame_parquet, frames_of
from leaderboard.ranking.profiles import scope_of
from leaderboard.ranking.profiles import tables_of as tables_of_benchmark
from leaderboard.ranking.reproduced import reported_tables
from leaderboard.ranking.rows import Scope
from leaderboard.verify.board_files import CONFIG, SITE
from leaderboard.verify.entries import Entry, LeftOut
from schemas.documents.board import AnswerKey, Register
from schemas.files import contract
from schemas.outputs.documents import BuiltBoard

DEFAULT_SITE = SITE / "_build"
"""Folder of the built site, unless another is named."""
HANDWRITTEN = "docs"
_BUILD = "build"
_UNSAFE = re.compile(r"[\s<>\"'`()\[\]{}\\]")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_BLANK = re.compile(r"\s*\n\s*")
_PACKED = (f"{compare.FOLDER}/", f"{explorer.FOLDER}/")
"""Folders of files that only pages read. As text, those of 1,000 results would not fit a host's limit of 1 GB."""
SITE_MARK = "assets/board.js"
"""Path of a file that every finished site contains."""


def handwritten_pages(site: Path) -> dict[str, str]:
    """Return the text of each Markdown page in ``site/docs`` by its path relative to that folder.

    Raises:
        ConfigError: there is no folder ``docs`` or no ``mkdocs.yml`` in the site folder.
    """
    for name in (CONFIG, HANDWRITTEN):
        if not (site / name).exists():
            raise ConfigError(
                f"{site}: no {name} here; name the folder of the settings and hand-written pages with --site"
            )
    folder = site / HANDWRITTEN
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md"))
    }


class SiteSettings(NamedTuple):
    """Who runs a board, and where, as the settings of its site say; None where they say nothing."""

    address: str | None = None
    """Address of the finished site, which ends with a slash."""
    repository: str | None = None
    """Address of the repository with the results, which git can clone."""
    contact: str | None = None
    """Address of a page, or of mail, for questions and corrections."""


NO_SETTINGS = SiteSettings()


class _Reader(yaml.SafeLoader):
    """Reads settings; a value with a tag that only the site generator knows becomes the tag, which is no address."""


_Reader.add_constructor(None, lambda loader, node: node.tag)


def site_settings(site: Path) -> SiteSettings:
    """Return who runs a board, and where, from ``site_url``, ``repo_url`` and ``extra: contact`` of ``mkdocs.yml``.

    Raises:
        ConfigError: the file is no YAML, or an address is none of the web, or for the contact of mail.
    """
    path = site / CONFIG
    try:
        found = _Reader(path.read_text(encoding="utf-8")).get_single_data()
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}; correct the settings of the site") from error
    settings = found if isinstance(found, dict) else {}
    extra = settings.get("extra")
    address = _web_address(path, "site_url", settings.get("site_url"))
    contact = extra.get("contact") if isinstance(extra, dict) else None
    if contact is not None and not (isinstance(contact, str) and _MAIL.fullmatch(contact)):
        contact = _web_address(path, "extra: contact", contact)
    return SiteSettings(
        address=None if address is None else address.rstrip("/") + "/",
        repository=_web_address(path, "repo_url", settings.get("repo_url")),
        contact=contact,
    )


def _web_address(path: Path, name: str, value: object) -> str | None:
    """Return an address of the settings, None for an empty one."""
    if value is None or value == "":
        return None
    parts = urlsplit(str(value))
    if parts.scheme not in ("http", "https") or not parts.netloc or _UNSAFE.search(str(value)):
        raise ConfigError(f"{path}: {name}: '{value}' is no address of a website; write one such as https://x.org/")
    return str(value)


class LastBuild:
    """The last build of a site, which need not be repeated where nothing that it read has changed.

    What pages are made from is the code, which every key of the memory covers, the options, and the contents of a few
    folders. Links may lead out of these and pipes have no contents, so that a folder with one is always read anew.
    """

    def __init__(
        self, memory: Memory, out: Path, folders: Mapping[str, Path], options: Mapping[str, JsonValue]
    ) -> None:
        """Look at everything that the build is going to read.

        Args:
            memory: The memory of this machine.
            out: Folder of the finished site.
            folders: All folders that a build reads, by a name each; one may be absent.
            options: All else that decides about the pages.
        """
        self._memory, self._out, self._folders, self._options = memory, out, folders, options
        self._inputs = self._read()

    def _read(self) -> dict[str, JsonValue] | None:
        """Return what the build reads; None if no hash can stand for it."""
        if self._memory.folder is None:
            return None
        out = self._out.resolve()
        try:
            contents = {name: _contents(folder.resolve(), out) for name, folder in self._folders.items()}
        except OSError:
            return None
        return {"out": str(out), **contents, **self._options}

    @property
    def board(self) -> BuiltBoard | None:
        """What the last build made, if it read the same and its site is still there as it was; None otherwise."""
        known = None if self._inputs is None else self._memory.get(_BUILD, self._inputs)
        if not isinstance(known, list) or not self._out.is_dir() or known[0] != _state(self._out):
            return None
        return replace(contract.load(known[1], BuiltBoard, where="the last build"), is_new=False)

    def remember(self, board: BuiltBoard) -> None:
        """Keep what a finished build made, unless something changed while it was read."""
        if self._inputs is not None and self._inputs == self._read():
            self._memory.put(_BUILD, self._inputs, [_state(self._out), contract.dump(board)])


@contextmanager
def combined(site: Path, files: Mapping[str, str | bytes], copies: Mapping[str, Path], out: Path) -> Iterator[Path]:
    """Yield a folder of its own with everything that MkDocs reads: its configuration and, in ``docs``, all pages.

    The folder is temporary: that of the settings may be one of an installation, where nothing is written.

    Args:
        site: Folder that contains ``mkdocs.yml``.
        files: Text or bytes of each file by its path. What only pages read gets ``.gz`` behind its name, and whatever
            has such a name is packed.
        copies: File to copy by the path of the copy.
        out: Folder of the finished site, next to which the temporary one lies.
    """
    with unfinished(out) as folder:
        inherited = json.dumps(str((site / CONFIG).absolute()))
        (folder / CONFIG).write_text(f"INHERIT: {inherited}\ndocs_dir: {HANDWRITTEN}\n", encoding="utf-8")
        docs = folder / HANDWRITTEN
        shutil.copytree(site / HANDWRITTEN, docs, ignore=shutil.ignore_patterns("*.md", ".*"))
        for path, content in files.items():
            target, data = docs / path, content.encode() if isinstance(content, str) else content
            if path.startswith(_PACKED):
                target = docs / f"{path}.gz"
            if target.suffix == ".gz":
                data = gzip.compress(data, mtime=0)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        for path, source in copies.items():
            (docs / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, docs / path)
        yield folder


def build_date() -> str:
    """Return the date that pages give, in seconds since 1970; "0" for none, as no clock is read.

    References:
        ``SOURCE_DATE_EPOCH`` of reproducible-builds.org, which makes the same results give the same bytes.
    """
    return os.environ.get("SOURCE_DATE_EPOCH", "0")


def check_generator() -> None:
    """Check before the build that the site generator is installed.

    Raises:
        MissingExtraError: it is not.
    """
    import_extra("mkdocs", "site")
    import_extra("material", "site")


def check_target(out: Path) -> None:
    """Check before the build that the output folder may be replaced: it is absent, empty or an earlier site.

    Raises:
        ConfigError: the path is a link or a file, or the folder holds something else.
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise ConfigError(f"--out {out}: is a link or a file; give a folder")
    if out.exists() and any(out.iterdir()) and not (out / SITE_MARK).is_file():
        raise ConfigError(f"--out {out}: holds files but no earlier site, so it is not replaced; give another folder")


def render(site: Path, folder: Path, out: Path) -> None:
    """Run MkDocs to make the finished site; ``out`` is replaced only on success.

    Args:
        site: Folder that contains ``mkdocs.yml``.
        folder: Folder from :func:`combined`.
        out: Folder of the finished site.

    Raises:
        ConfigError: MkDocs found an error in its configuration or in a page.
        OSError: the disk is full.
    """
    with replacing_folder(out) as finished:
        # No --quiet: it would hide the warnings from --strict too.
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(folder / CONFIG)]
        done = subprocess.run(
            [*command, "--site-dir", str(finished.resolve())],
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "SOURCE_DATE_EPOCH": build_date()},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            for number in DISK_FULL:
                if f"[Errno {number}]" in done.stderr:
                    raise OSError(number, os.strerror(number), str(out))
            raise ConfigError(f"{site / CONFIG}: mkdocs failed: {_complaint(done.stderr)}; correct it and build again")
        _trim(finished)


def _trim(site: Path) -> None:
    """Remove what no reader needs: source maps, languages that are not used, and blank lines around each page's text.

    They were 3.5 of the 40 MB of the demo's site.
    """
    for path in site.glob("assets/**/*.map"):
        path.unlink()
    search = site / "search" / "search_index.json"
    if search.is_file() and json.loads(search.read_text(encoding="utf-8"))["config"]["lang"] == ["en"]:
        shutil.rmtree(site / "assets" / "javascripts" / "lunr", ignore_errors=True)
    for path in site.rglob("*.html"):
        before, start, text = path.read_text(encoding="utf-8").partition("<article")
        text, end, after = text.rpartition("</article>")
        if end:
            path.write_text(
                "".join((_BLANK.sub("\n", before), start, text, end, _BLANK.sub("\n", after))), encoding="utf-8"
            )


def _contents(folder: Path, out: Path) -> str:
    """Return a hash of the paths and the contents of all files in a folder.

    Args:
        folder: The folder; an absent one has no files.
        out: Folder of the finished site, which is passed over. So are stores of answers, which no board reads.

    Raises:
        OSError: a file cannot be read, or the folder holds a link or a pipe.
    """
    digest = hashlib.sha256()
    for below, folders, files in os.walk(folder, onerror=_raise_unless_absent):
        folders[:] = sorted(name for name in folders if Path(below, name) != out)
        for path in (Path(below, name) for name in sorted([*folders, *files]) if not name.startswith(STORE)):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                digest.update(f"\0{path.relative_to(folder).as_posix()}\0{sha256_file(path)}".encode())
            elif not stat.S_ISDIR(mode):
                raise OSError(f"{path}: no file")
    return digest.hexdigest()


def _raise_unless_absent(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _state(folder: Path) -> str:
    """Return a hash of the paths, sizes and times of all files in a folder, which changes with any of them."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        status = path.stat()
        digest.update(f"\0{path.relative_to(folder).as_posix()}\0{status.st_size}\0{status.st_mtime_ns}".encode())
    return digest.hexdigest()


def _complaint(output: str) -> str:
    """Return the line of the MkDocs output with the error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    wrong = [line for line in lines if line.startswith(("WARNING", "ERROR", "Error"))]
    return next(iter([*wrong, *reversed(lines)]), "it gave no reason")


_MARKER = re.compile(r"^<!-- generated: ([a-z-]+) -->$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class View:
    """The data that the pages are made from."""

    board: Board
    sections: tuple[TableView, ...]
    indices: tuple[TableView, ...]
    models: tuple[ModelView, ...]
    left_out: tuple[LeftOut, ...]
    settings: SiteSettings
    """Who runs the board, and where."""
    badges: Mapping[str, tuple[Badge, ...]]
    """Badges of each model, by its id."""
    tries: Mapping[str, str]
    """How many results the owner of an accepted one has handed in, by the folder of the result."""
    datasets: tuple[DatasetView, ...]
    """Datasets that are built here or have results, sorted by name and version."""
    suites: tuple[SuiteView, ...]
    """Parts of the suites that have results."""
    figures: Mapping[Scope, tuple[PageChart, ...]]
    """Figures of all models that were asked alike."""
    by_size: tuple[PageChart, ...]
    """Figures of values over the sizes of models."""
    papers: tuple[PaperView, ...]
    """Papers and how far they are reproduced."""
    chosen: tuple[str, ...] = ()
    """The benchmarks whose results alone were looked at; empty if those of all were."""

    @cached_property
    def frames(self) -> Frames:
        """All values, pairs and ranks of the board."""
        return frames_of(self.board)

    @property
    def tables(self) -> tuple[TableView, ...]:
        """All tables that compare models."""
        return (*self.sections, *self.indices)

    def tables_of(self, benchmark: str) -> tuple[TableView, ...]:
        """Return the tables of a benchmark, the default one first."""
        of_table = {one.anchor: one for one in self.tables}
        return tuple(of_table[anchor_of(table)] for table in tables_of_benchmark(self.board, benchmark))


def make_view(
    board: Board,
    left_out: Sequence[LeftOut],
    built: Sequence[BuiltDataset],
    report: Report = silent,
    *,
    settings: SiteSettings = NO_SETTINGS,
    register: Register | None = None,
    keys: Sequence[AnswerKey] = (),
    chosen: Sequence[str] = (),
) -> View:
    """Arrange a board for its pages and draw the charts.

    Args:
        board: Tables and indices to show.
        left_out: Invalid results, for the audit page.
        built: The datasets on this machine.
        report: Callback for progress.
        settings: Who runs the board, and where.
        register: Decisions about accepted results; None if there are none.
        keys: Answer keys that the board keeps.
        chosen: The benchmarks whose results alone were looked at; empty if those of all were.
    """
    sections = table_views(board, board.tables)
    models = make_models(sections, [dataset.manifest for dataset in built], report)
    indices, figures = table_views(board, board.indices.tables), figures_of(board)
    return View(
        board=board,
        sections=sections,
        indices=indices,
        models=models,
        left_out=tuple(left_out),
        settings=settings,
        badges=make_badges(in_order(board, (*sections, *indices))),
        tries={} if register is None else register.tries(),
        datasets=make_datasets(sections, built, keys),
        suites=make_suites(sections, built, report),
        figures=figures,
        by_size=size_pictures(board),
        papers=paper_views(board, figures),
        chosen=tuple(chosen),
    )


def generate(view: View, handwritten: Mapping[str, str], report: Report = silent) -> dict[str, str]:
    """Generate every text file of the site.

    Args:
        view: Data to show.
        handwritten: Markdown pages by path. Each line ``<!-- generated: NAME -->`` is replaced with the block of that
            name.
        report: Callback for progress.

    Returns:
        The text of each file by its path relative to the root of the site.

    Raises:
        ConfigError: a hand-written page asks for a block that does not exist, or has the path of a generated one.
    """
    environment = templates()
    exported = _exports(view, report)
    exported |= {badge.path: badge.svg for of_model in view.badges.values() for badge in of_model}
    files = {**_pages(environment, view, exported, report), **exported, **_charts(view)}
    files |= {**explorer_files(view.board, view.models, view.sections, report), **part_files(view.suites)}
    files |= compare_files(view.board, view.models, view.sections, view.indices, report)
    blocks = _blocks(environment, view)
    for path, text in handwritten.items():
        if path in files:
            raise ConfigError(f"site/docs/{path}: a generated page has this name; rename the hand-written one")
        unknown = [name for name in _MARKER.findall(text) if name not in blocks]
        if unknown:
            raise ConfigError(f"site/docs/{path}: no generated block '{unknown[0]}'; have: {', '.join(sorted(blocks))}")
        files[path] = _MARKER.sub(lambda found: blocks[found[1]], text)
    return files


def _blocks(environment: jinja2.Environment, view: View) -> dict[str, str]:
    """Return the blocks that hand-written pages show instead of their markers, by name."""
    parts = front_parts(view.board)
    entries = (row.entry for table in view.board.tables for row in table.rows)
    dates = sorted(entry.acceptance.accepted for entry in entries if entry.acceptance is not None)
    front = front_table(view.board, all_parts(view.board), explored(view.models))

    chosen = [load_pages(benchmark).heading for benchmark in view.chosen]

    def block(template: str, **context: object) -> str:
        return environment.get_template(template).render(**context)

    return {
        "about": block("about.html.j2", settings=view.settings, dates=dates),
        "examples": block("examples.html.j2", parts=parts),
        "findings": block("findings.html.j2", findings=shown_findings(parts)),
        "install": block("install.md.j2", repository=view.settings.repository),
        "leaders": block("leaders.html.j2", leaders=leaders(parts)),
        "licences": block("licences.html.j2", datasets=view.datasets),
        "profile": block("profile.html.j2", table=front, tints=TINTS, chosen=chosen),
    }


def copies(view: View) -> dict[str, Path]:
    """Return the files of runs that the site offers for download, by path relative to the root of the site."""
    return {
        download.path: download.source
        for model in view.models
        for placement in model.placements
        for download in placement.answers.downloads
    }


@cache
def templates() -> jinja2.Environment:
    """Return the templates of pages, which are read once."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("leaderboard.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_seen,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    by_own_names: list[Callable[..., Any]] = [
        *(computed_from, display_name, explorer_link, model_page, permalink, profile_page, size_text),
        *(markup.bar, markup.front_matter, markup.metric_number, markup.number, markup.outside_text, markup.percent),
        *(markup.plain_markdown, markup.slug, markup.sort_key, markup.whisker),
    ]
    environment.filters |= {function.__name__: function for function in by_own_names} | {
        "capitalize_first": lambda text: text[:1].upper() + text[1:],
        "count": lambda n: f"{n:,}",
        "duration": rough_duration,
        "ideal": lambda value: f"{value:g}",
        "interval": markup.interval_text,
        "known": _known,
        "standing_whisker": lambda standing: markup.whisker(
            standing.metric,
            {kind: one.metric for kind, one in (("best", standing.best), ("useless", standing.useless)) if one},
            standing.crowd,
        ),
    }
    of_globals: list[Callable[..., Any]] = [dataset_page, facts_of, reported_tables, row_anchor, row_page, suite_page]
    environment.globals |= {function.__name__: function for function in of_globals}
    environment.globals["status_class"] = STATUS_CLASSES.__getitem__
    return environment


def _seen(value: object) -> object:
    """Return a value for a page; in texts, invisible characters become escapes."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _known(value: object) -> str:
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _pages(environment: jinja2.Environment, view: View, exported: Mapping[str, str], report: Report) -> dict[str, str]:
    pages: dict[str, str] = {}

    def write(path: str, template: str, /, **context: object) -> None:
        pages[f"{path.removesuffix('.html')}.md"] = environment.get_template(template).render(**context)

    _write_lists(write, view)
    for data in view.datasets:
        write(data.page, "dataset.md.j2", data=data)
    for suite in view.suites:
        write(suite.page, "suite.md.j2", suite=suite)
    answers = _answers(view)
    for benchmark in view.board.benchmarks:
        tables = view.tables_of(benchmark)
        # The first table of those that ask alike, which is the roll-up if there is one, shows the figures of all.
        first = {scope_of(table.table): table for table in reversed(tables)}
        for table in tables:
            scope = scope_of(table.table)
            write(
                table.page,
                "benchmark.md.j2",
                view=table,
                root="../" * table.page.count("/"),
                tables=tables,
                shown=(shown := _shown(table, tables)),
                computed=computed_from(entry for one in shown for row in one.table.rows for entry in row.entries),
                incomplete=_incomplete(view.board, table),
                figures=view.figures.get(scope, ()) if first[scope] is table else (),
                exported=exported,
                answers=answers,
            )
    described = portraits(view.board, (*view.indices, *view.sections))
    language_models = [model for model in view.models if not model.is_baseline]
    for number, model in enumerate(language_models):
        report("writing pages", number, len(language_models))
        write(
            model.page,
            "model.md.j2",
            model=model,
            facts=facts_sentence(model.id),
            portraits=described[model.id],
            badges=view.badges.get(model.id, ()),
            address=view.settings.address,
            has_answers=any(map(explorer_link, model.placements)),
        )
        for placement in model.placements:
            tries = _tries(view, placement.row.entry)
            write(placement.page, "result.md.j2", model=model, placement=placement, tries=tries, rule=rule())
        of_indices = [(index, row) for index in view.indices for row in index.table.rows if row.model.id == model.id]
        for index, row in of_indices:
            tries = _tries(view, row.entry)
            path = row_page(index.table, row)
            write(path, "index_result.md.j2", model=model, index=index, row=row, tries=tries, answers=answers)
    if len(language_models) < len(view.models):
        write(BASELINES, "useless.md.j2", groups=useless_predictors(view.board))
    return pages


def _tries(view: View, entry: Entry) -> str | None:
    """Return how many results the owner of an accepted one has handed in; published answers of others are no tries."""
    return view.tries.get(entry.place) if entry.acceptance is not None and not entry.is_imported else None


def _shown(table: TableView, tables: Sequence[TableView]) -> tuple[TableView, ...]:
    """Return the tables that a page shows: its own, and before that of a benchmark the first one of all own data."""
    if not table.is_default:
        return (table,)
    first = {one.datasets: one for one in reversed(tables) if one.is_own}
    own = tuple(one for one in tables if first.get(one.datasets) is one)
    return own if table.is_own else (*own, table)


def _write_lists(write: Callable[..., None], view: View) -> None:
    """Write the pages of which there is one each."""
    names = dict.fromkeys([*view.board.benchmarks, *(pages.name for pages in pages_of_benchmarks())])
    listed = [(load_pages(name), view.tables_of(name)) for name in names]
    write("benchmarks/index.html", "benchmarks.md.j2", benchmarks=listed)
    models = listed_models(view.models)
    write("models/index.html", "models.md.j2", models=models, files=Files("files/models"), figures=view.by_size)
    write(
        "audit.html",
        "audit.md.j2",
        lines=table_files.audit_table(view.board, view.left_out).lines,
        n_left_out=len(view.left_out),
        files=Files("files/audit"),
    )
    write("data.html", "data.md.j2", datasets=view.datasets, files=Files("files/datasets"))
    write("papers/index.html", "papers.md.j2", papers=view.papers)
    for paper in view.papers:
        write(paper.page, "paper.md.j2", view=paper, compared=paper.compared, assumptions=assumptions())
    asked = [model for model in view.models if not model.is_baseline]
    readable = [model.id for model in asked if any(map(explorer_link, model.placements))]
    write("answers.html", "answers.md.j2", readable=readable, n_models=len(asked))
    write("compare.html", "compare.md.j2")
    if view.suites:
        by_id = {suite.suite_id: suite for suite in view.suites}
        write("part.html", "part.md.j2", suites=view.suites, by_id=by_id)


def _answers(view: View) -> Callable[..., str | None]:
    """Return a function for the address of the answers of a result, or of a group of them.

    It is the address of the result itself if its answers are not shown, and None for a baseline.
    """
    shown = explored(view.models)

    def behind(entry: Entry, group: Mapping[str, str] | None = None) -> str | None:
        if entry.is_baseline:
            return None
        page = permalink(entry.result)
        return answers_link(entry, group) if page in shown else page

    return behind


def _incomplete(board: Board, table: TableView) -> list[Incomplete]:
    """Return the models without an index, for its table; for each table of results if no model has an index."""
    scope = scope_of(table.table)
    has_index = any(scope_of(index) == scope for index in board.indices.tables)
    if has_index and not table.table.is_index:
        return []
    return [entry for place, entries in board.indices.incomplete.items() if (*place,) == scope for entry in entries]


def tables_of(view: View) -> Iterator[DownloadTable]:
    """Yield every table that the site offers for download."""
    yield from table_files.result_tables(view.tables, view.frames.values)
    for model in view.models:
        for placement in model.placements if not model.is_baseline else ():
            if placement.of_classes is not None:
                yield placement.of_classes.table
    yield from _tables_of_few(view)


def _tables_of_few(view: View) -> Iterator[DownloadTable]:
    """Yield the tables of which no result has its own."""
    yield from map(table_files.view_table, view.tables)
    yield from table_files.pair_tables(view.tables, view.frames.pairs)
    yield table_files.audit_table(view.board, view.left_out)
    yield datasets_table(view.datasets)
    for data in view.datasets:
        yield from (table for table in data.tables.values() if table.lines)
    yield from (suite.table for suite in view.suites)
    yield models_table(listed_models(view.models))


def _exports(view: View, report: Report) -> dict[str, str]:
    files: dict[str, str] = {}
    for number, table in enumerate(found := list(tables_of(view))):
        report("writing tables", number, len(found))
        files[table.files.csv] = table.csv
    for view_of in view.tables:
        cited = bibtex(view_of, files[view_of.files.csv], view.settings.address)
        files |= {view_of.files.tex: paper_latex(view_of), view_of.files.bib: cited}
        files[view_of.files.markdown] = paper_markdown(view_of)
    return files


def parquet_files(view: View) -> dict[str, bytes]:
    """Return every table that the site offers as a Parquet file, by path relative to the root of the site."""
    files = {table.files.parquet: table.parquet for table in _tables_of_few(view)}
    for name, frame in view.frames._asdict().items():
        files[f"files/{name}.parquet"] = frame_parquet(frame)
    return files


def _charts(view: View) -> dict[str, str]:
    pictures = [picture for table in view.tables for picture in table.pictures]
    pictures += [picture for of_scope in view.figures.values() for picture in of_scope]
    pictures += view.by_size
    pictures += [picture for paper in view.papers for of_part in paper.pictures.values() for picture in of_part]
    for model in view.models:
        pictures += [picture for placement in model.placements for picture in placement.pictures]
    return {picture.path: picture.chart.svg for picture in pictures}
