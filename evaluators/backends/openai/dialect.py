"""What an endpoint accepts, learned from what it refuses, once, and kept for all further calls.

Endpoints name parameters differently, refuse some of them or some of their values, or answer only as a stream. None
says so beforehand, and their documentation ages fast: the first call tries everything, and each refusal that names what
it is about leads to another call. What could not be set is the provider's choice, and a condition of the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from biasboard.ground.progress import note
from evaluators.backends.openai.meanings import NoAnswerError
from evaluators.thinking import THINKING_TOKENS

_MAX_TOKENS = ("max_tokens", "max_completion_tokens")
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
_ROLE = re.compile("role|system|developer instruction")
_NUMBER = re.compile(r"(?<![\d.])(?:\d{1,3}(?:,\d{3})+|\d{1,7})(?!\d|\.\d)")
_ROOM = re.compile("context|prompt|input (?:tokens|length)|request too large|too big")
"""Words in a refusal that show the budget and the prompt together to be too large."""
_NAME = re.compile("unsupported|not supported|unrecogni|unknown|extra")
"""Words in a refusal that show the name of a parameter, and not its value, to be wrong."""
_SMALL_BUDGET = 1024
"""Number of tokens from which a budget, and not the prompt, is likely to be what a context lacks room for."""
_AT_LEAST = re.compile(r">=|at least|minimum|below|too small|greater than or equal|\[\s*\d+\s*,|no less")
_EXCLUSIVE = re.compile("both|together|at the same time|simultaneous|one of")
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

    max_tokens: str = _MAX_TOKENS[0]
    """Name of the endpoint's parameter for the largest number of tokens to generate."""
    least_tokens: int = 1
    """Smallest value that the endpoint takes for it."""
    most_tokens: int | None = None
    """Largest value that it takes; None if none is known."""
    left_out: frozenset[str] = frozenset()
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

    @property
    def settings(self) -> dict[str, str]:
        """What is sent in another way than usual, as it is recorded in a result."""
        unusual = {
            "parameters_left_out": ", ".join(sorted(self.left_out - {*_MAX_TOKENS})),
            "streamed": "true" if self.streams else "",
            "system_prompt_in": "" if self.has_system_role else "the message of the user",
            "least_tokens": str(self.least_tokens) if self.least_tokens > 1 else "",
            "most_tokens": str(self.most_tokens or ""),
            "json_schema": self.form if self.has_asked_for_form else "",
        }
        return {"max_tokens_parameter": self.max_tokens} | {name: value for name, value in unusual.items() if value}

    def grant_thinking(self) -> bool:
        """Grant a model tokens to think with; return True if it had none, and the user did not choose so."""
        if self.thinking_tokens or self.has_chosen_budget:
            return False
        self.thinking_tokens = THINKING_TOKENS
        return True

    def n_tokens(self, n_answer: int) -> int:
        """Return the number of tokens to ask for, so that an answer of ``n_answer`` tokens has room."""
        n_tokens = max(n_answer + self.thinking_tokens, self.least_tokens)
        return n_tokens if self.most_tokens is None else min(n_tokens, self.most_tokens)

    def form_parameters(self, json_schema: str | None) -> Mapping[str, Any]:
        """Return the parameters that constrain a text to a schema; none without a schema."""
        if json_schema is None:
            return {}
        self.has_asked_for_form = True
        if self.form == "json_schema":
            schema = {"name": "answer", "schema": json.loads(json_schema), "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        return {"response_format": {"type": "json_object"}} if self.form == "json_object" else {}

    def learn(self, error: NoAnswerError, body: Mapping[str, Any]) -> bool:
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
        if "stream" not in body and _STREAM.search(words) and _ONLY.search(words):
            self.streams = True
            return True
        if len(body.get("messages", ())) > 1 and _ROLE.search(words):
            self.has_system_role = False
            return True
        return self._learn_tokens(words, body) or self._leave_out(words, body)

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

    def _learn_tokens(self, words: str, body: Mapping[str, Any]) -> bool:
        name = next((name for name in _MAX_TOKENS if name in body), None)
        if name is None or "token" not in words or not (_ROOM.search(words) or "max_" in words):
            return False
        sent, numbers = body[name], [int(number.replace(",", "")) for number in _NUMBER.findall(words)]
        is_name = _NAME.search(words)
        # The room that thinking may take is more than the context has, or than a minute allows.
        if _ROOM.search(words) and not is_name:
            self.most_tokens = sent // 2 if sent > _SMALL_BUDGET else self.most_tokens
            return bool(sent > _SMALL_BUDGET)
        other = _MAX_TOKENS[1 - _MAX_TOKENS.index(name)]
        if other in words or (name in words and is_name):
            if other in self.left_out:
                return False
            self.left_out |= {name}
            self.max_tokens = other
            return True
        if _AT_LEAST.search(words) and (larger := [number for number in numbers if sent < number <= 4096]):
            self.least_tokens = max(self.least_tokens, min(larger))
            return True
        if smaller := [number for number in numbers if 16 <= number < sent]:
            self.most_tokens = max(smaller)
        return bool(smaller)

    def _leave_out(self, words: str, body: Mapping[str, Any]) -> bool:
        """Leave out the parameters that a refusal names, or one of two that exclude each other."""
        # Without them, no option can be scored: fewer alternatives are tried instead.
        kept = {*self.wanted, *(("logprobs", "top_logprobs") if "top_logprobs" in body else ())}
        sent = [name for name in _OPTIONAL if name in body and name not in kept]
        named = {name for name in sent if re.search(rf"(?<![\w-]){name}(?![\w-])", words)}
        if named >= {"temperature", "top_p"} and _EXCLUSIVE.search(words):
            named = {"top_p"}
        self.left_out |= named
        return bool(named)
