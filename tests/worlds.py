"""Boards of made-up models: those that many tests read, built once a session, and those that a test makes itself."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from leaderboard.pages import publishing
from leaderboard.pages.dataset_views import BuiltDataset
from leaderboard.pages.publishing import View, copies, generate, make_view, parquet_files, tables_of
from leaderboard.ranking.boards import Board, assemble
from leaderboard.ranking.frames import Line
from leaderboard.verify.entries import Entry, LeftOut, Root
from schemas.documents.dataset import Manifest
from tests.commands import REPOSITORY
from tests.leaderboard.gifi_results import write_gifi_model
from tests.leaderboard.made_keys import load_known
from tests.leaderboard.synthetic import Gender, leaning, stereotyped, uniform, write_model
from tests.schemas import examples

HOSTILE = (
    'evil/"><script>alert(1)</script> *b* `c` {{ x }} [l](javascript:x) "q" \'a\' &amp; | # $50%_&#~^\\input{x}$<|> '
    "\u202e"
)
"""A name with what acts in HTML, Markdown, templates, LaTeX, YAML and on the eye."""
FORBIDDEN = {"redistributable": False, "licence": "CC-BY-ND-4.0"}
"""Terms of a dataset whose texts may not be shown."""


def copy_site(folder: Path, checkout: Path = REPOSITORY) -> Path:
    """Copy the settings and the hand-written pages to ``site`` in a folder, and return it."""
    return shutil.copytree(checkout / "site", folder / "site", ignore=shutil.ignore_patterns("_build"))


def table_rows(view: View, stem: str) -> list[Line]:
    """Return the rows of a table that the site of a view offers, by its path without an ending."""
    (table,) = (table for table in tables_of(view) if table.files.stem == stem)
    return list(table.lines)


def render(view: View, folder: Path, *, with_parquet: bool = False, site: Path | None = None) -> Path:
    """Render all pages of a view to ``built`` in a folder, as ``leaderboard build`` does, and return it.

    Args:
        view: What to show.
        folder: Folder for the pages.
        with_parquet: True to make the tables as Parquet files too.
        site: Folder of the settings and the hand-written pages; None for a copy of the repository's.
    """
    site, built = site or copy_site(folder), folder / "built"
    texts = generate(view, publishing.handwritten_pages(site))
    tables = parquet_files(view) if with_parquet else {}
    with publishing.combined(site, {**texts, **tables}, copies(view), built) as pages:
        publishing.render(site, pages, built)
    return built


def gifi_manifest(**fields: Any) -> Manifest:
    """The manifest of the dataset that ``write_gifi_model`` pretends to ask, with other fields."""
    return replace(examples.manifest(examples.items()), **{"name": "gifi", "version": "1.0.0", **fields})


class MadeBoard:
    """What a board shows of results; each part is made when a test first asks for it.

    Args:
        found: Folders of local results, other roots, or entries that were loaded already.
        any_name: True where models have names that verification refuses.
        built: Datasets, or their manifests alone.
        pages: Hand-written pages by path.
        options: What else ``make_view`` takes.
    """

    def __init__(
        self,
        *found: Path | Root | Entry,
        any_name: bool = False,
        built: Sequence[Manifest | BuiltDataset] = (),
        pages: Mapping[str, str] = MappingProxyType({}),
        **options: Any,
    ) -> None:
        self._found, self._any_name, self._pages = found, any_name, pages
        self._built = [one if isinstance(one, BuiltDataset) else BuiltDataset(one) for one in built]
        self._options = {"left_out": (), **options}

    def again(self, folder: Path) -> MadeBoard:
        """The board of a copy of its results."""
        copied = [shutil.copytree(str(one), folder / f"copy-{number}") for number, one in enumerate(self._found)]
        return MadeBoard(
            *map(Path, copied), any_name=self._any_name, built=self._built, pages=self._pages, **self._options
        )

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        given = [one for one in self._found if isinstance(one, Entry)]
        roots = [
            Root(one, "local") if isinstance(one, Path) else one for one in self._found if not isinstance(one, Entry)
        ]
        return (*given, *(load_known(*roots, any_name=self._any_name).entries if roots else ()))

    @cached_property
    def board(self) -> Board:
        return assemble(self.entries)

    @cached_property
    def view(self) -> View:
        return make_view(self.board, built=self._built, **self._options)

    @cached_property
    def texts(self) -> dict[str, str]:
        return generate(self.view, self._pages)

    @cached_property
    def parquet(self) -> dict[str, bytes]:
        return parquet_files(self.view)

    @property
    def downloads(self) -> dict[str, Path]:
        """Files of results that the site offers as they are."""
        return copies(self.view)

    def page(self, begin: str) -> str:
        """The only page whose path begins so."""
        (found,) = (text for path, text in self.texts.items() if path.startswith(begin) and path.endswith(".md"))
        return found

    def json(self, folder: str) -> dict[str, Any]:
        """The parsed JSON files of a folder by path below it."""
        files = {path: text for path, text in self.texts.items() if path.startswith(folder)}
        return {path.removeprefix(folder): json.loads(text) for path, text in files.items()}

    def csv(self, path: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.texts[path])))

    def rows(self, stem: str) -> list[Line]:
        return table_rows(self.view, stem)

    def of(self, model_id: str) -> list[Entry]:
        """The results of a model."""
        return [entry for entry in self.entries if entry.result.model.id == model_id]


def silent(reference: str, other: str, gender: Gender, pair: int) -> None:
    """Refuses to answer."""


def _shy(reference: str, other: str, gender: Gender, pair: int) -> float | None:
    return None if pair % 16 == 0 else leaning(2.5, 0.1)(reference, other, gender, pair)


def _mute(reference: str, other: str, gender: Gender, pair: int) -> float | None:
    return None if pair % 4 else 0.9


@pytest.fixture(scope="session")
def models_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of models on pairs of occupations, of which some were asked about pronouns too."""
    root = tmp_path_factory.mktemp("models")
    for name, weights in {"even": (3.0, 0.1), "biased": (0.2, 0.1), "worse": (1.0, 1.6), "other": (2.5, 0.3)}.items():
        write_model(root, f"acme/{name}", leaning(*weights))
        write_model(root, f"acme/{name}", leaning(*weights), ambiguous=True)
    write_model(root, "acme/stereotyped", stereotyped(1.0))
    write_model(root, "acme/shy", _shy)
    write_model(root, "acme/mute", _mute)
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    for name, skill in (("even", 0.5), ("biased", 0.9), ("new", 0.3)):
        write_gifi_model(root / "gifi", f"acme/{name}", skill, n_templates=12)
    write_gifi_model(root / "gifi", "acme/partial", 0.9, tasks=["recognition"], n_templates=12)
    return root


@pytest.fixture(scope="session")
def models(models_root: Path) -> MadeBoard:
    return MadeBoard(models_root)


@pytest.fixture(scope="session")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> MadeBoard:
    """Models of any skill, one without an answer, one with a hostile name, a baseline, and one asked about pronouns."""
    root = tmp_path_factory.mktemp("strangers")
    write_model(root, "baseline/uniform", uniform, endpoint="baseline")
    write_model(root, "acme/small", leaning(1.0, 0.5))
    write_model(root, "acme/small", leaning(1.0, 0.5), ambiguous=True)
    write_model(root, "acme/large", leaning(2.0, 0.1))
    write_model(root, "acme/random", uniform)
    write_model(root, "acme/mute", silent)
    # A name that no model may have.
    hostile = write_model(root / "hostile", "acme/tmp", leaning(1.0, 0.6))
    hostile.write_text(hostile.read_text(encoding="utf-8").replace('"acme/tmp"', json.dumps(HOSTILE)), encoding="utf-8")
    write_gifi_model(root, "lab/even", 0.5)
    terms = examples.manifest(examples.items())
    source = replace(terms.sources[0], name="made", address="https://data.test/x", revision=None, licence="MIT")
    terms = replace(terms, name="synthbias", version="9.0.0", licence="CC0-1.0", seed=None, sources=(source,))
    promised = "# Title\n\n<!-- generated: profile -->\n\n<!-- generated: examples -->\n"
    left_out = [LeftOut("x/y", "accepted", "metric ucerf is <b>0.999</b>")]
    return MadeBoard(root, any_name=True, built=[terms], pages={"index.md": promised}, left_out=left_out)


def luminance(colour: str) -> float:
    """The relative luminance of a colour such as #ff0000, as WCAG defines it."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
