"""Compares datasets, records, results and the numbers on pages with those that an earlier commit gives.

``python -m tests.unmoved COMMIT`` builds the embedded datasets, scores the baselines on them, and imports the published
answers of one model (where the published data lies beside the repository): once with the code of the commit and once
with that of the working tree, side by side, and names every file that differs. Both run on this machine, because scores
of models differ in their last digits from one processor to another.

Only the command lines are used, so that this script runs other commits too. Left out are package versions, times,
sentences on pages and the explorer, which shows what the records hold; floats are compared to nine digits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet

REPOSITORY = Path(__file__).parents[1]
GENERATIONS = REPOSITORY.parent / "shared" / "data" / "gifi"
MODEL = "Phi-3-mini-4k"
_CELL = re.compile(r'data-sort="(-?[\d.]+)"|class="bb-value">([^<]*)<|class="bb-rank"[^>]*>([^<]*)<')
_SENTENCES = ("reason", "biasboard", "records_sha256")
"""Endings of the names of exported fields that hold sentences, or depend on versions of packages."""


def demo(tree: Path, out: Path) -> None:
    """Build the embedded datasets, score their baselines and build the site, below a folder."""
    for name, *prompts in (
        ("synthbias",),
        ("gifi", "math=zero-shot-sampled-v1", "sampled-v1"),
        # One of its prompts, with all calibrations.
        ("superni", "release-1024b"),
    ):
        dataset = out / "datasets" / name
        _python(tree, f"builders.{name}", "--out", dataset)
        asked = ("--dataset", dataset, "--out", out / "runs", "--backend", "baseline", "--model", "all")
        _python(tree, "evaluators", "run", *asked, *(part for prompt in prompts for part in ("--prompt", prompt)))
    _build_site(tree, out)


def published_answers(tree: Path, out: Path) -> None:
    """Import the published answers of one model, with the scorers that work offline."""
    dataset = out / "datasets/gifi-published-compat"
    published = ("--source", "gifi", "--input", GENERATIONS / "template", "--compat", "gifi-repo")
    _python(tree, "builders.gifi", *published, "--out", dataset)
    answers = ("--input", GENERATIONS / "model-generation", "--model", MODEL, "--scorer", "default")
    _python(tree, "evaluators", "import", "gifi", *answers, "--dataset", dataset, "--out", out / "runs")
    _build_site(tree, out)


def _build_site(tree: Path, out: Path) -> None:
    shutil.copytree(tree / "site" / "docs", out / "site" / "docs")
    shutil.copy(tree / "site" / "mkdocs.yml", out / "site")
    folders = ("--runs", out / "runs", "--datasets", out / "datasets", "--results", out / "none")
    _python(tree, "leaderboard", "build", *folders, "--site", out / "site")


def _python(tree: Path, module: str, *arguments: str | Path) -> None:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    settings = {"PYTHONPATH": str(tree), "HF_HUB_OFFLINE": "1", "COLUMNS": "200", "BIASBOARD_MEMORY": "off"}
    done = subprocess.run(command, cwd=tree, env=os.environ | settings, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def fingerprints(out: Path) -> dict[str, str]:
    """Return a hash of each dataset file, of the rows of each records file, of each result and of what pages show."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.is_file() and name.startswith("datasets/"):
            found[name] = _sha256(path.read_bytes())
        elif path.name in ("records.parquet", "scores.parquet"):
            found[name] = _hashed(pyarrow.parquet.read_table(path).to_pylist())
        elif path.name == "result.json":
            found[name] = _hashed(_result(json.loads(path.read_text(encoding="utf-8"))))
        elif path.match("site/_build/files/*.parquet"):
            found[name] = _hashed(_without_sentences(pyarrow.parquet.read_table(path).to_pylist()))
        elif name.startswith("site/_build/charts/"):
            found[name] = _sha256(path.read_bytes())
        elif name.startswith("site/_build/") and path.suffix == ".html":
            numbers = sorted(_numbers_on(path.read_text(encoding="utf-8")))
            # Pages without tables of results are prose alone.
            found |= {name: _hashed(numbers)} if numbers else {}
    return found


def _result(result: dict[str, Any]) -> dict[str, Any]:
    """Drop what differs from run to run, and hashes of files whose bytes depend on a library's version."""
    left_out = {"usage": "seconds", "records": "sha256", "scores": "sha256"}
    return {
        name: {key: one for key, one in value.items() if key != left_out[name]} if value and name in left_out else value
        for name, value in result.items()
        if name != "environment"
    }


def _without_sentences(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: one for key, one in row.items() if not key.endswith(_SENTENCES)} for row in rows]


def _numbers_on(page: str) -> Iterator[str]:
    """Yield what the cells of a page's tables are sorted by and show: values, counts and ranks."""
    for match in _CELL.finditer(page):
        yield next(text for text in match.groups() if text is not None)


def _hashed(value: object) -> str:
    return _sha256(json.dumps(_rounded(value), sort_keys=True).encode())


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return f"{value:.9g}" if isinstance(value, float) else value


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def measured(tree: Path) -> dict[str, str]:
    """Build everything with the code of a tree, in temporary folders, and return the hashes by part and file."""
    hashes: dict[str, str] = {}
    for build in (demo, published_answers) if GENERATIONS.is_dir() else (demo,):
        with tempfile.TemporaryDirectory() as folder:
            build(tree, Path(folder))
            hashes |= {f"{build.__name__}/{name}": value for name, value in fingerprints(Path(folder)).items()}
    return hashes


def main() -> None:
    """Compare the working tree with a commit and fail if anything moved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="what git names the earlier commit, such as main or HEAD~3")
    commit = parser.parse_args().commit
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        git = ("git", "-C", str(REPOSITORY), "worktree")
        subprocess.run([*git, "add", "--quiet", "--detach", str(before), commit], check=True)
        try:
            # Each build takes minutes on one core, and boards use a second one for a short time only.
            with ThreadPoolExecutor(2) as pool:
                earlier, now = pool.map(measured, (before, REPOSITORY))
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True)
    lines = [
        f"{name}: {'new' if name not in earlier else 'gone' if name not in now else 'moved'}"
        for name in now | earlier
        if earlier.get(name) != now.get(name)
    ]
    print("\n".join([*lines, f"{len(lines)} of {len(earlier | now)} files moved"]))
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
