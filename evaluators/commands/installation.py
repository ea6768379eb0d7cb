"""Checks the installation by package metadata and the system, without large imports."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from packaging.requirements import Requirement

from biasboard.ground import plugins
from biasboard.ground.errors import BiasboardError, ConfigError
from biasboard.ground.hub import REMEDY, hub_fault, hub_host, hub_is_off
from biasboard.ground.kinds import BACKENDS
from biasboard.ground.plain_text import one_line
from evaluators.models.process_limits import chosen_threads
from evaluators.stores.read_only import check_cache, summarise

Status: TypeAlias = Literal["ok", "missing", "problem"]

_DISTRIBUTION = "biasboard"
_FOR_DEVELOPERS = ("bench", "dev")
KEYS = {
    "OPENAI_API_KEY": "needed for api.openai.com and most other endpoints: export OPENAI_API_KEY=...",
    "HF_TOKEN": "needed for gated models of the Hugging Face Hub: export HF_TOKEN=..., or hf auth login",
}
_LEAST_FREE = 1e9
_SECONDS_FOR_DRIVER = 20


class DoctorLine(NamedTuple):
    """A line of the report."""

    name: str
    status: Status
    detail: str
    remedy: str | None = None
    """What to do about a problem; None if there is none."""


def installation(out: Path, cache: Path | None) -> list[DoctorLine]:
    """Check everything that can be checked without a model.

    Args:
        out: Folder of all runs, which must be writable and on a disk with free space.
        cache: File of the cache that runs share; None if there is none.
    """
    # pip installs nothing into a Python that is too old.
    python = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return [
        DoctorLine("python", "ok", f"{python}, {_DISTRIBUTION} {importlib.metadata.version(_DISTRIBUTION)}"),
        *extras(),
        *_devices(),
        _disk(out),
        *_hub(),
        *_keys(),
        *_plug_ins(),
        *([] if cache is None else [_cache(cache)]),
    ]


def _plug_ins() -> Iterator[DoctorLine]:
    name = f"folders of {plugins.VARIABLE}"
    try:
        folders = plugins.added_folders()
    except ConfigError as error:
        yield DoctorLine(name, "problem", str(error), "correct the variable, or unset it")
    else:
        if folders:
            yield DoctorLine(name, "ok", ", ".join(map(str, folders)))


def extra_of(backend: str) -> str | None:
    """Return the name of the extra that a backend needs; None if it needs none.

    Raises:
        ConfigError: there is no such backend.
    """
    extra: str | None = BACKENDS.load(backend).EXTRA
    return extra


def extras(required: str | None = None) -> list[DoctorLine]:
    """Check that the packages of each extra are installed in supported versions.

    Args:
        required: Name of the only extra to check, whose absence is a problem; None to check all extras except those for
            developers.
    """
    needs: dict[str, list[Requirement]] = {}
    for text in importlib.metadata.requires(_DISTRIBUTION) or ():
        requirement = Requirement(text)
        for extra in importlib.metadata.metadata(_DISTRIBUTION).get_all("Provides-Extra") or ():
            marker = requirement.marker
            # A marker may only name a system; such a requirement holds without any extra, and belongs to none.
            if marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
                needs.setdefault(extra, []).append(requirement)
    wanted = [required] if required is not None else [extra for extra in needs if extra not in _FOR_DEVELOPERS]
    return [_extra(extra, needs.get(extra, []), required=extra == required) for extra in wanted]


def _extra(extra: str, needs: list[Requirement], *, required: bool) -> DoctorLine:
    have, absent, wrong = [], [], []
    for requirement in needs:
        version = _version(requirement.name)
        if version is None:
            absent.append(requirement.name)
        elif requirement.specifier.contains(version, prereleases=True):
            have.append(f"{requirement.name} {version}")
        else:
            wrong.append(f"{requirement.name} {version}, needs {requirement.specifier}")
    name, remedy = f"extra {extra}", f"pip install '{_DISTRIBUTION}[{extra}]'"
    if wrong:
        return DoctorLine(name, "problem", "; ".join(wrong), remedy)
    if absent:
        status: Status = "problem" if required else "missing"
        return DoctorLine(name, status, f"not installed: {', '.join(absent)}", remedy)
    return DoctorLine(name, "ok", ", ".join(have))


def _version(distribution: str) -> str | None:
    """Return the installed version of a package, or of another one with the same module; None if missing."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        module = distribution.replace("-", "_")
        if find_spec(module) is None:
            return None
    # For example, the build of vllm for CPUs has another name.
    others = importlib.metadata.packages_distributions().get(module, [])
    return importlib.metadata.version(others[0]) if others else None


def _devices() -> Iterator[DoctorLine]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = ", ".join(_memory())
    yield DoctorLine("cpu", "ok", f"{cores} cores{', ' if memory else ''}{memory}")
    yield _threads()
    torch = _version("torch")
    gpus, trouble = _nvidia()
    if trouble is not None:
        yield DoctorLine("gpu", "problem", trouble, "repair the driver, or use --device cpu")
    elif gpus and torch is not None and "+cpu" in torch:
        detail = f"{'; '.join(gpus)}, but torch {torch} is built for CPUs"
        yield DoctorLine("gpu", "problem", detail, "install torch from the index of its CUDA build, see pytorch.org")
    elif gpus and os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        yield DoctorLine("gpu", "problem", f"{'; '.join(gpus)}, but CUDA_VISIBLE_DEVICES is empty", "unset it")
    elif gpus:
        yield DoctorLine("gpu", "ok", "; ".join(gpus))
    elif (sys.platform, platform.machine()) == ("darwin", "arm64"):
        yield DoctorLine("gpu", "ok", "mps, the GPU of this processor")
    else:
        yield DoctorLine(
            "gpu", "missing", "none found; models run on the CPU", "use a machine with a GPU for large models"
        )


def _threads() -> DoctorLine:
    threads = chosen_threads()
    detail = f"{threads.n} for {threads.n_cores} usable cores: {threads.why}"
    if threads.is_oversubscribed:
        remedy = f"unset {threads.variable}, or set it to {threads.n_cores} at most"
        return DoctorLine(
            "threads", "problem", f"{detail}; threads that outnumber cores can be ten times slower", remedy
        )
    return DoctorLine("threads", "ok", detail)


def _nvidia() -> tuple[list[str], str | None]:
    """Return a line per GPU that the driver reports, and the driver's error, or None if there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return [], None
    query = [program, "--query-gpu=name,memory.total,memory.free,driver_version", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=_SECONDS_FOR_DRIVER, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"nvidia-smi gives no answer ({type(error).__name__})"
    if done.returncode != 0:
        return [], f"nvidia-smi: {one_line(done.stdout + done.stderr, most=200)}"
    gpus = []
    for line in done.stdout.splitlines():
        name, total, free, driver = (part.strip() for part in line.split(","))
        gpus.append(f"{name}, {free} of {total} MiB free, driver {driver}")
    return gpus, None


def _memory() -> Iterator[str]:
    for label, name in (("memory", "SC_PHYS_PAGES"), ("of it free", "SC_AVPHYS_PAGES")):
        if name in os.sysconf_names:
            yield f"{label} {_gigabytes(os.sysconf(name) * os.sysconf('SC_PAGE_SIZE'))}"


def _disk(out: Path) -> DoctorLine:
    existing = next(folder for folder in (out.resolve(), *out.resolve().parents) if folder.is_dir())
    free = shutil.disk_usage(existing).free
    detail = f"{_gigabytes(free)} free for {out}"
    if not os.access(existing, os.W_OK):
        return DoctorLine("disk", "problem", f"{out} cannot be written", "name another folder with --out")
    if free < _LEAST_FREE:
        return DoctorLine("disk", "problem", detail, "make room, or name a folder on another disk with --out")
    return DoctorLine("disk", "ok", detail)


def _hub() -> Iterator[DoctorLine]:
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE)
    n_models = sum(1 for _ in folder.glob("models--*")) if folder.is_dir() else 0
    existing = next(parent for parent in (folder.resolve(), *folder.resolve().parents) if parent.is_dir())
    detail = f"{n_models} models in {folder}, {_gigabytes(shutil.disk_usage(existing).free)} free"
    if hub_is_off():
        state = "not looked for, because HF_HUB_OFFLINE is set: only downloaded models are found"
        if n_models:
            yield DoctorLine("hub", "ok", f"{state}; {detail}")
        else:
            yield DoctorLine(
                "hub", "missing", f"{state}; {detail}", "use local folders, or unset HF_HUB_OFFLINE to download models"
            )
        return
    fault = hub_fault()
    if fault is None:
        yield DoctorLine("hub", "ok", f"{hub_host()} answers; {detail}")
    else:
        yield DoctorLine("hub", "missing", f"{hub_host()} cannot be reached ({fault}); {detail}", REMEDY)


def _keys() -> Iterator[DoctorLine]:
    from huggingface_hub import get_token

    for name, remedy in KEYS.items():
        is_set = bool(os.environ.get(name, "").strip())
        if is_set:
            yield DoctorLine(f"key {name}", "ok", "set")
        elif name == "HF_TOKEN" and get_token():
            yield DoctorLine(f"key {name}", "ok", "stored by hf auth login")
        else:
            yield DoctorLine(f"key {name}", "missing", "not set", remedy)


def _cache(path: Path) -> DoctorLine:
    try:
        check_cache(path)
        if not path.is_file():
            return DoctorLine("cache", "ok", f"{path} does not exist yet; the first run makes it")
        summary = summarise(path)
    except BiasboardError as error:
        return DoctorLine("cache", "problem", str(error), "name another file with --cache or BIASBOARD_CACHE")
    return DoctorLine("cache", "ok", f"{summary.n_answers} answers of {len(summary.models)} models in {path}")


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
