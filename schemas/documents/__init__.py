"""What lies in each file, said once: documents are frozen dataclasses whose annotations everything else follows from.

::

    base         annotated types, and Document, which every file extends
      |
    result, record, dataset, ...     one file of fields for each file on disk
      |
    conversion   values of JSON and of parquet columns <-> documents
    item_shape   finds the kinds of items (schemas/items), whose fields a dataset brings

``NAME.schema.json`` are published for other people's programs; ``make schemas`` writes them from the annotations.
"""
