"""Leads the links of the site's pages to pages: a hook of MkDocs.

In the repository a link leads to any of its files. In the site one to the README leads to the page
*Start*, one to a folder to its first page, and one to a file that the site does not have becomes
the name of the file. One that leads nowhere is left to MkDocs, which reports it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
# A link to a file; or code, in which nothing is one.
_LINK_OR_CODE = re.compile(
    r"```.*?```|(?P<image>!?)\[(?P<words>[^\]]+)\]\((?P<path>(?!\w+:)[^)#\s]+)(?P<anchor>#[^)\s]*)?\)|`[^`]+`",
    re.DOTALL,
)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Returns the page's text with its links led to pages."""
    source = page.file.abs_src_path
    if source is None:
        return markdown  # A page of docstrings.
    pages = {Path(file.abs_src_path): file.src_uri for file in files if file.abs_src_path}

    def led(match: re.Match[str]) -> str:
        if match["path"] is None:
            return match[0]
        target = Path(source).parent.joinpath(match["path"]).resolve()
        target = min((path for path in pages if path.parent == target), default=target)
        if target in pages:
            path = posixpath.relpath(pages[target], posixpath.dirname(page.file.src_uri))
            return f"{match['image']}[{match['words']}]({path}{match['anchor'] or ''})"
        if match["image"] or ROOT not in target.parents or not target.exists():
            return match[0]
        name = f"`{target.relative_to(ROOT)}`"
        return name if match["words"].strip("`/") in name else f"{match['words']} ({name})"

    return _LINK_OR_CODE.sub(led, markdown)
