"""Calls that drawn ones showed to differ, and their neighbours, each with and without 64-bit types.

A line of drawn.txt is an expression of J (the library), N (its numpy), L (its lax), A (asarray), and of S(dtype, shape,
seed) and X(...), sampled arrays without and with the extreme values of the dtype.
"""

import pathlib
import zlib

import numpy as np

from tests.parity.case import Case, np_dtype, sample

CALLS = pathlib.Path(__file__).with_name("drawn.txt")
EXTREMES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e30, 1e-30, 0.5]


def cases():
    for source in CALLS.read_text(encoding="utf-8").splitlines():
        code = compile(source, "<case>", "eval")
        yield Case(source, lambda ns, code=code: run(ns, code, False))
        yield Case("x64: " + source, lambda ns, code=code: run(ns, code, True))


def run(ns, code, x64):
    A = ns.jnp.asarray
    names = {"J": ns.jax, "N": ns.jnp, "L": ns.lax, "A": A, "np": np, "T": lambda y: weighted(ns, y)}
    names |= {"S": lambda *spec: A(sample(*spec)), "X": lambda *spec: A(with_extremes(*spec))}
    with ns.jax.enable_x64(x64):
        return eval(code, names)


def with_extremes(dtype, shape, seed):
    """Sampled values, two in five of them extreme."""
    rng = np.random.RandomState(zlib.crc32(repr(("x", dtype, shape, seed)).encode()))
    kind, x = np_dtype(dtype), sample(dtype, shape, seed)
    if dtype == "bool":
        return x
    pick = rng.rand(*shape) < 0.4
    if "int" in dtype:
        info = np.iinfo(kind)
        ends = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1], dtype=object)
        return np.where(pick, np.asarray(rng.choice(ends, shape), dtype=object), x.astype(object)).astype(kind)
    with np.errstate(all="ignore"):
        values = rng.choice(EXTREMES, shape)
        if dtype.startswith("complex"):
            values = values + 1j * np.where(rng.rand(*shape) < 0.5, 0, rng.choice(EXTREMES, shape))
        return np.where(pick, values, x).astype(kind)


def weighted(ns, y):
    """A number that depends on every floating element of a tree of arrays."""
    if isinstance(y, (list, tuple)):
        return sum((weighted(ns, item) for item in y), 0.0)
    y = ns.jnp.ravel(ns.jnp.asarray(y))
    if not ns.jnp.issubdtype(y.dtype, np.inexact):
        return 0.0
    y = ns.jnp.real(y) + (ns.jnp.imag(y) * 0.5 if ns.jnp.iscomplexobj(y) else 0)
    return ns.jnp.sum(y * ((ns.jnp.arange(y.shape[0]) + 1).astype(y.dtype) / 2))
