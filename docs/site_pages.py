"""Adds to the site the pages that docs/ does not hold: a hook of MkDocs.

These are the README and the other pages of the repository's root, and for each package that exports
names a page of their docstrings. In the nav, a folder that ends in a slash
stands for all of its pages, in order.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("compat", "experiments", "models")
# Pages of the root, by their place in the site.
ROOT_PAGES = {
    "start.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "report.md": "SECURITY.md",
}
_DOCSTRING_ONLY = """
    options: {members: false, show_root_heading: false, show_root_toc_entry: false}"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages, and puts those of whole folders in the nav."""
    for page, source in ROOT_PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    for name, text in reference_pages():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    pages = [file.src_uri for file in files.documentation_pages()]
    pages.sort(key=lambda page: page[: -len(".md")])  # `a` before `a.b`.
    config.nav = expanded(config.nav, pages)
    return files


def expanded(entry: Any, pages: list[str]) -> Any:
    """Returns an entry of the nav with each folder's pages in its place."""
    if isinstance(entry, dict):
        return {title: expanded(part, pages) for title, part in entry.items()}
    if isinstance(entry, list):
        return [expanded(part, pages) for part in entry]
    return [page for page in pages if page.startswith(entry)] if entry.endswith("/") else entry


def reference_pages() -> Iterator[tuple[str, str]]:
    """Yields each package that exports names, as in `compat.datasets`, and its page."""
    for init in [init for name in PACKAGES for init in (ROOT / name).rglob("__init__.py")]:
        package = ".".join(init.parent.relative_to(ROOT).parts)
        origins = [f"::: {origin(package, name)}" for name in exported(package)]
        if origins and "._" not in package:
            shown = [f"# {package}", f"::: {package}{_DOCSTRING_ONLY}", *origins]
            yield package, "\n\n".join(shown)


def parse(package: str) -> ast.Module:
    """Returns the source of a package, which is not imported."""
    init = ROOT.joinpath(*package.split("."), "__init__.py")
    return ast.parse(init.read_text(encoding="utf-8") if init.exists() else "")


def exported(package: str) -> list[str]:
    """Returns `__all__` of a package."""
    for node in parse(package).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def origin(package: str, name: str) -> str:
    """Returns where a name is defined, which tells `load` from the module that it is in."""
    for node in parse(package).body:
        # What a package imports from itself is one of its modules.
        if isinstance(node, ast.ImportFrom) and node.module != package:
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return origin(str(node.module), alias.name)
    return f"{package}.{name}"
