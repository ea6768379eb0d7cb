"""What doctor says of the installation, and whether it notices that a backend answers otherwise than plain scoring."""

from __future__ import annotations

import importlib.metadata
import math
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from evaluators.backend import Response, open_backend
from evaluators.models.parity import answers, compare, made_requests
from tests.commands import REPOSITORY, run
from tests.evaluators.invoking import evaluators
from tests.evaluators.made_data import save_tiny_llama

doctor = partial(evaluators, "doctor")


def checks_in(told: Result | str) -> dict[str, dict[str, Any]]:
    """The lines by name: a status, a name, two spaces or more, a detail, and perhaps an arrow with a remedy."""
    found = {}
    for line in (told if isinstance(told, str) else told.stdout).splitlines():
        status, rest = line.split(maxsplit=1)
        name, _, told_of = rest.partition("  ")
        detail, _, remedy = told_of.strip().partition(" -> ")
        found[name] = {"status": status, "detail": detail, "remedy": remedy or None}
    return found


def test_every_line_has_a_status_and_what_is_missing_a_remedy() -> None:
    result = doctor()
    assert result.exit_code == 0, result.stdout
    found = checks_in(result)
    assert {"python", "extra hf", "extra openai", "extra vllm", "extra ray", "extra site", "threads", "gpu"} <= set(
        found
    )
    assert {check["status"] for check in found.values()} <= {"ok", "missing"}
    assert all((check["remedy"] is None) == (check["status"] == "ok") for check in found.values())
    assert f"torch {importlib.metadata.version('torch')}" in found["extra hf"]["detail"]


@pytest.mark.slow
def test_missing_and_outdated_libraries_come_with_the_line_that_installs_them(tmp_path: Path) -> None:
    # An installation of another making, found before the real one.
    info = tmp_path / "biasboard-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: biasboard\nVersion: 9.9\nRequires-Python: >=3.11\n"
        "Requires-Dist: numpy\n"
        'Requires-Dist: no-such-library>=1; extra == "hf"\nRequires-Dist: packaging>=20; extra == "hf"\n'
        'Requires-Dist: packaging>=9999; extra == "openai"\n'
        'Requires-Dist: packaging>=20; extra == "site"\n'
        "Provides-Extra: hf\nProvides-Extra: openai\nProvides-Extra: site\n"
    )
    places = os.pathsep.join([str(tmp_path), str(REPOSITORY)])

    done = run("-m", "evaluators", "doctor", "--backend", "transformers", cwd=tmp_path, PYTHONPATH=places, status=1)
    checks = checks_in(done.stdout)
    assert (checks["extra hf"]["status"], checks["extra hf"]["detail"]) == ("missing", "not installed: no-such-library")
    assert checks["extra hf"]["remedy"] == "pip install 'biasboard[hf]'"
    assert checks["extra openai"]["status"] == "problem"
    assert checks["extra openai"]["detail"].endswith("needs >=9999")
    assert checks["extra site"]["detail"] == f"packaging {importlib.metadata.version('packaging')}"
    # What a chosen backend cannot do without is no longer merely missing.
    assert (checks["backend transformers"]["status"], checks["backend transformers"]["remedy"]) == (
        "problem",
        "pip install 'biasboard[hf]'",
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="the extra hf is not installed")
    return save_tiny_llama(tmp_path_factory.mktemp("models") / "tiny")


@pytest.mark.slow
def test_a_sound_backend_equals_the_plain_way(model: Path) -> None:
    result = doctor("--backend", "transformers", "--model", model, "--device", "cpu", "--tolerance", "0.004")
    assert result.exit_code == 0, result.output
    found = checks_in(result)
    assert "opened local/tiny" in found["backend transformers"]["detail"]
    assert "can do generation, option_logprobs" in found["backend transformers"]["detail"]
    assert found["setting option_scoring"]["detail"] == "packed"
    n_options = sum(len(request.options) for request in made_requests())
    assert f"{n_options} options of 12 of 12 requests" in found["parity"]["detail"]
    assert "12 of 12 decisions equal" in found["parity"]["detail"]
    assert "allowed in float32: 0.004 nats per square root of tokens" in found["parity"]["detail"]


@pytest.mark.slow
def test_other_weights_are_noticed_and_what_cannot_be_compared_or_opened_says_why(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = doctor("--backend", "transformers", "--model", tmp_path / "nowhere")
    assert nowhere.exit_code == 1
    assert "does not exist" in checks_in(nowhere)["backend transformers"]["detail"]
    command = ("--backend", "transformers", "--model", model, "--device", "cpu", "--reference")
    no_reference = doctor(*command, tmp_path / "no")
    assert checks_in(no_reference)["parity"]["status"] == "missing"
    assert "cannot be compared" in checks_in(no_reference)["parity"]["detail"]
    # Without another process that imports torch.
    monkeypatch.setattr(
        "evaluators.commands.doctor.reference_answers",
        lambda name, options, requests: answers(open_backend("transformers", name, options), requests),
    )
    result = doctor(*command, save_tiny_llama(tmp_path / "other", seed=1))
    assert result.exit_code == 1
    assert checks_in(result)["parity"]["status"] == "problem"
    assert "compare tokenizer, chat template and weights" in checks_in(result)["parity"]["remedy"]


def answered(*logprobs: float | None) -> Response:
    n = len(logprobs)
    return Response(status="answered", option_logprobs=logprobs, option_token_counts=(4,) * n)


def test_differences_bounds_and_gaps_are_told_apart() -> None:
    requests = made_requests()[:5]
    plain = [answered(*(-1.0 - place for place in range(len(request.options)))) for request in requests]
    exact = compare(requests, plain, plain, 0.1)
    assert (exact.holds, exact.largest_difference, exact.n_compared) == (True, 0.0, 5)
    assert (exact.n_decisions, exact.n_equal_decisions) == (5, 5)

    def with_first(response: Response) -> list[Response]:
        return [response, *plain[1:]]

    # Four tokens: what may differ is twice what one token may.
    assert compare(requests, with_first(answered(-1.19, -2.0, -3.0)), plain, 0.1).holds
    beyond = compare(requests, with_first(answered(-1.0, -2.0, -3.3)), plain, 0.1)
    assert not beyond.holds
    assert beyond.largest_difference == pytest.approx(0.3)
    assert len(beyond.beyond) == 1
    assert requests[0].options[2].strip() in beyond.beyond[0]
    flipped = compare(requests, with_first(answered(-2.0, -1.0, -3.0)), plain, 0.1)
    assert (flipped.holds, flipped.n_equal_decisions) == (False, 4)
    assert not compare(requests, with_first(answered(math.nan, -2.0, -3.0)), plain, 0.1).holds

    # A bound above the truth says nothing against it, one below it does; what is unknown is not compared.
    high = replace(answered(-1.0, -1.5, None), option_is_bound=(False, True, False))
    bounded = compare(requests, with_first(high), plain, 0.1)
    assert (bounded.holds, bounded.n_bounds, bounded.n_decisions) == (True, 1, 4)
    assert bounded.n_options == exact.n_options - 2
    low = replace(answered(-1.0, -9.0, None), option_is_bound=(False, True, False))
    assert not compare(requests, with_first(low), plain, 0.1).holds

    failed = Response(status="failed", error="too long")
    gap = compare(requests, with_first(failed), plain, 0.1)
    assert (gap.holds, gap.n_compared, gap.unanswered) == (True, 4, ("too long",))
    nothing = compare(requests, [failed] * 5, plain, 0.1)
    assert (nothing.holds, nothing.largest_difference) == (False, None)
    # Where the plain way has no answer either, nobody is to blame.
    assert compare(requests, [failed] * 5, [failed] * 5, 0.1).unanswered == ()
