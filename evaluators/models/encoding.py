"""Turns texts into token ids for every local backend, and refuses a tokenizer that changes what a text says.

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

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import one_line, printable

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

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
