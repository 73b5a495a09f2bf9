"""Functions on images that SciPy 1.3 removed, from its source, and methods that Pillow removed."""

from __future__ import annotations

import importlib
import io
from typing import Any

import numpy as np

_RESAMPLING = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}


def _pillow(module: str = "Image") -> Any:
    return importlib.import_module(f"PIL.{module}")


def what(file: Any, h: bytes | None = None) -> str | None:
    """Returns the format of an image, such as "png", as `imghdr` did; None if it is unknown."""
    try:
        with _pillow().open(file if h is None else io.BytesIO(h)) as image:
            return str(image.format).lower()
    except OSError:
        return None


def bytescale(
    data: Any, cmin: Any = None, cmax: Any = None, high: float = 255, low: float = 0
) -> Any:
    """Returns an array as uint8, scaled linearly so that it ranges from `low` to `high`."""
    if data.dtype == np.uint8:
        return data
    least = data.min() if cmin is None else cmin
    extent = (data.max() if cmax is None else cmax) - least
    scaled = (data - least) * ((high - low) / float(extent or 1)) + low
    return (np.clip(scaled, low, high) + 0.5).astype(np.uint8)


def toimage(
    arr: Any,
    high: float = 255,
    low: float = 0,
    cmin: Any = None,
    cmax: Any = None,
    pal: Any = None,
    mode: str | None = None,
    channel_axis: int | None = None,
) -> Any:
    """Returns an image of an array, `[height, width]` or with 3 or 4 channels, by `bytescale`."""
    data = np.asarray(arr)
    if data.ndim == 2 and mode in ("F", "I"):
        return _pillow().fromarray(data.astype(np.float32 if mode == "F" else np.int32))
    if data.ndim == 2:
        image = _pillow().fromarray(bytescale(data, cmin, cmax, high, low))
        if pal is not None:
            image.putpalette(np.asarray(pal, dtype=np.uint8).tobytes())
        return image if mode in (None, "L", "P") else image.convert(mode)
    axes = [axis for axis in range(data.ndim) if data.shape[axis] in (3, 4)]
    if data.ndim != 3 or not axes:
        raise ValueError("'arr' does not have a suitable array shape for any mode.")
    # The first axis of length 3, or else of length 4, holds the channels.
    axis = min(axes, key=lambda a: data.shape[a]) if channel_axis is None else channel_axis
    image = _pillow().fromarray(
        np.ascontiguousarray(np.moveaxis(bytescale(data, cmin, cmax, high, low), axis, 2))
    )
    return image if mode in (None, image.mode) else image.convert(mode)


def fromimage(im: Any, flatten: bool = False, mode: str | None = None) -> Any:
    """Returns the array of an image; float32 `[height, width]` if flattened."""
    if mode is not None:
        im = im.convert(mode)
    elif im.mode == "P":
        im = im.convert("RGBA" if "transparency" in im.info else "RGB")
    if flatten:
        im = im.convert("F")
    elif im.mode == "1":
        im = im.convert("L")
    return np.array(im)


def imread(name: Any, flatten: bool = False, mode: str | None = None) -> Any:
    """Returns the array of an image file, uint8 `[height, width]` or with channels."""
    with _pillow().open(name) as image:
        return fromimage(image, flatten, mode)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:
    """Saves an array as an image, scaled as by `bytescale`."""
    toimage(arr, channel_axis=2 if np.ndim(arr) == 3 else None).save(name, format)


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None) -> Any:
    """Resizes to a percentage (int), a fraction (float) or `(height, width)`; returns uint8."""
    image = toimage(arr, mode=mode)
    if isinstance(size, (int, np.integer)):
        size = size / 100.0
    if isinstance(size, (float, np.floating)):
        shape = tuple((np.array(image.size) * size).astype(int))
    else:
        shape = (int(size[1]), int(size[0]))
    return fromimage(image.resize(shape, resample=_RESAMPLING[interp]))


def imrotate(arr: Any, angle: float, interp: str = "bilinear") -> Any:
    """Returns an array rotated by degrees, counter-clockwise."""
    return fromimage(toimage(arr).rotate(angle, resample=_RESAMPLING[interp]))


def install() -> None:
    """Adds the methods that Pillow 10 removed, in this process."""
    fonts, drawing = _pillow("ImageFont"), _pillow("ImageDraw").ImageDraw

    def getsize(font: Any, text: str, *args: Any, **kwargs: Any) -> tuple[int, int]:
        return tuple(int(side) for side in font.getbbox(text, *args, **kwargs)[2:])  # type: ignore[return-value]

    def textsize(draw: Any, text: str, *args: Any, **kwargs: Any) -> tuple[int, int]:
        return tuple(int(s) for s in draw.textbbox((0, 0), text, *args, **kwargs)[2:])  # type: ignore[return-value]

    for owner in (fonts.FreeTypeFont, fonts.ImageFont):
        if not hasattr(owner, "getsize"):
            owner.getsize = getsize
    if not hasattr(drawing, "textsize"):
        drawing.textsize = textsize
