"""Asks models of an encoder and a decoder, such as Flan-T5: the encoder reads the prompt, the decoder the option.

A prompt is what the tokenizer makes of a text, with its end token. An option is what it makes of a target, after the
token with which the decoder starts: its log-probability is that of plain transformers, ``model(input_ids, labels)``,
summed over its tokens, and that of the end token after it is told apart. The space that would separate an option from a
prompt to continue is removed, because an answer begins without it. Nothing is packed, and texts are decoded alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from biasboard.ground.errors import import_extra
from evaluators.backend import Answers, ChoiceRequest, Events, GenerateRequest, Request, Response, Sent, ask_in_batches
from evaluators.backends.transformers.decoding import UnfinishedText, Vocabulary, end_tokens, next_tokens
from evaluators.backends.transformers.load import OUT_OF_MEMORY, context_tokens_of, in_halves, n_embedded
from evaluators.backends.transformers.option_scoring import (
    WantedToken,
    batches_of,
    padded,
    state_name,
    state_of,
    wanted_logprobs,
)
from evaluators.models.tokenizer import ModelTokenizer, TokenRows, encode, n_common_tokens, unknown_token

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class _Encoded(NamedTuple):
    prompt: list[int]
    """Ids that the encoder reads."""
    rows: TokenRows
    """Ids that the decoder reads: its start token, what it has begun with, and an option."""

    @property
    def size(self) -> int:
        """The number of tokens in the longest row of either part."""
        return max(len(self.prompt), *map(len, self.rows.ids))


@dataclass
class EncoderDecoder:
    """A model of two parts and its tokenizer."""

    network: PreTrainedModel
    tokenizer: ModelTokenizer
    batch_tokens: int
    """Maximum number of tokens in a batch of options."""
    precision: str | None

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests: options in batches, and then texts one by one; see ``Backend.ask``."""
        sizes = {
            index: (self.needed_tokens([request])[0], len(request.options))
            for index, request in enumerate(requests)
            if isinstance(request, ChoiceRequest)
        }
        # Planned by all requests, so that a resumed run computes the same batches.
        yield from ask_in_batches(batches_of(sizes, self.batch_tokens), self._score, requests, missing)
        vocabulary = Vocabulary(self.network, self.tokenizer)
        for index, request in enumerate(requests):
            if index in missing and isinstance(request, GenerateRequest):
                yield Sent(1)
                begun = time.perf_counter()
                response = self._generate(index, request, vocabulary)
                yield Answers({index: response}, time.perf_counter() - begun)

    def needed_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Return the least number of tokens that each request needs in the longer of both parts."""
        needed = []
        for request in requests:
            encoded = self._encoded(request) if isinstance(request, ChoiceRequest) else None
            prompt = len(self._prompt_ids(request.prompt))
            needed.append(encoded.size if isinstance(encoded, _Encoded) else max(prompt, 2))
        return needed

    def _prompt_ids(self, prompt: str) -> list[int]:
        ids: list[int] = encode(self.tokenizer.pretrained, [prompt])["input_ids"][0]
        return ids

    def _encoded(self, request: ChoiceRequest) -> _Encoded | str:
        """Return the token ids of a request, or why it cannot be asked."""
        question, begun = request.prompt, ""
        if request.n_begun:
            question, begun = question[: -request.n_begun], question[-request.n_begun :]
        # An answer that has begun goes on with the space.
        texts = [begun, *(begun + option if begun else option.lstrip() for option in request.options)]
        targets: list[list[int]] = encode(self.tokenizer.pretrained, texts, as_target=True)["input_ids"]
        context, *options = [self._started(ids) for ids in targets]
        n_common = n_common_tokens([context, *options])
        for option, ids in zip(request.options, options, strict=True):
            if len(ids) == n_common:
                return f"option '{option}' has no tokens of its own"
        encoded = _Encoded(self._prompt_ids(question), TokenRows(tuple(options), n_common, len(context) - n_common))
        limit = context_tokens_of(self.network)
        if limit is not None and encoded.size > limit:
            return f"the prompt or an option takes {encoded.size} tokens, the model {limit}"
        return unknown_token([encoded.prompt, *options], n_embedded(self.network)) or encoded

    def _started(self, ids: list[int]) -> list[int]:
        """Return what the decoder reads to predict a target: its start token, and the target without its end."""
        while ids and ids[-1] == self.tokenizer.end_id:
            ids = ids[:-1]
        return [self.network.config.decoder_start_token_id, *ids]

    def _score(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return the responses to one batch. Others than choices do not occur."""
        encoded = [self._encoded(request) for request in requests if isinstance(request, ChoiceRequest)]
        scored = [one for one in encoded if isinstance(one, _Encoded)]
        values = iter(in_halves(self._logprobs, scored) if scored else [])
        return [
            Response(status="failed", error=one) if isinstance(one, str) else self._response(one, next(values))
            for one in encoded
        ]

    def _response(self, encoded: _Encoded, logprobs: Sequence[Sequence[float]] | None) -> Response:
        if logprobs is None:
            return Response(status="failed", error=OUT_OF_MEMORY)
        has_end = self.tokenizer.end_id is not None
        sums = [math.fsum(values[:-1] if has_end else values) for values in logprobs]
        ends = [values[-1] if has_end else None for values in logprobs]
        response = encoded.rows.response([min(0.0, value) for value in sums], ends, precision=self.precision)
        return replace(response, n_prompt_tokens=len(encoded.prompt)) if response.status == "answered" else response

    def _logprobs(self, requests: Sequence[_Encoded]) -> list[list[list[float]]]:
        """Return the log-probability of each token of each option, and of the end token after it, per request."""
        torch = import_extra("torch", "hf")
        device, end = self.network.device, [] if self.tokenizer.end_id is None else [self.tokenizer.end_id]
        flat = [(index, ids) for index, one in enumerate(requests) for ids in one.rows.ids]
        mask = padded([[1] * len(one.prompt) for one in requests], device)
        tokens = [[*ids[requests[index].rows.n_context :], *end] for index, ids in flat]
        # The token at position i is predicted at i - 1; the last position predicts the end token.
        wanted = [
            WantedToken(row, column, token)
            for row, (index, _) in enumerate(flat)
            for column, token in enumerate(tokens[row], start=requests[index].rows.n_context - 1)
        ]
        with torch.inference_mode():
            # Read once for all options.
            states = self._read([one.prompt for one in requests], mask)
            of_row = torch.tensor([index for index, _ in flat], device=device)
            arguments = {
                "encoder_outputs": (states[of_row],),
                "attention_mask": mask[of_row],
                "decoder_input_ids": padded([ids for _, ids in flat], device),
                "use_cache": False,
            }
            values = iter(wanted_logprobs(self.network, arguments, wanted))
        of_options = iter([[next(values) for _ in of_option] for of_option in tokens])
        return [[next(of_options) for _ in one.rows.ids] for one in requests]

    def _read(self, prompts: Sequence[Sequence[int]], mask: Tensor) -> Tensor:
        """Return the last states of the encoder, shape (n, longest, width)."""
        encoder: Any = self.network.get_encoder()
        states: Tensor = encoder(input_ids=padded(prompts, self.network.device), attention_mask=mask)[0]
        return states

    def _generate(self, index: int, request: GenerateRequest, vocabulary: Vocabulary) -> Response:
        """Return the response to a request for a text, decoded alone."""
        torch = import_extra("torch", "hf")
        prompt, limit = self._prompt_ids(request.prompt), context_tokens_of(self.network)
        if (reason := unknown_token([prompt], n_embedded(self.network))) is not None:
            return Response(status="failed", error=reason)
        if limit is not None and len(prompt) > limit:
            return Response(status="failed", error=f"the prompt takes {len(prompt)} tokens, the model {limit}")
        if request.max_tokens < 1:
            return Response(status="failed", error=f"max_tokens is {request.max_tokens}; ask for at least 1")
        most = request.max_tokens if limit is None else min(request.max_tokens, limit - 1)
        start = [self.network.config.decoder_start_token_id]
        draft = UnfinishedText(index, request, start, most, end_tokens(self.network, self.tokenizer), self.tokenizer)
        try:
            with torch.inference_mode():
                self._decode(draft, prompt, vocabulary)
        except torch.OutOfMemoryError:
            draft.fail(OUT_OF_MEMORY)
        assert draft.response is not None
        if draft.response.status != "answered":
            return draft.response
        return replace(draft.response, n_prompt_tokens=len(prompt))

    def _decode(self, draft: UnfinishedText, prompt: list[int], vocabulary: Vocabulary) -> None:
        """Generate tokens until the text ends, and add its log-probability if it is asked for."""
        torch = import_extra("torch", "hf")
        device, past, logprobs = self.network.device, None, []
        mask = torch.ones((1, len(prompt)), dtype=torch.long, device=device)
        states = self._read([prompt], mask)
        while draft.response is None:
            output: Any = self.network(
                encoder_outputs=(states,),
                attention_mask=mask,
                decoder_input_ids=torch.tensor([draft.ids[-1:]], device=device),
                use_cache=True,
                **{state_name(self.network): past},
            )
            past, logits = state_of(output), output.logits[:, -1]
            token = next_tokens(vocabulary.masked(logits), [draft])[0]
            draft.take(token)
            if token is not None and draft.request.with_logprob:
                logprobs.append(float(torch.log_softmax(logits[0].float(), dim=-1)[token]))
        if draft.request.with_logprob and draft.response.status == "answered":
            draft.response = replace(draft.response, text_logprob=min(math.fsum(logprobs), 0.0))
