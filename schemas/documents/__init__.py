"""What lies in each file, said once: documents are frozen dataclasses whose annotations everything else follows from.

::

    base         annotated types, and Document, which every file extends
      |
    dataset        dataset.json, and rejected candidates
    record         a row of records.parquet
    result         result.json
    run_files      what lies beside the records: scores of texts, sums, corrections
    adapters       adapters.json of LoRA adapters;  reweighting: a file of fitted rules
    board          submissions, the register, answer keys
      |
    item_shape   finds the kinds of items (schemas/items), whose fields a dataset brings

``NAME.schema.json`` are published for other people's programs; ``make schemas`` writes them from the annotations.
"""
