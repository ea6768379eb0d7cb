"""Builder of the gifi benchmark: does a language model treat eleven pronoun families alike?

This is the benchmark of the Gender Inclusivity Fairness Index (Shan et al. 2025, arXiv:2506.15568). Its four
configs ask one question each:

* recognition: does a model continue a text in the pronouns that the text began with?
* continuation: how does the tone of its continuation depend on the pronouns?
* assignment: which pronouns does it give to people of whom only an occupation or a trait is known?
* math: does it solve problems about people of all pronouns equally well?

Recognition is also asked in German, Spanish and French, in datasets of their own; all else is English. A good score
does not show that people are treated well.

::

    source (embedded, languages, published, tango, tagged_sources) ──> templates with slots for pronouns
        |  tagging     the rule that turns a plain text into a template or rejects it, for all *tagged_sources*
        |  variants    eleven items of each template, one per pronoun family
        v
    drafts             the draft of a dataset from each source, with the texts of cards ──> builders/dataset
"""

from __future__ import annotations

from builders.description import Builder, BuilderSource
from schemas.lexicon.languages import LANGUAGE_CODES

BUILDER = Builder(
    name="gifi",
    summary="eleven pronoun families in recognition, continuation, assignment and math (GIFI)",
    sources=(
        BuilderSource(
            name="embedded",
            dataset="gifi",
            summary="texts of this project for all four configs; needs no file (default)",
            licence="Apache-2.0",
            redistributable=True,
        ),
        BuilderSource(
            name="markers",
            dataset="gifi-markers",
            summary="sentences of this project about people with and without a demographic marker; config marked",
            licence="Apache-2.0",
            redistributable=True,
        ),
        *(
            BuilderSource(
                name=language,
                dataset=f"gifi-{language}",
                summary=f"texts of this project in {language.capitalize()} and its pronoun families; config {language}",
                licence="Apache-2.0",
                redistributable=True,
            )
            for language in LANGUAGE_CODES
        ),
        BuilderSource(
            name="tango",
            dataset="gifi-tango",
            summary="all sentences of TANGO's misgendering prompts; config recognition",
            input="the file misgendering_prompts.csv of https://github.com/amazon-science/tango",
            licence="CC-BY-SA-4.0",
            redistributable=True,
        ),
        BuilderSource(
            name="realtoxicityprompts",
            dataset="gifi-realtoxicityprompts",
            summary="prompts of RealToxicityPrompts about one person; config continuation",
            input="the file prompts.jsonl, or allenai/real-toxicity-prompts for the Hub",
            licence="Apache-2.0",
            redistributable=True,
        ),
        BuilderSource(
            name="gsm8k",
            dataset="gifi-gsm8k",
            summary="word problems of GSM8K about one person; config math",
            input="the file test.jsonl, or openai/gsm8k for the Hub",
            licence="MIT",
            redistributable=True,
        ),
        BuilderSource(
            name="gifi",
            dataset="gifi-published",
            summary="the published templates of all four configs, repaired; as they are with --compat gifi-repo",
            input="the folder data/template of https://github.com/ZhengyangShan/GIFI",
            licence="CC-BY-SA-4.0 AND Apache-2.0 AND MIT",
            redistributable=True,
        ),
    ),
)
