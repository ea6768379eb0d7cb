"""The commands as a user types them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from biasboard.ground.command_line import one_line_errors
from biasboard.ground.errors import ConfigError
from leaderboard.commands.serve import open_server
from leaderboard.pages import publishing
from schemas.files import contract
from schemas.outputs.documents import BuiltBoard
from tests import commands
from tests.leaderboard.made_keys import write_keys
from tests.leaderboard.synthetic import leaning, uniform, write_model
from tests.terminal import on_terminal, without_progress
from tests.worlds import copy_site

run = partial(commands.run, "-W", "error", "-m")


class Places(NamedTuple):
    """A site folder of its own, so that the repository's stays as it is."""

    site: Path
    runs: Path

    @property
    def built(self) -> Path:
        return self.site / "_build"

    @property
    def options(self) -> list[str]:
        return ["--runs", str(self.runs), "--site", str(self.site)]

    def build(self, *options: str) -> subprocess.CompletedProcess[str]:
        return run("leaderboard", "build", *self.options, *options, cwd=self.site.parent)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    site = copy_site(tmp_path)
    write_model(tmp_path / "runs", "acme/small", leaning(1.0, 0.5))
    write_model(tmp_path / "runs", "baseline/uniform", uniform, endpoint="baseline")
    write_keys(tmp_path / "leaderboard" / "keys", tmp_path / "runs")
    return Places(site, tmp_path / "runs")


def document(done: subprocess.CompletedProcess[str]) -> BuiltBoard:
    return contract.load(json.loads(done.stdout), BuiltBoard, where="standard output")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_a_site_is_made_again_after_a_change(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIASBOARD_MEMORY", str(tmp_path / "memory"))
    page = places.built / "index.html"
    shown = on_terminal([sys.executable, "-m", "leaderboard", "build", *places.options], cwd=places.site.parent)
    for step in ("recomputing results", "drawing charts", "running the site generator", "wrote "):
        assert step in shown
    before = contents(places.built)
    assert {"index.html", "audit.html", "models/acme__small.html", "benchmarks/synthbias.html"} <= before.keys()
    again = places.build("--fresh")
    # The ranking itself is on the site; of the demo's it took 150 lines.
    assert again.stdout == "synthbias: models 1 (ranked 1), baselines 1, tables 1\n"
    assert f"wrote {page}; look at it with:" in again.stderr
    said, address = again.stderr.splitlines()[-1].split(": ")
    assert said == "your runs on synthbias 9.0.0"
    own, anchor = address.split("#")
    assert f'id="{anchor}"' in Path(own).read_text(encoding="utf-8")
    assert contents(places.built) == before
    assert [path.name for path in places.site.iterdir() if path.name.startswith(".")] == []
    unchanged = places.build("--format", "json")
    assert "nothing changed since the last build" in unchanged.stderr
    built = document(unchanged)
    assert (built.is_new, built.n_results, built.next) == (False, 2, f"biasboard serve --dir {page.parent}")


@pytest.mark.slow
def test_accepted_results_of_another_folder_stand_for_runs(places: Places, tmp_path: Path) -> None:
    write_model(tmp_path / "one", "lab/one", leaning(1.0, 0.5))
    shutil.copytree(tmp_path / "one", places.runs, dirs_exist_ok=True)
    done = places.build(f"--results={tmp_path / 'one'}")
    assert done.stdout.startswith("synthbias: models 2 "), done.stderr
    own = next(places.runs.glob("*/lab__one/*")).relative_to(places.runs)
    assert f"not shown: {own}: accepted result {own} of the same model and signature is shown instead\n" in done.stderr


@pytest.mark.slow
def test_an_unsound_run_of_ones_own_is_left_out_and_told(places: Places) -> None:
    next(places.runs.glob("**/acme__small/**/result.json")).write_text("{", encoding="utf-8")
    done = places.build("--format", "json")
    assert done.returncode == 0, done.stderr
    built = document(done)
    assert (built.site, built.is_new, built.n_results, built.apart) == (str(places.built), True, 1, ())
    assert [(one.benchmark, one.n_models, one.n_baselines) for one in built.benchmarks] == [("synthbias", 0, 1)]
    (left_out,) = built.left_out
    said = "synthbias@9.0.0/acme__small/type2/result.json: not strict JSON"
    assert left_out.reason.startswith(said)
    assert f"left out: {left_out.reason}\n" in done.stderr
    audit = (places.built / "audit.html").read_text(encoding="utf-8")
    assert "1 result was left out" in audit
    assert said in audit
    assert str(places.runs) not in audit


@pytest.mark.slow
def test_what_cannot_be_built_is_named_and_leaves_what_was_there(places: Places, tmp_path: Path) -> None:
    (places.built / "assets").mkdir(parents=True)
    (places.built / "assets" / "board.js").touch()
    (places.built / "index.html").write_text("old", encoding="utf-8")
    front, before = places.site / "docs" / "index.md", (places.site / "docs" / "index.md").read_text()
    front.write_text("[gone](nowhere.md)\n", encoding="utf-8")
    done = places.build()
    assert done.stderr.strip().splitlines()[-1].startswith(f"error: {places.site / 'mkdocs.yml'}: mkdocs failed: ")
    assert "nowhere.md" in done.stderr
    assert "Traceback" not in done.stderr
    front.write_text(before, encoding="utf-8")
    result = next(places.runs.glob("**/acme__small/**/result.json"))
    result.write_text(result.read_text(encoding="utf-8").replace('"n": 100', '"n": 101', 1), encoding="utf-8")
    accepted = tmp_path / "accepted"
    shutil.move(places.runs / "synthbias@9.0.0" / "acme__small", accepted / "synthbias@9.0.0" / "acme__small")
    unsound = places.build("--results", str(accepted))
    errors = without_progress(unsound.stderr).strip().splitlines()
    assert errors[0].startswith("error: synthbias@9.0.0/acme__small/type2/result.json: metric ")
    assert "n is 101, the records give 100" in errors[0]
    assert errors[-1].startswith("error: 1 of 2 results are invalid, the site was not changed;")
    assert [(one.returncode, one.stdout) for one in (done, unsound)] == [(1, "")] * 2
    assert (places.built / "index.html").read_text(encoding="utf-8") == "old"
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work", encoding="utf-8")
    done = places.build("--out", str(tmp_path / "precious"))
    assert "holds files but no earlier site, so it is not replaced" in done.stderr
    assert [path.name for path in (tmp_path / "precious").iterdir()] == ["thesis.txt"]
    nowhere = tmp_path / "nowhere"
    said = run("leaderboard", "build", "--runs", nowhere, "--site", places.site, cwd=tmp_path, status=1).stderr
    assert "make one first, for example: biasboard run --dataset FOLDER --backend baseline --model all" in said


def test_a_taken_port_and_a_full_disk_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "index.html").write_text("x", encoding="utf-8")
    with open_server(tmp_path, 0) as server:
        assert server.server_address[0] == "127.0.0.1"
        with pytest.raises(ConfigError, match=r"port \d+ of 127\.0\.0\.1: .*; choose another with --port"):
            open_server(tmp_path, server.server_port)
    said = "Traceback\nOSError: [Errno 28] No space left on device: '/made/index.html'\n"
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, "", said))
    with pytest.raises(typer.Exit), one_line_errors():
        publishing.render(tmp_path, tmp_path, tmp_path / "public")
    line = capsys.readouterr().err
    assert line.startswith(f"error: {tmp_path / 'public'}: the disk is full; free space on the disk or of your quota")
