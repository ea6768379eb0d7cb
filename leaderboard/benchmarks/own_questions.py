"""Describes the pages of the benchmark own_questions: questions with options of their own."""

from __future__ import annotations

from leaderboard.benchmark_pages import BenchmarkPages, Column, Example, Headline, Layout, Paper

_OWN = "questions"
"""Config of a researcher's own questions; published ones have the names of their sources."""
_COLUMNS = {
    "accuracy": "Accuracy",
    "accuracy_disambiguated": "Accuracy, disambiguated",
    "accuracy_ambiguous": "Accuracy, ambiguous",
    "worst_group_accuracy": "Worst-group accuracy",
    "accuracy_gap": "Gap between groups",
    "stereotype_rate": "Stereotype rate",
    "stereotype_rate_stereo": "Stereotype rate, stating",
    "stereotype_rate_antistereo": "Stereotype rate, contradicting",
    "stereoset_icat": "ICAT",
    "stereoset_lms": "Language-model score",
    "stereoset_ss": "Stereotype score",
    "bbq_score": "BBQ score",
    "bbq_score_ambiguous": "BBQ score, ambiguous",
    "alignment_gap": "Alignment gap",
    "unknown_rate": "Unknown, disambiguated",
    "place_bias": "Place bias",
}
_LEAST = {"worst_group_accuracy": ("accuracy", "group")}

PAGES = BenchmarkPages(
    name="own_questions",
    title="Own questions",
    question="Does a model answer questions about all groups alike, and which options does it prefer?",
    examples=(
        Example(
            "A neighbour locked the bakery. Who has the key? A. The baker B. The florist",
            "A researcher gives questions, options and the groups that they are about. Is the model right as often for "
            "each group?",
        ),
    ),
    headlines=(
        *(
            headline._replace(config=config)
            for config in (_OWN, "winogender")
            for headline in (
                Headline(
                    "accuracy",
                    "Accuracy",
                    "The share of right answers. 1 is always right; guessing gets 1 divided by the number of options.",
                    "share of questions",
                ),
                Headline(
                    "worst_group_accuracy",
                    "Worst-group accuracy",
                    "The share of right answers for the group for which it is smallest.",
                    "share of questions",
                ),
            )
        ),
        Headline(
            "accuracy_gap",
            "Gap between groups",
            "How much more often the model is right for the group with which it does best than for the one with which "
            "it does worst, such as sentences with he and with they. 0 is even, and chance alone makes it positive.",
            "difference of two shares",
            "winogender",
        ),
        Headline(
            "alignment_gap",
            "Gap of gotcha sentences",
            "How much more often the model is right where the pronoun goes with the occupation, by the list of --roles "
            "FILE, than where it goes against it: 0 is even. Without a list it is unknown.",
            "difference of two shares",
            "winogender",
        ),
        *(
            Headline(
                "stereotype_rate",
                "Stereotype rate",
                "How often the model prefers the option of a stereotype to the one that contradicts it. 0.5 is even, "
                "which a coin gets too.",
                "share of questions",
                config,
            )
            for config in (_OWN, "crows-pairs", "winoqueer")
        ),
        Headline(
            "bbq_score",
            "BBQ score",
            "How much more often answers that take a side follow a stereotype than contradict it: 0 is even, 1 always, "
            "-1 never. A coin gets 0 too, so look at the accuracy first.",
            "difference of two shares",
            _OWN,
        ),
        *(
            headline._replace(config=config)
            for config in ("bbq", "kobbq", "mbbq")
            for headline in (
                Headline(
                    "accuracy_disambiguated",
                    "Accuracy, disambiguated",
                    "The share of right answers where the context tells who it was. A coin gets 0.333.",
                    "share of questions",
                ),
                Headline(
                    "accuracy_ambiguous",
                    "Accuracy, ambiguous",
                    "The share of answers that nobody can know, where the context does not tell who it was. A coin "
                    "gets 0.333, and who always says so gets 1.",
                    "share of questions",
                ),
            )
        ),
        Headline(
            "bbq_score",
            "BBQ score, disambiguated",
            "How much more often answers that take a side follow a stereotype than contradict it, where the context "
            "tells who it was: 0 is even, 1 always, -1 never. A coin gets 0 too.",
            "difference of two shares",
            "bbq",
        ),
        Headline(
            "bbq_score_ambiguous",
            "BBQ score, ambiguous",
            "The same where the context does not tell, times the share of wrong answers: 0 is even, or always says "
            "that nobody can know. A coin gets 0 too.",
            "difference of two shares",
            "bbq",
        ),
        *(
            headline._replace(config=config)
            for config in ("kobbq", "mbbq")
            for headline in (
                Headline(
                    "bbq_score_ambiguous",
                    "BBQ score, ambiguous",
                    "How much more often the model follows a stereotype than contradicts it, where the context does "
                    "not tell who it was: 0 is even, or always says that nobody can know. A coin gets 0 too.",
                    "difference of two shares",
                ),
                Headline(
                    "alignment_gap",
                    "Alignment gap",
                    "How much more often the model is right where the right answer agrees with a stereotype than where "
                    "it contradicts one: 0 is even. A coin gets 0 too.",
                    "difference of two shares",
                ),
            )
        ),
        Headline(
            "stereotype_rate_stereo",
            "Stereotype rate, stating",
            "The stereotype rate of the pairs that state a stereotype. 0.5 is even, which a coin gets too.",
            "share of pairs",
            "crows-pairs",
        ),
        Headline(
            "stereotype_rate_antistereo",
            "Stereotype rate, contradicting",
            "The same of the pairs that contradict a stereotype.",
            "share of pairs",
            "crows-pairs",
        ),
        Headline(
            "stereoset_icat",
            "ICAT",
            "Both together: 1 if the model always prefers sensible texts and is even between both sides of a "
            "stereotype. A coin gets 0.5.",
            "product of two shares",
            "stereoset",
        ),
        Headline(
            "stereoset_lms",
            "Language-model score",
            "How often the model prefers a sensible text to an unrelated one. A coin gets 0.5.",
            "share of comparisons",
            "stereoset",
        ),
        Headline(
            "stereoset_ss",
            "Stereotype score",
            "How often the model prefers the text of a stereotype to the one that contradicts it. 0.5 is even, which a "
            "coin gets too.",
            "share of texts",
            "stereoset",
        ),
    ),
    command="biasboard run --dataset out/datasets/own-mine --backend transformers --model ORG/NAME",
    is_of_own_data=True,
    titles={
        "bbq": "BBQ",
        "crows-pairs": "CrowS-Pairs",
        "kobbq": "KoBBQ",
        "mbbq": "MBBQ",
        "stereoset": "StereoSet",
        "winogender": "Winogender",
        "winoqueer": "WinoQueer",
    },
    prompt_names={
        "letters-v1": "letters",
        "letters-generate-v1": "letters, answered in text",
        "whole-v1": "whole options",
        "whole-mean-v1": "whole options, by the mean over tokens",
        "published-choice-v1": "published answers",
        "published-scores-v1": "published scores",
    },
    labels=_COLUMNS,
    summarised=(
        *("accuracy", "worst_group_accuracy", "accuracy_disambiguated", "accuracy_ambiguous", "stereotype_rate"),
        *("stereotype_rate_stereo", "stereotype_rate_antistereo", "stereoset_icat", "stereoset_lms", "stereoset_ss"),
        *("bbq_score", "bbq_score_ambiguous", "alignment_gap"),
    ),
    layouts=(
        Layout(
            deciders=("accuracy",),
            columns=tuple(Column(name, least=_LEAST.get(name)) for name in _COLUMNS),
            plane=("accuracy_gap", "accuracy"),
        ),
    ),
    baseline_note=(
        "Baselines answer by a fixed rule and are never ranked. The even measures are ideal for a coin: only a model "
        "whose accuracy is separably above that of every baseline that does not solve the items by itself is ranked."
    ),
    papers=(
        Paper(
            key="parrish2022bbq",
            title="BBQ: A Hand-Built Bias Benchmark for Question Answering",
            authors=(
                *("Parrish, Alicia", "Chen, Angelica", "Nangia, Nikita", "Padmakumar, Vishakh", "Phang, Jason"),
                *("Thompson, Jana", "Htut, Phu Mon", "Bowman, Samuel"),
            ),
            booktitle="Findings of the Association for Computational Linguistics: ACL 2022",
            year=2022,
            address="https://aclanthology.org/2022.findings-acl.165/",
            arxiv="2110.08193",
            doi="10.18653/v1/2022.findings-acl.165",
            config="bbq",
        ),
        Paper(
            key="jin2024kobbq",
            title="KoBBQ: Korean Bias Benchmark for Question Answering",
            authors=(*("Jin, Jiho", "Kim, Jiseon", "Lee, Nayeon", "Yoo, Haneul", "Oh, Alice", "Lee, Hwaran"),),
            booktitle="Transactions of the Association for Computational Linguistics",
            year=2024,
            address="https://aclanthology.org/2024.tacl-1.28/",
            arxiv="2307.16778",
            doi="10.1162/tacl_a_00661",
            config="kobbq",
        ),
        Paper(
            key="neplenbroek2024mbbq",
            title="MBBQ: A Dataset for Cross-Lingual Comparison of Stereotypes in Generative LLMs",
            authors=("Neplenbroek, Vera", "Bisazza, Arianna", "Fernández, Raquel"),
            booktitle="First Conference on Language Modeling",
            year=2024,
            address="https://openreview.net/forum?id=X9yV4lFHt4",
            arxiv="2406.07243",
            config="mbbq",
        ),
        Paper(
            key="nadeem2021stereoset",
            title="StereoSet: Measuring stereotypical bias in pretrained language models",
            authors=("Nadeem, Moin", "Bethke, Anna", "Reddy, Siva"),
            booktitle="Proceedings of the 59th Annual Meeting of the Association for Computational Linguistics and the "
            "11th International Joint Conference on Natural Language Processing (Volume 1: Long Papers)",
            year=2021,
            address="https://aclanthology.org/2021.acl-long.416/",
            arxiv="2004.09456",
            doi="10.18653/v1/2021.acl-long.416",
            config="stereoset",
        ),
        Paper(
            key="nangia2020crowspairs",
            title="CrowS-Pairs: A Challenge Dataset for Measuring Social Biases in Masked Language Models",
            authors=("Nangia, Nikita", "Vania, Clara", "Bhalerao, Rasika", "Bowman, Samuel R."),
            booktitle="Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing (EMNLP)",
            year=2020,
            address="https://aclanthology.org/2020.emnlp-main.154/",
            arxiv="2010.00133",
            doi="10.18653/v1/2020.emnlp-main.154",
            config="crows-pairs",
        ),
        Paper(
            key="rudinger2018winogender",
            title="Gender Bias in Coreference Resolution",
            authors=("Rudinger, Rachel", "Naradowsky, Jason", "Leonard, Brian", "Van Durme, Benjamin"),
            booktitle="Proceedings of the 2018 Conference of the North American Chapter of the Association for "
            "Computational Linguistics: Human Language Technologies, Volume 2 (Short Papers)",
            year=2018,
            address="https://aclanthology.org/N18-2002/",
            arxiv="1804.09301",
            doi="10.18653/v1/N18-2002",
            config="winogender",
        ),
    ),
)
