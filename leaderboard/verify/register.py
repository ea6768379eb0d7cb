"""Reads and writes the register of accepted results, which maintainers keep in the same folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from biasboard.ground import strict_json
from biasboard.ground.errors import DataError
from schemas.documents.base import SCHEMA_VERSION
from schemas.documents.board import Acceptance, Register
from schemas.files import contract
from schemas.folders.run_folder import REGISTER


def read_register(results: Path) -> Register:
    """Read the register in a folder of accepted results; without a file it is empty.

    Raises:
        DataError: the file is invalid, or names a folder twice.
    """
    path = results / REGISTER
    if not path.is_file():
        return Register(schema_version=SCHEMA_VERSION, results=())
    return contract.read(path, Register)


def write_register(results: Path, register: Register) -> None:
    """Check a register and write it into a folder of accepted results, sorted by the results' folders.

    Raises:
        DataError: the register is invalid; nothing is written.
    """
    ordered = Register(
        schema_version=register.schema_version,
        results=tuple(sorted(register.results, key=lambda acceptance: acceptance.place)),
    )
    contract.check(ordered, where=str(results / REGISTER))
    strict_json.write(results / REGISTER, contract.dump(ordered))


def acceptances(register: Register) -> Mapping[str, Acceptance]:
    """Return the decisions by the folder of their result."""
    return {acceptance.place: acceptance for acceptance in register.results}


def check_owner(register: Register, place: str, author: str) -> None:
    """Check that an author may submit a result of a model: either nobody has submitted one before, or the author has.

    Args:
        register: The register.
        place: Folder of the result, relative to that of all results; its second part is named after the model.
        author: Account of the author at the code host.

    Raises:
        DataError: the model belongs to somebody else.
    """
    model = _model_folder(place)
    owners = {acceptance.owner for acceptance in register.results if _model_folder(acceptance.place) == model}
    if owners and author not in owners:
        raise DataError(
            f"{place}: results of {model.replace('__', '/')} belong to {', '.join(sorted(owners))}, and the author is "
            f"{author}; ask the owner, or a maintainer to settle it"
        )


def _model_folder(place: str) -> str:
    parts = place.split("/")
    return parts[1] if len(parts) > 1 else parts[0]
