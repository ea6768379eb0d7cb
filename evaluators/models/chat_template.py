"""Checks that a chat template can be rendered in bounded time and memory, and adds the same to every prompt.

A template is a program: one that looks at the prompt can hold the answers to a benchmark.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import one_line, printable

_REMEDY = "leave out --chat, or name a --tokenizer with another template"
_PROMPTS = (
    "The nurse thanked the guard. Who was thanked?",
    '\t \tEin {{ Satz }} mit <b>\N{LATIN SMALL LETTER U WITH DIAERESIS}</b>,\r\nin "drei" Zeilen.\n\nA:\t \t',
    "word " * 4_000,
)
"""Prompts that are rendered first: a short one, one with markup, and a long one."""
PROBE = _PROMPTS[1]
"""A prompt that looks different in each form."""
_FORMS: tuple[Callable[[str], str], ...] = (
    str,
    str.lstrip,
    str.rstrip,
    str.strip,
    # Templates of Falcon.
    lambda prompt: prompt.strip().replace("\r\n", "\n").replace("\n\n", "\n"),
    lambda prompt: json.dumps(prompt, ensure_ascii=False)[1:-1],
)
"""How templates write a prompt; the first that fits a text is meant."""
_CPU_SECONDS = 5
"""Maximum processor time for all prompts."""
_WAIT_SECONDS = 180
_MOST_ADDED = 10_000
"""Maximum number of characters that a template may add to a prompt; published ones add up to 5,000."""


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
        "cpu_seconds": _CPU_SECONDS,
        "longest": 10 * (max(map(len, _PROMPTS)) + _MOST_ADDED),
    }
    answer = _answer(json.dumps(request))
    if "problem" in answer:
        raise _error(one_line(answer["problem"]))
    texts: list[str] = answer["texts"]
    # A model that saw the same text for every prompt once got a UCerF of 1.000 unnoticed.
    if len(set(texts)) == 1:
        raise _error("leaves out the prompt: all prompts give the same text")
    frame = frame_of(texts[_PROMPTS.index(PROBE)])
    for prompt, text in zip(_PROMPTS, texts, strict=True):
        frame.check(prompt, text)


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
        too_long = f"did not end within {_CPU_SECONDS} s"
        return {"problem": too_long if process.returncode < 0 else f"cannot be rendered: {last}"}
    return answer


class TemplateFrame(NamedTuple):
    """What a template makes of every prompt."""

    before: str
    form: Callable[[str], str]
    """How the prompt is written."""
    after: str

    def check(self, prompt: str, text: str) -> None:
        """Check that a rendered text is what the template makes of every prompt.

        Raises:
            ConfigError: it is another one.
        """
        written = self.form(prompt)
        if text == f"{self.before}{written}{self.after}":
            return
        shown = printable(prompt, most=60)
        if written not in text:
            raise _error(f"leaves out the prompt or a part of it: the text for '{shown}' does not hold it")
        raise _error(f"adds another text to '{shown}' than to other prompts, so that it could hold the answers")


def frame_of(text: str) -> TemplateFrame:
    """Return what a template makes of every prompt.

    Args:
        text: What it makes of :data:`PROBE`.

    Raises:
        ConfigError: the text does not hold the prompt once, in a known form, or adds too much to it.
    """
    for form in _FORMS:
        before, found, after = text.partition(form(PROBE))
        if found and form(PROBE) not in after:
            if (added := len(before) + len(after)) > _MOST_ADDED:
                raise _error(f"adds {added:,} characters to every prompt, and at most {_MOST_ADDED:,} are taken")
            return TemplateFrame(before, form, after)
    raise _error("leaves out the prompt or a part of it, or shows it twice")


def render_error(error: Exception) -> ConfigError:
    """Return the error for a template that fails for one prompt only."""
    return _error(f"fails: {type(error).__name__}: {one_line(error, most=200)}")


def _error(problem: str) -> ConfigError:
    return ConfigError(f"the tokenizer's chat template {problem}; {_REMEDY}")
