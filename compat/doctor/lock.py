"""`python -m compat lock`: writes the packages of a script as constraints and a container file.

Reads the script, the modules beside it, and the list of installed packages; runs none of their
code.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shlex
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Iterator, NamedTuple

from compat.doctor import constraints
from compat.doctor.audit import audit
from compat.errors import Parser, UserError
from compat.scripts.reading import conversion

_PROJECT = "compat-experiments"
_OURS = ("compat", "experiments", "models")
_STANDARD = tuple(
    os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")
)
_PLAIN = re.compile(r"\w[\w./+@-]*|\.\.?/[\w./+@-]*")
# These have a meaning for Docker or for the shell, on at least one line of the file.
_SPECIAL = set("$*?[]\\\"'`")
_CONTAINER = """\
# Runs {script} with the packages of constraints.txt. From the folder of the script, with
# the wheel of {project} {version} in {folder}, as `pip wheel --no-deps` makes it:
#   docker build -f {quoted}/Containerfile -t {name} .
FROM python:{python}-slim
WORKDIR /program
{copied}
RUN pip install --no-cache-dir --find-links {quoted} --constraint {quoted}/constraints.txt \\
    {packages}
{copies}
ENTRYPOINT [{command}]
"""


def main(argv: list[str]) -> int:
    """Runs the command line of `lock`; returns the exit code."""
    parser = Parser(
        prog="python -m compat lock",
        description=(__doc__ or "").partition("\n")[0].partition(": ")[2],
        epilog="exit code: 0 if both files are written, 2 if something is wrong, and none is",
        allow_abbrev=False,
    )
    parser.add_argument("script", help="a script, of any TensorFlow, or a migrated one")
    parser.add_argument("--output", help="folder of the files (default: SCRIPT.lock, beside it)")
    parser.add_argument("--no_audit", action="store_true", help="ask for no vulnerabilities")
    options = parser.parse_args(argv)
    script = Path(options.script)
    folder = Path(options.output or script.with_suffix(".lock"))
    program = _Program(script)
    pins = sorted(constraints.closure({*program.packages, _own()}))
    lines = [f"{name}=={constraints.version(name)}" for name in pins]
    container = _container(script, folder, program)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "constraints.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "Containerfile").write_text(container, encoding="utf-8")
    print(f"{script}: {len(program.files)} files need {', '.join(sorted(program.packages))}")
    print(f"wrote {folder / 'constraints.txt'}, {len(lines)} packages, and Containerfile")
    if not options.no_audit:
        _print_known([line for line in lines if not line.startswith(_PROJECT)])
    return 0


class _Import(NamedTuple):
    name: str
    place: str
    is_optional: bool  # Whether the import is in a `try`.


class _Program:
    """A script with the modules beside it: its `files`, and the `packages` that they import."""

    def __init__(self, script: Path) -> None:
        self.files: list[Path] = []
        self.packages: set[str] = set()
        self.is_migrated = False
        self._folder = script.parent
        self._read(script)

    def _read(self, file: Path) -> None:
        self.files.append(file)
        for imported in _imports(file):
            top = imported.name.partition(".")[0]
            self.is_migrated = self.is_migrated or imported.name.startswith("compat.v1")
            beside = [self._folder / f"{top}.py", *self._folder.glob(f"{top}/**/*.py")]
            modules = [path for path in beside if path.is_file()]
            if modules:
                for path in modules:
                    if path not in self.files:
                        self._read(path)
            elif top in _OURS:
                continue  # These packages are always installed.
            elif top in constraints.owners():
                self.packages.add(constraints.owners()[top])
            elif not (imported.is_optional or _is_standard(top)):
                raise UserError(
                    f"{imported.place} imports {top}, which is not installed here, nor beside the "
                    "script; install it, or remove the import, and lock again"
                )


def _imports(file: Path) -> Iterator[_Import]:
    """Yields the imports of a file; code of Python 2 is converted to Python 3 first."""
    for part in conversion.read(str(file)):
        try:
            tree = part.tree()
        except SyntaxError as error:
            raise UserError(
                f"{part.filename}:{error.lineno} is not Python ({error.msg}); correct the line"
            ) from None
        tried = {id(n) for t in ast.walk(tree) if isinstance(t, ast.Try) for n in ast.walk(t)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                yield _Import(name, f"{part.filename}:{node.lineno}", id(node) in tried)


def _is_standard(top: str) -> bool:
    spec = importlib.util.find_spec(top)
    if spec is None:
        return False
    origin = spec.origin or ""  # "built-in", or a path.
    return not os.path.isabs(origin) or os.path.realpath(origin).startswith(_STANDARD)


def _own() -> str:
    if constraints.version(_PROJECT) is None:
        raise UserError(f"{_PROJECT} is not installed here; install it with pip, and lock again")
    return f"{_PROJECT}[scripts]"


def _container(script: Path, folder: Path, program: _Program) -> str:
    place = _relative(folder, script)
    run = [] if program.is_migrated else ["-m", "compat", "run"]
    command = ["python", *run, script.name]
    packages = sorted({*program.packages, _PROJECT if program.is_migrated else _own()})
    return _CONTAINER.format(
        script=script.name,
        project=_PROJECT,
        version=constraints.version(_PROJECT),
        folder=place,
        quoted=shlex.quote(place),
        copied=_copy(place),
        name=re.sub(r"[^a-z0-9]+", "-", script.stem.lower()).strip("-") or "program",
        python="{}.{}".format(*sys.version_info[:2]),
        packages=" ".join(f"'{name}'" for name in packages),
        copies="\n".join(_copy(_relative(file, script)) for file in program.files),
        command=", ".join(json.dumps(word, ensure_ascii=False) for word in command),
    )


def _relative(path: Path, script: Path) -> str:
    """Returns a path relative to the script's folder.

    Raises:
      UserError: A container file cannot contain the path.
    """
    relative = Path(os.path.relpath(path, script.parent)).as_posix()
    if not relative.isprintable() or set(relative) & _SPECIAL:
        raise UserError(
            f"file {relative!r} has a character in its name that a container file has no way to "
            f"write, expected none of {' '.join(sorted(_SPECIAL))} and no line end; rename it"
        )
    return relative


def _copy(path: str) -> str:
    """Returns the line of a container file that copies a file to the same place in the image."""
    if _PLAIN.fullmatch(path):
        return f"COPY {path} {path}"
    return f"COPY {json.dumps([path, path], ensure_ascii=False)}"


def _print_known(locked: list[str]) -> None:
    """Prints known vulnerabilities of TensorFlow 1.15 and of the locked packages."""
    if importlib.util.find_spec("pip_audit") is None:
        print("vulnerabilities: pip-audit is not installed; pip install pip-audit, and lock again")
        return
    pins = constraints.file("1.15").read_text(encoding="utf-8").splitlines()
    old = [line.replace(" ", "") for line in pins if " ==" in line]
    with tempfile.TemporaryDirectory(prefix="compat-lock-") as scratch:
        packages = Path(scratch, "packages.txt")
        for title, exact in (("TensorFlow 1.15", old), ("what is locked", locked)):
            packages.write_text("\n".join(exact) + "\n", encoding="utf-8")
            lines, code = audit(packages)
            unknown = [line for line in lines if ": unknown: " in line]
            known = [line for line in lines if line not in unknown]
            print(f"vulnerabilities of {title}: {len(known) if code in (0, 1) else 'not learnt'}")
            if unknown:
                known.append(f"{len(unknown)} of {len(exact)} packages unknown, as {unknown[0]}")
            print("".join(f"  {line}\n" for line in known), end="")
