"""A table with one row per part of a suite, or per item of a config, and a value of each measure in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biasboard.ground.columns import FloatArray
from evaluators.statistics.record_tables import GroupedTable, Statistics


@dataclass(frozen=True, eq=False)
class MeasureTable(GroupedTable):
    """Measures of the parts of a suite, or of the items of a config.

    Each row is a cluster of its own. The interval of a mean over parts then says how much the mean would differ for
    other parts of the same kind, which includes the doubt about each part's own value.
    """

    values: Mapping[str, FloatArray]
    """Value of each row by name of the measure, shape (n,); nan where a row has none."""

    @classmethod
    def of(
        cls, values: Mapping[str, FloatArray], groups: Mapping[str, npt.NDArray[np.str_]] | None = None
    ) -> MeasureTable:
        """Build the table.

        Args:
            values: Value of each row by name of the measure, shape (n,); nan where a row has none.
            groups: Value of each row by name of the group, such as the number of labels; None if there are none.
        """
        n_rows = len(next(iter(values.values())))
        return cls(clusters=np.arange(n_rows), n_clusters=n_rows, groups=groups or {}, values=values)

    def mean_of(self, name: str, group: Mapping[str, str]) -> Statistics:
        """Return the statistics of the mean of a measure over the rows of a slice that have a value.

        Args:
            name: Name of the measure.
            group: The slice.
        """
        return self.mean_statistics(group, self.values[name])
