"""What lies in each file, said once: documents are frozen dataclasses whose annotations everything else follows from.

::

    base         annotated types, and Document, which every file extends
      |
    result, record, dataset, ...     the fields of each file on disk
      |
    item_shape   finds the kinds of items (schemas/items), whose fields a dataset brings

``NAME.schema.json`` are published for other people's programs; ``make schemas`` writes them from the annotations.
"""
