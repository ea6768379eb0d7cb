"""Builder of the synthbias benchmark: in a sentence with two occupations, whom does a gendered pronoun mean?

This is the benchmark of UCerF (Wang et al. 2025, arXiv:2505.23996). Its items are minimal pairs of sentences that
differ in the gender of one pronoun. Type 1 sentences leave open whom the pronoun means, type 2 sentences settle it. The
benchmark measures how a language model resolves *he* and *she* next to occupations that are held mostly by men or
mostly by women. It measures nothing about people who use other pronouns, nor about languages other than English.

::

    source
      embedded       frames (texts/), and how two language models understood them
      families       the same frames with a pronoun of every family, in sets instead of pairs; family_sets: the pairs of
                     another dataset in such sets
      generation/    sentences that a language model writes
      published      the published SynthBias; winobias: the original WinoBias
      own_sentences  a researcher's sentences (own_csv)
        |  checks/   what may be wrong with a sentence
        v
    minimal_pairs    the occupations and pronouns in a sentence, identity of a pair, its two items, its split
        |  cards      card texts that the sources share
        v
    dataset folder ──annotation/: people vote──> dataset of the accepted pairs

Further commands: *lint* checks anybody's sentences, ``lean`` (*embedded*) measures how often models choose the
occupation mentioned first.
"""

from __future__ import annotations

from pathlib import Path

from builders.dataset.licences import ProtectedSource
from builders.description import Builder, BuilderSource

PUBLISHED_SHA256 = "6bf346256a12eeb959dfbe610948694e8da26c74306bb202c2f6cd177af84588"
"""SHA-256 of the published CSV file of SynthBias."""

PROTECTED = ProtectedSource(
    name="SynthBias",
    refusal=(
        "the data of SynthBias is licensed under CC BY-NC-ND 4.0, which forbids sharing adapted copies; "
        "keep this folder to yourself and publish scores, line numbers and hashes"
    ),
    file_sha256s=(PUBLISHED_SHA256,),
    digests=Path(__file__).with_name("published_digests.bin"),
)
"""The published SynthBias. ``published_digests.bin`` holds digests of its 31,728 sentences, by which any copy is
recognised; the licence forbids keeping the sentences themselves here.

It was made with :func:`builders.dataset.licences.packed` from the published file; a test compares the two where that
file is available.
"""

BUILDER = Builder(
    name="synthbias",
    summary="gender and occupation in coreference: pairs of he and she, sets of pronoun families (UCerF, WinoBias)",
    sources=(
        BuilderSource(
            name="embedded",
            dataset="synthbias",
            summary="sentences from the frames of this project; needs no file (default)",
            licence="Apache-2.0",
            redistributable=True,
        ),
        BuilderSource(
            name="families",
            dataset="synthbias-families",
            summary="the same frames with all eleven pronoun families; needs no file; --with: another dataset's pairs",
            licence="Apache-2.0",
            redistributable=True,
        ),
        BuilderSource(
            name="synthbias",
            dataset="synthbias-published",
            summary="the published SynthBias, as it is",
            input="the file synthbias_data.csv of https://github.com/apple/ml-synthbias",
            licence="CC-BY-NC-ND-4.0",
            redistributable=False,
        ),
        BuilderSource(
            name="winobias",
            dataset="winobias",
            summary="the original WinoBias, as it is",
            input="the folder WinoBias/wino/data of https://github.com/uclanlp/corefBias",
            licence="MIT",
            redistributable=True,
        ),
        BuilderSource(
            name="generated",
            dataset="synthbias-generated",
            summary="sentences that a language model wrote on this project's instructions",
            input="the folder of the runs that answered them (see 'generate'), or of a generated dataset",
            licence="Apache-2.0",
            redistributable=True,
        ),
        BuilderSource(
            name="csv",
            dataset="synthbias-own",
            summary="your own sentences",
            input="a CSV file with a column for the sentence and one for whom its pronoun means, or its type",
            licence="that of the sentences",
            redistributable=True,
        ),
    ),
    protected=(PROTECTED,),
)
