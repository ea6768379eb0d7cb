"""Values of options and of environment variables that no command can use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.commands import run
from tests.hostile.inputs import holding
from tests.hostile.runner import Row, ended

LONG = "9" * 5_000
NO_NUMBERS = {"a word": "x", "5,000 digits": "x" + LONG}
NEGATIVE = {"negative": "-1"}
NO_FINITE = {"NaN": "nan", "infinite": "inf"}
SHARES = holding("id,a,b,label\n1,0.6,0.4,a\n2,0.3,0.7,b\n")
RUN = "run --backend baseline --model uniform --dataset none --out OUT"
OPENAI = "run --backend openai --model x --dataset none"
FIT = "reweight fit INPUT --out OUT"
LINES = (
    (RUN, "--limit", NO_NUMBERS | NEGATIVE, "'--limit'"),
    (RUN, "--max-failure-rate", NO_FINITE | NEGATIVE | {"above 1": "1.5"}, "'--max-failure-rate'"),
    (OPENAI, "--timeout", NO_FINITE | NEGATIVE, "'--timeout'"),
    (OPENAI, "--max-cost", {"NaN": "nan"}, "'--max-cost'"),
    ("finetune --model x --dataset none --out OUT", "--learning-rate", {"NaN": "nan"}, "'--learning-rate'"),
    (FIT, "--preset", {"long": LONG}, "preset '"),
    ("reweight evaluate INPUT", "--classes", {"long": LONG, "a quote": '"a', "one": "a"}, ""),
    ("ranks INPUT", "--item", {"missing": "x"}, ""),
    ("build superni --out OUT", "--tasks", {"missing": "x", "a comma": ","}, ""),
    ("build synthbias --out OUT", "--limit", {"zero": "0"}, "'--limit'"),
    ("build synthbias --out OUT", "--dataset-version", {"Arabic": "\u0661.0.0"}, "--dataset-version"),
    ("build gifi --out OUT", "--revision", {"for no Hub": "main"}, "--revision"),
    ("build gifi", "--out", {"a file": "INPUT", "below a file": "INPUT/x", "of the kernel": "/proc/x"}, ""),
    ("build synthbias --overwrite", "--out", {"a file": "INPUT", "where we are": ".", "the root": "/"}, ""),
    (RUN.removesuffix(" --out OUT"), "--out", {"below a file": "INPUT/x"}, ""),
    ("publish INPUT --dry-run", "--repo", {"long": f"a/{LONG}", "none": "", "letters": "\u00e9/x"}, "--repo"),
)
"""A command, one of its options, values that it does not take, and what is said of each."""
ADDRESSES = {"a word": "x", "half an IPv6 address": "http://[::1", "a port too large": "http://127.0.0.1:99999"}
TABLE: dict[str, Row] = {
    f"{command} {option}: {name}": Row([*command.split(), option, value], SHARES, says=says)
    for command, option, values, says in LINES
    for name, value in values.items()
} | {
    f"HF_ENDPOINT: {name}": Row(["list"], environment={"HF_ENDPOINT": value}, says="HF_ENDPOINT is no address")
    for name, value in ADDRESSES.items()
}


@pytest.mark.parametrize("name", TABLE)
def test_a_value_that_no_command_can_use_ends_in_one_message(name: str, tmp_path: Path) -> None:
    ended(TABLE[name], tmp_path)


@pytest.mark.slow
def test_a_locale_of_ascii_is_told_and_hinders_no_command(tmp_path: Path) -> None:
    ascii_locale: dict[str, Any] = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run("-m", "biasboard", "validate", "caf\u00e9", cwd=tmp_path, status=1, **ascii_locale)
    shown = "argument 'caf\\udcc3\\udca9'"
    said = f"error: {shown}: is UTF-8, and the locale of this terminal is not; set LC_ALL=C.UTF-8\n"
    assert done.stderr == said
    holding("id,\u00e9,b,label\n1,0.6,0.4,\u00e9\n2,0.3,0.7,b\n")(tmp_path / "shares.csv")
    done = run("-m", "biasboard", "reweight", "evaluate", "shares.csv", cwd=tmp_path, status=0, **ascii_locale)
    assert "2 rows, 2 classes" in done.stdout
    named = "import pathlib, typer\nfrom biasboard.ground.command_line import one_line_errors\n"
    program = f"{named}with one_line_errors(): pathlib.Path('caf\\u00e9').touch()"
    done = run("-c", f"{program}\n", cwd=tmp_path, status=1, **ascii_locale)
    assert "'caf\\xe9': has letters that the locale of this terminal lacks; set LC_ALL=C.UTF-8\n" in done.stderr
