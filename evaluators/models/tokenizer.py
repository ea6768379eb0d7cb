"""Tokenises prompts and options, with the same border between context and option for every backend.

Context and option are tokenised together, like text in training. The tokens that the context and all its options share
count as the context; the rest is scored. If a tokenizer merges characters across the border, the last tokens of the
context are therefore scored with every option, and the record says how many.

An option without a context follows the token that the tokenizer begins texts with. If it begins them with none, that is
its start token or, without one, its end token, as in lm-evaluation-harness (``prefix_token_id``).

With a chat template, the prompt is the user's only message, and an option is the beginning of the answer. The option's
leading space, which would separate it from a prompt to continue, is then removed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError
from biasboard.ground.hub import hub_obstacle
from evaluators.backend import (
    OF_LANGUAGE_MODELS,
    Capability,
    ChoiceRequest,
    GenerateRequest,
    Request,
    Response,
    TokenCount,
)
from evaluators.models.encoding import encode
from evaluators.models.model_files import CONFIG, file_of, settings_of
from evaluators.models.pretrained import load_pretrained
from evaluators.thinking import THINKING_TOKENS, opens_thinking

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from evaluators.models.chat_template import TemplateFrame

_TOKENIZER_FILES = ("tokenizer_config.json", "tokenizer.json", "config.json")
"""Files of which a downloaded tokenizer has at least one."""


class TokenRows(NamedTuple):
    """The token ids of a request, with one row per option."""

    ids: tuple[list[int], ...]
    """Token ids of context and option, for each option."""
    n_context: int
    """Number of leading tokens that all options share with the context."""
    n_moved: int
    """Number of further context tokens, which the tokenizer merges with some option; they are scored with every
    option."""

    @property
    def token_counts(self) -> tuple[int, ...]:
        """The number of tokens that are scored for each option."""
        return tuple(len(ids) - self.n_context for ids in self.ids)

    def response(
        self, logprobs: Sequence[float], end_logprobs: Sequence[float | None], *, precision: str | None
    ) -> Response:
        """Return the response to the request; it has failed if a log-probability is NaN.

        Args:
            logprobs: Log-probability of each option, in nats.
            end_logprobs: Log-probability of the end token after each option, in nats; None if not scored.
            precision: Precision of the model, for the error message.
        """
        if any(value is not None and math.isnan(value) for value in (*logprobs, *end_logprobs)):
            reason = f"a log-probability is NaN in {precision}; use --dtype float32 or bfloat16"
            return Response(status="failed", error=reason)
        return Response(
            status="answered",
            option_logprobs=tuple(logprobs),
            option_end_logprobs=tuple(end_logprobs),
            option_token_counts=self.token_counts,
            n_moved_tokens=self.n_moved,
            n_prompt_tokens=self.n_context + self.n_moved,
            n_completion_tokens=0,
        )


_NO_TEMPLATE = "the tokenizer has no chat template; leave out --chat, or name a --tokenizer that has one"
_NO_OPTIONS = (
    "the chat template begins the answer in the middle of thinking, so that no option can follow; where the template "
    """lets it be, switch that off with --chat-template-args '{"enable_thinking": false}'"""
)
_TEMPLATES = ("chat_template.jinja", "chat_template.json")
"""Files that hold a chat template, unless the tokenizer's settings do."""
_NAMED_TEMPLATES = "additional_chat_templates"
_REQUESTS_PER_CALL = 1024
_DATE = datetime(2025, 1, 1)
_NO_CLOCK = "{% set strftime_now = 'the clock' +%}"
"""Hides the clock from a template that gives it another name; the sign + keeps the line break that may follow."""
_CLOCK_CALL = re.compile(r"strftime_now\(\s*(?P<quote>['\"])(?P<form>[^'\"]*)(?P=quote)\s*\)")


@dataclass(frozen=True)
class ModelTokenizer:
    """A tokenizer that wraps prompts in its chat template if ``chat`` is True."""

    pretrained: PreTrainedTokenizerBase
    chat: bool = False
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the chat template beside the messages."""
    system_prompt: str | None = None
    """First message of every chat; None for none."""

    def __post_init__(self) -> None:
        if self.chat and not self._template:
            raise ConfigError(_NO_TEMPLATE)
        if self.chat and "strftime_now(" in (self._template_with_fixed_date or ""):
            raise ConfigError(
                "the chat template reads the clock in a way that cannot be fixed to one date; write a date into it"
            )
        if self.chat and self._template_with_fixed_date is not None:
            # Loaded with --chat alone, as below.
            from evaluators.models.chat_template import check_template

            check_template(self._template_with_fixed_date, json.dumps(self.pretrained.special_tokens_map, default=str))

    @property
    def end_id(self) -> int | None:
        """The id of the end token; None if there is none."""
        end: int | None = self.pretrained.eos_token_id
        return end

    @property
    def start_id(self) -> int | None:
        """The id of the token before an option without a context; None if there is none."""
        start: int | None = self.pretrained.bos_token_id
        return self.end_id if start is None else start

    @cached_property
    def added_start(self) -> str | None:
        """The token that is put before an option without a context; None if the tokenizer begins texts itself."""
        if self.start_id is None or self.context_ids(""):
            return None
        return str(self.pretrained.convert_ids_to_tokens(self.start_id))

    @property
    def chat_template_sha256(self) -> str | None:
        """The hash of the chat template; None if prompts are sent without one."""
        return hashlib.sha256(self._template.encode()).hexdigest() if self.chat and self._template else None

    @cached_property
    def opens_thinking(self) -> bool:
        """True if the chat template begins an answer in the middle of thinking."""
        return self.chat and opens_thinking(self._rendered("Who?"))

    def thinking_tokens(self, chosen: int | None) -> int:
        """Return the number of tokens to think with: the user's, or by default some if the template opens thinking."""
        return chosen if chosen is not None else THINKING_TOKENS if self.opens_thinking else 0

    @property
    def obstacles(self) -> dict[str, str]:
        """The abilities that a model lacks behind the chat template, each with the reason."""
        return {"option_logprobs": _NO_OPTIONS} if self.opens_thinking else {}

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The abilities of a language model behind the chat template."""
        return OF_LANGUAGE_MODELS - self.obstacles.keys()

    @property
    def packages(self) -> dict[str, str]:
        """The versions of the libraries that tokenise."""
        return {name: importlib.metadata.version(name) for name in ("transformers", "tokenizers")}

    @cached_property
    def _template(self) -> str | None:
        template = self.pretrained.chat_template
        if isinstance(template, dict):
            template = template.get("default")
        return template if isinstance(template, str) else None

    @cached_property
    def _template_with_fixed_date(self) -> str | None:
        """The chat template with a fixed date, so that prompts do not change from day to day."""
        if self._template is None:
            return None
        dated = _CLOCK_CALL.sub(lambda call: repr(_DATE.strftime(call["form"])), self._template)
        return _NO_CLOCK + dated if "strftime_now" in dated else dated

    def context_ids(self, prompt: str) -> list[int]:
        """Return the token ids of a prompt to continue, in the chat template if ``chat`` is True."""
        return self._ids([self._rendered(prompt)])[0]

    def rows(self, request: ChoiceRequest, context_tokens: int | None = None) -> TokenRows | str:
        """Return the rows of a request, or why it cannot be asked.

        Args:
            request: Request with the context and the options.
            context_tokens: Largest number of tokens that the model takes; None if there is no limit.
        """
        return self.rows_of_all([request], context_tokens)[0]

    def rows_of_all(
        self, requests: Sequence[ChoiceRequest], context_tokens: int | None = None
    ) -> list[TokenRows | str]:
        """Return the rows of many requests, faster than one by one, because tokenizers process many texts at once."""
        encoded = zip(requests, self._encoded(requests), strict=True)
        return [self._rows(request, texts, context_tokens) for request, texts in encoded]

    def _encoded(self, requests: Sequence[Request], *, with_options: bool = True) -> Iterator[list[list[int]]]:
        """Yield the ids of each request's context, and of the context with each option, so that none is an option's."""
        # In parts, to limit the texts and ids in memory.
        for start in range(0, len(requests), _REQUESTS_PER_CALL):
            part = requests[start : start + _REQUESTS_PER_CALL]
            texts = [self._texts(request) if with_options else [self._context(request)] for request in part]
            encoded = iter(self._ids([text for of_request in texts for text in of_request]))
            for request, of_request in zip(part, texts, strict=True):
                ids = [next(encoded) for _ in of_request]
                needs_start = isinstance(request, ChoiceRequest) and not ids[0]
                start_id = self.start_id if needs_start else None
                yield ids if start_id is None else [[start_id, *each] for each in ids]

    def _texts(self, request: Request) -> list[str]:
        """Return the context, and the context with each option."""
        text = self._context(request)
        if not isinstance(request, ChoiceRequest):
            return [text]
        # An answer that begins with the option begins without the space that separates it from a text.
        strips = self.chat and not request.n_begun
        return [text, *(text + (option.lstrip() if strips else option) for option in request.options)]

    def _context(self, request: Request) -> str:
        """Return the text that a model is given, with the beginning of its answer behind the chat template."""
        if not isinstance(request, ChoiceRequest) or not request.n_begun:
            return self._rendered(request.prompt)
        question, begun = request.prompt[: -request.n_begun], request.prompt[-request.n_begun :]
        return self._rendered(question) + begun

    def _rows(self, request: ChoiceRequest, texts: Sequence[list[int]], context_tokens: int | None) -> TokenRows | str:
        context, *options = texts
        # Not simply the length of the context: tokens of TinyStories such as "to the" can span the border.
        n_common = n_common_tokens([context, *options])
        if n_common == 0:
            return "context and options share no token, and the tokenizer has none for the start or the end of a text"
        for option, ids in zip(request.options, options, strict=True):
            if len(ids) == n_common:
                return f"option '{option}' has no tokens of its own"
        longest = max(map(len, options))
        if context_tokens is not None and longest > context_tokens:
            return f"context and option take {longest} tokens, the model {context_tokens}"
        return TokenRows(tuple(options), n_common, len(context) - n_common)

    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        """Count the tokens of the prompts and the largest number that may be generated."""
        n_prompt = sum(len(context) for (context,) in self._encoded(requests, with_options=False))
        return TokenCount(
            n_prompt, sum(request.max_tokens for request in requests if isinstance(request, GenerateRequest))
        )

    def needed_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Return the least context length of each request: context and longest option, or prompt and one new token."""
        return [max(map(len, options), default=len(context) + 1) for context, *options in self._encoded(requests)]

    @cached_property
    def sha256(self) -> str:
        """The hash of everything that determines the ids of a text; for a slow tokenizer, of its vocabulary."""
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
        text = self._as_rendered(prompt)
        self._frame.check(prompt, text)
        return text

    @cached_property
    def _frame(self) -> TemplateFrame:
        from evaluators.models.chat_template import PROBE, frame_of

        return frame_of(self._as_rendered(PROBE))

    def _as_rendered(self, prompt: str) -> str:
        system = [] if self.system_prompt is None else [{"role": "system", "content": self.system_prompt}]
        try:
            return str(
                self.pretrained.apply_chat_template(
                    [*system, {"role": "user", "content": prompt}],
                    add_generation_prompt=True,
                    tokenize=False,
                    chat_template=self._template_with_fixed_date,
                    **self.template_arguments,
                )
            )
        # A template can raise any exception.
        except Exception as error:
            from evaluators.models.chat_template import render_error

            raise render_error(error) from error

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        # A chat template already contains the special tokens.
        encoded: list[list[int]] = encode(self.pretrained, texts, add_special_tokens=not self.chat)["input_ids"]
        # Some tokenizers add an end token to every text, also after a context that options continue.
        for ids in [] if self.chat else encoded:
            while len(ids) > 1 and ids[-1] == self.end_id:
                ids.pop()
        return encoded


def unknown_token(texts: Sequence[Sequence[int]], n_tokens: int) -> str | None:
    """Return an error message if a token id is beyond the model's vocabulary; None otherwise."""
    highest = max(map(max, texts))
    if highest < n_tokens:
        return None
    return f"token {highest} is not among the model's {n_tokens}; name the tokenizer that it was trained with"


def check_template_files(name: str, revision: str | None) -> None:
    """Check that a tokenizer may have a chat template by its files, without the libraries that load it.

    Args:
        name: Hub id, or path of a folder.
        revision: Commit, tag or branch on the Hub; None for its main branch or for a folder.

    Raises:
        ConfigError: it has none.
    """
    try:
        has_one = "chat_template" in (settings_of(name, _TOKENIZER_FILES[0], revision) or {})
        has_one = has_one or any(file_of(name, file, revision) is not None for file in _TEMPLATES)
    # Whatever is wrong with these files is reported when the tokenizer is loaded.
    except Exception:
        return
    if not has_one and not (Path(name) / _NAMED_TEMPLATES).is_dir():
        raise ConfigError(_NO_TEMPLATE)


def load_tokenizer(
    name: str,
    revision: str | None = None,
    *,
    chat: bool = False,
    template_arguments: Mapping[str, Any] | None = None,
    system_prompt: str | None = None,
    loader: str = "AutoTokenizer",
) -> ModelTokenizer:
    """Load a tokenizer from the Hub or from a folder, without its model.

    Args:
        name: Hub id, or path of a folder.
        revision: Commit, tag or branch on the Hub; None for its main branch or for a folder.
        chat: True to wrap prompts in its chat template.
        template_arguments: Arguments of the chat template; None for none.
        system_prompt: First message of every chat; None for none.
        loader: Class of transformers that loads it.

    Raises:
        ConfigError: the tokenizer cannot be loaded, ``chat`` is True and it has no chat template, or ``chat`` is False
            and there is something for a template.
        MissingExtraError: transformers is not installed.
    """
    obstacle = None if Path(name).exists() else hub_obstacle(name, _TOKENIZER_FILES, revision=revision)
    if obstacle is not None:
        raise ConfigError(f"tokenizer '{name}' cannot be loaded: {obstacle}")
    remedy = "check the id, or give a local folder"
    if not chat and (template_arguments or system_prompt is not None):
        what = "--chat-template-args" if template_arguments else "--system-prompt"
        raise ConfigError(f"{what} is for a chat template; add --chat, or leave it out")
    try:
        pretrained = load_pretrained(loader, name, revision, what=f"tokenizer '{name}'", remedy=remedy)
    except ConfigError:
        # It reads the configuration of the model first.
        if (Path(name) / CONFIG).is_file():
            load_pretrained("AutoConfig", name, revision, what=f"model '{name}': its {CONFIG}", remedy="save it again")
        raise
    return ModelTokenizer(pretrained, chat, template_arguments or {}, system_prompt)


def local_name(name: str) -> str:
    """Return the name of a local folder without its path; return a Hub id unchanged."""
    folder = Path(name)
    return folder.resolve().name if folder.is_dir() else name


def n_common_tokens(texts: Sequence[Sequence[int] | Sequence[str]]) -> int:
    """Return the number of leading tokens, as ids or as texts, that all texts share."""
    columns = enumerate(zip(*texts, strict=False))
    return next((index for index, tokens in columns if len(set(tokens)) > 1), min(map(len, texts)))
