"""From stored answers to a result. Nothing here calls a model.

::

    responses ──recording──> records.parquet ──measuring──> metrics ──finish──> result.json
                                    │              ^                                │
                             unread_answers        └── rescoring, stored_results ───┘
                         (what the console says)    (the same again, from the folder)

*baseline_gate* compares a result with what baselines achieve on its items, by *baseline_answers*; *index_values* and
*example_sets* combine several results of a model; *answer_keys* holds what all results on a dataset have in common.
"""
