"""The layout that CONTRIBUTING.md promises, read from the source."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from biasboard.ground import kinds
from biasboard.ground.plugins import PlugIns
from evaluators.metric import MetricDefinition
from tests.commands import REPOSITORY, run

GROUND = "biasboard.ground"
MAY_IMPORT = {
    GROUND: {GROUND},
    "schemas": {"schemas", GROUND},
    "builders": {"builders", "schemas", GROUND},
    "evaluators": {"evaluators", "schemas", GROUND},
    "leaderboard": {"leaderboard", "evaluators", "schemas", GROUND},
    "biasboard": {"biasboard", "leaderboard", "evaluators", "builders", "schemas", GROUND},
}
PACKAGES = tuple(package for package in MAY_IMPORT if package != GROUND)
# Inside a package each folder may import only those named here; "." is its root. Plug-ins are found by name, so that no
# folder but their own imports them: commands and runs reach tasks, metrics and benchmarks through their interfaces.
FOLDERS: dict[str, dict[str, set[str]]] = {
    "schemas": {
        "documents": set(),
        "lexicon": set(),
        "items": {"documents", "lexicon", "files"},
        "outputs": {"documents", "files"},
        "files": {"documents"},
        "folders": {"documents", "files"},
        ".": {"documents", "files", "folders", "outputs"},
    },
    "builders": {
        "dataset": set(),
        ".": {"dataset"},
        **{
            of: {".", "dataset"}
            for of in ("gifi", "image_labels", "own_prompts", "own_questions", "superni", "synthbias")
        },
        # A labelled text is one task of those that superni has many of, in the same splits.
        "labelled_text": {".", "dataset", "superni"},
    },
    "evaluators": {
        "statistics": set(),
        ".": {"statistics"},
        **{folder: {"."} for folder in ("models", "harnesses", "stores")},
        "calibration": {".", "statistics"},
        "tasks": {".", "statistics"},
        **{f"tasks.{of}": {".", "statistics", "tasks"} for of in ("coreference", "pronouns", "labels")},
        "tasks.own_questions": {".", "statistics", "tasks"},
        "tasks.images": {".", "tasks.labels"},
        # Texts by group are read as texts by pronoun family are.
        "tasks.own_prompts": {".", "statistics", "tasks"},
        "tasks.instructions": {".", "tasks"},
        "backends": {".", "models", "stores"},
        "scorers": {".", "models"},
        "runs": set(),
        "runs.plan": {".", "stores"},
        "runs.measure": {".", "statistics", "runs.plan"},
        "runs.ask": {".", "stores", "runs.plan", "runs.measure"},
        "commands": {".", "models", "stores", "runs.plan", "runs.measure", "runs.ask"},
    },
    "leaderboard": {
        "verify": set(),
        ".": {"verify"},
        "benchmarks": {"."},
        "ranking": {".", "verify"},
        "pages": {".", "verify", "ranking"},
        "formats": {".", "ranking"},
        "publish": {".", "verify", "pages"},
        "commands": {".", "verify", "ranking", "pages"},
    },
    "biasboard": {".": set()},
    GROUND: {".": set()},
}
HEAVY = {
    *("torch", "transformers", "accelerate", "peft", "sentence_transformers", "vllm", "ray", "openai", "PIL"),
    *("mkdocs", "altair", "playwright"),
}


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (REPOSITORY / folder).rglob("*.py"))


def imports(node: ast.AST, *, at_import: bool = True) -> Iterator[tuple[str, bool]]:
    """Everything that a module imports, also by a call, except what only the type checker sees.

    Each with whether it is imported when the file is: False inside functions.
    """
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.Import):
        yield from ((alias.name, at_import) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: relative import; name the package"
        yield node.module or "", at_import
        yield from ((f"{node.module}.{alias.name}", at_import) for alias in node.names)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_extra", "import_module"):
        yield ast.unparse(node.args[0]).strip("'"), at_import
    inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for child in ast.iter_child_nodes(node):
        yield from imports(child, at_import=at_import and not inside)


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """The syntax tree of every module of the packages."""
    paths = {".".join(path.relative_to(REPOSITORY).with_suffix("").parts): path for path in sources(*PACKAGES)}
    return {name.removesuffix(".__init__"): ast.parse(path.read_bytes()) for name, path in paths.items()}


def package_of(module: str) -> str:
    return GROUND if f"{module}.".startswith(f"{GROUND}.") else module.partition(".")[0]


@pytest.mark.slow
def test_packages_import_only_those_to_their_left_and_modules_none_in_a_circle(trees: dict[str, ast.Module]) -> None:
    wrong = [
        f"{module} imports {found}"
        for module, tree in trees.items()
        for found, _ in imports(tree)
        for package in [package_of(found)]
        if package in {*MAY_IMPORT, "tests"} and package not in MAY_IMPORT[package_of(module)]
    ]
    assert wrong == []
    edges = {
        module: {found for found, _ in imports(tree) if found in trees and found != module}
        for module, tree in trees.items()
    }
    assert sum(map(len, edges.values())) > len(MAY_IMPORT), "no import was seen"
    while leaves := [module for module, targets in edges.items() if not targets & set(edges)]:
        for module in leaves:
            del edges[module]
    assert sorted(edges) == []


def folder_of(module: str, trees: dict[str, ast.Module]) -> tuple[str, str]:
    """The package of a module and its room inside: ``("evaluators", "runs.plan")``, "." for the root."""
    package = package_of(module)
    inner = module.removeprefix(package).lstrip(".").split(".")
    rooms = [".".join(inner[:depth]) for depth in (2, 1)]
    folders = [room for room in rooms if room and any(name.startswith(f"{package}.{room}.") for name in trees)]
    return package, next((room for room in folders if room in FOLDERS[package]), folders[-1] if folders else ".")


@pytest.mark.slow
def test_folders_import_only_those_that_their_doors_lead_to(trees: dict[str, ast.Module]) -> None:
    wrong = []
    seen = set()
    for module, tree in trees.items():
        package, folder = folder_of(module, trees)
        assert folder in FOLDERS[package], f"{module}: a new folder; say in FOLDERS what it may import"
        for found, _ in imports(tree):
            target_package, target = folder_of(found, trees) if found in trees else ("", "")
            if target_package == package and target != folder:
                seen.add((package, folder, target))
                if target not in FOLDERS[package][folder]:
                    wrong.append(f"{module} imports {found}")
    assert wrong == []
    doors = {(package, folder, to) for package, inner in FOLDERS.items() for folder, tos in inner.items() for to in tos}
    assert doors - seen == set(), "nobody uses these doors; close them"


def test_folders_of_plug_ins_hold_plug_ins_alone() -> None:
    for plug_ins in [one for one in vars(kinds).values() if isinstance(one, PlugIns) and one is not kinds.BUILDERS]:
        assert plug_ins.names()
        for name in plug_ins.names():
            module = plug_ins.load(name)
            if plug_ins is kinds.METRICS:
                values = list(vars(module).values())
                values += [one for value in values if isinstance(value, tuple) for one in value]
                assert any(isinstance(value, MetricDefinition) for value in values), f"{name} defines no metric"
            else:
                assert plug_ins.defines, f"{plug_ins.package}: any file there is taken for a {plug_ins.word}"


def test_the_docstring_of_a_package_names_its_files() -> None:
    # Plug-ins and commands are known by their names alone.
    ends = ("_task", "_metrics", "_benchmark", "_calibration")
    unnamed = []
    for path in sources(*PACKAGES):
        if path.name == "__init__.py":
            text = ast.get_docstring(ast.parse(path.read_bytes())) or ""
            stems = {file.stem for file in path.parent.glob("*.py") if not file.stem.startswith("__")}
            left = [stem for stem in sorted(stems) if not stem.endswith(ends) and not re.search(rf"\b{stem}\b", text)]
            if len(stems) > 1 and path.parent.name != "commands" and "found by its name" not in text:
                unnamed += [f"{path.parent.relative_to(REPOSITORY)}: {stem}" for stem in left]
    assert unnamed == []


@pytest.mark.slow
def test_heavy_libraries_are_imported_inside_functions_of_one_plug_in_each(trees: dict[str, ast.Module]) -> None:
    users: dict[str, set[str]] = {}
    eager: list[str] = []
    for module, tree in trees.items():
        for found, at_import in imports(tree):
            library = found.partition(".")[0]
            if library in HEAVY:
                # ``backends.vllm.pool`` is a part of ``backends.vllm``.
                is_backend = module.startswith("evaluators.backends.")
                users.setdefault(library, set()).add(".".join(module.split(".")[:3]) if is_backend else module)
                if at_import:
                    eager.append(f"{module} imports {library} when it is imported")
    assert eager == []
    # Every engine is asked in the ids of one tokenizer and its chat template, loaded where no code of a model can run;
    # and a text classifier is no way of calling the model that is scored.
    users["transformers"] -= {
        "evaluators.models.model_files",
        "evaluators.models.chat_template_process",
        "evaluators.scorers.classifier",
    }
    # A model of images and texts is called in another way than a language model, through the same libraries.
    for library in ("torch", "transformers"):
        users[library] -= {"evaluators.backends.clip"}
    assert {library: modules for library, modules in users.items() if len(modules) > 1} == {}


@pytest.mark.slow
def test_parquet_files_are_read_in_the_one_module_that_limits_them(trees: dict[str, ast.Module]) -> None:
    readers = {"ParquetFile", "ParquetDataset", "read_table", "read_parquet", "read_schema", "read_metadata", "dataset"}
    found = {
        (module, ast.unparse(call.func))
        for module, tree in trees.items()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in readers
        if not ast.unparse(call.func).startswith(("arrow_files.", "self."))
    }
    assert found == {("schemas.files.arrow_files", "pq.ParquetFile")}


@pytest.mark.slow
def test_importing_everything_loads_no_heavy_library_and_says_nothing(trees: dict[str, ast.Module]) -> None:
    modules = sorted(module for module in trees if not module.endswith("__main__"))
    program = (
        "import importlib, sys\n"
        f"for name in {modules}: importlib.import_module(name)\n"
        f"loaded = sorted(set(sys.modules) & {HEAVY})\n"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)\n"
    )
    done = run("-W", "error", "-c", program, fresh=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_every_folder_is_distributed_and_every_package_of_the_core_is_used(trees: dict[str, ast.Module]) -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    found = {".".join(path.parent.relative_to(REPOSITORY).parts) for path in sources(*PACKAGES)}
    setuptools = settings["tool"]["setuptools"]
    # Folders of data that have another name in a wheel.
    assert {*setuptools["packages"]} == found | {*setuptools["package-dir"]}
    others = {"pyyaml": "yaml", "markdown-it-py": "markdown_it"}
    names = [entry.partition(">")[0] for entry in settings["project"]["dependencies"]]
    used = {module.partition(".")[0] for tree in trees.values() for module, _ in imports(tree)}
    assert [name for name in names if others.get(name, name.replace("-", "_")) not in used] == []


def test_names_of_files_say_what_they_hold() -> None:
    paths = sources(*PACKAGES, "tests")
    # A folder says to whom a module belongs; an underscore would say "private" and "no plug-in" at once.
    hidden = re.compile(r"_[^_].*")
    assert [path for path in sources(*PACKAGES) if hidden.fullmatch(path.stem)] == []
    vague = {"utils", "util", "common", "helpers", "misc"}
    assert [path for path in paths if {path.stem, path.parent.name} & vague] == []
    # A package of that name would hide a module of the standard library.
    assert list((REPOSITORY / "site").rglob("*.py")) == []
