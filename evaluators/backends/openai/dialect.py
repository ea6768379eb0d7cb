"""What an endpoint accepts, learned from what it refuses, once, and kept for all further calls.

Endpoints name parameters differently, refuse some of them or some of their values, or answer only as a stream. None
says so beforehand, and their documentation ages fast: the first call tries everything, and each refusal that names what
it is about leads to another call. What could not be set is the provider's choice, and a condition of the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from biasboard.ground.progress import note
from evaluators.backends.openai.client import RejectedError
from evaluators.thinking import THINKING_TOKENS

MAX_TOKENS = ("max_tokens", "max_completion_tokens")
"""Names of the parameter for the largest number of tokens to generate: newer models of OpenAI refuse the first."""
_REFUSED = (400, 404, 405, 413, 422, 429, 500, 501)
"""Statuses of refusals that may be about a parameter."""
_UNFIT = re.compile(
    r"support|not permitted|not allowed|not enabled|invalid|unknown|unrecogni[sz]ed|unexpected|extra|only|must|cannot"
    r"|can't|deprecated|should|range|minimum|maximum|at least|at most|too (?:large|small)|exceed|below|above|greater"
    r"|less|required|without"
)
_STREAM = re.compile(r"\bstream(?:ing)?\b")
_ONLY = re.compile(r"only|must|require|enable|non-stream|without stream")
_NUMBER = re.compile(r"(?<![\d.])(?:\d{1,3}(?:,\d{3})+|\d{1,7})(?!\d|\.\d)")
_ROOM = re.compile("context|prompt|input (?:tokens|length)|request too large|too big")
"""Words in a refusal that show the budget and the prompt together to be too large."""
_SMALL_BUDGET = 1024
"""Number of tokens from which a budget, and not the prompt, is likely to be what a context lacks room for."""
_AT_LEAST = re.compile(r">=|at least|minimum|below|too small|greater than or equal|\[\s*\d+\s*,|no less")
_OPTIONAL = (
    *("seed", "top_p", "temperature", "stop", "logprobs", "top_logprobs", "top_k", "min_p", "repetition_penalty"),
    "stream_options",
)
"""Parameters that may be left out: the endpoint then takes its own values, and texts are cut here where it cannot."""
_FORMS = ("json_schema", "json_object", "none")
_FORM_NAMES = ("response_format", "json_schema", "json_object", "schema", "structured", "guided", "grammar")
"""Words in a refusal that show it to be about the form."""


@dataclass
class Dialect:
    """The parameters with which an endpoint generates text; :meth:`learn` changes them."""

    max_tokens: str = MAX_TOKENS[0]
    """Name of the endpoint's parameter for the largest number of tokens to generate."""
    least_tokens: int = 1
    """Smallest value that the endpoint takes for it."""
    most_tokens: int | None = None
    """Largest value that it takes; None if none is known."""
    left_out: set[str] = field(default_factory=set)
    """Parameters that it refuses."""
    wanted: frozenset[str] = frozenset()
    """Parameters that the user set, which are never left out."""
    thinking_tokens: int = 0
    """Tokens to add to those of an answer, for a model that thinks before it; 0 if it does not."""
    has_chosen_budget: bool = False
    """True if the user chose the number of these tokens."""
    streams: bool = False
    """True if it answers as a stream alone."""
    has_system_role: bool = True
    """False to begin the user's message with a system prompt."""
    form: str = _FORMS[0]
    """Strictest form of JSON output that it has not refused: a schema, any JSON object, or none."""
    has_asked_for_form: bool = False

    def copied(self) -> Dialect:
        """Return a copy to :meth:`restore` if what is learnt from now on turns out to help nothing."""
        return replace(self, left_out={*self.left_out})

    def restore(self, before: Dialect) -> None:
        """Forget what was learnt since a copy was made."""
        for one in fields(self):
            setattr(self, one.name, getattr(before.copied(), one.name))

    def grant_thinking(self) -> bool:
        """Grant a model tokens to think with; return True if it had none, and the user did not choose so."""
        if self.thinking_tokens or self.has_chosen_budget:
            return False
        self.thinking_tokens = THINKING_TOKENS
        return True

    def form_parameters(self, json_schema: str | None) -> Mapping[str, Any]:
        """Return the parameters that constrain a text to a schema; none without a schema."""
        if json_schema is None:
            return {}
        self.has_asked_for_form = True
        if self.form == "json_schema":
            schema = {"name": "answer", "schema": json.loads(json_schema), "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        return {"response_format": {"type": "json_object"}} if self.form == "json_object" else {}

    def learn(self, error: RejectedError, body: Mapping[str, Any]) -> bool:
        """Change what is sent after a refusal; return True if the request should be sent again.

        Args:
            error: The refusal.
            body: The body of the refused call. Another call may have been refused for the same reason before.
        """
        if error.means not in ("failed", "absent") or error.status not in _REFUSED:
            return False
        words = error.words
        if self._learn_form(words, body, error.reason):
            return True
        # A message may quote the prompt: it is about a parameter only if it says that something does not fit.
        if not _UNFIT.search(words):
            return False
        return (
            self._learn_stream(words, body)
            or self._learn_role(words, body)
            or self._learn_tokens(words, body)
            or self._leave_out(words, body)
        )

    def _learn_form(self, words: str, body: Mapping[str, Any], reason: str) -> bool:
        sent = body.get("response_format")
        if sent is None or not any(name in words for name in _FORM_NAMES):
            return False
        kind = sent["type"]
        if kind == self.form:
            self.form = _FORMS[_FORMS.index(kind) + 1]
            instead = "any JSON object" if self.form == "json_object" else "JSON by the prompt alone"
            note(f"the endpoint refuses the parameter response_format as {kind} ({reason}); asking for {instead}")
        return True

    def _learn_stream(self, words: str, body: Mapping[str, Any]) -> bool:
        if "stream" in body or not (_STREAM.search(words) and _ONLY.search(words)):
            return False
        self.streams = True
        return True

    def _learn_role(self, words: str, body: Mapping[str, Any]) -> bool:
        if len(body.get("messages", ())) < 2 or not re.search("role|system|developer instruction", words):
            return False
        self.has_system_role = False
        return True

    def _learn_tokens(self, words: str, body: Mapping[str, Any]) -> bool:
        name = next((name for name in MAX_TOKENS if name in body), None)
        if name is None or "token" not in words or not (_ROOM.search(words) or "max_" in words):
            return False
        sent, numbers = body[name], [int(number.replace(",", "")) for number in _NUMBER.findall(words)]
        other = MAX_TOKENS[1 - MAX_TOKENS.index(name)]
        is_name = re.search("unsupported|not supported|unrecogni|unknown|extra", words)
        # The room that thinking may take is more than the context has, or than a minute allows.
        if _ROOM.search(words) and not is_name:
            if sent <= _SMALL_BUDGET:
                return False
            self.most_tokens = sent // 2
            return True
        if other in words or (name in words and is_name):
            if other in self.left_out:
                return False
            self.left_out.add(name)
            self.max_tokens = other
            return True
        if _AT_LEAST.search(words) and (larger := [number for number in numbers if sent < number <= 4096]):
            self.least_tokens = max(self.least_tokens, min(larger))
            return True
        if smaller := [number for number in numbers if 16 <= number < sent]:
            self.most_tokens = max(smaller)
            return True
        return False

    def _leave_out(self, words: str, body: Mapping[str, Any]) -> bool:
        """Leave out the parameters that a refusal names, or one of two that exclude each other."""
        # Without them, no option can be scored: fewer alternatives are tried instead.
        kept = ("logprobs", "top_logprobs") if "top_logprobs" in body else ()
        names = [name for name in _OPTIONAL if name in body and name not in kept]
        names = [name for name in names if name not in self.wanted]
        named = [name for name in names if re.search(rf"(?<![\w-]){name}(?![\w-])", words)]
        if {"temperature", "top_p"} <= {*named} and re.search(
            "both|together|at the same time|simultaneous|one of", words
        ):
            named = ["top_p"]
        self.left_out |= {*named}
        return bool(named)
