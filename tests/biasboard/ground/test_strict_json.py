from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from biasboard.ground.strict_json import JsonValue

GOLDENS: list[tuple[JsonValue, bytes, str]] = [
    (None, b"null", "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"),
    ({}, b"{}", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    (
        {"b": [1, 2.5, True, None], "a": "é\n"},
        b'{"a":"\xc3\xa9\\n","b":[1,2.5,true,null]}',
        "f12f46c4bed1310e6876469af0ee7ac18d6b5bbac716482aef6d8fb6c96d361f",
    ),
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        *((text, "-?(NaN|Infinity) is not JSON; write null") for text in ("NaN", "-Infinity", '{"value": NaN}')),
        *(
            (text, "key 'a' stands twice; keep one")
            for text in ('{"a": 1, "a": 1}', '[{"b": {"a": 1, "c": 2, "a": 3}}]')
        ),
        ('{"value": 1e999}', "1e999 is too large for a number"),
        *((text, r".*line \d+ column \d+") for text in ("", "{", '{"a": 1,}', "{'a': 1}", "[1] [2]")),
    ],
)
def test_what_is_no_strict_json_is_refused(text: str, fault: str) -> None:
    with pytest.raises(DataError, match=rf"^result\.json: not strict JSON: {fault}"):
        strict_json.loads(text, where="result.json")


def test_a_missing_file_and_a_file_of_another_encoding_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.json: no such file; correct the path$"):
        strict_json.read(tmp_path / "absent.json")
    (tmp_path / "latin.json").write_bytes('"é"'.encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.json: not UTF-8"):
        strict_json.read(tmp_path / "latin.json")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nothing_is_written_that_could_not_be_read(number: float, tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    with pytest.raises(ValueError, match="not JSON compliant"):
        strict_json.write(path, {"value": number})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@given(json_values)
def test_what_is_written_is_read_back(value: JsonValue) -> None:
    assert strict_json.loads(strict_json.dumps(value), where="value") == value
    assert strict_json.loads(strict_json.dumps_in_lines({"a": value, "b": []}), where="value") == {"a": value, "b": []}
    assert strict_json.loads(strict_json.canonical(value).decode(), where="value") == value


@pytest.mark.parametrize(("value", "text", "sha256"), GOLDENS)
def test_canonical_bytes_and_hash_never_change(value: JsonValue, text: bytes, sha256: str) -> None:
    assert strict_json.canonical(value) == text
    assert strict_json.sha256(value) == sha256


@given(st.dictionaries(st.text(max_size=5), st.integers(), min_size=2))
def test_the_hash_ignores_the_order_of_keys(value: dict[str, int]) -> None:
    turned = dict(reversed(list(value.items())))
    assert strict_json.sha256(json.loads(json.dumps(turned))) == strict_json.sha256(json.loads(json.dumps(value)))


def test_readable_json_ends_with_a_newline_and_keeps_letters(tmp_path: Path) -> None:
    strict_json.write(tmp_path / "value.json", {"name": "é"})
    assert (tmp_path / "value.json").read_bytes() == b'{\n  "name": "\xc3\xa9"\n}\n'
