"""Builder of the benchmark own_questions: a researcher's questions with options, from CSV files.

``builders/dataset/own_csv.py`` reads CSV files and *published_json* those of benchmarks that are published as JSON,
into rows alike; *questions* makes an item or a reject of each, and the draft of the dataset.
"""

from __future__ import annotations

from builders.description import Builder, BuilderSource

BUILDER = Builder(
    name="own_questions",
    summary="questions with options of your own, by group: answered alike?",
    sources=(
        BuilderSource(
            name="csv",
            dataset="own-questions",
            summary="CSV files of your questions (default)",
            input="a CSV file with a column for the question or none, and columns for the options, such as option_a",
            licence="that of the questions",
            redistributable=True,
        ),
        BuilderSource(
            name="crows-pairs",
            dataset="crows-pairs",
            summary="CrowS-Pairs, as it was published",
            input="crows_pairs_anonymized.csv of https://github.com/nyu-mll/crows-pairs",
            licence="CC-BY-SA-4.0",
            redistributable=True,
        ),
        BuilderSource(
            name="winoqueer",
            dataset="winoqueer",
            summary="WinoQueer, or a file of its columns",
            input="a CSV file with the columns Gender_ID_x, sent_x and sent_y",
            licence="unknown",
            redistributable=False,
        ),
        BuilderSource(
            name="bbq",
            dataset="bbq",
            summary="BBQ, as it was published",
            input="JSONL files of https://github.com/nyu-mll/BBQ/tree/main/data",
            licence="CC-BY-4.0",
            redistributable=True,
        ),
        BuilderSource(
            name="stereoset",
            dataset="stereoset",
            summary="StereoSet, as it was published",
            input="data/dev.json of https://github.com/moinnadeem/StereoSet",
            licence="CC-BY-SA-4.0",
            redistributable=True,
        ),
    ),
)
