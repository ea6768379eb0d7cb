"""Checks that a chat template can be rendered in bounded time and memory, and that the text contains the prompt."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import one_line
from evaluators.models.chat_template_process import CPU_SECONDS

_REMEDY = "leave out --chat, or name a --tokenizer with another template"
_PROMPTS = (
    "The nurse thanked the guard. Who was thanked?",
    "  Ein {{ Satz }} mit <b>\N{LATIN SMALL LETTER U WITH DIAERESIS}</b>,\nin zwei Zeilen.\n\nA: ",
    "word " * 4_000,
)
"""Prompts that are rendered first: a short one, one with markup, and a long one."""
_WAIT_SECONDS = 180
_MOST_GROWTH = 10
_MOST_ADDED = 100_000
"""Maximum number of characters that a template may add, beyond ten for each character of the prompt."""


@cache
def check_template(template: str, variables: str) -> None:
    """Render a chat template once in a process of its own, to refuse it before the first request if it fails.

    Args:
        template: The template.
        variables: The special tokens of the tokenizer by name, as JSON.

    Raises:
        ConfigError: the template fails, takes too much time or memory, or leaves out the prompt.
    """
    request = {
        "template": template,
        "variables": json.loads(variables),
        "prompts": _PROMPTS,
        "longest": most_characters(max(_PROMPTS, key=len)),
    }
    answer = _answer(json.dumps(request))
    if "problem" in answer:
        raise _error(one_line(answer["problem"]))
    texts: list[str] = answer["texts"]
    # A model that saw the same text for every prompt once got a UCerF of 1.000 unnoticed.
    if len(set(texts)) == 1:
        raise _error("leaves out the prompt: all prompts give the same text")
    for prompt, text in zip(_PROMPTS, texts, strict=True):
        check_rendered(prompt, text)


def _answer(request: str) -> Mapping[str, Any]:
    # Not as a module: the process needs none of our code, and -P keeps our files from shadowing its imports.
    command = [sys.executable, "-P", str(Path(__file__).with_name("chat_template_process.py"))]
    try:
        process = subprocess.run(
            command, input=request, capture_output=True, encoding="utf-8", timeout=_WAIT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"problem": f"did not end within {_WAIT_SECONDS} s"}
    try:
        answer: Mapping[str, Any] = json.loads(process.stdout)
    except ValueError:
        last = (process.stderr.strip().splitlines() or ["no message"])[-1]
        too_long = f"did not end within {CPU_SECONDS} s"
        return {"problem": too_long if process.returncode < 0 else f"cannot be rendered: {last}"}
    return answer


def most_characters(prompt: str) -> int:
    """Return the maximum number of characters in the rendered text of a prompt."""
    return _MOST_GROWTH * len(prompt) + _MOST_ADDED


def check_rendered(prompt: str, text: str) -> None:
    """Check that a rendered text contains its prompt; white space may differ, and characters may be escaped.

    Raises:
        ConfigError: the text does not contain the prompt, or is far longer.
    """
    if len(text) > most_characters(prompt):
        raise _error(f"makes {len(text):,} characters of a prompt of {len(prompt):,}")
    if prompt.strip() in text:
        return
    compact = "".join(text.split())
    spellings = (prompt, json.dumps(prompt)[1:-1], json.dumps(prompt, ensure_ascii=False)[1:-1], html.escape(prompt))
    if not any("".join(spelling.split()) in compact for spelling in spellings):
        shown = one_line(prompt, most=60)
        raise _error(f"leaves out the prompt or a part of it: the text for '{shown}' does not hold it")


def render_error(error: Exception) -> ConfigError:
    """Return the error for a template that fails for one prompt only."""
    return _error(f"fails: {type(error).__name__}: {one_line(error, most=200)}")


def _error(problem: str) -> ConfigError:
    return ConfigError(f"the tokenizer's chat template {problem}; {_REMEDY}")
