"""The command ``python -m evaluators doctor``: checks the installation, and compares a backend with a reference."""

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
from typing import Annotated, Literal, NamedTuple, TypeAlias

import typer
from packaging.requirements import Requirement

from biasboard.ground.command_line import EXIT_ERROR, one_line_errors
from biasboard.ground.errors import BiasboardError, ConfigError, MissingExtraError
from biasboard.ground.kinds import BACKENDS
from biasboard.ground.options import finite, with_options
from biasboard.ground.plain_text import one_line
from biasboard.ground.progress import steps
from evaluators.backend import Backend, open_backend
from evaluators.backend_options import BackendOptions
from evaluators.models.model_files import chosen_threads
from evaluators.models.parity import Parity, answers, compare, made_requests, reference_answers, tolerance_for

Status: TypeAlias = Literal["ok", "missing", "problem"]

_DISTRIBUTION = "biasboard"
_FOR_DEVELOPERS = ("bench", "dev")
_MOST_SHOWN = 5


@one_line_errors()
@with_options
def doctor_command(
    backend: Annotated[
        str | None, typer.Option(help="Backend to check; with --model, it is also asked and compared.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model to open and to ask a dozen small requests.")] = None,
    reference: Annotated[
        str | None, typer.Option(help="Hub id or folder of the weights that an endpoint serves, to compare it with.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            callback=finite,
            help="Allowed difference in nats per square root of tokens; by the precision if left out.",
        ),
    ] = None,
    *,
    options: BackendOptions,
) -> None:
    """Check what is installed; with a backend and a model, also compare its scores with those of transformers."""
    if backend is None and (model is not None or options != BackendOptions()):
        raise ConfigError("--model and the options of backends need --backend; 'biasboard list backends' shows them")
    if options.batch:
        raise ConfigError("doctor needs answers at once, and a batch may take a day; leave out --batch")
    with steps("checking the installation") as step:
        checks = installation()
        if backend is not None:
            step(f"checking the backend {backend}", 0, None)
            checks += _of_backend(backend, model, options, reference, tolerance)
    width = max(len(check.name) for check in checks)
    for check in checks:
        remedy = "" if check.remedy is None else f" -> {check.remedy}"
        print(f"{check.status:<8} {check.name:<{width}}  {check.detail}{remedy}")
    if any(check.status == "problem" for check in checks):
        raise typer.Exit(EXIT_ERROR)


def _of_backend(
    name: str, model: str | None, options: BackendOptions, reference: str | None, tolerance: float | None
) -> Iterator[DoctorLine]:
    label = f"backend {name}"
    extra: str | None = BACKENDS.load(name).EXTRA
    if extra is not None:
        checks = extras(extra)
        if any(check.status == "problem" for check in checks):
            yield DoctorLine(label, "problem", checks[0].detail, checks[0].remedy)
            return
    if model is None:
        yield DoctorLine(label, "ok", "its libraries are installed; give --model to open and compare it")
        return
    try:
        opened = open_backend(name, model, options)
        who, can = opened.model, sorted(opened.capabilities)
    except BiasboardError as error:
        yield DoctorLine(label, "problem", str(error), "fix it, or leave out --model to check the rest")
        return
    known = {"revision": who.revision, "precision": who.precision, "device": opened.runtime.device}
    facts = "".join(f", {field} {value}" for field, value in known.items() if value is not None)
    yield DoctorLine(label, "ok", f"opened {who.id}{facts}; can do {', '.join(can) or 'nothing'}")
    yield from _parity(opened, model, options, reference, tolerance)
    for setting, value in sorted(opened.runtime.settings.items()):
        yield DoctorLine(f"setting {setting}", "ok", value)


def _parity(
    opened: Backend, model: str, options: BackendOptions, reference: str | None, tolerance: float | None
) -> Iterator[DoctorLine]:
    def uncompared(reason: object, remedy: str) -> DoctorLine:
        return DoctorLine("parity", "missing", f"cannot be compared: {reason}", remedy)

    endpoint = opened.model.endpoint
    is_here = endpoint == "local" or Path(model).is_dir()
    # The weights that an endpoint serves are never downloaded: they may be far too large.
    if "option_logprobs" not in opened.capabilities:
        yield uncompared("no option log-probabilities here", "nothing to fix: use prompts for what it can do")
    elif reference is None and endpoint in ("baseline", "replay"):
        what = "a baseline is no model" if endpoint == "baseline" else "stored answers ask no model"
        yield uncompared(what, "nothing to fix")
    elif reference is None and not is_here and not _is_downloaded(model):
        yield uncompared("the weights behind the endpoint are not here", "name a folder or a Hub id with --reference")
    elif options.lora is not None:
        yield uncompared("the reference cannot load an adapter", "merge it into the model and compare that")
    else:
        requests = made_requests()
        try:
            # The reference goes first, because the backend may take all memory of a GPU.
            plain = reference_answers(reference or model, options, requests)
        except MissingExtraError as error:
            yield uncompared(error, "pip install 'biasboard[hf]'")
            return
        except BiasboardError as error:
            yield uncompared(error, "name the same weights with --reference")
            return
        try:
            ours = answers(opened, requests)
        except BiasboardError as error:
            yield DoctorLine("parity", "problem", str(error), "fix it and run doctor again")
            return
        precision = opened.model.precision
        allowed = tolerance_for(precision) if tolerance is None else tolerance
        yield from _verdict(compare(requests, ours, plain, allowed), allowed, precision)


def _is_downloaded(model: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(model, "config.json"), str)


def _verdict(parity: Parity, tolerance: float, precision: str | None) -> Iterator[DoctorLine]:
    remedy = "leave such requests out, or take a backend that answers them"
    yield from (DoctorLine("unanswered", "missing", reason, remedy) for reason in parity.unanswered[:_MOST_SHOWN])
    if not parity.n_options or parity.largest_difference is None:
        detail = f"none of {parity.n_requests} requests has log-probabilities on both sides"
        yield DoctorLine("parity", "problem", detail, "see the lines 'unanswered'; take another --api or backend")
        return
    largest = parity.largest_difference
    detail = (
        f"{parity.n_options} options of {parity.n_compared} of {parity.n_requests} requests: largest difference "
        f"{largest:.2g} nats ({parity.largest_at}), {parity.n_equal_decisions} of {parity.n_decisions} decisions equal"
    )
    if parity.n_bounds:
        detail += f"; only a bound is known for {parity.n_bounds} options"
    allowed = f"{tolerance:g} nats per square root of tokens"
    if parity.holds:
        yield DoctorLine("parity", "ok", f"{detail}; allowed in {precision or 'float32'}: {allowed}")
        return
    remedy = "do not mix its results with others; compare tokenizer, chat template and weights"
    if precision is None:
        remedy += "; an endpoint that computes in bfloat16 needs --tolerance 0.3"
    yield DoctorLine("parity", "problem", detail, remedy)
    for line in parity.beyond[:_MOST_SHOWN]:
        yield DoctorLine("beyond", "problem", line, f"more than {allowed}")


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
    return [DoctorLine("python", "ok", f"{python}, {_DISTRIBUTION} {version}"), *extras(), _threads(), _gpu()]


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
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"nvidia-smi gives no answer ({type(error).__name__})"
    if done.returncode != 0:
        return [], f"nvidia-smi: {one_line(done.stdout + done.stderr, most=200)}"
    gpus = []
    for line in done.stdout.splitlines():
        name, total, free, driver = (part.strip() for part in line.split(","))
        gpus.append(f"{name}, {free} of {total} MiB free, driver {driver}")
    return gpus, None
