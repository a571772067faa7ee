"""Programs whose operands may have any size: what tests of sizes and divisions run, as data.

Each program is a function of matrices `(m, n)` that `operands` makes, with the same function of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import ml_dtypes
import numpy as np
import scipy.linalg
import scipy.special

import gradix
import gradix.numpy as jnp
from gradix import lax, nn, random

F32, F64, F16, BF16, C64, C128 = "float32", "float64", "float16", "bfloat16", "complex64", "complex128"
I8, I16, I32, I64, U8, U16, U32, BOOL = "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool"
FLOATS, INTS = (F32, F16, BF16, F64), (I32, I8, I16, U8, U32, I64)
REAL = (*FLOATS, *INTS)
NUMBERS = (*REAL, C64, C128)
EVERY = (*NUMBERS, BOOL)


class Program(NamedTuple):
    """A program of one or more matrices.

    Attributes:
        name: what it computes.
        call: the program.
        numpy: the same on NumPy arrays; None where only one device is compared with.
        dtypes: the dtypes it takes.
        operands: for each operand, how its entries are drawn.
        has_gradient: whether the sum of its results is differentiated too.
        is_mapped: whether it is run for each row of the matrix too.
        rtol: the relative tolerance in float32.
        most: the largest number of elements, for what takes long.
    """

    name: str
    call: Callable
    numpy: Callable | None = None
    dtypes: tuple[str, ...] = REAL
    operands: tuple[str, ...] = ("any",)
    has_gradient: bool = True
    is_mapped: bool = True
    rtol: float = 1e-5
    most: int = 1 << 62

    def __repr__(self) -> str:
        return self.name


def made(kind: str, shape, dtype: str, seed: int = 0) -> np.ndarray:
    """An operand: entries of any sign, positive ones, distinct ones, some NaN, or places of rows."""
    rng = np.random.default_rng(seed + int(np.prod(shape)))
    to = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if kind == "rows":
        return rng.integers(0, shape[0], shape[:1]).astype("int32")
    if kind == "columns":
        return rng.integers(-shape[1], shape[1], shape[1:]).astype("int32")
    if to.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if to.kind in "iu":
        return rng.integers(0 if to.kind == "u" else -9, 10, shape).astype(to)
    if kind == "distinct":
        return rng.permutation(np.linspace(-2, 2, int(np.prod(shape)))).reshape(shape).astype(to)
    x = rng.uniform(0.5, 1.5, shape) if kind == "positive" else rng.uniform(-1, 1, shape)
    if to.kind == "c":
        x = x + 1j * rng.uniform(-1, 1, shape)
    if kind == "nan":
        x[tuple([n // 2 for n in shape])] = np.nan
    return x.astype(to)


def _axes(name, call, reference, dtypes=NUMBERS, **kw):
    """A reduction over all axes, the first, and the last."""
    for axis in (None, 0, 1):
        yield Program(
            f"{name}[{axis}]", lambda x, axis=axis: call(x, axis), lambda x, axis=axis: reference(x, axis), dtypes, **kw
        )


def _each(name, call, reference, dtypes=REAL, axes=(0, 1), **kw):
    """An operation along the first axis, and along the last."""
    for axis in axes:
        yield Program(
            f"{name}[{axis}]",
            lambda x, axis=axis: call(x, axis),
            reference and (lambda x, axis=axis: reference(x, axis)),
            dtypes,
            **kw,
        )


def _reductions():
    yield from _axes("sum", jnp.sum, np.sum, rtol=1e-4)
    yield from _axes("mean", jnp.mean, np.mean, (*FLOATS, C64), rtol=1e-4)
    yield from _axes(
        "prod",
        lambda x, a: jnp.prod(jnp.sign(x), a),
        lambda x, a: np.prod(np.sign(x), a),
        (F32, F64, I32, I8),
        has_gradient=False,
    )
    for kind, dtypes in (("distinct", (F32, F64, BF16, F16)), ("any", INTS), ("nan", (F32, F64, BF16, F16))):
        of = f" of {kind}"
        smooth = kind == "distinct"
        for name, call, reference in (
            ("max", jnp.max, np.max),
            ("min", jnp.min, np.min),
            ("argmax", jnp.argmax, np.argmax),
            ("argmin", jnp.argmin, np.argmin),
            ("ptp", jnp.ptp, np.ptp),
        ):
            yield from _axes(
                name + of, call, reference, dtypes, operands=(kind,), has_gradient=smooth and "arg" not in name
            )
    yield from _axes("nanmax", jnp.nanmax, np.nanmax, (F32, F64), operands=("nan",))
    yield from _axes("nanargmin", jnp.nanargmin, np.nanargmin, (F32, F64), operands=("nan",), has_gradient=False)
    yield from _axes("nansum", jnp.nansum, np.nansum, (F32, F64), operands=("nan",), rtol=1e-4)
    yield from _axes("any", lambda x, a: jnp.any(x > 0, a), lambda x, a: np.any(x > 0, a), REAL, has_gradient=False)
    yield from _axes("all", lambda x, a: jnp.all(x, a), lambda x, a: np.all(x, a), EVERY, has_gradient=False)
    yield from _axes(
        "bitwise_or",
        lambda x, a: jnp.bitwise_or.reduce(x, axis=a),
        lambda x, a: np.bitwise_or.reduce(x, axis=a),
        (*INTS, BOOL),
        has_gradient=False,
    )
    yield from _axes(
        "bitwise_xor",
        lambda x, a: lax.reduce_xor(x, (0, 1) if a is None else (a,)),
        lambda x, a: np.bitwise_xor.reduce(x, axis=a),
        (*INTS, BOOL),
        has_gradient=False,
    )
    yield from _axes("var", jnp.var, np.var, (F32, F64, C64), rtol=1e-4)
    yield from _axes(
        "logsumexp",
        lambda x, a: nn.logsumexp(x, axis=a),
        lambda x, a: scipy.special.logsumexp(x, axis=a),
        (F32, F64, BF16),
    )
    yield from _each(
        "softmax", lambda x, a: nn.softmax(x, axis=a), lambda x, a: scipy.special.softmax(x, axis=a), (F32, F64, BF16)
    )
    yield from _axes("median", jnp.median, np.median, (F32, F64, I32), operands=("distinct",))
    yield from _axes(
        "quantile",
        lambda x, a: jnp.quantile(x, 0.3, axis=a),
        lambda x, a: np.quantile(x, 0.3, axis=a),
        (F32, F64),
        operands=("distinct",),
    )
    yield Program(
        "histogram",
        lambda x: jnp.histogram(x, 16, (-2.0, 2.0))[0],
        lambda x: np.histogram(x, 16, (-2.0, 2.0))[0],
        (F32, F64),
        has_gradient=False,
    )
    yield Program(
        "distance", lambda x: abs(x - x[:1]).max(), lambda x: np.abs(x - x[:1]).max(), (F32, F64, I32), ("distinct",)
    )
    yield Program("norm", jnp.linalg.norm, np.linalg.norm, (F32, F64, C64), rtol=1e-4)
    yield Program(
        "reduce by max",
        lambda x: lax.reduce(x, x.dtype.type(-9), lax.max, (1,)),
        lambda x: np.max(x, 1, initial=-9),
        (F32, F64, I32),
        ("distinct",),
    )
    yield Program(
        "reduce by a formula",
        lambda x: lax.reduce(x, x.dtype.type(0), lambda a, b: a + b + a * b, (0,)),
        lambda x: np.expm1(np.log1p(x).sum(0)),
        (F32, F64),
        ("positive",),
        False,
        rtol=1e-3,
        most=1 << 14,
    )
    yield Program(
        "reduce of two",
        lambda x: lax.reduce(
            (x, -x), (x.dtype.type(-9), x.dtype.type(9)), lambda a, b: (lax.max(a[0], b[0]), lax.min(a[1], b[1])), (0,)
        ),
        lambda x: (x.max(0), (-x).min(0)),
        (F32, F64, I32),
        ("distinct",),
        False,
    )


def _running():
    for reverse in (False, True):
        flip = (lambda f: lambda x, a: np.flip(f(np.flip(x, a), a), a)) if reverse else (lambda f: f)
        for name, reference, kw in (
            ("cumsum", np.cumsum, {"rtol": 1e-4}),
            ("cummax", np.maximum.accumulate, {"operands": ("distinct",)}),
            ("cummin", np.minimum.accumulate, {"operands": ("distinct",)}),
            ("cumlogsumexp", np.logaddexp.accumulate, {"dtypes": (F32, F64)}),
        ):
            yield from _each(
                f"{name}{' reverse' if reverse else ''}",
                lambda x, a, name=name, reverse=reverse: getattr(lax, name)(x, a, reverse=reverse),
                flip(reference),
                **{"dtypes": (F32, F64, BF16, I32, C64) if name == "cumsum" else (F32, F64, I32), **kw},
            )
    yield from _each(
        "cumprod",
        lambda x, a: lax.cumprod(jnp.sign(x), a),
        lambda x, a: np.cumprod(np.sign(x), a),
        (F32, F64, I32),
        has_gradient=False,
    )
    yield from _each(
        "associative_scan", lambda x, a: lax.associative_scan(jnp.add, x, axis=a), np.cumsum, (F32, F64, I32), rtol=1e-4
    )
    yield Program(
        "scan",
        lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x)[0],
        lambda x: x[0] + x.sum(0),
        (F32, F64),
        rtol=1e-4,
        most=1 << 18,
    )
    yield from _each("diff", lambda x, a: jnp.diff(x, axis=a), lambda x, a: np.diff(x, axis=a), NUMBERS)


def _orders():
    for kind, dtypes in (("distinct", (F32, F64, BF16, F16)), ("any", INTS), ("nan", (F32, F64))):
        of, smooth = f" of {kind}", kind == "distinct"
        yield from _each("sort" + of, jnp.sort, np.sort, dtypes, operands=(kind,), has_gradient=smooth)
        yield from _each(
            "argsort" + of,
            jnp.argsort,
            lambda x, a: np.argsort(x, a, kind="stable"),
            dtypes,
            operands=(kind,),
            has_gradient=False,
        )
    yield from _each("sort complex", jnp.sort, np.sort, (C64, C128), has_gradient=False)
    yield from _each(
        "sort two",
        lambda x, a: lax.sort((x, -x), dimension=a, num_keys=1),
        lambda x, a: (np.sort(x, a), -np.sort(x, a)),
        (F32, F64, I32),
        operands=("distinct",),
        has_gradient=False,
    )
    for k in (1, 5):
        yield Program(
            f"top_k[{k}]",
            lambda x, k=k: lax.top_k(x, k)[0],
            lambda x, k=k: -np.sort(-x, 1)[:, :k],
            (F32, F64, I32),
            ("distinct",),
        )
    yield Program(
        "top_k of columns",
        lambda x: lax.top_k(x, 3, axis=0)[0],
        lambda x: -np.sort(-x, 0)[:3],
        (F32, I32),
        ("distinct",),
    )
    yield Program("approx_max_k", lambda x: lax.approx_max_k(x, 3)[0], None, (F32,), ("distinct",), most=1 << 16)
    yield Program(
        "unique",
        lambda x: jnp.unique(x, size=12, fill_value=99),
        lambda x: np.concatenate([np.unique(x), np.full(99, 99)])[:12].astype(x.dtype),
        (I32, I8),
        has_gradient=False,
        is_mapped=False,
    )
    yield Program(
        "searchsorted",
        lambda x: jnp.searchsorted(jnp.sort(x[0]), x),
        lambda x: np.searchsorted(np.sort(x[0]), x),
        (F32, F64, I32),
        ("distinct",),
        False,
        False,
    )
    yield Program(
        "nonzero",
        lambda x: jnp.nonzero(x > 0, size=9)[0],
        lambda x: np.nonzero(x > 0)[0][:9],
        (F32, I32),
        has_gradient=False,
        is_mapped=False,
    )
    yield Program(
        "permutation",
        lambda x: jnp.sort(random.permutation(random.key(0), x), 0),
        lambda x: np.sort(x, 0),
        (F32, I32),
        has_gradient=False,
        is_mapped=False,
    )
    yield Program(
        "lexsort",
        lambda x: jnp.lexsort((x[0], x[1])),
        lambda x: np.lexsort((x[0], x[1])),
        (F32, I32),
        ("distinct",),
        False,
        False,
    )
    yield Program(
        "partition",
        lambda x: jnp.partition(x, 5, axis=1)[:, 5],
        lambda x: np.partition(x, 5, 1)[:, 5],
        (F32, I32),
        ("distinct",),
        False,
    )


def _products():
    floats = (F32, F64, BF16, F16, C64, I32, I8)
    loose = {"rtol": 1e-4, "operands": ("any", "any")}
    yield Program("x @ yᵀ", lambda x, y: x @ y.T, lambda x, y: x @ y.T, floats, **loose, most=1 << 18)
    yield Program("xᵀ @ y", lambda x, y: x.T @ y, lambda x, y: x.T @ y, floats, **loose, most=1 << 18)
    yield Program("xᵀ @ row", lambda x, y: x @ y[0], lambda x, y: x @ y[0], floats, **loose)
    yield Program("vdot", lambda x, y: jnp.vdot(x, y), np.vdot, floats, **loose)
    yield Program(
        "batched", lambda x, y: jnp.einsum("ij,ij->i", x, y), lambda x, y: np.einsum("ij,ij->i", x, y), floats, **loose
    )
    yield Program(
        "stack",
        lambda x, y: jnp.einsum("bij,bjk->bik", x.reshape(len(x), -1, 8), y.reshape(len(y), 8, -1)),
        lambda x, y: x.reshape(len(x), -1, 8) @ y.reshape(len(y), 8, -1),
        floats,
        **loose,
        most=1 << 18,
        is_mapped=False,
    )
    yield Program(
        "outer", lambda x, y: jnp.outer(x[0], y[0]), lambda x, y: np.outer(x[0], y[0]), floats, **loose, is_mapped=False
    )
    yield Program("small right", lambda x, y: x @ y[:3].T, lambda x, y: x @ y[:3].T, floats, **loose, is_mapped=False)
    for n in (3, 8):
        yield Program(
            f"convolve[{n}]",
            lambda x, y, n=n: jnp.convolve(x[0], y[0, :n]),
            lambda x, y, n=n: np.convolve(x[0], y[0, :n]),
            (F32, F64, C64),
            **loose,
            is_mapped=False,
        )

    def conv(x, y):
        image = x.reshape(-1, 8, 8, 4)
        return lax.conv_general_dilated(
            image,
            y[:1, :4].reshape(1, 1, 4, 1) * jnp.ones((3, 3, 4, 16), x.dtype),
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )

    yield Program("conv", conv, None, (F32, F64, BF16), **loose, most=1 << 16, is_mapped=False)
    yield (
        Program("max_pool", lambda x: nn.max_pool(x[..., None], (3,), (2,)), None, (F32, F64), ("distinct",))
        if hasattr(nn, "max_pool")
        else Program(
            "max_pool",
            lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (2, 2), "SAME"),
            None,
            (F32, F64),
            ("distinct",),
        )
    )
    yield Program("sum_pool", lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 3), (2, 1), "SAME"), None, (F32, F64))


def _places():
    both = ("any", "rows")
    yield Program("take rows", lambda x, i: x[i], lambda x, i: x[i], EVERY, both, is_mapped=False)
    yield Program(
        "take columns", lambda x, i: x[:, i], lambda x, i: x[:, i], EVERY, ("any", "columns"), is_mapped=False
    )
    yield Program(
        "take_along_axis",
        lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
        lambda x: np.sort(x, 1),
        (F32, I32),
        ("distinct",),
    )
    yield Program(
        "add at rows",
        lambda x, i: jnp.zeros_like(x).at[i].add(x),
        lambda x, i: _added(x, i),
        NUMBERS,
        both,
        is_mapped=False,
        rtol=1e-4,
    )
    yield Program(
        "max at rows",
        lambda x, i: jnp.zeros_like(x).at[i].max(x),
        lambda x, i: _maximum_at(x, i),
        REAL,
        both,
        is_mapped=False,
        has_gradient=False,
    )
    yield Program(
        "set columns",
        lambda x, i: x.at[:, i].set(0),
        lambda x, i: _zeroed(x, i),
        NUMBERS,
        ("any", "columns"),
        is_mapped=False,
    )
    yield Program(
        "segment_sum",
        lambda x, i: gradix.ops.segment_sum(x, i, len(x)),
        lambda x, i: _added(x, i),
        NUMBERS,
        both,
        is_mapped=False,
        rtol=1e-4,
    )
    yield Program(
        "segment_max",
        lambda x, i: jnp.maximum(gradix.ops.segment_max(x, i, len(x)), 0),
        lambda x, i: _maximum_at(x, i),
        REAL,
        both,
        is_mapped=False,
        has_gradient=False,
    )
    yield Program(
        "bincount",
        lambda x: jnp.bincount(x.ravel() % 16, length=16),
        lambda x: np.bincount(x.ravel() % 16, minlength=16),
        (I32, U8),
        has_gradient=False,
        is_mapped=False,
    )
    yield Program(
        "dynamic_slice",
        lambda x: lax.dynamic_slice_in_dim(x, x.shape[0] // 2 - 1, 4),
        lambda x: x[x.shape[0] // 2 - 1 :][:4],
        EVERY,
    )
    yield Program(
        "update_slice",
        lambda x: lax.dynamic_update_slice(x, x[:2], (x.shape[0] // 2 - 1, 0)),
        lambda x: _updated(x),
        EVERY,
        is_mapped=False,
    )
    yield Program("roll", lambda x: jnp.roll(x, 3, 1), lambda x: np.roll(x, 3, 1), EVERY, is_mapped=False)
    yield Program("flip", lambda x: jnp.flip(x), np.flip, EVERY)
    yield Program("pad", lambda x: jnp.pad(x, 2), lambda x: np.pad(x, 2), EVERY)
    yield Program(
        "pad reflect", lambda x: jnp.pad(x, 2, "reflect"), lambda x: np.pad(x, 2, "reflect"), NUMBERS, is_mapped=False
    )
    yield Program(
        "concatenate",
        lambda x: jnp.concatenate([x, x[:, :3]], 1),
        lambda x: np.concatenate([x, x[:, :3]], 1),
        EVERY,
        is_mapped=False,
    )
    yield Program("reshape", lambda x: x.reshape(-1, 16), lambda x: x.reshape(-1, 16), EVERY)
    yield Program("transpose", lambda x: x.T, np.transpose, EVERY)
    yield Program("repeat", lambda x: jnp.repeat(x, 3, 0), lambda x: np.repeat(x, 3, 0), EVERY)
    yield Program("tile", lambda x: jnp.tile(x, (2, 1)), lambda x: np.tile(x, (2, 1)), EVERY, is_mapped=False)
    yield Program("tril", jnp.tril, np.tril, EVERY, is_mapped=False)
    yield Program("where", lambda x: jnp.where(x > 0, x, 2), lambda x: np.where(x > 0, x, 2).astype(x.dtype), REAL)
    yield Program("strided", lambda x: x[::2, 1::3], lambda x: x[::2, 1::3], EVERY, is_mapped=False)


def _added(x, i):
    out = np.zeros_like(x)
    np.add.at(out, i, x)
    return out


def _maximum_at(x, i):
    out = np.zeros_like(x)
    np.maximum.at(out, i, x)
    return out


def _zeroed(x, i):
    out = x.copy()
    out[:, i] = 0
    return out


def _updated(x):
    out, at = x.copy(), x.shape[0] // 2 - 1
    out[at : at + 2] = x[:2]
    return out


def _elements():
    for name in (
        "sin",
        "cos",
        "tanh",
        "exp",
        "expm1",
        "log1p",
        "arctan",
        "sinh",
        "cbrt",
        "sqrt",
        "exp2",
        "log",
        "arcsinh",
    ):
        yield Program(
            name,
            getattr(jnp, name),
            getattr(np, name),
            (F32, F64, F16, BF16) if name == "cbrt" else (F32, F64, F16, BF16, C64),
            ("positive",),
        )
    for name in ("erf", "erfc", "gammaln", "digamma"):
        yield Program(
            name,
            getattr(gradix.scipy.special, name),
            getattr(scipy.special, name),
            (F32, F64),
            ("positive",),
            rtol=1e-4,
        )
    yield Program(
        "sum of log1p", lambda x: jnp.log1p(x).sum(), lambda x: np.log1p(x).sum(), (F32, F64), ("positive",), rtol=1e-4
    )
    yield Program(
        "max of erfc",
        lambda x: gradix.scipy.special.erfc(x).max(),
        lambda x: scipy.special.erfc(x).max(),
        (F32, F64),
        ("positive",),
        rtol=1e-4,
    )
    yield Program(
        "sum of relu", lambda x: jnp.maximum(x, 0).sum(), lambda x: np.maximum(x, 0).sum(), (F32, F64), rtol=1e-4
    )
    yield Program("mask", lambda x: x * (x > 0), lambda x: x * (x > 0), (*FLOATS, C64)[:4])
    yield Program("power", lambda x: x**2.5, lambda x: x**2.5, (F32, F64), ("positive",))
    yield Program("remainder", lambda x: x % 3, lambda x: x % 3, (F32, F64, I32), ("positive",))
    # NumPy counts the bits of the absolute value, XLA those of the two's complement.
    ones = lambda x: np.bitwise_count(x.view(f"u{x.itemsize}"))
    yield Program("popcount", lax.population_count, ones, (U8, U32, I32), has_gradient=False)


def _draws():
    for name in ("uniform", "normal", "exponential", "gumbel"):
        yield Program(
            name,
            lambda x, name=name: x + getattr(random, name)(random.key(1), x.shape, x.dtype),
            None,
            (F32, BF16),
            has_gradient=False,
            is_mapped=False,
        )
    yield Program(
        "bits",
        lambda x: x ^ random.bits(random.key(1), x.shape, x.dtype),
        None,
        (U8, U32),
        has_gradient=False,
        is_mapped=False,
    )
    yield Program(
        "randint",
        lambda x: x + random.randint(random.key(1), x.shape, 0, 9, x.dtype),
        None,
        (I32, I8),
        has_gradient=False,
        is_mapped=False,
    )
    yield Program(
        "bernoulli",
        lambda x: x * random.bernoulli(random.key(1), 0.3, x.shape),
        None,
        (F32,),
        has_gradient=False,
        is_mapped=False,
    )
    yield Program(
        "categorical", lambda x: random.categorical(random.key(1), x), None, (F32,), has_gradient=False, is_mapped=False
    )
    yield Program(
        "choice", lambda x: random.choice(random.key(1), x, (5,)), None, (F32, I32), has_gradient=False, is_mapped=False
    )
    yield Program(
        "drawn keys",
        lambda x: gradix.vmap(lambda k, r: random.uniform(k, (3,)) + r[:3])(random.split(random.key(1), len(x)), x),
        None,
        (F32,),
        has_gradient=False,
        is_mapped=False,
    )


def _spectra():
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        dtypes = (F32, F64) if name in ("rfft", "ihfft") else (C64, C128)
        for axis in (0, 1):
            yield Program(
                f"{name}[{axis}]",
                lambda x, name=name, axis=axis: getattr(jnp.fft, name)(x, axis=axis),
                lambda x, name=name, axis=axis: getattr(np.fft, name)(x, axis=axis),
                dtypes,
                is_mapped=axis == 1,
                rtol=1e-4,
            )
    for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn"):
        yield Program(
            name,
            getattr(jnp.fft, name),
            getattr(np.fft, name),
            (F32, F64) if name == "rfft2" else (C64, C128),
            is_mapped=False,
            rtol=1e-4,
        )
    yield Program("fftshift", jnp.fft.fftshift, np.fft.fftshift, (C64, F32))


def stack(x, k: int = 8):
    """A stack of square matrices near the identity, made of the entries of a matrix."""
    blocks = x.reshape(-1, k, k)
    return blocks * 0.1 + (jnp.eye(k, dtype=x.dtype) if isinstance(x, jnp.ndarray) else np.eye(k, dtype=x.dtype))


def _of_stacks(name, call, reference, k=8, **kw):
    kw = {"rtol": 1e-3, "is_mapped": False, **kw}
    return Program(
        name,
        lambda x: call(stack(x, k)),
        reference and (lambda x: reference(stack(x, k))),
        kw.pop("dtypes", (F32, F64, C64)),
        **kw,
    )


def _factorizations():
    linalg = jnp.linalg
    hermitian = lambda a: a @ np.conj(np.swapaxes(a, -1, -2))
    symmetric = lambda a: a @ jnp.conj(jnp.swapaxes(a, -1, -2))
    for k in (4, 8, 16):
        yield _of_stacks(
            f"cholesky[{k}]",
            lambda a: linalg.cholesky(symmetric(a)),
            lambda a: np.linalg.cholesky(hermitian(a)),
            k,
            most=1 << 16,
        )
        yield _of_stacks(
            f"solve[{k}]",
            lambda a: linalg.solve(a, a[..., :2]),
            lambda a: np.linalg.solve(a, a[..., :2]),
            k,
            most=1 << 16,
        )
    few = {"most": 1 << 13}
    yield _of_stacks("det", linalg.det, np.linalg.det, most=1 << 16)
    yield _of_stacks("inv", linalg.inv, np.linalg.inv, most=1 << 16)
    yield _of_stacks(
        "svd", lambda a: linalg.svd(a, compute_uv=False), lambda a: np.linalg.svd(a, compute_uv=False), **few
    )
    yield _of_stacks("eigh", lambda a: linalg.eigvalsh(symmetric(a)), lambda a: np.linalg.eigvalsh(hermitian(a)), **few)
    yield _of_stacks(
        "eigvals",
        lambda a: jnp.sort(jnp.abs(linalg.eigvals(a))),
        lambda a: np.sort(np.abs(np.linalg.eigvals(a))),
        dtypes=(F32, F64),
        has_gradient=False,
        **few,
    )
    yield _of_stacks("qr", lambda a: jnp.abs(linalg.qr(a)[1]), lambda a: np.abs(np.linalg.qr(a)[1]), **few)
    yield _of_stacks("pinv", linalg.pinv, np.linalg.pinv, **few)
    yield _of_stacks("matrix_power", lambda a: linalg.matrix_power(a, 3), lambda a: np.linalg.matrix_power(a, 3), **few)
    yield _of_stacks(
        "triangular", lambda a: lax.linalg.triangular_solve(a, a, left_side=True, lower=True), None, most=1 << 16
    )
    yield _of_stacks("expm", gradix.scipy.linalg.expm, scipy.linalg.expm, **few)


FAMILIES = {
    "reductions": _reductions,
    "running": _running,
    "orders": _orders,
    "products": _products,
    "places": _places,
    "elements": _elements,
    "draws": _draws,
    "spectra": _spectra,
    "factorizations": _factorizations,
}
PROGRAMS = {family: list(make()) for family, make in FAMILIES.items()}
