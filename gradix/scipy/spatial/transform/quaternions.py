"""Quaternions (x, y, z, w) in the last axis, and their conversion to other forms of rotations.

All functions are differentiable at the identity.
"""

from __future__ import annotations

import numpy as np

from gradix import lax, numpy as jnp
from gradix.numpy.promotion import inexact_operand, raise_rank


def floats(name: str, x, *last: int):
    """An array of floats, whose last axes must have these sizes.

    Raises:
        ValueError: they have other sizes.
    """
    x = inexact_operand(name, jnp.asarray(x))
    if x.aval.shape[x.aval.ndim - len(last) :] != last or x.aval.ndim < len(last):
        raise ValueError(
            f"Rotation.{name}: expected an array of shape (..., {', '.join(map(str, last))}), got {x.aval.shape}."
        )
    return x


def _of_one_rank(x, y):
    rank = max(x.ndim, y.ndim)
    return raise_rank(x, rank), raise_rank(y, rank)


def square_sum(x):
    return jnp.sum(x * x, axis=-1, keepdims=True)


def normalized(q):
    return q / jnp.sqrt(square_sum(q))


def product(p, q):
    """The rotation by `q` followed by that of `p`."""
    p, q = _of_one_rank(p, q)
    (a, u), (b, v) = (p[..., 3:], p[..., :3]), (q[..., 3:], q[..., :3])
    vector = a * v + b * u + jnp.cross(*jnp.broadcast_arrays(u, v))
    return jnp.concatenate([vector, a * b - jnp.sum(u * v, -1, keepdims=True)], -1)


def conjugate(q):
    signs = jnp.asarray(np.array([-1, -1, -1, 1]).astype(q.aval.dtype))
    return q * raise_rank(signs, q.ndim)


def canonical(q):
    """The quaternion or its negative: with w > 0, or if w = 0, with its first nonzero part > 0."""
    x, y, z, w = (q[..., i] for i in range(4))
    negative = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
    return jnp.where(negative[..., None], -q, q)


# -- rotation vectors ------------------------------------------------------------------------------


def from_vector(v):
    """`(v sin(a/2)/a, cos(a/2))`, where a is the length of v."""
    square = square_sum(v)
    small = square < 1e-4
    angle = jnp.sqrt(jnp.where(small, 1, square))
    scale = jnp.where(small, 0.5 - square / 48 + square * square / 3840, jnp.sin(angle / 2) / angle)
    cos = jnp.where(small, 1 - square / 8 + square * square / 384, jnp.cos(angle / 2))
    return jnp.concatenate([scale * v, cos], -1)


def to_vector(q):
    """`v · 2 atan(|v| / w) / |v|`, where v is the vector part of the quaternion with w ≥ 0."""
    q = jnp.where(q[..., 3:] < 0, -q, q)
    v, w = q[..., :3], q[..., 3:]
    square = square_sum(v)
    small = square < 1e-4
    size = jnp.sqrt(jnp.where(small, 1, square))
    safe = jnp.where(small, w, 1)
    ratio = square / (safe * safe)
    scale = jnp.where(small, 2 / safe * (1 - ratio / 3 + ratio * ratio / 5), 2 * jnp.arctan2(size, w) / size)
    return scale * v


# -- matrices --------------------------------------------------------------------------------------


def to_matrix(q):
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def from_matrix(m):
    """The quaternions of rotation matrices, by the one of four formulas with the largest divisor.

    F. Markley, "Unit quaternion from rotation matrix" (2008).
    """
    a = [[m[..., i, j] for j in range(3)] for i in range(3)]
    trace = a[0][0] + a[1][1] + a[2][2]
    rows = [
        [1 - trace + 2 * a[0][0], a[1][0] + a[0][1], a[2][0] + a[0][2], a[2][1] - a[1][2]],
        [a[1][0] + a[0][1], 1 - trace + 2 * a[1][1], a[2][1] + a[1][2], a[0][2] - a[2][0]],
        [a[2][0] + a[0][2], a[2][1] + a[1][2], 1 - trace + 2 * a[2][2], a[1][0] - a[0][1]],
        [a[2][1] - a[1][2], a[0][2] - a[2][0], a[1][0] - a[0][1], 1 + trace],
    ]
    every = jnp.stack([jnp.stack(row, -1) for row in rows], -2)
    best = jnp.argmax(jnp.stack([a[0][0], a[1][1], a[2][2], trace], -1), -1)
    return normalized(jnp.take_along_axis(every, best[..., None, None], -2)[..., 0, :])


# -- Euler angles ----------------------------------------------------------------------------------


def axes_of(seq: str) -> tuple[list[int], bool]:
    """The numbers of the axes in a sequence, and whether they are fixed (extrinsic).

    Raises:
        ValueError: the sequence is not one to three letters of "xyz" or of "XYZ", or two successive
            letters agree.
    """
    if not isinstance(seq, str) or not 1 <= len(seq) <= 3:
        raise ValueError(f"Expected axis specification to be a non-empty string of up to 3 characters, got {seq!r}.")
    if not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise ValueError(f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}.")
    if any(a == b for a, b in zip(seq, seq[1:])):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}.")
    return ["xyz".index(c) for c in seq.lower()], seq.islower()


def from_euler(seq: str, angles):
    """The product of rotations about the axes of a sequence."""
    axes, extrinsic = axes_of(seq)
    out = None
    for place, axis in enumerate(axes):
        half = angles[..., place] / 2
        zero = jnp.zeros_like(half)
        turn = jnp.stack([*[jnp.sin(half) if i == axis else zero for i in range(3)], jnp.cos(half)], -1)
        out = turn if out is None else product(turn, out) if extrinsic else product(out, turn)
    return out


def to_euler(seq: str, q):
    """The angles about the three axes of a sequence.

    E. Bernardes, S. Viollet, "Quaternion to Euler angles conversion: a direct, general and
    computationally efficient method" (2022).
    """
    axes, extrinsic = axes_of(seq)
    if len(axes) != 3:
        raise ValueError(f"Expected 3 axes in `seq`, got {seq}.")
    i, j, k = axes if extrinsic else axes[::-1]
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    if symmetric:
        a, b, c, d = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
    else:
        a, b = q[..., 3] - q[..., j], q[..., i] + q[..., k] * sign
        c, d = q[..., j] + q[..., 3], q[..., k] * sign - q[..., i]
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    eps = 1e-7 if q.aval.dtype.itemsize == 8 else 1e-6
    none, half_turn = abs(middle) <= eps, abs(middle - np.pi) <= eps
    total, difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    first, last = total - difference, total + difference
    outer = (first, last) if extrinsic else (last, first)
    # Of two rotations about the same axis only the sum is determined, which the first one gets.
    locked = none | half_turn
    alone = jnp.where(none, 2 * total, 2 * difference * (-1 if extrinsic else 1))
    begin, end = jnp.where(locked, alone, outer[0]), jnp.where(locked, 0, outer[1])
    if not symmetric:
        middle = middle - np.pi / 2
        begin, end = (begin, end * sign) if extrinsic else (begin * sign, end)
    return jnp.stack([_wrapped(begin), middle, _wrapped(end)], -1)


def _wrapped(angle):
    """The equivalent angle between -π and π."""
    return jnp.where(angle < -np.pi, angle + 2 * np.pi, jnp.where(angle > np.pi, angle - 2 * np.pi, angle))


# -- rotated vectors -------------------------------------------------------------------------------


def rotated(q, vectors, inverse: bool):
    """The rotated vectors; leading axes are broadcast.

    Raises:
        ValueError: they do not broadcast.
    """
    matrix = to_matrix(q)
    matrix = matrix.mT if inverse else matrix
    try:
        lax.broadcast_shapes(matrix.aval.shape[:-2], vectors.aval.shape[:-1])
    except ValueError:
        raise ValueError(
            f"Rotation.apply: rotations of shape {q.aval.shape[:-1]} and vectors of shape "
            f"{vectors.aval.shape} do not broadcast. Their numbers must agree, or one of them must be 1."
        ) from None
    matrix, rows = _of_one_rank(matrix, vectors[..., None, :])
    return jnp.sum(matrix * rows, -1)
