"""`tf.contrib.image`: projective transforms.

A transform is a row of 8 numbers, a0 a1 a2 b0 b1 b2 c0 c1: the output pixel (x, y) is the input
pixel ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), where k = c0 x + c1 y + 1.
"""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf1


def rotate(
    images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Any:
    """Returns images, rotated counterclockwise by `angles` in radians, a scalar or [images]."""
    with tf1.name_scope(name, "rotate"):
        images = tf1.convert_to_tensor(images)
        height, width = tf1.unstack(tf1.cast(tf1.shape(_batch(images))[1:3], tf1.float32))
        turns = angles_to_projective_transforms(angles, height, width)
        return transform(images, turns, interpolation)


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Any:
    """Returns images, moved by `translations` [2] or [images, 2]: (dx, dy) in pixels."""
    with tf1.name_scope(name, "translate"):
        moves = translations_to_projective_transforms(translations)
        return transform(images, moves, interpolation)


def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> Any:
    """Returns transformed images; pixels from outside the input are 0.

    Args:
        images: [images, height, width, channels], [height, width, channels] or [height, width].
        transforms: One transform [8] for all images, or one for each image [images, 8].
        interpolation: "NEAREST" or "BILINEAR".
        output_shape: (height, width); by default that of the input.
        name: Name of the operations.
    """
    with tf1.name_scope(name, "transform"):
        images = tf1.convert_to_tensor(images)
        batch = _batch(images)
        size = tf1.shape(batch)[1:3] if output_shape is None else output_shape
        transformed = tf1.raw_ops.ImageProjectiveTransformV2(
            images=batch,
            transforms=_rows(transforms),
            output_shape=tf1.cast(size, tf1.int32),
            interpolation=interpolation.upper(),
        )
        if output_shape is None:
            transformed.set_shape(batch.shape)
        rank = images.shape.ndims
        return (
            transformed[0, :, :, 0] if rank == 2 else transformed[0] if rank == 3 else transformed
        )


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> Any:
    """Returns transforms [images, 8] that rotate counterclockwise around the center, in radians."""
    with tf1.name_scope(name, "angles_to_projective_transforms"):
        angles = tf1.reshape(tf1.cast(angles, tf1.float32), [-1])
        sine, cosine = tf1.sin(angles), tf1.cos(angles)
        x, y = image_width - 1, image_height - 1
        across = (x - (cosine * x - sine * y)) / 2
        down = (y - (sine * x + cosine * y)) / 2
        zero = tf1.zeros_like(angles)
        return tf1.stack([cosine, -sine, across, sine, cosine, down, zero, zero], axis=1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Any:
    """Returns transforms [images, 8] for moves (dx, dy) in pixels, [2] or [images, 2]."""
    with tf1.name_scope(name, "translations_to_projective_transforms"):
        moves = tf1.reshape(tf1.cast(translations, tf1.float32), [-1, 2])
        zero = tf1.zeros_like(moves[:, 0])
        one = zero + 1
        return tf1.stack([one, zero, -moves[:, 0], zero, one, -moves[:, 1], zero, zero], axis=1)


def compose_transforms(*transforms: Any) -> Any:
    """Returns transforms [images, 8] that apply all given ones, the last one first."""
    with tf1.name_scope("compose_transforms"):
        composed = flat_transforms_to_matrices(transforms[0])
        for other in transforms[1:]:
            composed = tf1.matmul(composed, flat_transforms_to_matrices(other))
        return matrices_to_flat_transforms(composed)


def flat_transforms_to_matrices(transforms: Any) -> Any:
    """Returns [images, 3, 3] for transforms [8] or [images, 8]."""
    rows = _rows(transforms)
    return tf1.reshape(tf1.concat([rows, tf1.ones_like(rows[:, :1])], axis=1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> Any:
    """Returns [images, 8] for matrices [3, 3] or [images, 3, 3], divided by their last element."""
    rows = tf1.reshape(transform_matrices, [-1, 9])
    return (rows / rows[:, 8:])[:, :8]


def _batch(images: Any) -> Any:
    """Returns [images, height, width, channels]."""
    rank = images.shape.ndims
    if rank not in (2, 3, 4):
        raise TypeError(f"images have {rank} dimensions, expected 2, 3 or 4")
    return images[None, :, :, None] if rank == 2 else images[None] if rank == 3 else images


def _rows(transforms: Any) -> Any:
    return tf1.reshape(tf1.cast(transforms, tf1.float32), [-1, 8])
