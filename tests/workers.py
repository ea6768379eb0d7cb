"""How pytest-xdist deals the tests to several processes: whole files, the long ones first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

# What their files share takes long to make: a cluster, of which a machine should hold one, and the runs on a suite.
WHOLE_FOLDERS = ("tests/ray", "tests/suites")


def portion_of(nodeid: str) -> str:
    """The file of a test, or its folder if that stays in one process."""
    file = nodeid.partition("::")[0]
    return next((folder for folder in WHOLE_FOLDERS if file.startswith(f"{folder}/")), file)


class Workers:
    """A plug-in of pytest, which does nothing unless pytest-xdist is installed and asked for several processes."""

    def pytest_configure(self, config: pytest.Config) -> None:
        """Give each process one thread to compute with, before torch is imported: there are as many as cores."""
        if hasattr(config, "workerinput"):
            os.environ.setdefault("OMP_NUM_THREADS", "1")

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
        """Choose what a process gets at once; None where the command line asks for something else."""
        if config.getvalue("dist") != "loadfile":
            return None
        # It is no requirement of a single process.
        from xdist.scheduler import LoadFileScheduling

        class Portions(LoadFileScheduling):  # type: ignore[misc]
            def _split_scope(self, nodeid: str) -> str:
                return portion_of(nodeid)

        return Portions(config, log)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Put portions with slow tests first, so that no process is left with a long one while the others rest."""
        if hasattr(config, "workerinput"):
            slow = {portion_of(item.nodeid) for item in items if item.get_closest_marker("slow")}
            items.sort(key=lambda item: portion_of(item.nodeid) not in slow)
