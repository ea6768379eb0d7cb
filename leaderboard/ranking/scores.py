"""Reads anybody's scores of models on items from a table, long or wide.

::

    long: a row for each score      wide: a row for each model        wide: a column for each model
      model  item  score  repo        model  task-1  task-2             task    a     b
      a      t1    0.71   r1          a      0.71    0.80               task-1  0.71  0.64
      a      t2    0.80   r1          b      0.64    0.77               task-2  0.80  0.77

Scores are converted one by one, since pandas would silently take a column with one typing error for texts.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from biasboard.ground.columns import BoolArray, FloatArray, IntArray
from biasboard.ground.errors import ConfigError, DataError
from biasboard.ground.plain_text import listed, printable
from schemas.documents.base import repeated

if TYPE_CHECKING:
    import pandas as pd

_MODELS = "model model_name model_id system submission agent method"
_ITEMS = (
    "item item_id instance_id instance question_id question example_id example doc_id sample_id problem task_name task "
    "dataset benchmark id"
)
_SCORES = "score main_score value resolved correct is_correct passed accuracy acc result"
"""Names by which columns are recognised, in this order; case, spaces and dashes do not count."""
_NO_ITEMS = frozenset(["mean", "average", "avg", "overall", "total", "rank", "mean_rank", "", "index", "unnamed:_0"])
"""Names of columns that sum up the others, and would be counted twice, or that number the rows."""
_MISSING = frozenset(["", "-", "\N{EN DASH}", "\N{EM DASH}", "na", "n/a", "nan", "none", "null", "<na>"])
_TRUTHS = {"true": "1", "false": "0"}
_LARGEST = 1e100
"""Largest size of a score; differences of larger ones could overflow."""
_MOST_NAMED = 12


class Scores(NamedTuple):
    """The scores of models on the same items."""

    models: tuple[str, ...]
    items: tuple[str, ...]
    values: FloatArray
    """Score of each model on each item, shape (n_models, n_items); nan for a missing score."""
    clusters: IntArray | None
    """Index of each item's cluster, shape (n_items,); None if each item is a cluster."""
    ignored: tuple[str, ...] = ()
    """Items that were left out without being asked to, since by their names they are none."""

    def on(self, mask: BoolArray) -> Scores:
        """Return the scores on some of the items.

        Args:
            mask: True for each item to keep, shape (n_items,).
        """
        return self._replace(
            items=tuple(itertools.compress(self.items, mask)),
            values=self.values[:, mask],
            clusters=None if self.clusters is None else self.clusters[mask],
        )


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of a table hold; what is not named is recognised by common names."""

    model: str | None = None
    item: Sequence[str] = ()
    """Columns that name an item together."""
    score: str | None = None
    cluster: str | None = None
    """Column with the cluster of each item; None if each item is a cluster."""


def scores_of(frame: pd.DataFrame, columns: Columns) -> Scores:
    """Find models, items, scores and clusters in a table.

    A table is long if it has columns of models, items and scores, and wide otherwise.

    Raises:
        ConfigError: a column that is named does not exist, or options contradict each other.
        DataError: the table is empty, names something twice, or holds a score that is no number.
    """
    frame = _with_names(frame)
    wanted = [*filter(None, [columns.model, columns.score, columns.cluster]), *columns.item]
    for name in wanted:
        if name not in frame.columns:
            raise ConfigError(f"no column '{name}'; have: {listed([*frame.columns], most=_MOST_NAMED)}")
    if frame.empty:
        raise DataError("there are no rows below the header; give a row for each score or each model")
    model = columns.model or _recognised(frame, _MODELS)
    items = [*columns.item] or [*filter(None, [_recognised(frame, _ITEMS, used=columns.cluster)])]
    score = columns.score or _recognised(frame, _SCORES)
    if model and items and score:
        scores = _long(frame, model, items, score, columns.cluster)
    elif columns.score is not None or (model and score and columns.cluster and not items):
        missing, flag = ("models", "--model") if model is None else ("items", "--item")
        have = listed([*frame.columns], most=_MOST_NAMED)
        raise ConfigError(f"no column of {missing} is recognised; name it with {flag} (have: {have})")
    else:
        scores = _wide(frame, columns, model)
    is_none = np.array([_normal(item) in _NO_ITEMS for item in scores.items], dtype=bool)
    kept = scores.on(~is_none & ~np.isnan(scores.values).all(axis=0))
    return kept._replace(ignored=(*scores.ignored, *itertools.compress(scores.items, is_none)))


def _with_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns have different names, all of them texts; an index with names becomes a column."""
    import pandas as pd

    if [*frame.index.names] != [None] or not pd.api.types.is_numeric_dtype(frame.index):
        frame = frame.reset_index(allow_duplicates=True)
    names = [str(name).strip() for name in frame.columns]
    for twice, n in repeated(names).items():
        raise DataError(f"column '{printable(twice)}' stands {n} times; keep one, or rename it")
    return frame.set_axis(names, axis=1)


def _normal(name: str) -> str:
    """Return a name in small letters without what stands in parentheses, with underscores.

    >>> _normal("Rank (Borda)"), _normal("Model Name")
    ('rank', 'model_name')
    """
    return re.sub(r"[\s-]+", "_", re.sub(r"\(.*?\)", "", name).strip().lower())


def _recognised(frame: pd.DataFrame, names: str, used: str | None = None) -> str | None:
    by_name = {_normal(name): name for name in reversed([*frame.columns]) if name != used}
    return next((by_name[name] for name in names.split() if name in by_name), None)


def _long(frame: pd.DataFrame, model: str, items: Sequence[str], score: str, cluster: str | None) -> Scores:
    import pandas as pd

    model_of, models = pd.factorize(np.array(_texts(frame, model), dtype=object))
    parts = [_texts(frame, name) for name in items]
    item_of, names = pd.factorize(np.array([" / ".join(of_row) for of_row in zip(*parts, strict=True)], dtype=object))
    cells = model_of * len(names) + item_of
    again = pd.Series(cells).duplicated()
    if again.any():
        row = int(again.argmax())
        shown, of_model = printable(names[item_of[row]]), printable(models[model_of[row]])
        raise DataError(
            f"model '{of_model}' has several scores for item '{shown}'; average them first, or name with --item, "
            f"repeatable, the columns that tell them apart (have: {listed([*frame.columns], most=_MOST_NAMED)})"
        )
    values = np.full(len(models) * len(names), np.nan)
    values[cells] = _numbers(frame, score, lambda row: f"model '{models[model_of[row]]}', item '{names[item_of[row]]}'")
    clusters = None
    if cluster is not None:
        cluster_of, found = pd.factorize(np.array(_texts(frame, cluster), dtype=object))
        of_items = pd.Series(cluster_of).groupby(item_of)
        differs = np.asarray(of_items.transform("last")) != cluster_of
        clusters = of_items.last().to_numpy(dtype=np.int64)
        if differs.any():
            row = int(differs.argmax())
            one, other = (printable(found[number]) for number in (cluster_of[row], clusters[item_of[row]]))
            raise DataError(
                f"item '{printable(names[item_of[row]])}' lies in the clusters '{one}' and '{other}' of column "
                f"'{cluster}'; give each item one cluster"
            )
    return Scores(tuple(models), tuple(names), values.reshape(len(models), len(names)), clusters)


def _wide(frame: pd.DataFrame, columns: Columns, model: str | None) -> Scores:
    import pandas as pd

    first = frame.columns[0]
    if len(columns.item) > 1:
        raise ConfigError("several columns of items need a column of scores; name it with --score")
    is_of_items = columns.model is None and _normal(first) in _ITEMS.split()
    has_models_in_rows = not columns.item and not is_of_items
    if has_models_in_rows and columns.cluster:
        raise ConfigError("clusters need a row for each item; give a long table, or one with a column for each model")
    names = (columns.model or model or first) if has_models_in_rows else [*columns.item, first][0]
    of_rows = _texts(frame, names)
    for twice, n in repeated(of_rows).items():
        raise DataError(
            f"{'model' if has_models_in_rows else 'item'} '{printable(twice)}' has {n} rows in a wide table; keep one, "
            "or name the columns of a long table with --model, --item and --score"
        )
    others = [name for name in frame.columns if name != names and name != columns.cluster]
    of_columns = [name for name in others if not has_models_in_rows or _normal(name) not in _NO_ITEMS]
    if not of_columns:
        raise DataError(
            f"no column of scores beside '{printable(names)}'; a long table needs columns such as model, item and score"
        )
    numbers = np.stack([_numbers(frame, name, lambda row: f"'{of_rows[row]}'") for name in of_columns])
    ignored = tuple(name for name in others if name not in of_columns)
    if has_models_in_rows:
        return Scores(tuple(of_rows), tuple(of_columns), np.ascontiguousarray(numbers.T), None, ignored)
    clusters = None
    if columns.cluster is not None:
        clusters = pd.factorize(np.array(_texts(frame, columns.cluster), dtype=object))[0].astype(np.int64)
    return Scores(tuple(of_columns), tuple(of_rows), numbers, clusters)


def _texts(frame: pd.DataFrame, name: str) -> list[str]:
    """Return the name in each row of a column."""
    texts = []
    for row, value in enumerate(frame[name].tolist()):
        if isinstance(value, Mapping | list | tuple | np.ndarray):
            raise DataError(
                f"column '{name}' holds nested values; give one text or number per row, or name another column"
            )
        text = str(value).strip()
        if value is None or (isinstance(value, float) and math.isnan(value)) or text in ("", "<NA>"):
            raise DataError(f"row {row + 1} below the header has nothing in column '{name}'; complete or remove it")
        texts.append(text)
    return texts


def _numbers(frame: pd.DataFrame, name: str, where: Callable[[int], str]) -> FloatArray:
    """Return the number in each row of a column, nan where it is missing.

    Args:
        frame: The table.
        name: Name of the column.
        where: Function from the index of a row to words that say whose score it is.
    """
    numbers = np.empty(len(frame))
    for row, value in enumerate(frame[name].tolist()):
        text = str(value).strip().lower()
        number = math.inf
        if value is None or text in _MISSING:
            number = math.nan
        elif isinstance(value, str | Real | Decimal):
            with suppress(ValueError, ArithmeticError):
                number = float(_TRUTHS.get(text, value))
        if abs(number) > _LARGEST:
            raise DataError(
                f"{printable(where(row))}: '{printable(str(value), most=40)}' in column '{name}' is no finite number; "
                "write a number, true, false or nothing, or remove the column"
            )
        numbers[row] = number
    return numbers
