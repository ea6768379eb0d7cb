from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from schemas.lexicon import CASES, cases_of, families_of, gender_of_pronoun, occupations, pronoun_families


def test_eleven_families_have_five_cases_each_that_lead_back_to_them() -> None:
    families = pronoun_families()
    assert list(families) == ["he", "she", "they", "thon", "e", "ae", "co", "vi", "xe", "ey", "ze"]
    classes = {name: family.pronoun_class for name, family in families.items()}
    assert classes == dict.fromkeys(families, "neo") | {"he": "binary", "she": "binary", "they": "neutral"}
    for name, family in families.items():
        assert tuple(family.forms) == CASES, name
        genders = {gender_of_pronoun(form.capitalize()) for form in family.forms.values()}
        assert genders == {{"he": "masculine", "she": "feminine"}.get(name)}
        for case, form in family.forms.items():
            assert form == form.lower()
            assert form.isalpha()
            assert name in families_of(form)
            assert case in cases_of(form, name)


@pytest.mark.parametrize(
    ("form", "families"),
    [
        ("em", ("e", "ey")),
        ("EMSELF", ("e", "ey")),
        ("hers", ("she",)),
        ("themselves", ("they",)),
        ("themself", ("they",)),
        ("aer", ("ae",)),
        ("nurse", ()),
        ("", ()),
    ],
)
def test_a_form_maps_to_every_family_that_has_it(form: str, families: tuple[str, ...]) -> None:
    assert families_of(form) == families


def test_twenty_occupations_stand_on_each_list_and_395_pairs_lie_more_than_ten_points_apart() -> None:
    lists = {side: [one for one in occupations().values() if one.stereotype == side] for side in ("male", "female")}
    assert {side: len(found) for side, found in lists.items()} == {"male": 20, "female": 20}
    for name, one in occupations().items():
        assert one.name == name
        assert (50 < one.percent_women < 100) == (one.stereotype == "female"), name
        assert one.percent_women > 0
    pairs = product(lists["male"], lists["female"])
    near = {(m.name, f.name) for m, f in pairs if f.percent_women - m.percent_women <= 10}
    assert 400 - len(near) == 395
    assert ("salesperson", "editor") in near


def test_the_lexicon_cannot_be_changed_by_a_reader() -> None:
    with pytest.raises(TypeError):
        occupations()["wizard"] = occupations()["nurse"]  # type: ignore[index]
    with pytest.raises(TypeError):
        pronoun_families()["he"].forms["nominative"] = "she"  # type: ignore[index]


def test_occupations_are_those_of_winobias(shared_data: Path) -> None:
    for stereotype in ("male", "female"):
        published = (shared_data / "winobias" / f"{stereotype}_occupations.txt").read_text(encoding="utf-8").split("\n")
        ours = [row.name.lower() for row in occupations().values() if row.stereotype == stereotype]
        assert sorted(filter(None, (line.strip().lower() for line in published))) == sorted(ours)
