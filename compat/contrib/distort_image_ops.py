"""`tf.contrib.image.python.ops.distort_image_ops`: hue, saturation and value in the YIQ space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compat._tensorflow import tf1

_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])


def adjust_hsv_in_yiq(
    image: Any,
    delta_hue: Any = 0,
    scale_saturation: Any = 1,
    scale_value: Any = 1,
    name: str | None = None,
) -> Any:
    """Returns images `[..., 3]`: hue rotated (in radians), saturation and value scaled."""
    with tf1.name_scope(name, "adjust_hsv_in_yiq", [image]):
        image = tf1.convert_to_tensor(image)
        pixels = tf1.image.convert_image_dtype(image, tf1.float32)
        value = tf1.cast(scale_value, tf1.float32)
        colour = value * tf1.cast(scale_saturation, tf1.float32)
        turned = colour * tf1.cos(tf1.cast(delta_hue, tf1.float32))
        across = colour * tf1.sin(tf1.cast(delta_hue, tf1.float32))
        zero = tf1.zeros_like(value)
        rows = [[value, zero, zero], [zero, turned, -across], [zero, across, turned]]
        to_yiq = tf1.constant(_YIQ, tf1.float32)
        back = tf1.constant(np.linalg.inv(_YIQ), tf1.float32)
        matrix = tf1.matmul(back, tf1.matmul(tf1.stack([tf1.stack(row) for row in rows]), to_yiq))
        changed = tf1.tensordot(pixels, matrix, [[-1], [1]])
        changed.set_shape(image.shape)
        return tf1.image.convert_image_dtype(changed, image.dtype, saturate=True)


def random_hsv_in_yiq(
    image: Any,
    max_delta_hue: float = 0,
    lower_saturation: float = 1,
    upper_saturation: float = 1,
    lower_value: float = 1,
    upper_value: float = 1,
    seed: int | None = None,
) -> Any:
    """Returns images, adjusted by random amounts within the bounds; 1 for hue means pi radians."""
    bounds = [
        (-max_delta_hue * math.pi, max_delta_hue * math.pi),
        (lower_saturation, upper_saturation),
        (lower_value, upper_value),
    ]
    hue, saturation, value = (
        low if low == high else tf1.random_uniform([], low, high, seed=seed) for low, high in bounds
    )
    return adjust_hsv_in_yiq(image, hue, saturation, value)
