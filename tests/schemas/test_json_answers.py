"""JSON in the answers of models, bare or wrapped."""

from __future__ import annotations

import json

import pytest

from schemas.files.json_answers import NoJsonError, find_json

VALUE = {"sentences": [{"before": "The {baker} ", "case": "nominative", "after": " [left]."}]}
BARE = json.dumps(VALUE)


@pytest.mark.parametrize(
    "text",
    [
        f"\n\n{BARE}\n",
        f"```json\n{BARE}\n```",
        f"Here you are:\n```\n{json.dumps(VALUE, indent=2)}\n```\nAnything else?",
        f"As {{asked}} and [as] said: {BARE} I hope that this helps.",
        f"```python\nprint()\n```\n{BARE}",
    ],
)
def test_a_value_is_found_however_it_is_wrapped(text: str) -> None:
    assert find_json(text) == VALUE


@pytest.mark.parametrize(
    "text",
    ["", BARE[:-3], '{"a": NaN}', '{"a": 1, "a": 2}', '"only a text"', "12", "[" * 100_000, "{" * 500 + "x"],
)
def test_what_is_no_object_and_no_array_is_none(text: str) -> None:
    with pytest.raises(NoJsonError):
        find_json(text)
    with pytest.raises(NoJsonError, match=r"Expecting value"):
        find_json("I cannot do that.")
