"""Compares a backend with a reference: the same model in transformers, scoring option by option in float32."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from biasboard.ground.errors import RunError
from evaluators.backend import Answers, Backend, ChoiceRequest, Response, open_backend
from evaluators.backend_options import BackendOptions

# Nats per square root of an option's tokens: rounding errors grow like that; a wrong token or mask adds far more.
TOLERANCES: Mapping[str, float] = {"float32": 1e-3, "float16": 0.05, "bfloat16": 0.3}
UNKNOWN_PRECISION = TOLERANCES["float32"]

# Options of one and of several tokens, with common beginnings, one the beginning of another, in long and short
# contexts, and not only ASCII.
_MADE: tuple[tuple[str, tuple[str, ...]], ...] = (
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
    """The findings of a comparison between a backend and the reference."""

    n_requests: int
    n_compared: int
    """Number of requests that both answered."""
    n_options: int
    """Number of options with a log-probability on both sides."""
    n_bounds: int
    """Number of options for which the backend has only an upper bound, which the reference must not exceed."""
    largest_difference: float | None
    """Largest difference between log-probabilities in nats; None if nothing could be compared."""
    largest_at: str | None
    """Option with the largest difference, and the end of its prompt."""
    n_decisions: int
    """Number of requests of which all options have exact log-probabilities from the backend."""
    n_equal_decisions: int
    """Number of these requests in which both sides have the same most probable option."""
    beyond: tuple[str, ...]
    """Description of each option or end token that differs by more than the tolerance."""
    unanswered: tuple[str, ...]
    """Reasons why the backend did not answer requests that the reference answers, each reason once."""

    @property
    def holds(self) -> bool:
        """True if all options agree within the tolerance; decisions then differ only if options nearly tie."""
        return self.n_options > 0 and not self.beyond


def made_requests() -> list[ChoiceRequest]:
    """Return a dozen small requests that are in no dataset."""
    return [ChoiceRequest(prompt=prompt, options=options, outcomes=options) for prompt, options in _MADE]


def reference_answers(model: str, options: BackendOptions, requests: Sequence[ChoiceRequest]) -> list[Response]:
    """Return the reference responses of transformers, computed one text after the other in float32.

    They are computed in a separate process, which frees its memory when it ends.

    Args:
        model: Id on the Hub, or path of a local folder.
        options: Options from which revision, tokenizer, chat template and device are taken.
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
    tally = _Tally(tolerance)
    n_compared = 0
    unanswered: dict[str, None] = {}
    for request, our, plain in zip(requests, ours, reference, strict=True):
        if plain.status != "answered":
            continue
        if our.status != "answered":
            unanswered[our.error or our.status] = None
            continue
        n_compared += 1
        tally.add(request, our, plain)
    return Parity(
        n_requests=len(requests),
        n_compared=n_compared,
        n_options=tally.n_options,
        n_bounds=tally.n_bounds,
        largest_difference=tally.largest,
        largest_at=tally.largest_at,
        n_decisions=tally.n_decisions,
        n_equal_decisions=tally.n_equal,
        beyond=tuple(tally.beyond),
        unanswered=tuple(unanswered),
    )


def tolerance_for(precision: str | None) -> float:
    """Return the tolerance for a precision compared with float32; an unknown precision gets that of float32."""
    return UNKNOWN_PRECISION if precision is None else TOLERANCES.get(precision, UNKNOWN_PRECISION)


class _Tally:
    """A running count of the differences between two backends."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self.n_options = self.n_bounds = self.n_decisions = self.n_equal = 0
        self.largest: float | None = None
        self.largest_at: str | None = None
        self.beyond: list[str] = []

    def add(self, request: ChoiceRequest, our: Response, plain: Response) -> None:
        """Add the comparison of one request."""
        bounds = our.option_is_bound or (False,) * len(request.options)
        for option, logprob, expected, is_bound, n_tokens in zip(
            request.options, our.option_logprobs, plain.option_logprobs, bounds, plain.option_token_counts, strict=True
        ):
            if logprob is None or expected is None:
                continue
            if is_bound:
                self.n_bounds += 1
                difference = max(0.0, expected - logprob)
            else:
                self.n_options += 1
                difference = _difference(logprob, expected)
            self._note(f"'{option}' after '... {request.prompt[-30:]}'", difference, n_tokens)
        ends = zip(our.option_end_logprobs, plain.option_end_logprobs, request.options, strict=False)
        for logprob, expected, option in ends:
            if logprob is not None and expected is not None:
                where = f"the end token after '{option}' after '... {request.prompt[-30:]}'"
                self._note(where, _difference(logprob, expected), 1)
        if None not in our.option_logprobs and not any(bounds):
            self.n_decisions += 1
            self.n_equal += _best(our) == _best(plain)

    def _note(self, where: str, difference: float, n_tokens: int | None) -> None:
        where = " ".join(where.split())
        if self.largest is None or not difference <= self.largest:
            self.largest, self.largest_at = difference, where
        # Written so that NaN, which compares false, counts as beyond the tolerance.
        if not difference <= self._tolerance * math.sqrt(max(1, n_tokens or 1)):
            self.beyond.append(f"{where}: {difference:.2g} nats")


def _difference(logprob: float, expected: float) -> float:
    # Equal infinities count as no difference; subtracting them would give NaN.
    return 0.0 if logprob == expected else abs(logprob - expected)


def _best(response: Response) -> int:
    exact = [(logprob, -index) for index, logprob in enumerate(response.option_logprobs) if logprob is not None]
    # The first of equally probable options.
    return -max(exact)[1]
