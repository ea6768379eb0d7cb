"""The last layer on the positions that are needed: nothing comes after it that would look at the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from schemas.errors import import_extra

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedModel

_FEED_FORWARD = {"mlp", "feed_forward", "ffn"}
_QUERY_AND_OUTPUT = {"q_proj", "o_proj", "out_proj"}
"""Of the attention. Keys and values stay whole: the needed positions look at all others."""


@contextmanager
def last_layer_at(network: PreTrainedModel, rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> Iterator[None]:
    """Run the parts of the last layer that treat each token by itself on some positions alone; the rest gets zeros.

    What the model gives elsewhere is meaningless meanwhile. A model whose last layer is of another build runs whole.

    Args:
        network: The model.
        rows: Of the needed positions; shape (n,).
        columns: Of the needed positions; shape (n,).
        shape: Rows and columns of the pass.
    """
    with ExitStack() as hooks:
        for module in _parts(network):
            hook = _Selection(rows, columns, shape)
            hooks.callback(module.register_forward_pre_hook(hook.before).remove)
            hooks.callback(module.register_forward_hook(hook.after).remove)
        yield


class _Selection:
    """Takes the needed positions on the way into a module and puts its output back where they stood."""

    def __init__(self, rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> None:
        self._rows, self._columns, self._shape = rows, columns, shape
        self._selected = False

    def before(self, _module: Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        """Keep the needed positions, where the input is that of the pass."""
        self._selected = len(given) == 1 and tuple(given[0].shape[:2]) == self._shape
        return (given[0][self._rows, self._columns][None],) if self._selected else given

    def after(self, _module: Module, _given: tuple[Any, ...], output: Tensor) -> Tensor:
        """Put the output back in its place among zeros."""
        if not self._selected:
            return output
        whole = output.new_zeros((*self._shape, output.shape[-1]))
        whole[self._rows, self._columns] = output[0]
        return whole


def _parts(network: PreTrainedModel) -> list[Module]:
    """Linear layers of queries and of the attention's output, and a feed-forward part of linear layers alone."""
    torch = import_extra("torch", "hf")
    n_layers = getattr(network.config.get_text_config(), "num_hidden_layers", None)
    stacks = [
        module
        for module in network.modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == n_layers and n_layers
    ]
    if len(stacks) != 1:
        return []
    last = stacks[0][-1]
    found = [part for name, part in last.named_children() if name in _FEED_FORWARD and _is_dense(part)]
    for name, part in last.named_modules():
        inside = any(name.startswith(f"{outer}.") for outer in _FEED_FORWARD)
        if name.rpartition(".")[2] in _QUERY_AND_OUTPUT and type(part) is torch.nn.Linear and not inside:
            found.append(part)
    return found


def _is_dense(part: Module) -> bool:
    """Whether all its weights are those of linear layers, so that no token has a say in another's output."""
    torch = import_extra("torch", "hf")
    conv1d = import_extra("transformers.pytorch_utils", "hf").Conv1D
    leaves = [module for module in part.modules() if next(module.children(), None) is None]
    return all(
        type(leaf) in (torch.nn.Linear, conv1d) or next(leaf.parameters(), next(leaf.buffers(), None)) is None
        for leaf in leaves
    ) and all(not list(module.parameters(recurse=False)) for module in part.modules() if module not in leaves)
