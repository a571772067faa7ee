"""dot_general, convolutions, windows."""

from __future__ import annotations

import numpy as np

import gradix.numpy as jnp
from gradix import lax
from tests.specs.spec import BF16, C64, F16, F32, I8, I32, U8, Operand, Sample, Spec, distinct

DOTS = (
    ((3,), (3,), (((0,), (0,)), ((), ()))),
    ((2, 3), (3, 4), (((1,), (0,)), ((), ()))),
    ((2, 3), (4, 3), (((1,), (1,)), ((), ()))),
    ((2,), (3,), (((), ()), ((), ()))),
    ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
    ((2, 5, 3), (4, 3, 5), (((2,), (1,)), ((1,), (2,)))),
    ((2, 3, 4), (3, 4, 2), (((1, 2), (0, 1)), ((), ()))),
    ((2, 0), (0, 3), (((1,), (0,)), ((), ()))),
    ((0, 2), (2, 3), (((1,), (0,)), ((), ()))),
)


def _dot(x, y, dimension_numbers):
    (xc, yc), (xb, yb) = dimension_numbers
    xs, ys = list(range(x.ndim)), [x.ndim + i for i in range(y.ndim)]
    for i, j in (*zip(xc, yc), *zip(xb, yb)):
        ys[j] = xs[i]
    out = (
        [xs[i] for i in xb]
        + [i for k, i in enumerate(xs) if k not in (*xc, *xb)]
        + [j for k, j in enumerate(ys) if k not in (*yc, *yb)]
    )
    return np.einsum(x, xs, y, ys, out)


def conv(lhs, rhs, numbers, strides=None, padding="VALID", **params) -> Sample:
    spatial = len(lhs) - 2
    return Sample(
        (Operand(lhs), Operand(rhs)),
        {"window_strides": strides or (1,) * spatial, "padding": padding, "dimension_numbers": numbers, **params},
    )


def _conv(
    lhs,
    rhs,
    window_strides,
    padding,
    dimension_numbers,
    lhs_dilation=None,
    rhs_dilation=None,
    feature_group_count=1,
    batch_group_count=1,
):
    """The definition, element by element, after bringing every array to batch, feature, space order."""
    l_spec, r_spec, o_spec = dimension_numbers
    spatial = [c for c in l_spec if c not in "NC"]
    x = np.transpose(lhs, [l_spec.index(c) for c in ("N", "C", *spatial)])
    w = np.transpose(rhs, [r_spec.index(c) for c in ("O", "I", *spatial)])
    k = len(spatial)
    x, w = _dilate(x, lhs_dilation or (1,) * k), _dilate(w, rhs_dilation or (1,) * k)
    pads = (
        lax.padtype_to_pads(x.shape[2:], w.shape[2:], window_strides, padding) if isinstance(padding, str) else padding
    )
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    size = [(n - m) // s + 1 for n, m, s in zip(x.shape[2:], w.shape[2:], window_strides)]
    groups = feature_group_count * batch_group_count
    out = np.zeros((x.shape[0] // batch_group_count, w.shape[0], *size), np.result_type(x, w))
    per = w.shape[0] // groups
    for at in np.ndindex(*size):
        window = x[
            (slice(None), slice(None), *[slice(a * s, a * s + m) for a, s, m in zip(at, window_strides, w.shape[2:])])
        ]
        for g in range(groups):
            part = (
                np.split(window, feature_group_count, 1)[g]
                if feature_group_count > 1
                else np.split(window, batch_group_count, 0)[g]
            )
            out[(slice(None), slice(g * per, (g + 1) * per), *at)] = np.einsum(
                "nik,oik->no",
                part.reshape(*part.shape[:2], -1),
                w[g * per : (g + 1) * per].reshape(per, w.shape[1], -1),
            )
    return np.transpose(out, [("N", "C", *spatial).index(c) for c in o_spec])


def _dilate(x, dilation):
    shape = [max((n - 1) * d + 1, 0) for n, d in zip(x.shape[2:], dilation)]
    out = np.zeros((*x.shape[:2], *shape), x.dtype)
    out[(slice(None), slice(None), *[slice(None, None, d) for d in dilation])] = x
    return out


CONVS = (
    conv((1, 2, 5), (3, 2, 3), ("NCW", "OIW", "NCW")),
    conv((2, 2, 5, 4), (3, 2, 2, 3), ("NCHW", "OIHW", "NCHW"), (2, 1), "SAME"),
    conv((1, 5, 4, 2), (2, 2, 2, 3), ("NHWC", "HWIO", "NHWC"), (1, 2), ((1, 0), (0, 2))),
    conv(
        (1, 2, 4, 4),
        (2, 2, 2, 2),
        ("NCHW", "OIHW", "NCHW"),
        None,
        ((1, 1), (1, 1)),
        lhs_dilation=(2, 1),
        rhs_dilation=(1, 2),
    ),
    conv((1, 4, 5), (4, 2, 2), ("NCW", "OIW", "NCW"), feature_group_count=2),
    conv((4, 2, 5), (4, 2, 2), ("NCW", "OIW", "NCW"), batch_group_count=2),
)


def window(name):
    return lambda x, **p: getattr(lax, f"reduce_window_{name}_p").bind(x, **p)


def _window(combine, init):
    def reference(x, window_dimensions, window_strides, padding, base_dilation, window_dilation):
        lows = np.full([max((n - 1) * d + 1, 0) for n, d in zip(x.shape, base_dilation)], init, x.dtype)
        lows[tuple(slice(None, None, d) for d in base_dilation)] = x
        wide = np.pad(lows, padding, constant_values=init)
        reach = [(k - 1) * d + 1 for k, d in zip(window_dimensions, window_dilation)]
        size = [(n - r) // s + 1 for n, r, s in zip(wide.shape, reach, window_strides)]
        out = np.empty(size, x.dtype)
        for at in np.ndindex(*size):
            out[at] = combine(
                wide[
                    tuple(slice(a * s, a * s + r, d) for a, s, r, d in zip(at, window_strides, reach, window_dilation))
                ]
            )
        return out

    return reference


def _windows(operand):
    for shape, dims, strides, pads, base, inner in (
        ((6,), (2,), (2,), ((0, 0),), (1,), (1,)),
        ((5,), (3,), (1,), ((1, 1),), (1,), (1,)),
        ((4, 5), (2, 2), (1, 2), ((0, 1), (1, 0)), (1, 1), (1, 1)),
        ((6,), (2,), (1,), ((0, 0),), (1,), (2,)),
        ((4,), (2,), (1,), ((0, 0),), (2,), (1,)),
    ):
        yield Sample(
            (operand(shape),),
            {
                "window_dimensions": dims,
                "window_strides": strides,
                "padding": pads,
                "base_dilation": base,
                "window_dilation": inner,
            },
        )


def _pool(x):
    return lax.reduce_window(x, jnp.float32(1), lambda a, b: a * b + a, (2,), (2,), "VALID")


SPECS = [
    Spec(
        "conv_general_dilated",
        lax.conv_general_dilated,
        CONVS,
        _conv,
        (F32, BF16, I32, C64),
        rtol=1e-5,
        errors=(
            (
                lambda: lax.conv_general_dilated(np.ones((1, 2, 5), "f4"), np.ones((3, 4, 3), "f4"), (1,), "VALID"),
                (TypeError, ValueError),
                "2.*4|4.*2",
            ),
        ),
    ),
    Spec(
        "reduce_window_sum",
        window("sum"),
        tuple(_windows(Operand)),
        _window(np.sum, 0),
        (F32, I32, BF16, C64),
        rtol=1e-5,
    ),
    Spec("reduce_window_max", window("max"), tuple(_windows(distinct)), _window(np.max, -1e9), (F32,), second=False),
    Spec("reduce_window_min", window("min"), tuple(_windows(distinct)), _window(np.min, 1e9), (F32,), second=False),
    Spec("reduce_window", _pool, (Sample((Operand((6,)),)),), None, (F32,), derivative="unknown", mapped=False),
    Spec(
        "dot_general",
        lax.dot_general,
        tuple(Sample((Operand(a), Operand(b)), {"dimension_numbers": d}) for a, b, d in DOTS),
        _dot,
        (F32, F16, BF16, I32, I8, U8, C64),
        rtol=1e-5,
        errors=(
            (
                lambda: lax.dot_general(np.ones((2, 3), "f4"), np.ones((4, 2), "f4"), (((1,), (0,)), ((), ()))),
                TypeError,
                "3.*4",
            ),
        ),
    ),
]
