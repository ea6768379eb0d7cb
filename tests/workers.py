"""How pytest-xdist deals the tests to several processes: whole files, the long ones first."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

# There are as many processes as cores. It is read when numpy is imported, which the conftest.py of a folder may do that
# the command line names: with two threads each, simulations took ten times the processor time.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# What their files share takes long to make: a cluster, of which a machine should hold one, and the runs on a suite.
WHOLE_FOLDERS = ("tests/ray", "tests/suites")


def portion_of(nodeid: str) -> str:
    """The file of a test, or its folder if that stays in one process."""
    file = nodeid.partition("::")[0]
    return next((folder for folder in WHOLE_FOLDERS if file.startswith(f"{folder}/")), file)


class Workers:
    """A plug-in of pytest, which collects faster, and deals tests where pytest-xdist is asked for several processes."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Import all tests without looking for garbage, of which they make none: 14 s of processor time, not 20."""
        gc.disable()
        try:
            return (yield)
        finally:
            gc.freeze()
            gc.enable()

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
