"""Prefixes and trees against counts by plain loops."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaluators.backends.transformers.packed_scoring import (
    MAX_TREE,
    MIN_PREFIX,
    PrefixGroup,
    TokenTree,
    context_of,
    prefix_groups,
    trees_of,
)
from evaluators.models.tokenizer import TokenRows


def rows_of(context: list[int], *options: list[int]) -> TokenRows:
    return TokenRows(tuple([*context, *option] for option in options), len(context), 0)


def texts_with_headers(n: int) -> list[TokenRows | None]:
    """Two long headers, each with many endings, and a few loose texts."""
    headers = [list(range(40)), list(range(100, 160))]
    made: list[TokenRows | None] = [
        rows_of([*headers[number % 2], 1000 + number % 7, 2000 + number], [1, 2], [1, 3], [4]) for number in range(n)
    ]
    return [*made, rows_of([5000 + n, 7], [1], [2]), None]


def test_every_request_is_in_one_group_and_long_headers_become_prefixes() -> None:
    encoded = texts_with_headers(80)
    groups = prefix_groups(encoded)
    assert sorted(place for group in groups for place in group.requests) == list(range(81))
    assert {(group.n_prefix, len(group.requests)) for group in groups} == {(40, 40), (60, 40), (0, 1)}


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 1), max_size=3), st.integers(1, 30), st.integers(0, 3)),
        min_size=1,
        max_size=60,
    )
)
def test_a_prefix_is_shared_by_its_group_and_leaves_the_last_token_of_each_context(
    shapes: list[tuple[list[int], int, int]],
) -> None:
    encoded: list[TokenRows | None] = [
        rows_of([*(digit for digit in head for _ in range(20)), *[7] * n, 8 + tail], [1], [2])
        for head, n, tail in shapes
    ]
    groups = prefix_groups(encoded)
    assert sorted(place for group in groups for place in group.requests) == list(range(len(encoded)))
    for group in groups:
        contexts = [context_of(rows) for place in group.requests if (rows := encoded[place]) is not None]
        assert group.n_prefix == 0 or group.n_prefix >= MIN_PREFIX
        assert len({context[: group.n_prefix] for context in contexts}) == 1
        assert all(len(context) > group.n_prefix for context in contexts)
        trees = trees_of(group, encoded)
        assert [place for tree in trees for place in tree] == list(group.requests)


def test_contexts_that_go_on_together_become_one_tree_within_its_limit() -> None:
    sentence = list(range(30))
    encoded: list[TokenRows | None] = [rows_of([*sentence, 50 + order], [1], [2]) for order in range(6)]
    assert trees_of(PrefixGroup(tuple(range(6)), 0), encoded) == [(0, 1, 2, 3, 4, 5)]
    long: list[TokenRows | None] = [
        rows_of([*sentence, *range(100 * order, 100 * order + 300)], [1], [2]) for order in range(3)
    ]
    assert trees_of(PrefixGroup((0, 1, 2), 0), long) == [(0,), (1,), (2,)]
    assert MAX_TREE < 2 * 300 + 30


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=6), min_size=1, max_size=8))
def test_a_tree_holds_each_beginning_once_and_its_mask_is_the_path(texts: list[list[int]]) -> None:
    tree = TokenTree(5)
    paths = [tree.add(text) for text in texts]
    beginnings = {tuple(text[:n]) for text in texts for n in range(1, len(text) + 1)}
    assert len(tree.tokens) == len(beginnings)
    width = len(tree.tokens) + 2
    sees = tree.ancestors(width)
    for text, path in zip(texts, paths, strict=True):
        assert [tree.tokens[node] for node in path] == text
        assert [tree.depths[node] for node in path] == list(range(5, 5 + len(text)))
        for n, node in enumerate(path):
            assert set(sees[node].nonzero()[0].tolist()) == set(path[: n + 1])
    for padding in range(len(tree.tokens), width):
        assert sees[padding].nonzero()[0].tolist() == [padding]
