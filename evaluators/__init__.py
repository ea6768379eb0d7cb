"""Asks models about the items of a dataset and computes metrics from the stored answers.

The way of an item::

    dataset folder            select, Task.requests                              Backend.ask, batch by batch
    ──────────────> item ───────────────────────────> requests ──> store ──────────────────────────────────> model
                     │                                              ^  answered ones are not asked again        │
          Task.facts │                                              └───────────────────────── responses <──────┘
                     v            Task.read                              │ each batch is stored before the next
    records.parquet: facts, exchanges, reading  <────────────────────────┘
                     │
                     │ Task.table              MetricDefinition.statistics                    aggregate
                     └────────────> arrays ─────────────────────────────> sums per cluster ──────────────> values
                                                                               └── resampled clusters ──> intervals
    result.json: model, signature, counts, metrics, usage, hashes of the other files

The lower half needs no model: ``rescore`` and every verification start from ``records.parquet``.

A file at the root is an interface (``backend.py``) or what several families share, and a folder holds what fits it
(``backends/``); all that is one family's own lies in ``tasks/``. ``runs/`` takes the three acts in turn: plan, ask,
measure.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
