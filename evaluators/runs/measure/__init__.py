"""From stored answers to a result. Nothing here calls a model.

::

    responses --records--> records.parquet --measuring--> metrics --finish--> result.json
                  |                             |
          unread_answers                correction_files (what calibrations have learned)
                                        stored_sums, withholding (in place of texts that are kept elsewhere)

*rescore* begins at the records; *stored_results* measures a result again from its folder. *gates* compares a result
with *baseline_answers* on the same items; *indices* and *example_sets* combine several results; *answer_keys* holds
what all results on a dataset have in common.
"""
