from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from schemas import lexicon

FAMILIES = ("he", "she", "they", "thon", "e", "ae", "co", "vi", "xe", "ey", "ze")


def test_there_are_eleven_families_with_five_cases_each() -> None:
    families = lexicon.pronoun_families()
    assert sorted(families) == sorted(FAMILIES)
    for family in families.values():
        assert tuple(family.forms) == lexicon.CASES, family.name
        assert all(form == form.lower() and form.isalpha() for form in family.forms.values()), family.name


def test_classes_of_the_families() -> None:
    classes = {family.name: family.pronoun_class for family in lexicon.pronoun_families().values()}
    assert {name for name, kind in classes.items() if kind == "binary"} == {"he", "she"}
    assert {name for name, kind in classes.items() if kind == "neutral"} == {"they"}


@pytest.mark.parametrize(
    ("form", "families"),
    [
        ("em", ("e", "ey")),
        ("emself", ("e", "ey")),
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
    assert lexicon.families_of(form) == families


def test_every_form_leads_back_to_its_family_and_case() -> None:
    checked = 0
    for family in lexicon.pronoun_families().values():
        for case, form in family.forms.items():
            assert family.name in lexicon.families_of(form)
            assert case in lexicon.cases_of(form, family.name)
            checked += 1
    assert checked == 11 * 5


def test_a_form_can_stand_in_several_cases() -> None:
    assert lexicon.cases_of("Her", "she") == ("accusative", "possessive_dependent")
    assert lexicon.cases_of("his", "he") == ("possessive_dependent", "possessive_independent")
    assert lexicon.cases_of("thon", "thon") == ("nominative", "accusative")
    assert lexicon.cases_of("him", "she") == ()


def test_only_binary_pronouns_have_a_gender() -> None:
    for form in ("he", "Him", "his", "himself"):
        assert lexicon.gender_of_pronoun(form) == "masculine"
    for form in ("she", "her", "Hers", "herself"):
        assert lexicon.gender_of_pronoun(form) == "feminine"
    for form in ("they", "em", "xe", "nurse"):
        assert lexicon.gender_of_pronoun(form) is None


def test_there_are_forty_occupations_half_on_each_list() -> None:
    occupations = lexicon.occupations()
    assert len(occupations) == 40
    stereotypes = [occupation.stereotype for occupation in occupations.values()]
    assert stereotypes.count("male") == 20
    assert stereotypes.count("female") == 20
    for name, occupation in occupations.items():
        assert occupation.name == name
        assert (occupation.percent_women > 50) == (occupation.stereotype == "female"), name
        assert 0 < occupation.percent_women < 100, name


def test_395_pairs_lie_more_than_ten_points_apart() -> None:
    occupations = lexicon.occupations().values()
    male = [occupation for occupation in occupations if occupation.stereotype == "male"]
    female = [occupation for occupation in occupations if occupation.stereotype == "female"]
    near = {(m.name, f.name) for m, f in product(male, female) if f.percent_women - m.percent_women <= 10}
    assert len(male) * len(female) - len(near) == 395
    assert ("salesperson", "editor") in near


def test_the_lexicon_cannot_be_changed_by_a_reader() -> None:
    with pytest.raises(TypeError):
        lexicon.occupations()["wizard"] = lexicon.occupations()["nurse"]  # type: ignore[index]
    with pytest.raises(TypeError):
        lexicon.pronoun_families()["he"].forms["nominative"] = "she"  # type: ignore[index]


def test_occupations_are_those_of_winobias(shared_data: Path) -> None:
    for stereotype, name in (("male", "male_occupations.txt"), ("female", "female_occupations.txt")):
        published = (shared_data / "winobias" / name).read_text(encoding="utf-8").split("\n")
        ours = [row.name.lower() for row in lexicon.occupations().values() if row.stereotype == stereotype]
        assert sorted(filter(None, (line.strip().lower() for line in published))) == sorted(ours)
