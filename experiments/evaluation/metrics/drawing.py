"""Draws pictures with Pillow, in Matplotlib's font; importing Matplotlib would take longer."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from compat.errors import UserError

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_INK, _RIGHT, _WRONG, _BLUE = (33, 33, 33), (27, 94, 32), (183, 28, 28), (8, 48, 107)
_GAP = 8  # Pixels.
_PAGE = 350  # Width in pixels at which TensorBoard first shows an image.
_LONGEST = 120  # Largest width of a name in pixels.
_MOST_NAMED = 60  # The most classes whose names and numbers are legible.
_TILE = 56  # Longer side of an image in a gallery, in pixels.


def pixels(images: np.ndarray, name: str, rows: Any = slice(None)) -> np.ndarray:
    """Returns images `[n, h, w]` or `[n, h, w, c]` as uint8 `[n, h, w, c]`.

    The images are integers in [0, 255] or floats in [0, 1]. If `rows` is given, only the images at
    these indices are converted and returned. `name` is the name of the images in errors.

    Raises:
      UserError: the images have another shape.
    """
    shaped = images[..., np.newaxis] if images.ndim == 3 else images
    if shaped.ndim != 4 or shaped.shape[3] not in (1, 3, 4):
        raise UserError(
            f"images {name!r} have the shape {list(images.shape)}; return [n, height, width] or "
            "[n, height, width, channels] with 1, 3 or 4 channels"
        )
    shaped = shaped[rows]
    if shaped.dtype.kind == "f":
        shaped = np.round(255 * np.nan_to_num(shaped))
    return np.clip(shaped, 0, 255).astype(np.uint8)


def matrix(counts: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Returns a confusion matrix, `[classes, classes]`, as an image: uint8 `[1, h, w, 3]`.

    A row is a label and a column a prediction. A darker field is a larger share of its row.
    """
    from PIL import Image, ImageDraw

    number, font = len(names), _font(11)
    shown = [_shortened(name, font) for name in names] if number <= _MOST_NAMED else [""] * number
    left = _GAP + max(int(_width(name, font)) for name in shown) + 24
    fits = (_PAGE - left - _GAP) // number
    field = max(28, min(48, fits)) if number <= 30 else max(1, 960 // number)
    # Names of columns are turned by 90 degrees if they are wider than a field.
    upright = max(_width(name, font) for name in shown) > field - 4
    top = left if upright else 48
    image = Image.new("RGB", (left + field * number + _GAP, top + field * number + _GAP), "white")
    draw = ImageDraw.Draw(image)
    middle = field * number / 2
    draw.text((left + middle, _GAP), "predicted", _INK, _font(11, bold=True), anchor="mt")
    _draw_upright(image, (_GAP, top + middle), "label", _font(11, bold=True), "m")
    # The root of a share is drawn, so that even a share of a hundredth is visible.
    shares = np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-12))
    colours = (255 - shares[..., np.newaxis] * (255 - np.array(_BLUE))).astype(np.uint8)
    image.paste(Image.fromarray(colours.repeat(field, axis=0).repeat(field, axis=1)), (left, top))
    for i, j in np.ndindex(*counts.shape) if number <= _MOST_NAMED else ():
        x, y, text = left + j * field, top + i * field, f"{counts[i, j]:.4g}"
        draw.rectangle((x, y, x + field, y + field), outline=(210, 210, 210))
        if counts[i, j] and _width(text, font) <= field - 2:
            ink = "white" if shares[i, j] > 0.6 else _INK
            draw.text((x + field / 2, y + field / 2), text, ink, font, anchor="mm")
    for i, name in enumerate(shown):
        centre = field * i + field / 2
        draw.text((left - 6, top + centre), name, _INK, font, anchor="rm")
        if upright:
            _draw_upright(image, (left + centre, top - 6), name, font, "s")
        else:
            draw.text((left + centre, top - 6), name, _INK, font, anchor="ms")
    return np.asarray(image)[np.newaxis]


def gallery(images: Sequence[np.ndarray], captions: Sequence[tuple[str, str]]) -> np.ndarray:
    """Returns one picture of several images, each with its right and its wrong class below.

    The picture is uint8 `[1, h, w, 3]`. `captions` has the two names for each image.

    Images are uint8 `[h, w, c]` with c = 1 (grey), 3 (RGB) or 4 (RGBA).
    """
    from PIL import Image, ImageDraw

    font = _font(11)
    lines = [(f"is {_shortened(a, font)}", f"not {_shortened(b, font)}") for a, b in captions]
    width = max([_TILE, *(int(_width(line, font)) for pair in lines for line in pair)]) + 12
    height = _TILE + 2 * 14 + 12
    columns = int(np.ceil(np.sqrt(len(images))))
    rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (columns * width + _GAP, rows * height + _GAP), "white")
    draw: ImageDraw = ImageDraw.Draw(sheet)
    for i, (pixel, (right, wrong)) in enumerate(zip(images, lines)):
        x, y = _GAP + i % columns * width, _GAP + i // columns * height
        sheet.paste(_tile(pixel), (x, y))
        draw.text((x, y + _TILE + 2), right, _RIGHT, font)
        draw.text((x, y + _TILE + 15), wrong, _WRONG, font)
    return np.asarray(sheet)[np.newaxis]


def _tile(pixel: np.ndarray) -> Any:
    """Returns an image scaled to a longer side of `_TILE`; when enlarged, its pixels stay sharp."""
    from PIL import Image

    image = Image.fromarray(pixel[:, :, 0] if pixel.shape[2] == 1 else pixel).convert("RGB")
    scale = _TILE / max(image.size)
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    return image.resize(size, Image.NEAREST if scale > 1 else Image.BILINEAR)


@functools.lru_cache(maxsize=None)
def _font(size: int, bold: bool = False) -> Any:
    from PIL import ImageFont

    found = importlib.util.find_spec("matplotlib")  # Found without an import.
    assert found is not None
    assert found.origin is not None
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    path = Path(found.origin).parent / "mpl-data" / "fonts" / "ttf" / name
    return ImageFont.truetype(str(path), size)


@functools.lru_cache(maxsize=4096)  # The same names and numbers at each evaluation.
def _width(text: str, font: Any) -> float:
    return float(font.getbbox(text)[2]) if text else 0.0


def _shortened(name: str, font: Any) -> str:
    """Returns a name in one line, or only its beginning if it is too wide."""
    line = " ".join(name.split())
    if _width(line, font) <= _LONGEST:
        return line
    while _width(line + "…", font) > _LONGEST:
        line = line[:-1]
    return line + "…"


def _draw_upright(image: Any, at: tuple[float, float], text: str, font: Any, anchor: str) -> None:
    """Draws text from the bottom to the top, with its start ("s") or its middle ("m") at `at`."""
    from PIL import Image, ImageDraw

    if text:
        strip = Image.new("RGB", (int(_width(text, font)) + 2, 18), "white")
        ImageDraw.Draw(strip).text((0, 1), text, _INK, font)
        turned = strip.rotate(90, expand=True)
        x, y = (
            (int(at[0]), at[1] - turned.height / 2)
            if anchor == "m"
            else (int(at[0] - turned.width / 2), at[1] - turned.height)
        )
        image.paste(turned, (x, int(y)))
