"""Texts as the token ids that a model is asked about: one border between context and option, whoever computes.

Context and option are tokenised together, as the model knows text. What all options of a request and the context have
in common is the context; the rest is scored. Where a tokenizer merges across the border, the last tokens of the
context thus move into every option alike, and the record says how many.

With a chat template the prompt is the user's only message and an option is the beginning of the answer; its leading
space, which separates it from a prompt that it continues, is left out.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from evaluators.backend import ChoiceRequest, GenerateRequest, Request, TokenCount
from schemas import strict_json
from schemas.errors import ConfigError, import_extra

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Rows(NamedTuple):
    """The options of a request, each after the context, as token ids."""

    ids: tuple[list[int], ...]
    n_context: int
    """Leading tokens that all options share with the context."""
    n_moved: int
    """Tokens of the context that are not among them."""


_REQUESTS_AT_A_TIME = 1024
_DATE = datetime(2025, 1, 1)
_CLOCK = re.compile(r"strftime_now\(\s*(?P<quote>['\"])(?P<form>[^'\"]*)(?P=quote)\s*\)")


@dataclass(frozen=True)
class ModelTokenizer:
    """A tokenizer and whether it asks through its chat template."""

    pretrained: PreTrainedTokenizerBase
    chat: bool = False

    def __post_init__(self) -> None:
        if self.chat and not self._template:
            raise ConfigError(
                "the tokenizer has no chat template; leave out --chat, or name a --tokenizer that has one"
            )
        if self.chat and "strftime_now(" in (self._undated or ""):
            raise ConfigError(
                "the chat template reads the clock in a way that cannot be fixed to one date; write a date into it"
            )

    @property
    def end_id(self) -> int | None:
        """The end token; None if the model has none."""
        end: int | None = self.pretrained.eos_token_id
        return end

    @property
    def chat_template_sha256(self) -> str | None:
        """None where prompts are sent as they are."""
        return hashlib.sha256(self._template.encode()).hexdigest() if self.chat and self._template else None

    @property
    def packages(self) -> dict[str, str]:
        """Versions of what makes the ids."""
        return {name: importlib.metadata.version(name) for name in ("transformers", "tokenizers")}

    @cached_property
    def _template(self) -> str | None:
        template = self.pretrained.chat_template
        if isinstance(template, dict):
            template = template.get("default")
        return template if isinstance(template, str) else None

    @cached_property
    def _undated(self) -> str | None:
        """The template with one date in it: tomorrow the same model would be asked something else."""
        if self._template is None:
            return None
        return _CLOCK.sub(lambda found: repr(_DATE.strftime(found["form"])), self._template)

    def context_ids(self, prompt: str) -> list[int]:
        """Token ids of a prompt, as a model goes on from it."""
        return self._ids([self._rendered(prompt)])[0]

    def rows(self, request: ChoiceRequest, room: int | None = None) -> Rows | str:
        """The rows of a request, or why it has none.

        Args:
            request: Context and options.
            room: Most tokens that the model takes; None if there is no limit.
        """
        return self.rows_of_all([request], room)[0]

    def rows_of_all(self, requests: Sequence[ChoiceRequest], room: int | None = None) -> list[Rows | str]:
        """The rows of many requests, in less time: fast tokenizers work on many texts at once."""
        encoded: list[Rows | str] = []
        for start in range(0, len(requests), _REQUESTS_AT_A_TIME):
            part = requests[start : start + _REQUESTS_AT_A_TIME]
            ids = iter(self._ids([text for request in part for text in self._texts(request)]))
            encoded.extend(self._rows(request, [next(ids) for _ in (None, *request.options)], room) for request in part)
        return encoded

    def _texts(self, request: ChoiceRequest) -> list[str]:
        """The context, and the context with each option."""
        text = self._rendered(request.prompt)
        return [text, *(text + (option.lstrip() if self.chat else option) for option in request.options)]

    def _rows(self, request: ChoiceRequest, texts: Sequence[list[int]], room: int | None) -> Rows | str:
        context, *options = texts
        n_common = _n_common([context, *options])
        if n_common == 0:
            return "context and options share no token, and the tokenizer adds none at the start"
        for option, ids in zip(request.options, options, strict=True):
            if len(ids) == n_common:
                return f"option '{option}' has no tokens of its own"
        longest = max(map(len, options))
        if room is not None and longest > room:
            return f"context and option take {longest} tokens, the model {room}"
        return Rows(tuple(options), n_common, len(context) - n_common)

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        """Tokens of the prompts, and the most that may be generated."""
        n_prompt = 0
        for start in range(0, len(requests), _REQUESTS_AT_A_TIME):
            part = requests[start : start + _REQUESTS_AT_A_TIME]
            n_prompt += sum(map(len, self._ids([self._rendered(request.prompt) for request in part])))
        return TokenCount(
            n_prompt, sum(request.max_tokens for request in requests if isinstance(request, GenerateRequest))
        )

    @cached_property
    def sha256(self) -> str:
        """Hash of everything that decides which ids a text gets; of a slow tokenizer its vocabulary."""
        fast = getattr(self.pretrained, "backend_tokenizer", None)
        vocabulary: dict[str, strict_json.JsonValue] = dict(sorted(self.pretrained.get_vocab().items()))
        text = strict_json.dumps(vocabulary) if fast is None else fast.to_str()
        special: dict[str, strict_json.JsonValue] = {
            name: str(token) for name, token in sorted(self.pretrained.special_tokens_map.items())
        }
        return strict_json.sha256({"vocabulary": text, "special": special, "end": self.end_id})

    def _rendered(self, prompt: str) -> str:
        if not self.chat:
            return prompt
        text = self.pretrained.apply_chat_template(
            [{"role": "user", "content": prompt}],
            add_generation_prompt=True,
            tokenize=False,
            chat_template=self._undated,
        )
        return str(text)

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        # A chat template writes the special tokens itself.
        encoded: list[list[int]] = self.pretrained(list(texts), add_special_tokens=not self.chat)["input_ids"]
        # Some tokenizers close every text with an end token, which would stand between context and option.
        for ids in [] if self.chat else encoded:
            while len(ids) > 1 and ids[-1] == self.end_id:
                ids.pop()
        return encoded


def load_tokenizer(name: str, revision: str | None = None, *, chat: bool = False) -> ModelTokenizer:
    """A tokenizer of the Hub or of a folder, without its model.

    Raises:
        ConfigError: there is none, or it has no chat template where one is asked for.
        MissingExtraError: transformers is not installed.
    """
    transformers: Any = import_extra("transformers", "hf")
    try:
        pretrained = transformers.AutoTokenizer.from_pretrained(name, revision=revision)
    # The libraries below raise whatever they like, tokenizers a bare Exception; every one of them is about the name.
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(
            f"tokenizer '{name}' cannot be loaded: {reason}; check the id, or give a local folder"
        ) from error
    return ModelTokenizer(pretrained, chat)


def local_name(name: str) -> str:
    """A Hub id as it is, of a local folder the name without the path of this machine."""
    folder = Path(name)
    return folder.resolve().name if folder.is_dir() else name


def _n_common(sequences: Sequence[Sequence[int]]) -> int:
    """Length of the longest prefix that all sequences share."""
    columns = enumerate(zip(*sequences, strict=False))
    return next((place for place, tokens in columns if len(set(tokens)) > 1), min(map(len, sequences)))
