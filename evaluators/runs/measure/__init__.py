"""Makes a result from stored answers. No module here calls a model.

::

    responses ──recording──> records.parquet ──measuring──> result.json
                   │                               ^             │
        (unread answers: what the console says)    └─────────────┘
                                             rescoring, stored_results (the same again, from the folder)

*baseline_gate* compares a result with what baselines answer to its items. *index_values* combines several results of a
model. *stored_results* also makes the hashes that all results on a dataset must share.
"""
