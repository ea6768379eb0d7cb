"""Generates all texts of the site in memory: Markdown pages from templates, exports and charts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jinja2

from evaluators.benchmark import load_benchmark
from leaderboard.benchmark import BaselinePanel, pages_of_benchmarks
from leaderboard.checking.entries import LeftOut
from leaderboard.ranking.boards import Board
from leaderboard.site import exports, markup
from leaderboard.site.answers import rule
from leaderboard.site.digests import digest_of_index, overview
from leaderboard.site.explorer import explorer_files, explorer_link
from leaderboard.site.exports import Line
from leaderboard.site.index_views import IndexView, index_lines, index_placements, index_views
from leaderboard.site.model_views import ModelView, make_models
from leaderboard.site.sections import SUMMARY_ROWS, Files, Section, make_sections
from schemas.dataset import Manifest
from schemas.errors import ConfigError
from schemas.progress import Report, silent
from schemas.result import Interval, Metric

_MARKER = re.compile(r"^<!-- generated: ([a-z-]+) -->$", re.MULTILINE)


class View(NamedTuple):
    """The data that the pages are made from."""

    board: Board
    sections: tuple[Section, ...]
    indices: tuple[IndexView, ...]
    models: tuple[ModelView, ...]
    left_out: tuple[LeftOut, ...]
    manifests: tuple[Manifest, ...]


def make_view(
    board: Board, left_out: Sequence[LeftOut], manifests: Sequence[Manifest], report: Report = silent
) -> View:
    """Arrange a board for its pages and draw the charts.

    Args:
        board: Tables and indices to show.
        left_out: Invalid results, for the audit page.
        manifests: Manifests of the datasets that have results, for the data page.
        report: Callback for progress.
    """
    sections = make_sections(board)
    return View(
        board, sections, index_views(board), make_models(sections, manifests, report), tuple(left_out), tuple(manifests)
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
    environment = _environment()
    files = {**_pages(environment, view, report), **_exports(view, report), **_charts(view)}
    files |= explorer_files(view.models, report)
    blocks = _blocks(environment, view)
    for path, text in handwritten.items():
        if path in files:
            raise ConfigError(f"site/docs/{path}: a generated page has this name; rename the hand-written one")
        unknown = [name for name in _MARKER.findall(text) if name not in blocks]
        if unknown:
            raise ConfigError(f"site/docs/{path}: no generated block '{unknown[0]}'; have: {', '.join(sorted(blocks))}")
        files[path] = _MARKER.sub(lambda found: blocks[found[1]], text)
    return files


def copies(view: View) -> dict[str, Path]:
    """Return the files of runs that the site offers for download, by path relative to the root of the site."""
    return {
        download.path: download.source
        for model in view.models
        for placement in model.placements
        for download in placement.answers.downloads
    }


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("leaderboard.site"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    environment.filters |= {
        "count": lambda n: f"{n:,}",
        "explorer_link": explorer_link,
        "front_matter": markup.front_matter,
        "ideal": lambda value: f"{value:g}",
        "interval": _interval,
        "known": _known,
        "outside_text": markup.outside_text,
        "metric_number": markup.metric_number,
        "plain_markdown": markup.plain_markdown,
        "sort_key": markup.sort_key,
        "whisker": markup.whisker,
    }
    return environment


def _interval(metric: Metric) -> str:
    interval: Interval | None = metric.interval
    return "" if interval is None else markup.interval_text(interval, signed=metric.minimum < 0)


def _known(value: object) -> str:
    if value is None:
        return "unknown"
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _pages(environment: jinja2.Environment, view: View, report: Report) -> dict[str, str]:
    def render(template: str, **context: object) -> str:
        return environment.get_template(template).render(**context)

    pages = {
        "benchmarks/index.md": render("benchmarks.md.j2", sections=view.sections, files=_files("benchmarks")),
        "models/index.md": render("models.md.j2", models=view.models, files=_files("models")),
        "audit.md": render(
            "audit.md.j2",
            lines=exports.audit_lines(view.board, view.left_out),
            n_left_out=len(view.left_out),
            files=_files("audit"),
        ),
        "explorer.md": render("explorer.md.j2"),
        "data.md": render("data.md.j2", lines=data_lines(view), manifests=view.manifests, files=_files("data")),
    }
    for benchmark in view.board.benchmarks:
        sections = [section for section in view.sections if section.table.signature.benchmark == benchmark]
        indices = [index for index in view.indices if index.table.benchmark == benchmark]
        incomplete = {
            f"{place.dataset} {place.dataset_version}, {place.protocol}": entries
            for place, entries in view.board.indices.incomplete.items()
            if place.benchmark == benchmark
        }
        path = sections[0].page.removesuffix(".html") + ".md"
        pages[path] = render(
            "benchmark.md.j2", benchmark=benchmark, sections=sections, indices=indices, incomplete=incomplete
        )
    for number, model in enumerate(view.models):
        report("writing pages", number, len(view.models))
        placed = index_placements(view.indices, model.id)
        digests = [*map(digest_of_index, placed), *(placement.digest for placement in model.placements)]
        pages[model.page.removesuffix(".html") + ".md"] = render(
            "model.md.j2",
            model=model,
            indices=placed,
            digests=digests,
            overview=(*_without_index(view.board, model.id), *overview(digests)),
            rule=rule(),
        )
    return pages


def _without_index(board: Board, model_id: str) -> Iterator[str]:
    """Yield a sentence for each index that a model does not have, with the reason."""
    for place, entries in board.indices.incomplete.items():
        for entry in entries:
            if entry.model_id == model_id:
                where = f"{place.dataset} {place.dataset_version}, {place.protocol}"
                yield f"It has no index and so no rank on {where}: {entry.reason}."


def _files(stem: str) -> Files:
    return Files(f"files/{stem}.json", f"files/{stem}.csv")


def _blocks(environment: jinja2.Environment, view: View) -> dict[str, str]:
    """Return the blocks for hand-written pages: the rankings, and the panel of baselines of each benchmark."""
    panels: dict[str, str] = {}
    for pages in pages_of_benchmarks():
        if (panel := pages.baseline_panel) is not None:
            if panel.name in ("rankings", *panels):
                raise ConfigError(f"benchmark '{pages.name}': another block is called '{panel.name}'; rename its panel")
            panels[panel.name] = _panel(environment, view, pages.name, panel)
    rankings = environment.get_template("rankings.html.j2").render(
        sections=_fullest(view.sections), indices=view.indices, summary_rows=SUMMARY_ROWS
    )
    return {"rankings": rankings, **panels}


def _panel(environment: jinja2.Environment, view: View, benchmark: str, panel: BaselinePanel) -> str:
    section = next(
        (
            section
            for section in view.sections
            if section.table.signature.benchmark == benchmark
            and section.n_baselines
            and any(column.key == panel.decider for column in section.table.columns)
        ),
        None,
    )
    rows = () if section is None else tuple(row for row in section.table.rows if row.entry.is_baseline)
    columns = () if section is None else tuple(c for c in section.table.columns if c.key in panel.columns)
    return environment.get_template("baselines.html.j2").render(section=section, rows=rows, columns=columns)


def _fullest(sections: Sequence[Section]) -> list[Section]:
    """Return the tables that the front page summarises.

    Of the tables that have the same dataset, version, config and prompt, this is the first one with the most items.
    Benchmarks that are ranked by an index have no tables there.
    """
    best: dict[tuple[str, ...], Section] = {}
    for section in sections:
        signature = section.table.signature
        if load_benchmark(signature.benchmark).indices or not section.table.is_whole:
            continue  # The index ranks its models, or a slice of the items ranks none.
        key = (signature.dataset, signature.dataset_version, signature.config, signature.prompt)
        if key not in best or signature.n_items > best[key].table.signature.n_items:
            best[key] = section
    return list(best.values())


def _exports(view: View, report: Report) -> dict[str, str]:
    files: dict[str, str] = {}
    for section in view.sections:
        signature = str(section.table.signature)
        files |= _both(section.files, exports.table_lines(section.table), signature)
        if section.table.comparisons:
            files |= _both(section.comparisons, exports.comparison_lines(section.table.comparisons), signature)
    for index in view.indices:
        signatures = " ".join(index.table.signatures)
        files |= _both(index.files, index_lines(index.table), signatures)
        if index.table.comparisons:
            files |= _both(index.comparisons, exports.comparison_lines(index.table.comparisons), signatures)
    for number, model in enumerate(view.models):
        report("writing tables", number, len(view.models))
        for placement in model.placements:
            signature = str(placement.section.table.signature)
            files |= _both(placement.files, exports.metric_lines(placement.row.entry), signature)
    files |= _both(_files("audit"), exports.audit_lines(view.board, view.left_out), None)
    files |= _both(_files("data"), data_lines(view), None)
    files |= _both(_files("benchmarks"), [_benchmark_line(section) for section in view.sections], None)
    files |= _both(_files("models"), [_model_line(model) for model in view.models], None)
    return files


def _both(files: Files, lines: Sequence[Line], signature: str | None) -> dict[str, str]:
    return {files.json: exports.to_json(lines, signature=signature), files.csv: exports.to_csv(lines)}


def _benchmark_line(section: Section) -> Line:
    signature = section.table.signature
    return {
        "benchmark": signature.benchmark,
        "dataset": signature.dataset,
        "dataset_version": signature.dataset_version,
        "config": signature.config,
        "prompt": signature.prompt,
        "n_items": signature.n_items,
        "n_ranked": len(section.table.ranked),
        "n_baselines": section.n_baselines,
        "signature": str(signature),
        "signature_sha256": section.table.signature_sha256,
    }


def _model_line(model: ModelView) -> Line:
    return {
        "model": model.id,
        "backend": model.backends,
        "n_results": len(model.placements),
        "status": model.status,
        "baseline": model.is_baseline,
    }


def data_lines(view: View) -> list[Line]:
    """Return one export row for each set of items that has results, with facts from the manifest if it is available."""
    manifests = {(manifest.name, manifest.version): manifest for manifest in view.manifests}
    n_results: dict[tuple[str, str, str, str, str], int] = {}
    items: dict[tuple[str, str, str, str, str], int] = {}
    for section in view.sections:
        signature = section.table.signature
        splits = "+".join(signature.splits)
        key = (signature.dataset, signature.dataset_version, signature.config, splits, signature.items_sha256)
        n_results[key] = n_results.get(key, 0) + len(section.table.rows)
        items[key] = signature.n_items
    lines: list[Line] = []
    for key in sorted(n_results):
        dataset, version, config, splits, items_sha256 = key
        manifest = manifests.get((dataset, version))
        lines.append(
            {
                "dataset": dataset,
                "version": version,
                "config": config,
                "splits": splits,
                "n_items": items[key],
                "items_sha256": items_sha256,
                "n_results": n_results[key],
                "licence": manifest.licence if manifest else None,
                "human_validated": manifest.human_validated if manifest else None,
            }
        )
    return lines


def _charts(view: View) -> dict[str, str]:
    pictures = [section.picture for section in view.sections if section.picture is not None]
    pictures += [index.picture for index in view.indices if index.picture is not None]
    for model in view.models:
        pictures += [picture for placement in model.placements for picture in placement.pictures]
    drawings = {picture.light: picture.chart.light for picture in pictures}
    return drawings | {picture.dark: picture.chart.dark for picture in pictures}
