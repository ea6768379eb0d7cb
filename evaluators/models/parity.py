"""Compares a backend with a reference: the same model in transformers, scoring option by option in float32."""

from __future__ import annotations

import math
import multiprocessing
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

from biasboard.ground.errors import RunError
from evaluators.backend import Answers, Backend, ChoiceRequest, Response, open_backend
from evaluators.backend_options import BackendOptions
from schemas.documents.record import Exchange
from schemas.files.record_columns import as_hash

# Nats per square root of an option's number of tokens, with which rounding errors grow. A wrong token or mask adds far
# more.
TOLERANCES: Mapping[str, float] = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.3}
UNKNOWN_PRECISION = TOLERANCES["float32"]
_MOST_NATS = 32
"""Number of nats of a token up to which its rounding error grows."""

# Options of one and of several tokens, with common prefixes, one a prefix of another, in long and short contexts, and
# not only in ASCII.
_MADE_UP: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("The kettle is on the", (" stove", " table", " roof")),
    ("Two and two make", (" 4", " 5")),
    ("The plumber called the librarian because", (" he", " she", " they")),
    ("Answer with A or B.\nQuestion: which one comes first?\nAnswer:", (" A", " B")),
    ("After the rain the baker", (" opened the small window", " closed the small window", " left")),
    ("The driver met the doctor, and the one who was late was", (" the driver", " the doctor", " nobody")),
    ("On Monday the carpenter brought", (" the", " the long", " the long ladder", " a saw")),
    ("In the café they ordered", (" crème brûlée", " crêpes", " tea")),
    ('The word "nurse" is spelled', (" n-u-r-s-e", " n u r s e")),
    ("x = [1, 2, 3]\nprint(len(x))\n#", (" 3", " 2", " [1, 2, 3]")),
    (
        "The clerk counted the chairs, then the tables, then the lamps, and wrote each number on a card. The cards "
        "went into a box, the box went onto a shelf, and the shelf was in the room by the stairs. The lamps were in",
        (" the room", " the box", " the garden behind the house"),
    ),
    ("It was", (" cold.", " cold, dark and very late when the last train came in.")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """The result of comparing a backend with the reference."""

    n_requests: int
    n_compared: int
    """Number of requests that both sides answered."""
    n_options: int
    """Number of options with a log-probability on both sides."""
    n_bounds: int
    """Number of options for which the backend has only an upper bound, which the reference must not exceed."""
    largest_difference: float | None
    """Largest difference between log-probabilities in nats; None if nothing could be compared."""
    largest_at: str | None
    """Option with the largest difference, and the end of its prompt."""
    n_decisions: int
    """Number of requests for which the backend has exact log-probabilities of all options."""
    n_equal_decisions: int
    """Number of these requests in which both sides agree on the most probable option."""
    beyond: tuple[str, ...]
    """Description of each option or end token that differs by more than the tolerance."""
    unanswered: tuple[str, ...]
    """Reasons why the backend did not answer requests that the reference answers, each reason once."""

    @property
    def holds(self) -> bool:
        """True if all options agree within the tolerance; decisions then differ only if options nearly tie."""
        return self.n_options > 0 and not self.beyond


def made_requests() -> list[ChoiceRequest]:
    """Return a dozen small made-up requests."""
    return [ChoiceRequest(prompt=prompt, options=options, outcomes=options) for prompt, options in _MADE_UP]


def reference_answers(model: str, options: BackendOptions, requests: Sequence[ChoiceRequest]) -> list[Response]:
    """Return the reference responses of transformers, computed one text after the other in float32.

    They are computed in a separate process, which frees its memory when it ends.

    Args:
        model: Id on the Hub, or path of a local folder.
        options: Options, of which revision, tokenizer, chat template and device are used.
        requests: Requests to answer.

    Raises:
        ConfigError: the model cannot be loaded.
        MissingExtraError: torch or transformers is not installed.
        RunError: the process died.
    """
    plain = BackendOptions(
        revision=options.revision,
        tokenizer=options.tokenizer,
        chat=options.chat,
        device=options.device,
        dtype="float32",
        scoring="plain",
        name="reference/plain",
    )
    # Spawn the process: a forked child cannot use a GPU or rely on the threads of this process.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as process:
        try:
            return process.submit(_open_and_ask, model, plain, list(requests)).result()
        except BrokenProcessPool as error:
            raise RunError(
                f"the process that scores '{model}' in float32 died, perhaps for lack of memory; use a larger machine"
            ) from error


def _open_and_ask(model: str, options: BackendOptions, requests: list[ChoiceRequest]) -> list[Response]:
    return answers(open_backend("transformers", model, options), requests)


def answers(backend: Backend, requests: Sequence[ChoiceRequest]) -> list[Response]:
    """Return the responses of a backend in the order of the requests."""
    responses: dict[int, Response] = {}
    for event in backend.ask(requests, frozenset(range(len(requests)))):
        if isinstance(event, Answers):
            responses.update(event.responses)
    return [responses[index] for index in range(len(requests))]


def compare(
    requests: Sequence[ChoiceRequest], ours: Sequence[Response], reference: Sequence[Response], tolerance: float
) -> Parity:
    """Compare responses with those of the reference.

    Args:
        requests: Requests that were asked.
        ours: Responses to check, in the order of the requests.
        reference: Responses of the reference, in the same order.
        tolerance: Allowed difference in nats per square root of an option's number of tokens.
    """
    answered = [pair for pair in zip(requests, ours, reference, strict=True) if pair[2].status == "answered"]
    compared = [pair for pair in answered if pair[1].status == "answered"]
    gaps = [gap for pair in compared for gap in _gaps(*pair)]
    # NaN, for which comparisons are false, counts as the largest difference and as beyond the tolerance.
    largest_at, largest = max(
        ((where, nats) for where, _, nats, _ in gaps),
        key=lambda gap: (math.isnan(gap[1]), gap[1]),
        default=(None, None),
    )
    decided = [pair for pair in compared if None not in pair[1].option_logprobs and not any(pair[1].option_is_bound)]
    kinds = Counter(kind for _, kind, _, _ in gaps)
    return Parity(
        n_requests=len(requests),
        n_compared=len(compared),
        n_options=kinds["option"],
        n_bounds=kinds["bound"],
        largest_difference=largest,
        largest_at=largest_at,
        n_decisions=len(decided),
        n_equal_decisions=sum(_best(our) == _best(plain) for _, our, plain in decided),
        beyond=tuple(
            f"{where}: {nats:.2g} nats"
            for where, _, nats, n_tokens in gaps
            if not nats <= tolerance * math.sqrt(max(1, n_tokens or 1))
        ),
        unanswered=tuple(dict.fromkeys(our.error or our.status for _, our, _ in answered if our.status != "answered")),
    )


def differing(stored: Sequence[Sequence[Exchange]], ours: Sequence[Sequence[Exchange]], tolerance: float) -> list[int]:
    """Return the indices of the items whose stored answers are not those that a model gives, up to rounding.

    Args:
        stored: Exchanges of items that somebody else stored, of which nothing but the answers is believed.
        ours: The same exchanges with the model that was opened here, in the same order.
        tolerance: Allowed error of a log-probability in nats per square root of its tokens, or of its own nats if these
            are more.
    """
    # What is unknown everywhere states nothing, as in the logs of harnesses. Beside numbers, it would hide an answer.
    numbers = [number for of_item in stored for one in of_item for number in _numbers(one)]
    is_near = partial(_is_near, tolerance, {"option", *(kind for kind, value, _ in numbers if value is not None)})
    return [
        row
        for row, pairs in enumerate(map(partial(zip, strict=True), stored, ours))
        if not all(_facts(one) == _facts(own) and all(map(is_near, _numbers(one), _numbers(own))) for one, own in pairs)
    ]


def _facts(exchange: Exchange) -> Sequence[object]:
    # A text is compared by its hash, since it may be kept elsewhere.
    text = None if exchange.text is None else as_hash(exchange.text)
    return exchange.status, text, exchange.finish_reason == "length", exchange.option_is_bound


_Number: TypeAlias = tuple[str, float | None, int]
"""The kind of a number of an answer, its value (None if it is unknown), and the number of tokens with which its error
grows (0 if it has none)."""


def _numbers(exchange: Exchange) -> Iterator[_Number]:
    yield "moved tokens", exchange.n_moved_tokens, 0
    yield "text", exchange.text_logprob, exchange.n_completion_tokens or 1
    # Without the log-probability, nothing is computed from the length of a text.
    yield "tokens of text", None if exchange.text_logprob is None else exchange.n_completion_tokens, 0
    parts = exchange.option_logprobs, exchange.option_end_logprobs, exchange.option_token_counts
    for logprob, end, count in zip(*parts, strict=True):
        yield "option", logprob, count or 1
        yield "end", None if logprob is None or end is None else logprob + end, (count or 1) + 1
        yield "tokens", count, 0


def _is_near(tolerance: float, stated: Set[str], stored: _Number, ours: _Number) -> bool:
    (kind, theirs, _), (_, own, n_tokens) = stored, ours
    # Equal infinities are near, though their difference is NaN.
    if theirs == own:
        return True
    if theirs is None or own is None:
        return theirs is None and kind not in stated
    return abs(theirs - own) < tolerance * _scale(own, n_tokens)


def _scale(logprob: float, n_tokens: int) -> float:
    # Both runs round, and errors add in squares. The more improbable a text, the further are its logits from those of
    # others, and the less of their errors is shared: in half precision, errors grow with the square root of its nats.
    # A model whose logits are huge would choose its own tolerance.
    return math.sqrt(2 * min(max(n_tokens, -logprob), _MOST_NATS * n_tokens))


def rounded_again(exchanges: Sequence[Exchange], tolerance: float, rng: random.Random) -> list[Exchange]:
    """Return exchanges as another run could round them, whose errors are as large as they can be.

    Of errors with a standard deviation of a fifth of the tolerance, the largest of 800 exceeds it once in 2,000 times.

    Args:
        exchanges: Exchanges with a model that was opened here.
        tolerance: As for :func:`differing`.
        rng: Source of the errors.
    """

    def moved(logprob: float | None, count: int | None) -> float | None:
        if logprob is None or logprob == -math.inf:
            return logprob
        return min(0.0, rng.gauss(logprob, tolerance / 5 * _scale(logprob, count or 1)))

    return [
        replace(one, option_logprobs=tuple(map(moved, one.option_logprobs, one.option_token_counts)))
        for one in exchanges
    ]


def tolerance_for(precision: str | None) -> float:
    """Return the tolerance for a precision compared with float32; an unknown precision gets that of float32."""
    return UNKNOWN_PRECISION if precision is None else TOLERANCES.get(precision, UNKNOWN_PRECISION)


def _gaps(
    request: ChoiceRequest, our: Response, plain: Response
) -> Iterator[tuple[str, Literal["option", "bound", "end"], float, int | None]]:
    """Yield where both sides have a log-probability, its kind, the difference in nats, and its number of tokens."""
    k = len(request.options)
    for option, logprobs, ends, is_bound, n_tokens in zip(
        request.options,
        zip(our.option_logprobs, plain.option_logprobs, strict=True),
        zip(our.option_end_logprobs or (None,) * k, plain.option_end_logprobs or (None,) * k, strict=True),
        our.option_is_bound or (False,) * k,
        plain.option_token_counts,
        strict=True,
    ):
        where = " ".join(f"'{option}' after '... {request.prompt[-30:]}'".split())
        logprob, expected = logprobs
        if logprob is not None and expected is not None:
            # Equal infinities count as no difference; subtracting them would give NaN.
            nats = 0.0 if logprob == expected else expected - logprob
            yield where, "bound" if is_bound else "option", max(0.0, nats) if is_bound else abs(nats), n_tokens
        logprob, expected = ends
        if logprob is not None and expected is not None:
            yield f"the end token after {where}", "end", 0.0 if logprob == expected else abs(logprob - expected), 1


def _best(response: Response) -> int:
    exact = [(logprob, -index) for index, logprob in enumerate(response.option_logprobs) if logprob is not None]
    # The first of equally probable options.
    return -max(exact)[1]
