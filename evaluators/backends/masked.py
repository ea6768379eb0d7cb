"""Asks masked language models, such as BERT, by pseudo-log-likelihood which text is likelier.

A masked model predicts a token from both of its sides, so the chain rule gives no probability of a text. Its
pseudo-log-likelihood is the sum of the log-probabilities of its tokens, each hidden in a text that is otherwise known
(Salazar et al. 2020, arXiv:1910.14659). Here the later tokens of the same word are hidden too: a rare word of several
tokens would otherwise give each of them away (Kauf & Ivanova 2023, arXiv:2305.10588, "within-word left-to-right")::

    The sou[MASK][MASK][MASK] waited .      log p(##ven | ...)      The sou ##ven [MASK] [MASK] waited .   ...

A word is one of the tokenizer's. Special tokens around a text are seen and not scored. These are no log-probabilities:
they do not sum to one over all texts, and compare with those of no causal model.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import override

from biasboard.ground.errors import ConfigError
from evaluators.backend import (
    Backend,
    Capability,
    ChoiceRequest,
    Events,
    Identified,
    Request,
    Response,
    Runtime,
    TokenCount,
    ask_in_batches,
    check_model_id,
    identified_model,
)
from evaluators.backend_options import BackendOptions
from evaluators.backends.transformers.load import (
    OUT_OF_MEMORY,
    context_tokens_of,
    device_name,
    in_halves,
    load_model,
    n_embedded,
)
from evaluators.backends.transformers.option_scoring import WantedToken, batches_of, padded, wanted_logprobs
from evaluators.models.model_files import opening_arguments
from evaluators.models.tokenizer import encode, local_name, unknown_token
from schemas.documents.result import Model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SUMMARY = "masked models such as BERT and RoBERTa, asked which of several whole texts is likelier"
EXTRA = "hf"
CAPABILITIES: frozenset[Capability] = frozenset({"pseudo_logprobs"})
IDENTIFIED = Identified("local", frozenset({"model", "precision", "device", "tokenizer", "hidden"}), CAPABILITIES)
_OPTIONS = ("name", "revision", "dtype", "tokenizer", "device", "batch_tokens")
_BATCH_TOKENS = {"cpu": 1024, "mps": 8192, "cuda": 32768}
"""Number of tokens per pass, by type of device; see the backend transformers."""
_PACKAGES = ("torch", "transformers", "tokenizers")


class MaskedText(NamedTuple):
    """The token ids of a text, and what is hidden to score each of its tokens."""

    ids: list[int]
    hidden: tuple[tuple[int, ...], ...]
    """Positions that are hidden together, for each scored token: its own, and those of the rest of its word."""


def masked_texts(tokenizer: PreTrainedTokenizerBase, request: ChoiceRequest) -> list[MaskedText]:
    """Return the text of each option: the prompt with the option, of which the tokens of the option are scored.

    A token that lies in both is scored, as for causal models.
    """
    after = len(request.prompt)
    encoded = encode(tokenizer, [request.prompt + option for option in request.options], return_offsets_mapping=True)
    texts = []
    for index, offsets in enumerate(encoded["offset_mapping"]):
        words = encoded.word_ids(index)
        hidden = []
        for position, word in enumerate(words):
            # Special tokens have no word. A sign for the beginning of a word can be a token without characters.
            if word is not None and (not after or offsets[position][1] > after):
                end = next((at for at in range(position, len(words)) if words[at] != word), len(words))
                hidden.append(tuple(range(position, end)))
        texts.append(MaskedText(encoded["input_ids"][index], tuple(hidden)))
    return texts


@dataclass
class MaskedBackend(Backend):
    """A masked language model loaded with transformers."""

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    device: str
    batch_tokens: int
    """Maximum number of tokens in a pass, padding included."""
    model: Model
    context_tokens: int | None = None
    arguments: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = CAPABILITIES
    settings: dict[str, str] = field(default_factory=dict)

    @property
    @override
    def runtime(self) -> Runtime:
        packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
        return Runtime(device=device_name(self.device), packages=packages, settings=dict(self.settings))

    @override
    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        # Each token is hidden in a row of its own. Planned by all requests, so that a resumed run computes the same.
        sizes = {index: (max(map(len, ids)), sum(map(len, ids))) for index, ids in enumerate(map(self._ids, requests))}
        return ask_in_batches(batches_of(sizes, self.batch_tokens), self._answer, requests, missing)

    @override
    def needed_tokens(self, requests: Sequence[Request]) -> Sequence[int]:
        return [max(map(len, self._ids(request))) for request in requests]

    @override
    def count_tokens(self, requests: Sequence[Request]) -> TokenCount:
        return TokenCount(sum(len(ids) for request in requests for ids in self._ids(request)), 0)

    def _ids(self, request: Request) -> list[list[int]]:
        options = request.options if isinstance(request, ChoiceRequest) else ("",)
        ids: list[list[int]] = encode(self.tokenizer, [request.prompt + text for text in options])["input_ids"]
        return ids

    def _answer(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return the responses to one batch. A request that cannot be answered fails alone."""
        texts = [self._texts(request) for request in requests]
        rows = [
            (text.ids, hidden)
            for of_request in texts
            if not isinstance(of_request, str)
            for text in of_request
            for hidden in text.hidden
        ]
        logprobs: list[float] = []
        while len(logprobs) < len(rows):
            start = end = len(logprobs)
            width = 0
            while end < len(rows):
                width = max(width, len(rows[end][0]))
                if end > start and (end + 1 - start) * width > self.batch_tokens:
                    break
                end += 1
            for value in in_halves(self._logprobs, rows[start:end]):
                if value is None:
                    return [Response(status="failed", error=OUT_OF_MEMORY) for _ in requests]
                logprobs.append(value)
        values = iter(logprobs)
        return [
            Response(status="failed", error=of_request)
            if isinstance(of_request, str)
            else self._response(of_request, [[next(values) for _ in text.hidden] for text in of_request])
            for of_request in texts
        ]

    def _logprobs(self, rows: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[float]:
        """Return the log-probability of the first hidden token of each row of ids and hidden positions, in one pass."""
        device, mask_id = self.network.device, self.tokenizer.mask_token_id
        masked = [[mask_id if at in hidden else token for at, token in enumerate(ids)] for ids, hidden in rows]
        wanted = [WantedToken(index, hidden[0], ids[hidden[0]]) for index, (ids, hidden) in enumerate(rows)]
        arguments = {
            "input_ids": padded(masked, device),
            "attention_mask": padded([[1] * len(row) for row in masked], device),
        }
        return wanted_logprobs(self.network, arguments, wanted)

    def _texts(self, request: Request) -> list[MaskedText] | str:
        """Return the texts of a request, or why it cannot be answered."""
        if not isinstance(request, ChoiceRequest):
            return "a masked model writes no text; take a prompt that scores whole texts"
        texts = masked_texts(self.tokenizer, request)
        for option, text in zip(request.options, texts, strict=True):
            if not text.hidden:
                return f"option '{option}' has no tokens of its own"
        longest = max(len(text.ids) for text in texts)
        if self.context_tokens is not None and longest > self.context_tokens:
            return f"the text takes {longest} tokens, the model {self.context_tokens}"
        return unknown_token([text.ids for text in texts], n_embedded(self.network)) or texts

    def _response(self, texts: Sequence[MaskedText], logprobs: Sequence[Sequence[float]]) -> Response:
        sums = [sum(values) for values in logprobs]
        if any(map(math.isnan, sums)):
            reason = f"a log-probability is NaN in {self.model.precision}; use --dtype float32 or bfloat16"
            return Response(status="failed", error=reason)
        counts = tuple(len(text.hidden) for text in texts)
        return Response(
            status="answered",
            # The difference of a logit and of the sum of all can be rounded to more than zero.
            option_logprobs=tuple(min(0.0, value) for value in sums),
            option_end_logprobs=(None,) * len(texts),
            option_token_counts=counts,
            n_moved_tokens=0,
            n_prompt_tokens=min(len(text.ids) - n for text, n in zip(texts, counts, strict=True)),
            n_completion_tokens=0,
        )


def open_backend(model: str, options: BackendOptions) -> MaskedBackend:
    """Load a model and its tokenizer.

    Args:
        model: Id on the Hub, or path of a local folder.
        options: Revision, precision, device, tokenizer and token budget of a pass. Options of other backends are
            refused.

    Raises:
        ConfigError: the model cannot be found or loaded, is no masked language model, its tokenizer has no token for a
            hidden one or does not tell words, or an option is unknown.
        MissingExtraError: torch or transformers is not installed.
    """
    options.refuse_others("masked", but=_OPTIONS)
    loaded = load_model(model, options, is_masked=True)
    tokenizer, named = loaded.tokenizer.pretrained, options.tokenizer or model
    if tokenizer.mask_token_id is None:
        raise ConfigError(
            f"tokenizer '{named}' has no mask token, which hides the token that is predicted; give a masked model, or "
            "name the --tokenizer that it was trained with"
        )
    if not tokenizer.is_fast:
        raise ConfigError(
            f"tokenizer '{named}' does not tell which tokens make a word; name a --tokenizer with a tokenizer.json"
        )
    files, precision, kind = loaded.files, loaded.precision, loaded.device.partition(":")[0]
    identity = {
        "backend": "masked",
        "model": files.identity,
        "precision": precision,
        "device": kind,
        "tokenizer": loaded.other_tokenizer_sha256,
        "hidden": "rest of the word",
    }
    arguments = {
        "tokenizer": None if options.tokenizer is None else local_name(options.tokenizer),
        "device": options.device,
        "batch-tokens": options.batch_tokens,
    }
    return MaskedBackend(
        network=loaded.network,
        tokenizer=tokenizer,
        device=loaded.device,
        batch_tokens=options.batch_tokens or _BATCH_TOKENS.get(kind, _BATCH_TOKENS["mps"]),
        context_tokens=_context_tokens(loaded.network, tokenizer),
        arguments=opening_arguments(files, options, precision, arguments),
        settings=loaded.settings,
        model=identified_model(
            check_model_id(options.name or files.default_id), identity, revision=files.revision, precision=precision
        ),
    )


def _context_tokens(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Return the largest number of tokens in a text, special ones included; None if it is unknown."""
    limits = [context_tokens_of(network), tokenizer.model_max_length]
    for name, module in network.named_modules():
        # RoBERTa counts positions from the id of the padding, whose place and those before it are no positions.
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            limits.append(module.num_embeddings - module.padding_idx - 1)
    # A tokenizer without a limit has a number far above a million.
    known = [limit for limit in limits if limit is not None and limit < 1_000_000]
    return min(known, default=None)
