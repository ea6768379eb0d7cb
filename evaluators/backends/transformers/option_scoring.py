"""Scores the options of a block of requests: packed if that agrees with plain scoring, and otherwise plain.

Both are compared on the first requests of every run, and again when texts get longer: a model that treats positions or
masks unusually gives other values without an error.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from biasboard.ground import strict_json
from biasboard.ground.errors import ConfigError, import_extra
from biasboard.ground.plain_text import one_line
from evaluators.backend import Answers, ChoiceRequest, Events, Request, Response, Sent
from evaluators.backends.transformers.load import OUT_OF_MEMORY, context_tokens_of, n_embedded
from evaluators.backends.transformers.packed_scoring import PackedScorer, obstacle
from evaluators.backends.transformers.plain_scoring import Batch, OptionScore, PlainScorer
from evaluators.models.tokenizer import ModelTokenizer, TokenRows, unknown_token

if TYPE_CHECKING:
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

# Chosen to tolerate rounding, not derived: with a fifth of it, a correct model in bfloat16 fell back to plain scoring
# at 0.048 nats. Wrong masks are detected by the made-up row.
_ROUNDING = {"float16": 0.0125, "bfloat16": 0.1}
"""Difference in nats that is tolerated in each half precision, per square root of the number of option tokens."""
# In float32, 500 requests of a dataset differed by at most 3.5e-5.
_EXACT = 1e-4
_NOISE_FACTOR = 4.0
"""Tolerated difference between packed and plain scoring, in multiples of the effect of padding alone."""
_N_SHARED_TOKENS = 4
_BATCH_LOGITS = {"cpu": 2**25, "mps": 2**26, "cuda": 2**28}
"""Maximum number of logits computed per batch in packed scoring, by type of device."""
T = TypeVar("T")


@dataclass
class OptionScorer:
    """A scorer of the requests with options, which chooses between packed and plain scoring."""

    network: PreTrainedModel
    tokenizer: ModelTokenizer
    device: str
    precision: str | None
    batch_tokens: int
    """Maximum number of tokens in a batch."""
    wanted: str | None
    """The user's choice, ``packed`` or ``plain``; None for packed if both give the same values."""
    packages: Mapping[str, str]
    """Versions of the libraries that compute."""
    settings: dict[str, str]
    """Settings of the result, in which the choice is recorded."""
    choices: dict[str, str] = field(default_factory=dict, repr=False)
    """Choices between packed and plain scoring in this run, by the hash of the requests of a block: each is JSON with
    the number of tokens in the longest text of the block, and the reason why packed scoring is left out, or null."""
    keep: Callable[[str, str], None] | None = field(default=None, repr=False)
    """Function that stores such a choice for a resumed run; None to forget it."""

    def ask(self, requests: Sequence[Request], missing: frozenset[int]) -> Events:
        """Answer the missing requests of a block that have options; see ``Backend.ask``."""
        asked = {index: request for index, request in enumerate(requests) if isinstance(request, ChoiceRequest)}
        if not asked:
            return
        if self.tokenizer.added_start is not None and not all(request.prompt for request in asked.values()):
            self.settings["start_token"] = self.tokenizer.added_start
        encoded: dict[int, TokenRows] = {}
        failed: dict[int, Response] = {}
        of_all = self.tokenizer.rows_of_all([*asked.values()], context_tokens_of(self.network))
        for index, rows in zip(asked, of_all, strict=True):
            reason = rows if isinstance(rows, str) else unknown_token(rows.ids, n_embedded(self.network))
            if isinstance(rows, TokenRows) and reason is None:
                encoded[index] = rows
            elif index in missing:
                failed[index] = Response(status="failed", error=reason)
        if failed:
            yield Answers(failed, 0.0)
        scorer, plan = self._planned(encoded, [f"{one.sha256}{one.adapter or ''}" for one in asked.values()])
        for batch in plan:
            # A batch is stored as a whole, so if only part of it is missing, that part failed earlier and is asked
            # again.
            trees = [tuple(index for index in tree if index in missing) for tree in batch.rows]
            left = Batch(tuple(tree for tree in trees if tree), batch.n_prefix)
            if left.rows:
                yield Sent(sum(map(len, left.rows)))
                start = time.perf_counter()
                responses = self._answer(scorer, left, encoded)
                yield Answers(responses, time.perf_counter() - start)

    def _answer(
        self, scorer: PackedScorer | PlainScorer, batch: Batch, encoded: Mapping[int, TokenRows]
    ) -> dict[int, Response]:
        """Score one batch. If memory runs out, score its halves, down to single requests."""
        torch = import_extra("torch", "hf")
        indices = [index for tree in batch.rows for index in tree]
        try:
            scores = scorer.score([[encoded[index] for index in tree] for tree in batch.rows], batch.n_prefix)
        except torch.OutOfMemoryError:
            if len(indices) == 1:
                return {indices[0]: Response(status="failed", error=OUT_OF_MEMORY)}
            logger.warning("out of memory with %d requests in a batch; halving it", len(indices))
        else:
            return {
                index: encoded[index].response(
                    [score.logprob for score in of_options],
                    [score.end_logprob for score in of_options],
                    precision=self.precision,
                )
                for index, of_options in zip(indices, scores, strict=True)
            }
        # Retry outside the except block, where the failed pass no longer holds its memory.
        parts = batch.rows if len(batch.rows) > 1 else tuple((index,) for index in batch.rows[0])
        middle = len(parts) // 2
        halves = [Batch(parts[:middle], batch.n_prefix), Batch(parts[middle:], batch.n_prefix)]
        return {index: answer for half in halves for index, answer in self._answer(scorer, half, encoded).items()}

    def _planned(
        self, encoded: Mapping[int, TokenRows], hashes: Sequence[str]
    ) -> tuple[PackedScorer | PlainScorer, list[Batch]]:
        """Choose how options are scored, record it in the settings, and plan the batches.

        Packed and plain scoring are compared on the first requests, and again when texts get longer. A resumed run
        keeps its choices, by the ``hashes`` of all requests of the block and the names of their adapters.
        """
        plain = PlainScorer(self.network, self.tokenizer.end_id, self.batch_tokens)
        self.settings["option_scoring"] = "plain"
        if self.wanted == "plain":
            return plain, plain.plan(encoded)
        vocabulary = self.network.config.get_text_config().vocab_size
        n_positions = max(64, _BATCH_LOGITS.get(self.device.partition(":")[0], 2**26) // vocabulary)
        packed = PackedScorer(self.network, self.tokenizer.end_id, self.batch_tokens, n_positions)
        longest = max((len(ids) for rows in encoded.values() for ids in rows.ids), default=0)
        reason = obstacle(self.network, longest)
        plan = packed.plan(encoded) if reason is None else []
        if plan:
            # Choices made with another device or library do not count here, as it may compute differently. The key
            # covers all requests of the block, not the missing ones, so that a resumed run finds its choice.
            key = strict_json.sha256([self.device, dict(self.packages), list(hashes)])
            if key not in self.choices:
                earlier = [json.loads(text) for text in self.choices.values()]
                # A comparison costs several passes, so it is repeated only where texts get longer, since limits of
                # positions and windows appear there.
                if longest > max((one["longest"] for one in earlier if one["left_out"] is None), default=0):
                    reason = difference(packed, plain, encoded, plan, str(self.precision))
                self.choices[key] = json.dumps({"longest": longest, "left_out": reason})
                if self.keep is not None:
                    self.keep(key, self.choices[key])
            reason = json.loads(self.choices[key])["left_out"]
        if reason is None:
            self.settings["option_scoring"] = "packed"
            self.settings.pop("packed_scoring_left_out", None)
            return packed, plan
        if self.wanted == "packed":
            raise ConfigError(f"--scoring packed cannot be used: {reason}; leave it out")
        self.settings["packed_scoring_left_out"] = reason
        return plain, plain.plan(encoded)


def difference(
    packed: PackedScorer, plain: PlainScorer, encoded: Mapping[int, TokenRows], plan: Sequence[Batch], precision: str
) -> str | None:
    """Return why packed scoring is unreliable for these requests; None if it agrees with plain scoring.

    Args:
        packed: Packed scorer, which scores three rows of the plan: the widest, the one with the most requests, and the
            last.
        plain: Plain scorer, which scores some requests of these rows, one option at a time.
        encoded: Token ids of each request that is scored.
        plan: Batches that the packed scorer planned.
        precision: Precision of the model, such as ``bfloat16``.
    """
    for sample, n_prefix, compared in [*_planned_samples(encoded, plan), *_made_up_sample(encoded)]:
        # A model that does not support packing may raise any exception. Plain scoring shows whether it works at all.
        try:
            packed_scores = packed.score([sample], n_prefix)
            packed_ends = [_first_and_last(packed_scores[index]) for index in compared]
            # The first and last options of a request are at the two ends of its tree.
            chosen = [sample[index]._replace(ids=tuple(_first_and_last(sample[index].ids))) for index in compared]
            # One option at a time: all at once could need more memory than packed scoring.
            expected = [[plain.score([[rows._replace(ids=(ids,))]])[0][0] for ids in rows.ids] for rows in chosen]
            together = plain.score([[rows] for rows in chosen]) if precision in _ROUNDING else expected
        except Exception as error:
            return f"{type(packed.network).__name__} fails on it ({one_line(error, most=100)})"
        noise = max(
            _gap(score, reference)
            for scores, reference_scores in zip(together, expected, strict=True)
            for score, reference in zip(scores, reference_scores, strict=True)
        )
        tolerance = _EXACT if precision not in _ROUNDING else _ROUNDING[precision] + _NOISE_FACTOR * noise
        for rows, scores, reference_scores in zip(chosen, packed_ends, expected, strict=True):
            for ids, score, reference in zip(rows.ids, scores, reference_scores, strict=True):
                gap = _gap(score, reference)
                # Every comparison with NaN is false. Written with "not", the condition treats NaN as a difference.
                if not gap <= tolerance * max(1, len(ids) - rows.n_context) ** 0.5:
                    return f"it differs by {gap:.2g} nats from plain scoring on requests of the run"
    return None


def _planned_samples(
    encoded: Mapping[int, TokenRows], plan: Sequence[Batch]
) -> Iterator[tuple[list[TokenRows], int, list[int]]]:
    """Yield requests that share one row, their prefix, and the indices of those that plain scoring scores too."""
    trees = [(tree, batch.n_prefix) for batch in plan for tree in batch.rows]
    # Batches begin with their widest row.
    widest = max(
        ((batch.rows[0], batch.n_prefix) for batch in plan),
        key=lambda entry: sum(len(ids) for index in entry[0] for ids in encoded[index].ids),
    )
    fullest = max(trees, key=lambda entry: len(entry[0]))
    for tree, n_prefix in dict.fromkeys([widest, fullest, trees[-1]]):
        yield [encoded[index] for index in tree], n_prefix, sorted({0, len(tree) - 1})


def _made_up_sample(encoded: Mapping[int, TokenRows]) -> Iterator[tuple[list[TokenRows], int, list[int]]]:
    """Yield one row of made-up texts that diverge early: a short text after two long ones.

    Some models use the position in the row as the position in the text, or attend to a fixed number of positions in the
    row. Only a row like this reveals it.
    """
    # Without this row, errors of up to 2.7 nats in packed MPT and GPT-Neo went unnoticed.
    longest = max((rows.ids[0] for rows in encoded.values()), key=len)
    if len(longest) < 2 * _N_SHARED_TOKENS:
        return
    head, rest = list(longest[:_N_SHARED_TOKENS]), list(longest[_N_SHARED_TOKENS:])
    long = [[*head, *rest], [*head, *reversed(rest)]]
    short = [*head, *rest[len(rest) // 2 :], *rest[: len(rest) // 2]][: 3 * _N_SHARED_TOKENS]
    requests = [TokenRows((text,), len(text) - 1, 0) for text in long]
    requests.append(TokenRows((short,), _N_SHARED_TOKENS + 1, 0))
    yield requests, _N_SHARED_TOKENS, [1, 2]


def _first_and_last(values: Sequence[T]) -> list[T]:
    return [values[index] for index in sorted({0, len(values) - 1})]


def _gap(score: OptionScore, reference: OptionScore) -> float:
    """Return the larger of the differences between two scores of an option and of the end token after it, in nats."""
    pairs = [(score.logprob, reference.logprob), (score.end_logprob or 0.0, reference.end_logprob or 0.0)]
    # Equal infinities count as no difference; subtracting them would give NaN.
    return max(0.0 if a == b else abs(a - b) for a, b in pairs)
