"""Fourier transforms over divided axes, whose results are divided in another way than XLA's transform needs."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export
from gradix._runtime import xla
from gradix.sharding import AxisType, PartitionSpec as P

from .common import mesh, on, sharded

X = np.random.default_rng(0).normal(size=(16, 24)).astype(np.float32)
WANT = np.fft.rfft(np.stack([X, X[::-1]]))


def of_both(a):
    return gradix.vmap(jnp.fft.rfft)(jnp.stack([a, a[::-1]]))


@pytest.mark.parametrize("out", [(), (None, "x"), (None, ("x", "y")), ("y", "x")])
def test_stacks_of_transforms(out):
    f = gradix.jit(of_both, out_shardings=on(mesh(), *out))
    np.testing.assert_allclose(f(sharded(X, mesh(), "x", "y")), WANT, rtol=1e-4, atol=1e-4)


def test_within_auto_axes():
    m = gradix.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    with gradix.set_mesh(m):
        a = gradix.device_put(X, P("x", "y"))
        found = gradix.sharding.auto_axes(of_both, out_sharding=P())(a)
    np.testing.assert_allclose(found, WANT, rtol=1e-4, atol=1e-4)


@pytest.mark.xfail(
    xla.jaxlib_version >= "0.11",
    reason="XLA of jaxlib 0.12 refuses the layout of a transform in a program that was exported",
    strict=False,
)
def test_exported():
    a = sharded(X, mesh(), "x", "y")
    f = gradix.jit(of_both, in_shardings=a.sharding, out_shardings=on(mesh()))
    again = export.deserialize(export.export(f)(a).serialize())
    np.testing.assert_allclose(gradix.jit(again.call)(a), WANT, rtol=1e-4, atol=1e-4)
