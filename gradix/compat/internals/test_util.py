"""`jax._src.test_util`: the tools of JAX's test suite that test suites of libraries use."""

from __future__ import annotations

import contextlib
import importlib
import unittest
import zlib
from collections.abc import Iterable, Iterator

import numpy as np

import gradix
from gradix import monitoring
from gradix.test_util import check_grads as check_grads, check_jvp as check_jvp, check_vjp as check_vjp

try:
    _Base = importlib.import_module("absl.testing.parameterized").TestCase
except ModuleNotFoundError:
    _Base = unittest.TestCase

_TOLERANCES = {2: 1e-2, 4: 1e-5, 8: 1e-12, 16: 1e-12}  # by the bytes of an element


class _Dtypes:
    """Lists of dtypes by kind; each has the dtypes that the options allow."""

    @staticmethod
    def supported(dtypes: Iterable) -> list:
        """Those of the dtypes that arrays can have under the current options."""
        return [d for d in dtypes if gradix.dtypes.canonicalize_dtype(d) == np.dtype(d)]

    floating = property(lambda self: self.supported([np.float32, np.float64]))
    all_floating = property(lambda self: self.supported([gradix.dtypes.bfloat16, np.float16, np.float32, np.float64]))
    integer = property(lambda self: self.supported([np.int32, np.int64]))
    all_integer = property(lambda self: self.supported([np.int8, np.int16, np.int32, np.int64]))
    unsigned = property(lambda self: self.supported([np.uint32, np.uint64]))
    all_unsigned = property(lambda self: self.supported([np.uint8, np.uint16, np.uint32, np.uint64]))
    complex = property(lambda self: self.supported([np.complex64, np.complex128]))
    boolean = property(lambda self: self.supported([np.bool_]))
    inexact = property(lambda self: [*self.floating, *self.complex])
    all_inexact = property(lambda self: [*self.all_floating, *self.complex])
    numeric = property(lambda self: [*self.floating, *self.integer, *self.unsigned, *self.complex])
    all = property(
        lambda self: [*self.all_floating, *self.all_integer, *self.all_unsigned, *self.complex, *self.boolean]
    )


dtypes = _Dtypes()


def device_under_test() -> str:
    """The platform that tests run on."""
    return gradix.default_backend()


def test_device_matches(device_types: Iterable[str]) -> bool:
    """Whether tests run on one of these platforms."""
    return device_under_test() in device_types


# By its name, pytest would take the function for a test.
test_device_matches.__test__ = False  # type: ignore[attr-defined]


def tolerance(dtype, tol=None) -> float:
    """The tolerance for values of a dtype: `tol`, or its entry for the dtype, or the default."""
    if isinstance(tol, dict):
        tol = {np.dtype(k): v for k, v in tol.items()}.get(np.dtype(dtype))
    return _TOLERANCES.get(np.dtype(dtype).itemsize, 0.0) if tol is None else tol


@contextlib.contextmanager
def count_jit_and_pmap_lowerings() -> Iterator:
    """A context manager that gives a function, which returns how many functions were compiled."""
    count = 0

    def listen(event: str, duration: float, **_) -> None:
        nonlocal count
        count += event == "/jax/core/compile/jaxpr_to_mlir_module_duration"

    monitoring.register_event_duration_secs_listener(listen)
    try:
        yield lambda: count
    finally:
        monitoring.unregister_event_duration_listener(listen)


class JaxTestCase(_Base):  # type: ignore[misc, valid-type]
    """A test case that compares arrays."""

    def rng(self) -> np.random.RandomState:
        """A generator of random numbers that depend on the test's name only."""
        return np.random.RandomState(zlib.adler32(self._testMethodName.encode()))

    def assertArraysEqual(self, x, y, *, check_dtypes: bool = True, err_msg: str = "") -> None:
        if check_dtypes:
            self.assertDtypesMatch(x, y)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y), err_msg=err_msg)

    def assertArraysAllClose(self, actual, desired, *, check_dtypes=True, atol=None, rtol=None, err_msg="") -> None:
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        a, b = (np.asarray(x, gradix.lax.dtype(x)) for x in (actual, desired))
        least = max(tolerance(a.dtype, atol), tolerance(b.dtype, atol))
        relative = max(tolerance(a.dtype, rtol), tolerance(b.dtype, rtol))
        wide = np.result_type(a, np.float32) if gradix.numpy.issubdtype(a.dtype, np.number) else None
        if wide is not None:
            a, b = a.astype(wide), b.astype(wide)
        np.testing.assert_allclose(a, b, rtol=relative, atol=least, err_msg=err_msg)

    def assertDtypesMatch(self, x, y, *, canonicalize_dtypes: bool = True) -> None:
        kind = gradix.lax.dtype if canonicalize_dtypes else lambda a: np.asarray(a).dtype
        self.assertEqual(kind(x), kind(y))

    def assertAllClose(self, actual, desired, *, check_dtypes=True, atol=None, rtol=None, err_msg="") -> None:
        """Compare two trees of arrays."""
        if isinstance(actual, dict):
            self.assertEqual(set(actual), set(desired))
            pairs = [(actual[k], desired[k]) for k in actual]
        elif isinstance(actual, (list, tuple)):
            self.assertEqual(len(actual), len(desired))
            pairs = list(zip(actual, desired))
        else:
            self.assertArraysAllClose(actual, desired, check_dtypes=check_dtypes, atol=atol, rtol=rtol, err_msg=err_msg)
            return
        for a, b in pairs:
            self.assertAllClose(a, b, check_dtypes=check_dtypes, atol=atol, rtol=rtol, err_msg=err_msg)


class JaxTestLoader(unittest.TestLoader):
    """A loader of tests."""


def check_close(xs, ys, atol=None, rtol=None, err_msg: str = "") -> None:
    """Compare trees of arrays, to a tolerance by the coarser dtype of each pair."""
    leaves, tree = gradix.tree.flatten(xs)
    others, other_tree = gradix.tree.flatten(ys)
    assert tree == other_tree, f"{tree} is not {other_tree}. {err_msg}"
    for x, y in zip(leaves, others):
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype, f"dtype {x.dtype} is not {y.dtype}. {err_msg}"
        default = max(_TOLERANCES.get(a.dtype.itemsize, 0.0) for a in (x, y))
        default = default if gradix.dtypes.issubdtype(x.dtype, np.inexact) else 0.0
        np.testing.assert_allclose(
            x.astype(np.complex128) if x.dtype.kind == "c" else x.astype(np.float64),
            y.astype(np.complex128) if y.dtype.kind == "c" else y.astype(np.float64),
            rtol=default if rtol is None else rtol,
            atol=default if atol is None else atol,
            err_msg=err_msg,
        )
