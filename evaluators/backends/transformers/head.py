"""Runs the output layer only at the positions that are needed, whatever the model does before and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from biasboard.ground.errors import import_extra
from evaluators.backends.transformers.last import last_layer_at

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

_CHUNK_ELEMENTS = 2**25
"""Maximum number of logits converted to float32 at a time."""


class Wanted(NamedTuple):
    """A token whose log-probability is wanted."""

    row: int
    column: int
    """Column of the position that predicts the token."""
    token: int


def wanted_logprobs(
    network: PreTrainedModel,
    arguments: dict[str, Any],
    wanted: Sequence[Wanted],
    *,
    shape: tuple[int, int],
    whole_last_layer: bool,
) -> list[float]:
    """Return the log-probabilities of tokens in nats, from one forward pass.

    The output layer multiplies by the whole vocabulary, which at every position can cost as much as the rest of the
    model. It runs only where a wanted token is predicted. Whatever a model does to its logits afterwards (scaling,
    capping) still happens.

    Args:
        network: The model.
        arguments: Keyword arguments of the forward pass.
        wanted: Tokens, each with the position that predicts it.
        shape: Numbers of rows and columns of the forward pass.
        whole_last_layer: True if the last layer also runs at positions that are not needed.

    Returns:
        Log-probability of each wanted token, computed from float32 logits whatever the precision of the model.
    """
    torch = import_extra("torch", "hf")
    positions = list(dict.fromkeys((item.row, item.column) for item in wanted))
    index_of = {position: index for index, position in enumerate(positions)}
    device = network.device
    rows = torch.tensor([row for row, _ in positions], device=device)
    columns = torch.tensor([column for _, column in positions], device=device)
    with ExitStack() as contexts:
        logits_at = contexts.enter_context(output_layer_at(network, rows, columns, shape))
        if not whole_last_layer:
            contexts.enter_context(last_layer_at(network, rows, columns, shape))
        logits = logits_at(network(**arguments).logits)
    index = torch.tensor([index_of[item.row, item.column] for item in wanted], device=device)
    tokens = torch.tensor([item.token for item in wanted], device=device)
    values: list[float] = (_picked(logits, index, tokens)).double().cpu().tolist()
    return values


@contextmanager
def output_layer_at(
    network: PreTrainedModel, rows: Tensor, columns: Tensor, shape: tuple[int, ...]
) -> Iterator[Callable[[Tensor], Tensor]]:
    """Run the output layer only at some positions, while in this context, if the model makes it accessible.

    Args:
        network: The model.
        rows: Row of each position, shape (n,).
        columns: Column of each position, shape (n,).
        shape: Numbers of rows and columns of the forward pass.

    Yields:
        Function that takes the logits of the pass and returns those at the positions, shape (n, vocabulary).
    """
    head = _head(network)
    selected = False

    def select(_module: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        nonlocal selected
        hidden, *rest = given
        if selected or tuple(hidden.shape[:2]) != shape:
            return given
        selected = True
        return (hidden[rows, columns][None], *rest)

    handle = None if head is None else head.register_forward_pre_hook(select)
    try:
        yield lambda logits: logits[0] if selected else logits[rows, columns]
    finally:
        if handle is not None:
            handle.remove()


@contextmanager
def last_position_only(network: PreTrainedModel) -> Iterator[None]:
    """Run the output layer at the last position only, while in this context."""
    head = _head(network)
    handle = None
    if head is not None:
        handle = head.register_forward_pre_hook(lambda _module, given: (given[0][:, -1:], *given[1:]))
    try:
        yield
    finally:
        if handle is not None:
            handle.remove()


def _head(network: PreTrainedModel) -> Any:
    return network.get_output_embeddings()  # type: ignore[no-untyped-call]


def _picked(logits: Tensor, index: Tensor, tokens: Tensor) -> Tensor:
    """Return the float32 log-softmax of logits, shape (n, vocabulary), at pairs of row and token.

    Args:
        logits: Logits in any precision, shape (n, vocabulary).
        index: Row of each pair, shape (m,).
        tokens: Token id of each pair, shape (m,).
    """
    torch = import_extra("torch", "hf")
    step = max(1, _CHUNK_ELEMENTS // logits.shape[-1])
    totals = torch.cat([torch.logsumexp(part.float(), dim=-1) for part in torch.split(logits, step)])
    result: Tensor = logits[index, tokens].float() - totals[index]
    return result
