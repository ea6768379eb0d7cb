"""Tells which options a stereotype names, from a researcher's list of roles and the groups that they are taken for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from biasboard.ground.errors import ConfigError
from biasboard.ground.plain_text import listed, printable
from builders.dataset.own_csv import Form, OwnRow, OwnTable, read_tables

_FORM = Form(
    columns={
        "role": ("role", "occupation", "word", "name", "option"),
        "group": ("group", "stereotype", "gender", "demographic"),
    },
    needed=((("role",), "the role"), (("group",), "the group that it is taken for")),
    what="roles",
    option="--roles",
)
_MOST_NAMED = 6
OptionsOf = Callable[[Mapping[str, str]], Sequence[str]]
"""Function that returns the options of a row."""


class Roles:
    """Roles, such as occupations, and the group that a stereotype takes each for."""

    def __init__(self, path: Path) -> None:
        """Read a file.

        Raises:
            ConfigError: a role has two groups.
            DataError: the file is missing, cannot be read, or lacks a column.
        """
        (self.table,) = read_tables(_FORM, [path], [])
        groups: dict[str, str] = {}
        for row in self.table.rows:
            role, group = row.values.get("role", "").casefold(), row.values.get("group", "")
            if role and group and groups.setdefault(role, group).casefold() != group.casefold():
                shown = printable(role, most=40)
                both = f"{groups[role]} and for {group}"
                raise ConfigError(f"--roles {path.name}: '{shown}' is taken for {both}; keep one")
        if not groups:
            raise ConfigError(f"--roles {path.name}: no row has a role and a group; write one for each role")
        self._groups: Mapping[str, str] = groups
        # The longest first, so that "construction worker" is no worker.
        names = sorted(groups, key=lambda role: (-len(role), role))
        self._named = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")

    def sided(self, tables: Sequence[OwnTable], options_of: OptionsOf) -> list[OwnTable]:
        """Return tables whose rows name the stereotyped and the antistereotyped option, where the roles tell them.

        The stereotyped option is the one with a role taken for the item's group, the antistereotyped one that with a
        role taken for another; where one is found and a single other option could be the other side, it is that. Rows
        that name a side, or whose group no role is taken for, stay as they are.

        Raises:
            ConfigError: no role is taken for a group of the items.
        """
        known = {group.casefold() for group in self._groups.values()}
        rows = [row for table in tables for row in table.rows]
        groups = dict.fromkeys(group for row in rows if (group := row.values.get("group")))
        if not any(group.casefold() in known for group in groups):
            of_roles = listed(sorted({*self._groups.values()}), most=_MOST_NAMED)
            of_items = listed([printable(group, most=40) for group in groups], most=_MOST_NAMED) or "none"
            raise ConfigError(
                f"--roles {self.table.name}: roles are taken for {of_roles}, and the groups of the items are "
                f"{of_items}; name groups alike in both files"
            )
        # An option such as "Unknown" that stands in all rows is no person.
        common = set.intersection(*({option.casefold() for option in options_of(row.values)} for row in rows))
        nobody = {option for option in common if not self._named.search(option)}
        return [
            table._replace(rows=tuple(self._row(row, known, nobody, options_of) for row in table.rows))
            for table in tables
        ]

    def _row(self, row: OwnRow, known: set[str], nobody: set[str], options_of: OptionsOf) -> OwnRow:
        group = row.values.get("group", "").casefold()
        if group not in known or row.values.get("stereotyped") or row.values.get("antistereotyped"):
            return row
        options, neutral = options_of(row.values), row.values.get("neutral", "").casefold().strip("().")
        letters = {chr(ord("a") + number): option for number, option in enumerate(options)}
        left = {*nobody, neutral, letters.get(neutral, "").casefold()}
        people = [option for option in options if option.casefold() not in left]
        sides: dict[bool, list[str]] = {True: [], False: []}
        for option in people:
            taken_for = {self._groups[role].casefold() for role in self._named.findall(option.casefold())}
            if len(taken_for) == 1:
                sides[group in taken_for].append(option)
        for side, other in (sides[True], sides[False]), (sides[False], sides[True]):
            if len(side) == 1 and not other and len(people) == 2:
                other += [option for option in people if option not in side]
        if not len(sides[True]) == len(sides[False]) == 1:
            return row
        found = {"stereotyped": sides[True][0], "antistereotyped": sides[False][0]}
        return row._replace(values={**row.values, **found})
