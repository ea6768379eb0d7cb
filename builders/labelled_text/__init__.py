"""Builder of the benchmark labelled_text: how evenly does a language model find the classes of a user's labelled texts?

Any table of texts with one label each is a task of the kind that *superni* has many of, in the same splits: *test*,
*bias*, *pool* and *content_free*. arXiv:2603.15654 measures AG News and DDI in this way.

*rows* reads files, or those of a dataset on the Hub, names the labels and rejects rows; *drafts* draws the splits and
writes the card.
"""

from __future__ import annotations

from builders.description import Builder, BuilderSource

BUILDER = Builder(
    name="labelled_text",
    summary="one task of classification from any labelled texts: are all classes found?",
    sources=(
        BuilderSource(
            name="files",
            dataset="own-texts",
            summary="texts with labels, from files or the Hub (the only source)",
            input="CSV, JSON Lines or Parquet files with columns for text and label, or ORG/NAME@REVISION",
            licence="that of the texts",
            redistributable=True,
        ),
    ),
)
