"""Makes HTML and SVG elements, and escapes every text in them.

>>> element("p", "1 < 2", element("b", "!"), class_="note")
'<p class="note">1 &lt; 2<b>!</b></p>'
"""

from __future__ import annotations

import html
from typing import Union

_EMPTY = {"img", "meta"}  # Elements without an end tag, in HTML.


class Markup(str):
    """A text that is HTML or SVG, and is not escaped."""


Part = Union[str, float]


def element(tag: str, *children: Part, **attributes: Part) -> Markup:
    """Returns an element; `class_` and `data_x` are the attributes class and data-x."""
    words = [tag]
    for name, value in attributes.items():
        name = name.rstrip("_").replace("_", "-")
        words.append(f'{name}="{html.escape(_text(value))}"')
    start = f"<{' '.join(words)}>"
    return Markup(start if tag in _EMPTY else f"{start}{joined(children)}</{tag}>")


def joined(children: tuple[Part, ...] | list[Part] | list[Markup]) -> Markup:
    """Returns children one after the other; those that are not `Markup` are escaped."""
    return Markup(
        "".join(part if isinstance(part, Markup) else html.escape(_text(part)) for part in children)
    )


def _text(value: Part) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
