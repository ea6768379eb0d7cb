"""From what was asked and answered to records, and what speaks against them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from evaluators.backend import ChoiceRequest, GenerateRequest, Request, Response
from evaluators.runs.selection import Selection
from evaluators.task import Task
from schemas.errors import RunError
from schemas.record import Exchange, Record
from schemas.result import Counts, Normalisation

_N_LOOKED_AT = 20


def records_of(
    selection: Selection,
    task: Task,
    requests: Sequence[Sequence[Request]],
    responses: Sequence[Sequence[Response]],
    normalisation: Normalisation | None,
    *,
    chat: bool,
) -> list[Record]:
    """A record per item.

    Args:
        selection: The items.
        task: Reads them.
        requests: Per item.
        responses: To the requests.
        normalisation: How option log-probabilities become probabilities.
        chat: Whether options were scored behind a chat template.
    """
    records = []
    for (split, item), asked, answers in zip(selection.items, requests, responses, strict=True):
        show = selection.manifest.redistributable
        exchanges = tuple(
            exchange_of(request, answer, show_prompt=show, chat=chat)
            for request, answer in zip(asked, answers, strict=True)
        )
        read = task.read(exchanges, normalisation)
        facts = task.facts(item)
        records.append(
            Record(
                item_id=item.item_id,
                config=selection.config,
                split=split,
                status=read.status,
                truncated=any(exchange.finish_reason == "length" for exchange in exchanges),
                reason=read.reason,
                cluster=facts.cluster,
                pair_id=facts.pair_id,
                target=facts.target,
                reference=facts.reference,
                groups=dict(facts.groups),
                exchanges=exchanges,
                reading=read.reading,
            )
        )
    return records


def whole(response: Response) -> Response:
    """The same with what no file can hold, halves of characters that an endpoint cut apart, marked as unknown ones."""
    texts = {"text": response.text, "error": response.error, "finish_reason": response.finish_reason}
    broken = {
        name: text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        for name, text in texts.items()
        if text is not None and any("\ud800" <= character <= "\udfff" for character in text)
    }
    return replace(response, **broken) if broken else response  # type: ignore[arg-type]


def exchange_of(request: Request, response: Response, *, show_prompt: bool, chat: bool) -> Exchange:
    """What was asked and what came back, as a record holds it."""
    choice = request if isinstance(request, ChoiceRequest) else None
    options = () if choice is None else choice.options
    return Exchange(
        kind="generate" if choice is None else "choice",
        request_sha256=request.sha256,
        prompt=request.prompt if show_prompt else None,
        outcomes=request.outcomes,
        options=options,
        option_logprobs=response.option_logprobs,
        option_end_logprobs=response.option_end_logprobs,
        option_token_counts=response.option_token_counts,
        # Through a chat template an option is scored without the space that separates it from a prompt.
        option_byte_counts=tuple(len((option.lstrip() if chat else option).encode()) for option in options),
        option_is_bound=response.option_is_bound,
        n_moved_tokens=response.n_moved_tokens,
        text=response.text,
        finish_reason=response.finish_reason,
        sample=request.sample if isinstance(request, GenerateRequest) else None,
        n_prompt_tokens=response.n_prompt_tokens,
        n_completion_tokens=response.n_completion_tokens,
        status=response.status,
        error=response.error,
    )


def check_failures(records: Sequence[Record], max_failure_rate: float) -> None:
    """Refuse records too many of which failed, be it in the asking or in the reading.

    Raises:
        RunError: more of them failed than the rate allows.
    """
    failed = [record for record in records if record.status == "failed"]
    if len(failed) > max_failure_rate * len(records):
        raise RunError(
            f"{len(failed)} of {len(records)} items failed, more than --max-failure-rate {max_failure_rate:g} allows: "
            f"{failed[-1].reason}; answers are kept, no result was written"
        )


def count(records: Sequence[Record]) -> Counts:
    """How many records ended how."""
    by_status = Counter(record.status for record in records)
    return Counts(
        items=len(records),
        scored=by_status["scored"],
        refused=by_status["refused"],
        unparsed=by_status["unparsed"],
        failed=by_status["failed"],
        truncated=sum(record.truncated for record in records),
    )


def early_look(
    task: Task,
    requests: Sequence[Sequence[Request]],
    keys: Sequence[Sequence[bytes]],
    normalisation: Normalisation | None,
    *,
    chat: bool,
) -> Callable[[Mapping[bytes, Response]], bool]:
    """A look at the first items that are answered, once there are enough of them.

    What cannot be read ends the run before more is spent on it. The function says whether it has looked.

    Args:
        task: Reads them.
        requests: Per item.
        keys: Of the requests.
        normalisation: How option log-probabilities become probabilities.
        chat: Whether options were scored behind a chat template.
    """

    def look(responses: Mapping[bytes, Response]) -> bool:
        reads = []
        for asked, item_keys in zip(requests, keys, strict=True):
            answers = [responses.get(key) for key in item_keys]
            sound = [answer for answer in answers if answer is not None and answer.status == "answered"]
            if len(sound) < len(answers):
                continue
            pairs = zip(asked, sound, strict=True)
            exchanges = [exchange_of(request, answer, show_prompt=False, chat=chat) for request, answer in pairs]
            reads.append(task.read(exchanges, normalisation))
            if len(reads) == _N_LOOKED_AT:
                break
        if len(reads) < _N_LOOKED_AT:
            return False
        if all(read.status == "failed" for read in reads):
            raise RunError(
                f"the first {len(reads)} items that were answered all failed to be read: {reads[-1].reason}; the rest "
                "was not asked, answers are kept"
            )
        return True

    return look
