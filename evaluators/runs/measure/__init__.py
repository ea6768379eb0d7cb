"""Makes a result from stored answers. No module here calls a model.

::

    responses ──recording──> records.parquet ──measuring──> metrics ──finish──> result.json
                                    │              ^                                │
                             unread_answers        └── rescoring, stored_results ───┘
                         (what the console says)    (the same again, from the folder)

*baseline_gate* compares a result with baselines on its items, whose answers come from *baseline_answers*.
*index_values* and *example_sets* combine several results of a model. *answer_keys* makes the hashes that all results on
a dataset must share.
"""
