from __future__ import annotations

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
        ('{"value": NaN}', "NaN is not JSON; write null"),
        ('[{"b": {"a": 1, "c": 2, "a": 3}}]', "key 'a' stands twice; keep one"),
        ('{"value": 1e999}', "1e999 is too large for a number"),
        ('{"a": 1,}', r".*line \d+ column \d+"),
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


def test_nothing_is_written_that_could_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    with pytest.raises(ValueError, match="not JSON compliant"):
        strict_json.write(path, {"value": math.nan})
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
