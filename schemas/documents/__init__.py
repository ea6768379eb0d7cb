"""The contents of each file: frozen dataclasses, from whose annotations schemas, column types and checks are derived.

::

    base         annotated types, and Document, which every file extends
      |
    dataset        dataset.json, rejected candidates, and the kinds of dataset rows (schemas/items)
    record         a row of records.parquet
    result         result.json
    run_files      the other files of a run: scores of texts, sums, corrections
    adapters       adapters.json of LoRA adapters;  reweighting: a file of fitted rules
    board          submissions, the register, answer keys
    model_summary  the headline measures of a model, as score prints them
    model_facts    a file about one model
    papers         files about a table of a paper, and about a paper: its findings, and the runs that give them again

``NAME.schema.json`` are published for other programs; ``make schemas`` writes them from the annotations.
"""
