"""Products of sparse matrices with dense ones that are divided among devices."""

import numpy as np
import pytest

import gradix
from gradix import numpy as jnp
from gradix.errors import ShardingTypeError
from gradix.experimental import sparse
from gradix.sharding import AxisType, NamedSharding, PartitionSpec as P

RNG = np.random.default_rng(0)
WHOLE = RNG.normal(size=(16, 16)).astype("f") * (RNG.random((16, 16)) < 0.3)
DENSE = RNG.normal(size=(16, 32)).astype("f")


@pytest.mark.parametrize("spec", [P(None, "x"), P("x", None), P("x", "y")])
def test_the_compiler_divides(spec):
    mesh = gradix.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
    dense = gradix.device_put(DENSE, NamedSharding(mesh, spec))
    for form in (sparse.BCSR, sparse.BCOO):
        found = gradix.jit(lambda m, x: m @ x)(form.fromdense(WHOLE), dense)
        np.testing.assert_allclose(found, WHOLE @ DENSE, rtol=1e-4, atol=1e-4)


def test_columns_stay_divided_in_types():
    with gradix.set_mesh(gradix.make_mesh((4, 2), ("x", "y"))):
        m, dense = sparse.BCSR.fromdense(WHOLE), gradix.device_put(DENSE, P(None, "x"))
        found = gradix.jit(lambda m, x: m @ x)(m, dense)
        assert found.sharding.spec == P(None, "x")
        np.testing.assert_allclose(found, WHOLE @ DENSE, rtol=1e-4, atol=1e-4)
        by_dense = gradix.jit(gradix.grad(lambda x: jnp.sin(m @ x).sum()))(dense)
        np.testing.assert_allclose(by_dense, WHOLE.T @ np.cos(WHOLE @ DENSE), rtol=1e-3, atol=1e-3)
        by_elements = gradix.jit(sparse.grad(lambda m, x: jnp.sin(m @ x).sum()))(m, dense)
        np.testing.assert_allclose(
            by_elements.todense(), (np.cos(WHOLE @ DENSE) @ DENSE.T) * (WHOLE != 0), rtol=1e-3, atol=1e-3
        )
        with pytest.raises(ShardingTypeError, match="sparse_product"):
            gradix.jit(lambda m, x: m @ x)(m, gradix.device_put(DENSE, P("x", None)))
