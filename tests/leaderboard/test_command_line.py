"""The commands as a user types them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from leaderboard.pages import publishing
from leaderboard.pages.serving import open_server
from schemas.files import contract
from schemas.outputs.documents import BuiltBoard
from tests import commands
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, uniform, write_model
from tests.terminal import on_terminal, without_progress
from tests.worlds import copy_site


class Places(NamedTuple):
    """A site folder of its own, so that the repository's stays as it is."""

    site: Path
    runs: Path

    @property
    def built(self) -> Path:
        return self.site / "_build"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    site = copy_site(tmp_path)
    write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5))
    write_model(tmp_path / "runs", "baseline/uniform", uniform, endpoint="baseline")
    write_keys(tmp_path / "leaderboard" / "keys", tmp_path / "runs")
    return Places(site, tmp_path / "runs")


run = partial(commands.run, "-W", "error", "-m")


def build(places: Places, *options: str) -> subprocess.CompletedProcess[str]:
    return run("leaderboard", "build", "--runs", places.runs, "--site", places.site, *options, cwd=places.site.parent)


@pytest.mark.slow
def test_a_terminal_shows_what_a_build_is_doing(places: Places) -> None:
    options = ["--runs", str(places.runs), "--site", str(places.site)]
    shown = on_terminal([sys.executable, "-m", "leaderboard", "build", *options], cwd=places.site.parent)
    for step in ("recomputing results", "drawing charts", "running the site generator"):
        assert step in shown
    assert "wrote " in shown


@pytest.mark.slow
def test_an_unchanged_site_is_not_made_again(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIASBOARD_MEMORY", str(tmp_path / "memory"))
    page = places.site / "_build" / "index.html"
    first = build(places)
    assert "wrote " in first.stderr
    made = page.read_bytes()
    second = build(places)
    assert "nothing changed since the last build" in second.stderr
    assert second.stdout == first.stdout != ""
    third = contract.load(json.loads(build(places, "--format", "json").stdout), BuiltBoard, where="standard output")
    assert (third.is_new, third.n_results, third.next) == (False, 2, f"biasboard serve --dir {page.parent}")
    page.write_text("somebody else's page")
    assert "wrote " in build(places).stderr
    assert page.read_bytes() == made
    assert "wrote " in build(places, "--fresh").stderr
    assert page.read_bytes() == made
    (places.site / "docs" / "index.md").write_text("# Another front page\n\n<!-- generated: profile -->\n")
    assert "wrote " in build(places).stderr
    assert b"Another front page" in page.read_bytes()


@pytest.mark.slow
def test_two_builds_at_once_do_not_meet(places: Places, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "leaderboard", "build", "--runs", str(places.runs), "--site", str(places.site)]
    started = [
        subprocess.Popen([*command, "--out", str(tmp_path / name)], cwd=places.site.parent, stderr=subprocess.PIPE)
        for name in ("one", "two")
    ]
    said = [process.communicate(timeout=280)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    one, two = (
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in (tmp_path / name).rglob("*")
            if path.is_file()
        }
        for name in ("one", "two")
    )
    assert one == two
    assert {path.name for path in places.site.iterdir()} == {"docs", "mkdocs.yml"}


def an_earlier_site(folder: Path) -> None:
    (folder / "assets").mkdir(parents=True)
    (folder / "assets" / "board.js").touch()
    (folder / "index.html").write_text("old", encoding="utf-8")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_build_prints_a_line_per_benchmark_and_writes_the_same_bytes_twice(places: Places) -> None:
    first = build(places)
    assert first.returncode == 0, first.stderr
    # The ranking itself is on the site; of the demo's it took 150 lines.
    assert first.stdout == "synthbias: models 1 (ranked 1), baselines 1, tables 1\n"
    assert f"wrote {places.built / 'index.html'}; look at it with:" in first.stderr
    said, address = first.stderr.splitlines()[-1].split(": ")
    assert said == "your runs on synthbias 9.0.0"
    page, anchor = address.split("#")
    assert f'id="{anchor}"' in Path(page).read_text(encoding="utf-8")
    before = contents(places.built)
    assert {"index.html", "audit.html", "models/acme__small.html", "benchmarks/synthbias.html"} <= before.keys()
    assert build(places).returncode == 0
    after = contents(places.built)
    assert [path for path in before if after.get(path) != before[path]] == []
    assert [path.name for path in places.site.iterdir() if path.name.startswith(".")] == []


@pytest.mark.slow
def test_a_board_of_several_folders_has_the_results_of_all(places: Places, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder, model in zip(folders, ("lab/one", "lab/two"), strict=True):
        write_model(folder, model, leaning(1.0, 0.5 if model == "lab/one" else 0.7))
    shutil.copytree(folders[0], places.runs, dirs_exist_ok=True)
    done = build(places, *(option for folder in folders for option in ("--results", str(folder))))
    assert done.stdout.startswith("synthbias: models 3 "), done.stderr
    own = next(places.runs.glob("*/lab__one/*")).relative_to(places.runs)
    assert f"not shown: {own}: accepted result {own} of the same model and signature is shown instead\n" in done.stderr
    for name in ("acme__small", "baseline__uniform"):
        shutil.rmtree(places.runs / "synthbias@9.0.0" / name)
    # An accepted result stands for the only run that is left.
    assert "your runs on" not in build(places, *(f"--results={folder}" for folder in folders)).stderr
    missing = build(places, "--results", str(folders[0]), "--results", "nowhere")
    assert missing.stderr.splitlines() == ["error: --results nowhere: no such folder; correct it"]


@pytest.mark.slow
def test_an_unsound_result_stops_the_build_and_leaves_the_site(places: Places) -> None:
    an_earlier_site(places.built)
    result = next(places.runs.glob("**/acme__small/**/result.json"))
    result.write_text(result.read_text(encoding="utf-8").replace('"n": 100', '"n": 101', 1), encoding="utf-8")
    accepted = places.runs.parent / "accepted"
    shutil.move(places.runs / "synthbias@9.0.0" / "acme__small", accepted / "synthbias@9.0.0" / "acme__small")
    done = build(places, "--results", str(accepted))
    assert done.returncode == 1
    assert done.stdout == ""
    errors = without_progress(done.stderr).strip().splitlines()
    assert errors[0].startswith("error: synthbias@9.0.0/acme__small/type2/result.json: metric ")
    assert "n is 101, the records give 100" in errors[0]
    assert errors[-1].startswith("error: 1 of 2 results are invalid, the site was not changed;")
    assert (places.built / "index.html").read_text(encoding="utf-8") == "old"


@pytest.mark.slow
def test_an_unsound_run_of_ones_own_is_left_out_and_told(places: Places) -> None:
    result = next(places.runs.glob("**/acme__small/**/result.json"))
    result.write_text("{", encoding="utf-8")
    done = build(places, "--format", "json")
    assert done.returncode == 0, done.stderr
    built = contract.load(json.loads(done.stdout), BuiltBoard, where="standard output")
    assert built.site == str(places.built)
    assert (built.is_new, built.n_results, built.apart) == (True, 1, ())
    assert [(one.benchmark, one.n_models, one.n_baselines) for one in built.benchmarks] == [("synthbias", 0, 1)]
    (left_out,) = built.left_out
    assert left_out.place in left_out.reason
    assert f"left out: {left_out.reason}\n" in done.stderr
    assert "left out: synthbias@9.0.0/acme__small/type2/result.json: not strict JSON" in done.stderr
    audit = (places.built / "audit.html").read_text(encoding="utf-8")
    assert "1 result was left out" in audit
    assert "acme__small/type2/result.json: not strict JSON" in audit
    assert str(places.runs) not in audit


@pytest.mark.slow
def test_a_folder_that_is_no_site_is_left_alone(places: Places, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work", encoding="utf-8")
    done = build(places, "--out", str(precious))
    assert done.returncode == 1
    assert "holds files but no earlier site, so it is not replaced" in done.stderr
    assert [path.name for path in precious.iterdir()] == ["thesis.txt"]


@pytest.mark.slow
def test_a_page_with_a_dead_link_stops_the_build(places: Places) -> None:
    an_earlier_site(places.built)
    (places.site / "docs" / "index.md").write_text("[gone](nowhere.md)\n", encoding="utf-8")
    done = build(places)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith(f"error: {places.site / 'mkdocs.yml'}: mkdocs failed: ")
    assert "nowhere.md" in done.stderr
    assert "Traceback" not in done.stderr
    assert (places.built / "index.html").read_text(encoding="utf-8") == "old"


@pytest.mark.slow
def test_mistakes_are_one_line_with_the_way_out(places: Places, tmp_path: Path) -> None:
    nothing = run("leaderboard", "build", "--runs", tmp_path / "none", "--site", places.site, cwd=tmp_path)
    assert nothing.returncode == 1
    assert nothing.stderr.strip().endswith(
        "make one first, for example: biasboard run --dataset FOLDER --backend baseline --model all"
    )
    no_site = run("leaderboard", "build", "--site", tmp_path / "nowhere", cwd=tmp_path)
    assert no_site.returncode == 1
    assert no_site.stderr.strip().startswith(f"error: {tmp_path / 'nowhere'}: no mkdocs.yml here;")
    not_built = run("leaderboard", "serve", "--dir", tmp_path / "nowhere", cwd=tmp_path)
    assert not_built.returncode == 1
    assert not_built.stderr == (f"error: {tmp_path / 'nowhere'}: no site here; build it first: biasboard board\n")


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("x", encoding="utf-8")
    with open_server(tmp_path, 0) as server:
        assert server.server_address[0] == "127.0.0.1"
        with pytest.raises(ConfigError, match=r"port \d+ of 127\.0\.0\.1: .*; choose another with --port"):
            open_server(tmp_path, server.server_port)


def build_and_score(dataset: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    """Dataset, baselines and site, by the commands of the three packages."""
    copy_site(folder)
    made = folder / "out" / "datasets" / "made"
    for arguments in (
        ["builders.synthbias", *dataset, "--limit", "200", "--out", made],
        ["evaluators", "run", "--dataset", made, "--backend", "baseline", "--model", "uniform"],
        ["evaluators", "run", "--dataset", made, "--backend", "baseline", "--model", "stereotype-0.7"],
    ):
        run(*arguments, cwd=folder, status=0)
    return run("leaderboard", "build", "--results", folder / "none", cwd=folder)


def check_baselines(done: subprocess.CompletedProcess[str], folder: Path, *leaning: tuple[str, str]) -> None:
    assert done.returncode == 0, done.stderr
    exports = [pq.read_table(path).to_pylist() for path in (folder / "site/_build/files").glob("synthbias-*.parquet")]
    names = ("worst_group_accuracy", "pro_rate")
    rows = {
        (row["model"], next(f"{row[name]:.3f}" for name in names if row.get(name) is not None))
        for rows_of_table in exports
        for row in rows_of_table
    }
    # The stereotype is wrong in every item of one group. Where nothing is right, it is what the rows are sorted by.
    assert rows == {("baseline/uniform", "0.500"), ("baseline/stereotype-0.7", "0.000"), *leaning}
    data = (folder / "site" / "_build" / "data.html").read_text(encoding="utf-8")
    assert "dataset not built here" not in data


@pytest.mark.slow
def test_from_the_embedded_frames_to_the_site(tmp_path: Path) -> None:
    check_baselines(build_and_score([], tmp_path), tmp_path, ("baseline/stereotype-0.7", "1.000"))


@pytest.mark.slow
def test_from_winobias_to_the_site(tmp_path: Path, shared_data: Path) -> None:
    check_baselines(build_and_score(["--source", "winobias", "--input", shared_data / "winobias"], tmp_path), tmp_path)


def test_a_full_disk_is_not_blamed_on_the_settings_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "Traceback\nOSError: [Errno 28] No space left on device: '/made/index.html'\n"
    failed = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(typer.Exit), one_line_errors():
        publishing.render(tmp_path, tmp_path, tmp_path / "public")
    line = capsys.readouterr().err
    assert line.startswith(f"error: {tmp_path / 'public'}: the disk is full; free space on the disk or of your quota")
