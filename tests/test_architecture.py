"""The structure that the code keeps: who imports whom, what a package shows, how long a file is.

Read from the source, so that nothing is imported here; the edge is, in processes of its own.
"""

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
MAX_LINES = 300
SCRIPTS = "compat.scripts"
VAGUE_NAMES = {"common", "helper", "helpers", "misc", "util", "utils"}
EDGE = (
    "compat",
    "compat.cluster",
    "compat.doctor",
    "compat.scripts.check",
    "compat.scripts.convert_checkpoint",
    "compat.scripts.run",
    "compat.scripts.serve",
    "experiments.datasets",
    "experiments.launch",
    "experiments.matpow",
    "experiments.metrics",
    "experiments.mnist",
    "experiments.shared_queue",
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


def breaches(importer: str, imported: str) -> list[str]:
    """Returns "a imports b" for each module a within `importer` and b within `imported`.

    The commands that run old scripts are a program on top of all, not part of the library.
    """
    return [
        f"{module} imports {name}"
        for module in SOURCES
        if within(module, importer) and not (within(module, SCRIPTS) and importer != SCRIPTS)
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
        return original not in definitions(source) or is_documented(source, original)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return ast.get_docstring(node) is not None
    return True  # A constant, which its module explains.


def exported(module: str) -> list[str]:
    """Returns `__all__` of `module`, in its order; empty where there is none."""
    node = definitions(module).get("__all__")
    return list(ast.literal_eval(node.value)) if isinstance(node, ast.Assign) else []


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("compat", "models"),
        ("compat", "compat.scripts"),
        ("compat", "experiments"),
        ("compat.scripts", "models"),
        ("models", "experiments"),
        ("compat.legacy", "compat.modern"),
        ("compat.modern", "compat.legacy"),
    ],
)
def test_imports_point_one_way(importer: str, imported: str) -> None:
    assert any(within(module, importer) for module in SOURCES)
    assert breaches(importer, imported) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_tensorflow_is_imported_in_one_file(package: str) -> None:
    allowed = "compat._tensorflow imports"
    found = breaches(package, "tensorflow")
    assert [breach for breach in found if not breach.startswith(allowed)] == []


@pytest.mark.parametrize("module", EDGE)
def test_edge_starts_without_tensorflow_and_mlflow(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'mlflow', 'tensorflow'}} & set(sys.modules)))"
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (process.stdout, process.stderr) == ("[]\n", "")


@pytest.mark.parametrize("file", FILES)
def test_file_fits_on_few_pages(file: str) -> None:
    lines = (ROOT / file).read_text(encoding="utf-8").count("\n")
    assert lines <= MAX_LINES


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
