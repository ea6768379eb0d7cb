"""Which token is drawn: the mass of each token is its probability, and rounding decides nothing unnoticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra hf is not installed")
sampling = pytest.importorskip("evaluators.backends.transformers.sampling", reason="the extra hf is not installed")

ROUNDING = 1e-5


def made_logits(n: int, n_tokens: int, spread: float, seed: int) -> Any:
    """Logits of ``n`` texts; the larger the spread, the more a model prefers some tokens."""
    return torch.from_numpy(np.random.default_rng(seed).normal(0, spread, (n, n_tokens))).float()


def draw(logits: Any, *, temperature: float = 1.0, top_p: float = 1.0, seed: int = 0) -> Any:
    n, n_tokens = logits.shape
    numbers = torch.from_numpy(np.random.default_rng(seed).random((n, sampling.n_choices(n_tokens))))
    options = {"dtype": torch.float64}
    temperatures, masses = torch.full((n, 1), temperature, **options), torch.full((n, 1), top_p, **options)
    return sampling.draw(logits, temperatures, masses, numbers, ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.95), (0.7, 0.5)])
@pytest.mark.parametrize("spread", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("n_tokens", [37, 5000])
def test_what_rounding_changes_is_in_doubt(n_tokens: int, spread: float, temperature: float, top_p: float) -> None:
    logits = made_logits(2000, n_tokens, spread, 1)
    noise = torch.from_numpy(np.random.default_rng(2).uniform(-ROUNDING, ROUNDING, logits.shape))
    first, second = (draw(each, temperature=temperature, top_p=top_p) for each in (logits, (logits + noise).float()))
    changed = {row for row, (a, b) in enumerate(zip(first.tokens, second.tokens, strict=True)) if a != b}
    for drawn in (first, second):
        assert changed <= {row for row, doubtful in enumerate(drawn.doubtful) if doubtful}
        assert sum(drawn.doubtful) <= 20, "more than one token in a hundred is in doubt"


@pytest.mark.slow
def test_a_change_beyond_rounding_may_go_unnoticed() -> None:
    """The same test with a hundred times the noise, to show that the test above can fail."""
    logits = made_logits(2000, 5000, 1.0, 1)
    noise = torch.from_numpy(np.random.default_rng(2).uniform(-100 * ROUNDING, 100 * ROUNDING, logits.shape))
    first, second = draw(logits, top_p=0.95), draw((logits + noise).float(), top_p=0.95)
    rows = zip(first.tokens, second.tokens, first.doubtful, strict=True)
    assert any(a != b and not doubtful for a, b, doubtful in rows)


@pytest.mark.parametrize("n_tokens", [2, 3, 8, 13])
def test_tokens_are_drawn_as_often_as_they_are_probable(n_tokens: int) -> None:
    probabilities = np.arange(1, n_tokens + 1) / (n_tokens * (n_tokens + 1) / 2)
    n = 20_000
    logits = torch.from_numpy(np.log(probabilities)).float().expand(n, -1)
    shares = np.bincount(draw(logits).tokens, minlength=n_tokens) / n
    assert shares == pytest.approx(probabilities, abs=5 * float(np.sqrt(0.25 / n)))


def test_equally_probable_tokens_are_always_in_doubt_at_the_border() -> None:
    drawn = draw(torch.zeros((50, 64)), top_p=0.5)
    assert set(drawn.tokens) <= set(range(32)), "among equally probable tokens, lower ids come first"
    assert all(drawn.doubtful)


def test_a_token_without_probability_is_never_drawn() -> None:
    logits = made_logits(3000, 40, 1.0, 3)
    logits[:, 25:] = -torch.inf
    logits[:, ::2] = -torch.inf
    for top_p in (1.0, 0.9):
        tokens = set(draw(logits, top_p=top_p).tokens)
        assert tokens <= set(range(1, 25, 2))
        assert len(tokens) > 6


def test_a_certain_token_is_never_in_doubt() -> None:
    logits = torch.full((10, 1000), -30.0)
    logits[:, 77] = 30.0
    for top_p in (1.0, 0.9):
        assert draw(logits, top_p=top_p) == ([77] * 10, [False] * 10)
