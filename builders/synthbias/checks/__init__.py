"""One catalogue of checks for building, for flagging and for the command ``lint``.

::

    checks.toml             texts, severity and certainty of each check
    sentence_checks.py    \
    case_checks.py         > functions of the same names, which find the defects (check.py: input and checks)
    collection_checks.py  /
    catalogue.py            all checks by name, the profiles: which checks a use runs, in which order; and Duplicates,
                            which detects candidates that repeat earlier ones

What a source of sentences calls::

    Sentence(text="The nurse ...", meant=("nurse", "guard"), type="type2", referent="nurse",
             gender="feminine", pronoun=None, line=None, id="")       # keywords only; text and meant are required
    first_finding(sentence, GENERATED) -> SentenceFinding | None   # building: the first failing check
    all_findings(sentence, GENERATED) -> list[SentenceFinding]     # flagging and linting: all of them
    seen = Duplicates(template_cap=None)
    seen.add(sentence) -> SentenceFinding | None                   # one side of each minimal pair

A :class:`SentenceFinding` has ``check`` (name in the catalogue), ``reason``, ``severity``, ``line`` and ``id``. A
profile such as ``GENERATED`` is a tuple of names; ``CATALOGUE[name].as_rule()`` is the rule for the rejects of a draft.
Checks of one sentence need only that sentence; those of pairs and files need all sentences of the file.
"""
