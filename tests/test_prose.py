"""Docstrings open as the guide says: functions with a verb, everything else with a noun phrase or a sentence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ("schemas", "builders", "evaluators", "leaderboard", "biasboard")
VERBS = frozenset((REPOSITORY / "tests" / "data" / "verbs.txt").read_text(encoding="utf-8").split())
"""Verbs with which functions may open. Add one if it is a verb in the imperative."""
QUESTION = re.compile(r"(What|Whether|Whom?|Whose|How|Why|Where|When|Which)\b")
FRAGMENT = re.compile(
    r"(Of|As|To|By|From|In|On|For|With|Without|Than|So|Is|Are|Was|Were|Has|Have|Does|Behind|Among|Between|Until|While"
    r"|Only|Also|Not|Never|Here|There)\b"
)
SECTION = re.compile(r"^(?:Args|Attributes):\n((?:[ ]+.*\n?|\n)*)", re.MULTILINE)
ENTRY = re.compile(r"^ {4}\w+: (.*)$", re.MULTILINE)
RESULT = re.compile(r"^(?:Returns|Yields):\n {4}(.*)$", re.MULTILINE)


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def complaints(source: str) -> Iterator[str]:
    """Yield the line and the opening of every docstring that is not written as the guide says."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            continue
        line = getattr(node, "lineno", 1)
        text = ast.get_docstring(node)
        if text:
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node)
            first = re.split(r"[\s.,:;`]", text.lstrip("`*"))[0]
            if is_function and first not in VERBS:
                yield f"{line}: a function opens with a verb, not with '{first}'"
            elif not is_function and (QUESTION.match(text) or FRAGMENT.match(text)):
                yield f"{line}: opens with '{first}'; say what it is"
            inside = [entry for section in SECTION.findall(text) for entry in ENTRY.findall(section)]
            yield from (f"{line}: an argument opens with '{entry.split()[0]}'" for entry in inside if is_vague(entry))
            results = (found for found in RESULT.findall(text) if QUESTION.match(found) or found.startswith("Of "))
            yield from (f"{line}: a result opens with '{found.split()[0]}'" for found in results)
        if isinstance(node, ast.ClassDef | ast.Module):
            yield from attribute_complaints(node)


def is_vague(text: str) -> bool:
    return (QUESTION.match(text) or FRAGMENT.match(text)) is not None


def attribute_complaints(node: ast.ClassDef | ast.Module) -> Iterator[str]:
    for before, found in zip(node.body, node.body[1:], strict=False):
        if not isinstance(before, ast.Assign | ast.AnnAssign) or not isinstance(found, ast.Expr):
            continue
        text = found.value.value if isinstance(found.value, ast.Constant) else None
        if isinstance(text, str) and is_vague(text):
            yield f"{found.lineno}: an attribute opens with '{text.split()[0]}'"


def test_docstrings_open_with_a_verb_or_say_what_something_is() -> None:
    files = [path for package in PACKAGES for path in sorted((REPOSITORY / package).rglob("*.py"))]
    assert len(files) > 150
    found = [
        f"{path.relative_to(REPOSITORY)}:{complaint}"
        for path in files
        for complaint in complaints(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ('def f():\n    """A record per item."""', "a function opens with a verb, not with 'A'"),
        ('def f():\n    """Whether it holds."""', "a function opens with a verb, not with 'Whether'"),
        ('def f(a):\n    """Return it.\n\n    Args:\n        a: Of the run.\n    """', "an argument opens with 'Of'"),
        ('def f():\n    """Read it.\n\n    Returns:\n        What it holds.\n    """', "a result opens with 'What'"),
        ('class C:\n    """What a run left."""', "opens with 'What'; say what it is"),
        ('class C:\n    x: int\n    """Where it lies."""', "an attribute opens with 'Where'"),
        ('"""How it is read."""', "opens with 'How'; say what it is"),
    ],
)
def test_such_an_opening_would_be_seen(source: str, complaint: str) -> None:
    assert [found.partition(": ")[2] for found in complaints(source)] == [complaint]
    assert (
        list(complaints('class C:\n    """A thing."""\n    @property\n    def p(self):\n        """The name."""')) == []
    )
