"""Builder of the synthbias benchmark: if a sentence names two occupations, whom does a gendered pronoun mean?

This is the benchmark of UCerF (Wang et al. 2025, arXiv:2505.23996). Its items are minimal pairs of sentences that
differ in the gender of one pronoun. Type 1 sentences leave open whom the pronoun means, type 2 sentences settle it. The
benchmark measures how a language model resolves *he* and *she* next to occupations that are held mostly by men or
mostly by women. It measures nothing about people who use other pronouns, nor about languages other than English.
"""

from __future__ import annotations

from builders.description import Builder, BuilderSource
from builders.synthbias.published_digests import PROTECTED

BUILDER = Builder(
    name="synthbias",
    summary="gender and occupation in coreference: minimal pairs of he and she (UCerF, WinoBias)",
    sources=(
        BuilderSource(
            name="embedded",
            dataset="synthbias",
            summary="sentences from the frames of this project; needs no file (default)",
            input=None,
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
    ),
    protected=(PROTECTED,),
)
