"""Asks models about the items of a dataset and computes metrics from the stored answers.

The way of an item::

    dataset folder       runs/plan: Task.requests               runs/ask: Backend.ask, batch by batch
    ──────────────> item ────────────────────────> requests ──> stores/store.py ──────────────────────> model
                     │                                             ^  answered ones are not asked again   │
          Task.facts │                                             └─────────────── responses <───────────┘
                     v            Task.read (runs/measure/recording.py) │ each batch is stored before the next
    records.parquet: facts, exchanges, reading  <───────────────────────┘
                     │
                     │ Task.table (tasks/)     MetricDefinition (metric.py)             aggregate
                     └────────────> arrays ─────────────────────────────> sums per cluster ────────> values
                                             runs/measure/measuring.py         └─ resampled clusters ─> intervals
    result.json (runs/measure/finish.py): model, signature, counts, metrics, usage, hashes of the other files

The lower half needs no model: ``rescore`` and every verification start from ``records.parquet``.

A file at the root is an interface (``backend.py``) or what several families share, and a folder holds what fits it
(``backends/``); all that is one family's own lies in ``tasks/``. ``runs/`` takes the three acts in turn: plan, ask,
measure.
"""

from biasboard.ground.plugins import search_path

__path__ = search_path(__name__, __path__)
