"""Holds an endpoint's texts to a JSON Schema, in the strictest way that the endpoint accepts.

Endpoints differ: some accept a schema, some only the wish for any JSON object, some neither, and those that refuse say
so in the answer to a call. The first call tries the strictest way; a refusal that names it leads to the next one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from biasboard.ground.progress import note
from evaluators.backends.openai.client import RejectedError

_WAYS = ("json_schema", "json_object", "none")
_NAMES = ("response_format", "json_schema", "json_object", "schema", "structured", "guided", "grammar")
"""Words by which an endpoint names what it refuses."""
_REFUSED = (400, 404, 422, 501)


@dataclass
class JsonForm:
    """The way in which an endpoint is held to a schema."""

    way: str = _WAYS[0]
    is_used: bool = False
    """True once a schema was asked for."""

    def parameters(self, json_schema: str | None) -> Mapping[str, Any]:
        """Return the parameters of a call for a text that satisfies a schema; none for any text."""
        if json_schema is None:
            return {}
        self.is_used = True
        if self.way == "json_schema":
            schema = {"name": "answer", "schema": json.loads(json_schema), "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        return {"response_format": {"type": "json_object"}} if self.way == "json_object" else {}

    def gives_way(self, way: str, error: RejectedError) -> bool:
        """Take the next way if a refusal is about the present one, and return True if the call is worth sending again.

        Args:
            way: The way in which the refused call was sent. Another call may have changed it since.
            error: The refusal.
        """
        if way == _WAYS[-1] or not self._is_about_form(error):
            return False
        if way == self.way:
            self.way = _WAYS[_WAYS.index(way) + 1]
            said = "any JSON object" if self.way == "json_object" else "JSON by the prompt alone"
            note(f"the endpoint refuses the parameter response_format as {way} ({error.reason}); asking for {said}")
        return True

    @staticmethod
    def _is_about_form(error: RejectedError) -> bool:
        said = f"{error.parameter} {error.reason}".lower()
        return error.status in _REFUSED and error.remedy is None and any(name in said for name in _NAMES)
