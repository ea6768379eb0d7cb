"""Checks the installation by package metadata and the system, without large imports."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from packaging.requirements import Requirement

from biasboard.ground.hub import REMEDY, hub_fault, hub_host, hub_is_off
from biasboard.ground.kinds import BACKENDS
from biasboard.ground.plain_text import one_line
from evaluators.models.process_limits import chosen_threads

Status: TypeAlias = Literal["ok", "missing", "problem"]

_DISTRIBUTION = "biasboard"
_FOR_DEVELOPERS = ("bench", "dev")
KEYS = {
    "OPENAI_API_KEY": "needed for api.openai.com and most other endpoints: export OPENAI_API_KEY=...",
    "HF_TOKEN": "needed for gated models of the Hugging Face Hub: export HF_TOKEN=..., or hf auth login",
}
_SECONDS_FOR_DRIVER = 20


class DoctorLine(NamedTuple):
    """A line of the report."""

    name: str
    status: Status
    detail: str
    remedy: str | None = None
    """What to do about a problem; None if there is none."""


def installation() -> list[DoctorLine]:
    """Check everything that can be checked without a model."""
    # pip installs nothing into a Python that is too old.
    python = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    version = importlib.metadata.version(_DISTRIBUTION)
    return [
        DoctorLine("python", "ok", f"{python}, {_DISTRIBUTION} {version}"),
        *extras(),
        _cpu(),
        _threads(),
        _gpu(),
        _hub(),
        *map(_key, KEYS),
    ]


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


def _cpu() -> DoctorLine:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = [f"{cores} cores"]
    for label, name in (("memory", "SC_PHYS_PAGES"), ("of it free", "SC_AVPHYS_PAGES")):
        if name in os.sysconf_names:
            told.append(f"{label} {_gigabytes(os.sysconf(name) * os.sysconf('SC_PAGE_SIZE'))}")
    return DoctorLine("cpu", "ok", ", ".join(told))


def _threads() -> DoctorLine:
    threads = chosen_threads()
    detail = f"{threads.n} for {threads.n_cores} usable cores: {threads.why}"
    if not threads.is_oversubscribed:
        return DoctorLine("threads", "ok", detail)
    remedy = f"unset {threads.variable}, or set it to {threads.n_cores} at most"
    return DoctorLine("threads", "problem", f"{detail}; threads that outnumber cores can be ten times slower", remedy)


def _gpu() -> DoctorLine:
    torch = _version("torch")
    gpus, trouble = _nvidia()
    found = "; ".join(gpus)
    if trouble is not None:
        return DoctorLine("gpu", "problem", trouble, "repair the driver, or use --device cpu")
    if gpus and torch is not None and "+cpu" in torch:
        remedy = "install torch from the index of its CUDA build, see pytorch.org"
        return DoctorLine("gpu", "problem", f"{found}, but torch {torch} is built for CPUs", remedy)
    if gpus and os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return DoctorLine("gpu", "problem", f"{found}, but CUDA_VISIBLE_DEVICES is empty", "unset it")
    if gpus or (sys.platform, platform.machine()) == ("darwin", "arm64"):
        return DoctorLine("gpu", "ok", found or "mps, the GPU of this processor")
    remedy = "use a machine with a GPU for large models"
    return DoctorLine("gpu", "missing", "none found; models run on the CPU", remedy)


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


def _hub() -> DoctorLine:
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE)
    n_models = sum(1 for _ in folder.glob("models--*")) if folder.is_dir() else 0
    existing = next(parent for parent in (folder.resolve(), *folder.resolve().parents) if parent.is_dir())
    detail = f"{n_models} models in {folder}, {_gigabytes(shutil.disk_usage(existing).free)} free"
    if hub_is_off():
        detail = f"not looked for, because HF_HUB_OFFLINE is set: only downloaded models are found; {detail}"
        remedy = "use local folders, or unset HF_HUB_OFFLINE to download models"
        return DoctorLine("hub", "ok", detail) if n_models else DoctorLine("hub", "missing", detail, remedy)
    fault = hub_fault()
    if fault is None:
        return DoctorLine("hub", "ok", f"{hub_host()} answers; {detail}")
    return DoctorLine("hub", "missing", f"{hub_host()} cannot be reached ({fault}); {detail}", REMEDY)


def _key(name: str) -> DoctorLine:
    from huggingface_hub import get_token

    if os.environ.get(name, "").strip():
        return DoctorLine(f"key {name}", "ok", "set")
    if name == "HF_TOKEN" and get_token():
        return DoctorLine(f"key {name}", "ok", "stored by hf auth login")
    return DoctorLine(f"key {name}", "missing", "not set", KEYS[name])


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
