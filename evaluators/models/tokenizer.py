"""Tokenises prompts and options, with the same border between context and option for every backend.

Context and option are tokenised together, like text in training. The tokens that the context and all its options share
count as the context; the rest is scored. If a tokenizer merges characters across the border, the last tokens of the
context are therefore scored with every option, and the record says how many.

An option without a context follows the token that the tokenizer begins texts with. If it begins them with none, that is
its start token or, without one, its end token, as in lm-evaluation-harness (``prefix_token_id``).

With a chat template, the prompt is the user's only message, and an option is the beginning of the answer. The option's
leading space, which would separate it from a prompt to continue, is then removed.

Turns texts into token ids for every local backend, and refuses a tokenizer that changes what a text says.

A tokenizer comes with a model, and its rules could hold the answers to a benchmark: replace a word, or drop a sentence.
Its rules therefore name no words and are short, and the ids of each text spell the text. A word has the same ids in
every text, as a pattern could cut it by the length of a prompt, unless the vocabulary has ids that span words. No id
stands for more than a phrase: one for a whole prompt tells a model its answer. What ids spell is read from the
vocabulary and not decoded, because rules for decoding could undo those for encoding.

A text may differ from its ids in case, accents, white space, quotation marks, and where compatible characters are
replaced (NFKC), as with uncased models and SentencePiece. Unknown tokens may stand for any words, and signs that no
token holds may be lost: that depends on the vocabulary alone.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError
from biasboard.ground.hub import hub_obstacle
from biasboard.ground.plain_text import one_line, printable
from evaluators.backend import (
    OF_LANGUAGE_MODELS,
    Capability,
    ChoiceRequest,
    GenerateRequest,
    Request,
    Response,
    TokenCount,
)
from evaluators.models.model_files import CONFIG, file_of, load_pretrained, settings_of
from evaluators.thinking import THINKING_TOKENS, opens_thinking

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

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


_REMEDY = "name the --tokenizer that the model was trained with, as its authors published it"
_RULES = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
_MOST_CHARACTERS = 4_000
"""Maximum length of all rules as JSON, without SentencePiece's table of characters, which is read sign by sign, also if
it holds words. Those of published models take about 1,500; each item of a benchmark would take about 100."""
_FIELDS = ("pattern", "content", "prepend", "prefix", "suffix")
_NO_WORDS = re.compile(r"\\[pP]\{[^}]*\}|\\[a-zA-Z]|<\\?\|\w+\\?\|>|\[:\w+:\]")
"""What has letters in a pattern and is no word: classes of characters, and special tokens."""
_WORD = re.compile(r"[^\W\d_]{4,}")
_MARK = re.compile(r"[<\[].+[>\]]")
_MOST_WORDS = 5
"""Maximum number of words that an id may stand for, and one of BPE or Unigram only: added tokens and entries of other
vocabularies are single words. In the texts of all benchmarks, ids of TinyStories-656K stand for up to 3, and those of
Jurassic-2, with 118,000 phrases among 262,144 pieces, for up to 5 ("at the end of the"), and for 1.75 on average."""
_MEAN_WORDS = 2
"""Maximum mean number of words for each id after the first."""
_MOST_LETTERS = 48
"""Maximum number of letters of an id; the longest word in vocabularies of Qwen has 41, and those of others up to 26."""
_SPANNING = re.compile(r"\w[\s\u2581]")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_MARKS = "\"'`\u2581\ufffd"
_ASCII_BLANKS = dict.fromkeys((*range(33), 127, *map(ord, _MARKS[:3])))


def encode(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, as_target: bool = False, **options: Any
) -> BatchEncoding:
    """Return what a tokenizer makes of texts, after checking that the ids spell them.

    Args:
        tokenizer: The tokenizer.
        texts: The texts.
        as_target: True for texts of a decoder that has an encoder.
        **options: Further arguments of the tokenizer.

    Raises:
        ConfigError: its rules name words or are too long, the ids of a text spell another one, one stands for more
            than a phrase, or a word has other ids than in an earlier text.
    """
    spelling = _spelling(tokenizer, len(tokenizer))
    name = "text_target" if as_target else "text"
    settings = {"verbose": False, **options}
    # Special tokens before and after a text are the same for every text.
    try:
        mask = tokenizer(**{name: "a 1 the ."}, return_special_tokens_mask=True, **settings)["special_tokens_mask"]
        encoded: BatchEncoding = tokenizer(**{name: list(texts)}, **settings)
    # Damaged rules and tables make Rust panic, which is none of Python's exceptions.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        raise ConfigError(f"the tokenizer fails: {one_line(error)}; {_REMEDY}") from error
    n_before = sum(1 for _ in takewhile(bool, mask))
    n_after = sum(1 for _ in takewhile(bool, reversed(mask[n_before:])))
    for index, (text, ids) in enumerate(zip(texts, encoded["input_ids"], strict=True)):
        own = slice(n_before, len(ids) - n_after)
        keeps_spaces = spelling.check(text, ids[own])
        if encoded.encodings:
            spans = encoded.encodings[index].offsets
            spelling.check_words(text, ids[own], spans[own])
            if not keeps_spaces:
                spelling.check_spans(text, ids, spans)
    return encoded


@lru_cache(maxsize=4)
def _spelling(tokenizer: PreTrainedTokenizerBase, n_tokens: int) -> _Spelling:
    """Return what the ids of a tokenizer spell; another one if tokens were added to it."""
    return _Spelling(tokenizer)


class _Spelling(dict[int, bytes]):
    """What each id spells, filled as ids come."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__()
        self._tokenizer = tokenizer
        backend = getattr(tokenizer, "backend_tokenizer", None)
        parts = {} if backend is None else json.loads(backend.to_str())
        added = tokenizer.added_tokens_decoder if backend is None else backend.get_added_tokens_decoder()
        _check_rules(parts, [str(token) for token in added.values() if token.special])
        self._is_fast = backend is not None
        self._ids_of: dict[tuple[bool, str], Sequence[int]] = {}
        self._model: dict[str, Any] = parts.get("model") or {}
        # Quotation marks within a rule are escaped, so that this is a kind and no text.
        is_of_bytes = '"type": "ByteLevel"' in json.dumps([parts.get(name) for name in _RULES[:2]])
        self._bytes = _byte_alphabet() if is_of_bytes else None
        self._added = frozenset(added)
        self._most_words = 1 if str(self._model.get("type")).startswith("Word") else _MOST_WORDS
        unknown = str(self._model.get("unk_token") or tokenizer.unk_token)
        if (index := self._model.get("unk_id")) is not None:
            unknown = str(tokenizer.convert_ids_to_tokens(index))
        # A word or a sign that stood for anything would hide what is lost beside it.
        self._unknown = tokenizer.get_vocab().get(unknown) if _MARK.fullmatch(unknown) else None

    def __missing__(self, token: int) -> bytes:
        spelt = self._spelt(token)
        self._check_size(token, spelt.decode(errors="replace"))
        self[token] = spelt
        return spelt

    def _spelt(self, token: int) -> bytes:
        piece = str(self._tokenizer.convert_ids_to_tokens(token))
        if token in self._added:
            return piece.encode()
        if self._model.get("byte_fallback") and (byte := _BYTE.fullmatch(piece)):
            return bytes.fromhex(byte[1])
        piece = piece.removeprefix(self._model.get("continuing_subword_prefix") or "")
        piece = piece.removesuffix(self._model.get("end_of_word_suffix") or "")
        if self._bytes is not None and all(sign in self._bytes for sign in piece):
            return bytes(self._bytes[sign] for sign in piece)
        return piece.encode(errors="replace")

    def check(self, text: str, ids: Sequence[int]) -> bool:
        """Check that ids spell a text; return True if they spell it with white space between its words."""
        unknown = self._unknown
        parts = _split(ids, unknown) if unknown is not None and unknown in ids else [ids]
        spelt = [*map(self._text, parts)]
        if spelt != [text]:
            found = [*map(_plain, spelt)]
            if not _holds(_plain(text), found) and not _holds(_plain(self._known(text)), found):
                raise ConfigError(
                    f"the tokenizer changes texts: it reads '{printable(text, most=100)}' as "
                    f"'{printable('…'.join(spelt), most=100)}'; {_REMEDY}"
                )
        words = text.split()
        most = _MOST_WORDS + _MEAN_WORDS * (len(ids) - 1)
        if (
            len(words) > most
            and unknown not in ids
            and sum(any(map(str.isalnum, self._known(word))) for word in words) > most
        ):
            raise _too_much(text, len(ids))
        return spelt == [text] or "".join(spelt).replace("\u2581", " ").split() == words

    def check_words(self, text: str, ids: Sequence[int], spans: Sequence[tuple[int, int]]) -> None:
        """Check that each word, with the white space before it, has the ids that it had in earlier texts."""
        for begin, end, word in _words(text, spans):
            # Ids that span words depend on those around them, as the longest phrase is taken.
            if len(word) <= _MOST_LETTERS and len(word.split()) <= 1:
                known = self._ids_of.setdefault((begin == 0, word), ids[begin:end])
                if known != ids[begin:end] and not self._spans_words:
                    raise ConfigError(
                        f"the tokenizer cuts '{printable(word.strip(), most=60)}' in two ways, by the text around it, "
                        f"which could hold an answer; {_REMEDY}"
                    )

    def check_spans(self, text: str, ids: Sequence[int], spans: Sequence[tuple[int, int]]) -> None:
        """Check that the part of a text that each id stands for is no more than a phrase, whatever it spells."""
        for token, (start, end) in zip(ids, spans, strict=True):
            if end - start > 2 * self._most_words or token in self._added:
                self._check_size(token, text[start:end])

    def _check_size(self, token: int, text: str) -> None:
        words = [word for word in text.replace("\u2581", " ").split() if any(map(str.isalnum, word))]
        most = self._most_words
        if token in self._added:
            most = _MOST_WORDS if _MARK.fullmatch(text.strip()) else 1
        n_letters = 0 if token == self._unknown else sum(map(str.isalpha, text))
        if len(words) > most or n_letters > _MOST_LETTERS:
            raise _too_much(text, 1)

    def _known(self, text: str) -> str:
        """Return a text without signs that no token holds: some vocabularies lose them without an unknown token."""
        return "".join(sign for sign in text if sign in self._signs)

    @cached_property
    def _signs(self) -> frozenset[str]:
        return frozenset("".join(self._pieces))

    @cached_property
    def _spans_words(self) -> bool:
        """True if some id goes on after the end of a word: what merges there depends on the words around it."""
        return any(_SPANNING.search(piece) for piece in self._pieces)

    @property
    def _pieces(self) -> Iterator[str]:
        spelt = map(self._spelt, self._tokenizer.get_vocab().values())
        return (piece.decode(errors="replace") for piece in spelt)

    def _text(self, ids: Sequence[int]) -> str:
        if self._is_fast:
            return b"".join(map(self.__getitem__, ids)).decode(errors="replace")
        # Tokenizers in Python mark the borders of words in these ways, or have a token for each byte.
        pieces = (self[token].decode() for token in ids)
        joined = "".join(re.sub(r"(?<=.)@@$|</w>$|^##(?=.)", "", piece) for piece in pieces)
        with suppress(UnicodeError):
            return joined.encode("latin-1").decode()
        return joined


def _check_rules(parts: Mapping[str, Any], special: Sequence[str]) -> None:
    rules = {name: _without_tables(parts.get(name)) for name in _RULES}
    if (size := len(json.dumps(rules, ensure_ascii=False))) > _MOST_CHARACTERS:
        raise ConfigError(
            f"the tokenizer has rules of {size:,} characters, and more than {_MOST_CHARACTERS:,} could hold answers; "
            f"{_REMEDY}"
        )
    for name, kind, text in _texts(rules):
        word = _WORD.search(_NO_WORDS.sub("", text))
        if kind == "Replace":
            # Honest ones replace white space and quotation marks, whatever stands around them.
            word = re.search(r"\w|\(\?", re.sub(r"\\[sSnrt]|\{\d*,?\d*\}", "", text).replace("_", ""))
        if word is not None:
            raise ConfigError(
                f"the tokenizer's {name} has a rule for a word or its surroundings ('{printable(text, most=60)}'), "
                f"which changes texts; {_REMEDY}"
            )
    # They are left out of what a model writes.
    words = [token for token in special if token.strip(" \u2581\u0120").isalpha()]
    if words:
        raise ConfigError(
            f"the tokenizer takes the word '{printable(words[0], most=60)}' for a special token; {_REMEDY}"
        )


def _without_tables(rules: Any) -> Any:
    if isinstance(rules, dict):
        return {name: _without_tables(value) for name, value in rules.items() if name != "precompiled_charsmap"}
    return [*map(_without_tables, rules)] if isinstance(rules, list) else rules


def _texts(rules: Any, name: str = "", kind: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the part, the kind and the text of each rule that matches or adds a text."""
    if isinstance(rules, list):
        for rule in rules:
            yield from _texts(rule, name, kind)
    elif isinstance(rules, dict):
        kind = str(rules.get("type") or kind)
        for field, value in rules.items():
            if isinstance(value, str) and field in (*_FIELDS, "String", "Regex"):
                yield name, kind, value
            else:
                yield from _texts(value, name or field, kind)


def _byte_alphabet() -> dict[str, int]:
    """Return the byte of each sign in a byte-level vocabulary, as GPT-2 writes them (Radford et al. 2019)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + number): byte for number, byte in enumerate(hidden)}


def _too_much(text: str, n_tokens: int) -> ConfigError:
    tokens = "1 token" if n_tokens == 1 else f"{n_tokens} tokens"
    return ConfigError(
        f"the tokenizer has {tokens} for '{printable(text, most=60)}', which could hold an answer; {_REMEDY}"
    )


def _words(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Yield the first and the last index of the ids of each word, and the word with the white space before it."""
    begin = first = last = 0
    for index, (start, end) in enumerate(spans):
        # A sign may have several ids.
        is_border = start >= last > first and any(map(str.isspace, text[max(start - 1, 0) : start + 1]))
        if is_border and not text[first:last].isspace():
            yield begin, index, text[first:last]
            begin, first = index, last
        last = max(last, end)
    yield begin, len(spans), text[first:last]


def _split(ids: Sequence[int], at: int) -> Iterator[list[int]]:
    part: list[int] = []
    for token in ids:
        if token == at:
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _holds(text: str, parts: Sequence[str]) -> bool:
    """Return True if parts stand in a text in their order, with anything only between them."""
    if len(parts) == 1:
        return text == parts[0]
    first, *inner, last = parts
    if not (text.startswith(first) and text.endswith(last)):
        return False
    at = len(first)
    for part in inner:
        if (found := text.find(part, at)) < 0:
            return False
        at = found + len(part)
    return at <= len(text) - len(last)


def _plain(text: str) -> str:
    """Return a text without what a normaliser may change."""
    if text.isascii():
        return text.lower().translate(_ASCII_BLANKS)
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(sign for sign in text if sign not in _MARKS and unicodedata.category(sign)[0] not in "CMZ")
