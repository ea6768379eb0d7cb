"""Finds the JSON value in the answer of a language model, which may wrap it in other text.

Models whose output is not constrained to a schema put values into code fences, or add explanations before and after.
Builders and evaluators both read answers with this module, so that both find the same value.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from itertools import islice

from biasboard.ground.strict_json import JsonValue

_FENCE = re.compile(r"```[a-zA-Z]*[ \t]*\n?(.*?)```", re.DOTALL)
_MOST_STARTS = 64
"""Number of brackets that are tried as the start of a value; a text of brackets alone would take quadratic time."""


class NoJsonError(ValueError):
    """An answer holds no JSON object or array."""


def find_json(text: str) -> JsonValue:
    """Return the JSON object or array of an answer.

    The whole answer is tried first, then the inside of each code fence, then what starts at each opening bracket.
    Duplicate names in an object, NaN and infinities are not accepted.

    Raises:
        NoJsonError: there is none; the message says why the whole answer is none.

    >>> find_json('Here you are: {"a": [1, 2]} I hope that this helps.')
    {'a': [1, 2]}
    """
    problem = "is no JSON"
    for number, part in enumerate((text, *(match[1] for match in _FENCE.finditer(text)))):
        try:
            value: JsonValue = json.loads(part, object_pairs_hook=_object, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            if number == 0:
                problem = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
            continue
        if isinstance(value, dict | list):
            return value
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse)
    for match in islice(re.finditer(r"[{\[]", text), _MOST_STARTS):
        with suppress(ValueError, RecursionError):
            value = decoder.raw_decode(text, match.start())[0]
            return value
    raise NoJsonError(problem)


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("an object has one name twice")
    return value


def _refuse(name: str) -> JsonValue:
    raise ValueError(f"{name} is no JSON number")
