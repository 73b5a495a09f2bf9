"""The structure that the code keeps: which room imports which, and what a package shows.

Read from the source, so that nothing is imported here; the edge is, in processes of its own."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("compat", "experiments", "models")
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}
INITS = [module for module in SOURCES if module.endswith(".__init__")]
FILES = [
    str(path.relative_to(ROOT))
    for folder in (*PACKAGES, "benchmarks", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
# Each room may import from itself and from those below it.
ROOMS = (
    "experiments",
    "experiments.report",
    "experiments.export",
    "experiments.training",
    "experiments.training.recording",
    "experiments.evaluation",
    "experiments.launching",
    "experiments.settings",
    "experiments.classics.calculations",
    "experiments.datasets",
    "models",
    "compat.__main__",
    "compat.doctor",
    "compat.v1",
    "compat.scripts.commands",
    "compat.scripts.proving",
    "compat.scripts.commands.run",  # Also runs a side of a proof.
    "compat.scripts.migrating",
    "compat.scripts.clusters",
    "compat.scripts.rules",
    "compat.scripts.shims",
    "compat.scripts.view",  # Finds shims by the names in its tables.
    "compat.scripts.reading",
    "compat.scripts.names",
    "compat.scripts",
    "compat.contrib",
    "compat.contrib.tutorials",
    "compat.datasets",
    "compat.checkpoint.converting",
    "compat.tracking.mlflow",
    "compat.tracking.tensorboard",
    "compat.tracking",
    "compat.processes",
    "compat.estimator",
    "compat.runtime.legacy",
    "compat.runtime.modern",
    "compat.runtime.program",
    "compat",
    "compat.runtime",
    "compat.runtime.graphs",
    "compat.checkpoint",
    "compat.cluster.liveness",
    "compat.cluster",
    "compat._tensorflow",
    "compat.contrib.era",
    "compat.errors",
)
MOST_ENTRIES = 15  # A newcomer finds a file in a list of this length.
CATALOGS = {"compat/contrib"}  # Its files are of one kind: a part of `tf.contrib`.
KINDS = ("compat.runtime.legacy", "compat.runtime.modern")  # Of runtimes.
VAGUE_NAMES = {"common", "helper", "helpers", "misc", "util", "utils"}
EDGE = (
    "compat",
    "compat.cluster.environment",
    "compat.doctor",
    "compat.scripts.commands.check",
    "compat.checkpoint.converting.command",
    "compat.scripts.commands.migrate",
    "compat.scripts.commands.prove",
    "compat.scripts.commands.run",
    "compat.scripts.commands.serve",
    "compat.datasets",
    "experiments.launch",
    "experiments.launching.launcher",
    "experiments.export.__main__",
    "experiments.classics.matpow",
    "compat.tracking",
    "compat.v1",
    "experiments.mnist",
    "experiments.export.predict",
    "experiments.recommender",
    "experiments.report.__main__",
    "experiments.classics.shared_queue",
    "experiments.sweep",
)


def parse(module: str) -> ast.Module:
    return ast.parse(SOURCES[module].read_text(encoding="utf-8"))


def origin(module: str, node: ast.ImportFrom) -> str:
    """Returns the absolute name of what `node`, in `module`, imports from."""
    parents = module.split(".")[: -node.level] if node.level else []
    return ".".join([*parents, *filter(None, [node.module])])


def dynamic_import(node: ast.Call) -> str:
    """Returns the name in a call such as `importlib.import_module("name")`, else nothing."""
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if called not in ("import_module", "__import__") or not node.args:
        return ""
    try:
        return str(ast.literal_eval(node.args[0]))
    except ValueError:  # A name that only running the module tells.
        return ""


def imports(module: str) -> set[str]:
    """Returns what `module` imports anywhere: `a.b` and `a.b.c` for `from a.b import c`."""
    found: set[str] = set()
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = origin(module, node)
            found.add(source)
            found.update(f"{source}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call):
            found.add(dynamic_import(node))
    return found


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def room(module: str) -> str:
    """Returns the innermost of `ROOMS` that `module` is in."""
    return max((name for name in ROOMS if within(module, name)), key=len)


def imported_modules(module: str) -> set[str]:
    """Returns the modules of ours that `module` imports, also for types alone."""
    found = imports(module)
    packages = {f"{name}.__init__" for name in found} & set(SOURCES)
    return (found & set(SOURCES)) | {
        # `from compat.cluster import ports` is about the module, not about its package.
        package
        for package in packages
        if not any(within(name, package[: -len(".__init__")]) for name in found & set(SOURCES))
    }


def breaches(importer: str, imported: str) -> list[str]:
    """Returns "a imports b" for each module a within `importer` and b within `imported`."""
    return [
        f"{module} imports {name}"
        for module in SOURCES
        if within(module, importer)
        for name in sorted(imports(module))
        if within(name, imported)
    ]


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements of a module, also those under `if` and `try`."""
    for statement in body:
        yield statement
        for part in ("body", "orelse", "handlers", "finalbody"):
            if isinstance(statement, (ast.If, ast.Try)):
                yield from statements(getattr(statement, part, []))


def definitions(module: str) -> dict[str, ast.stmt]:
    """Returns each name that `module` defines or takes from our packages, with its statement."""
    found: dict[str, ast.stmt] = {}
    for node in statements(parse(module).body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update((target.id, node) for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom) and origin(module, node).split(".")[0] in PACKAGES:
            found.update((alias.asname or alias.name, node) for alias in node.names)
    return found


def is_documented(module: str, name: str) -> bool:
    """Tells whether the function or class `name`, wherever it is from, has a docstring."""
    node = definitions(module).get(name)
    if isinstance(node, ast.ImportFrom):
        source = origin(module, node)
        original = next(a.name for a in node.names if (a.asname or a.name) == name)
        source = source if source in SOURCES else source + ".__init__"
        is_package = f"{origin(module, node)}.{original}.__init__" in SOURCES
        return is_package or original not in definitions(source) or is_documented(source, original)
    is_constant = not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    return is_constant or ast.get_docstring(node) is not None  # Its module explains a constant.


def exported(module: str) -> list[str]:
    """Returns `__all__` of `module`, in its order; empty where there is none."""
    node = definitions(module).get("__all__")
    return list(ast.literal_eval(node.value)) if isinstance(node, ast.Assign) else []


@pytest.mark.parametrize("module", SOURCES)
def test_imports_point_downwards(module: str) -> None:
    """A package's `__init__` shows what is in it, so that may come from rooms within."""
    own = module[: -len(".__init__")] if module.endswith(".__init__") else ""
    wrong = [
        f"{module} in {room(module)} imports {name} in {room(name)}"
        for name in sorted(imported_modules(module))
        if ROOMS.index(room(name)) < ROOMS.index(room(module)) and not (own and within(name, own))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("compat", "models"),
        ("compat", "experiments"),
        ("models", "experiments"),
        *((name, "models") for name in ROOMS if name.startswith("experiments.")),
        KINDS,
        KINDS[::-1],
    ],
)
def test_package_does_without(importer: str, imported: str) -> None:
    assert any(within(module, importer) for module in SOURCES)
    assert breaches(importer, imported) == []


def test_a_kind_of_runtime_is_known_to_itself_alone() -> None:
    """All others have it from the registry."""
    found = [b for package in PACKAGES for kind in KINDS for b in breaches(package, kind)]
    assert [breach for breach in found if not breach.startswith(KINDS)] == []


def test_modules_import_each_other_in_no_circle() -> None:
    """Nor for types."""
    waiting = {module: imported_modules(module) - {module} for module in SOURCES}
    while True:
        free = {module for module, needed in waiting.items() if not needed & set(waiting)}
        if not free:
            break
        waiting = {module: needed for module, needed in waiting.items() if module not in free}
    assert waiting == {}


FOLDERS = {str(path.parent.relative_to(ROOT)) for path in SOURCES.values()}


@pytest.mark.parametrize("folder", sorted(FOLDERS - CATALOGS))
def test_room_is_not_crowded(folder: str) -> None:
    entries = {
        path.name
        for path in (ROOT / folder).iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__.py", "__main__.py"}  # Python gives these their names and places.
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


@pytest.mark.parametrize("package", PACKAGES)
def test_tensorflow_is_imported_in_one_room(package: str) -> None:
    allowed = "compat._tensorflow."
    # Old scripts are shown private parts of TensorFlow, which are served by name. A model that is
    # logged to MLflow is loaded where this package is not.
    others = "compat.scripts.", "compat.contrib.", "compat.tracking.mlflow.mlflow_loader imports"
    assert not [b for b in breaches(package, "tensorflow") if not b.startswith((allowed, *others))]


@pytest.mark.parametrize("module", EDGE)
def test_edge_starts_without_tensorflow_and_mlflow(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'mlflow', 'tensorflow'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_no_name_is_vague() -> None:
    assert [file for file in FILES if VAGUE_NAMES & set(Path(file).with_suffix("").parts)] == []


def test_every_folder_with_modules_is_a_package() -> None:
    """The wheel leaves out the others."""
    folders = {path.parent for path in SOURCES.values()}
    assert [str(f.relative_to(ROOT)) for f in folders if not (f / "__init__.py").exists()] == []


@pytest.mark.parametrize("package", INITS)
def test_package_exports_its_public_names_sorted(package: str) -> None:
    public = [name for name in definitions(package) if not name.startswith("_")]
    assert exported(package) == sorted(public)


@pytest.mark.parametrize("package", INITS)
def test_what_a_package_exports_is_documented(package: str) -> None:
    assert [name for name in exported(package) if not is_documented(package, name)] == []
