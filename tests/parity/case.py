"""What a parity case is, and the short forms the generators write them in."""

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

EXTRA_DTYPES = {"bfloat16": ml_dtypes.bfloat16}
SHORT = {
    "bool": "b",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "complex128": "c128",
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One call. `run(ns)` gives a tree of arrays and Python values, or raises.

    Attributes:
      id: unique within its group, stable between runs.
      run: the call, taking the namespace of the implementation.
      rtol: relative tolerance in place of the one the dtype has.
      may_work: JAX raises here, and an answer is an improvement.
    """

    id: str
    run: Callable[[Any], Any]
    rtol: float | None = None
    may_work: bool = False


@dataclasses.dataclass(frozen=True)
class Host:
    """A NumPy array (or scalar) to be passed as it is, not as the implementation's array."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Weak:
    """A weakly typed array: a Python scalar, broadcast."""

    value: Any
    shape: tuple = ()


@dataclasses.dataclass(frozen=True)
class Fn:
    """A function of the implementation, passed as an argument."""

    path: str


def np_dtype(name):
    return np.dtype(EXTRA_DTYPES.get(name, name))


_RNG = np.random.RandomState(0)  # to seed it anew takes a hundredth of the time of making another


def sample(dtype, shape, seed=0, low=-3.0, high=3.0):
    """Reproducible values of any dtype; integers include both ends of the range given."""
    rng = _RNG
    rng.seed(zlib.crc32(repr((dtype, shape, seed)).encode()))
    kind = np_dtype(dtype)
    if dtype == "bool":
        return np.asarray(rng.randint(0, 2, shape), bool)
    if dtype.startswith("uint"):
        return np.asarray(rng.randint(max(int(low), 0), int(high) + 3, shape), kind)
    if dtype.startswith("int"):
        return np.asarray(rng.randint(int(low) - 2, int(high) + 3, shape), kind)
    values = rng.uniform(low, high, shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.uniform(low, high, shape)
    return np.asarray(values, kind)


def to_target(ns, arg):
    """Turn a described argument into what the implementation is called with."""
    if isinstance(arg, np.ndarray):
        return ns.jnp.asarray(arg)
    if isinstance(arg, Host):
        return arg.value
    if isinstance(arg, Weak):
        return ns.jnp.broadcast_to(ns.jnp.asarray(arg.value), arg.shape)
    if isinstance(arg, Fn):
        return ns.resolve(arg.path)
    if type(arg) in (list, tuple):
        return type(arg)(to_target(ns, item) for item in arg)
    if type(arg) is dict:
        return {key: to_target(ns, item) for key, item in arg.items()}
    return arg


def describe(arg):
    """A short name of an argument, for case ids."""
    if isinstance(arg, np.ndarray):
        return SHORT.get(str(arg.dtype), str(arg.dtype)) + "[" + ",".join(map(str, arg.shape)) + "]"
    if isinstance(arg, Host):
        plain = describe(np.asarray(arg.value)) if hasattr(arg.value, "dtype") else repr(arg.value)
        return "np:" + plain
    if isinstance(arg, Weak):
        return f"weak:{arg.value}{list(arg.shape)}"
    if isinstance(arg, Fn):
        return arg.path
    if type(arg) in (list, tuple):
        inner = ",".join(map(describe, arg))
        return f"({inner})" if type(arg) is tuple else f"[{inner}]"
    return arg.__name__ if type(arg).__name__ == "function" else repr(arg)


def call(path, *args, rtol=None, **kwargs):
    """The case of calling the function at `path` with described arguments."""

    def run(ns):
        return ns.resolve(path)(*to_target(ns, args), **to_target(ns, kwargs))

    shown = [describe(arg) for arg in args] + [f"{key}={describe(arg)}" for key, arg in kwargs.items()]
    return Case(f"{path}({','.join(shown)})", run, rtol)


def unique(cases):
    """The cases as a list, a number added to ids that occur again."""
    seen, out = {}, []
    for case in cases:
        seen[case.id] = count = seen.get(case.id, 0) + 1
        out.append(case if count == 1 else dataclasses.replace(case, id=f"{case.id}#{count}"))
    return out
