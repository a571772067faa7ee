"""Sparse arrays hold what JAX's hold: the same elements at the same indices, in layouts of every kind."""

import numpy as np
import pytest

import gradix
from gradix import numpy as jnp
from gradix.experimental import sparse
from tests.experimental.sparse.cases import entries, every

pytestmark = [pytest.mark.parity, pytest.mark.slow]
CASES = [c for c in every() if c[0] in ((3, 4), (2, 3, 4))]
FUNCTIONS = {
    "sort": lambda s, m: s.bcoo_sort_indices(m),
    "sum_duplicates": lambda s, m: s.bcoo_sum_duplicates(m),
    "sum_duplicates to a size": lambda s, m: s.bcoo_sum_duplicates(m, nse=6),
    "without zeros": lambda s, m: m.sum_duplicates(),
    "todense": lambda s, m: m.todense(),
    "fromdense": lambda s, m: s.BCOO.fromdense(m.todense(), n_batch=m.n_batch, n_dense=m.n_dense),
    "fromdense of a size": lambda s, m: s.BCOO.fromdense(m.todense(), n_batch=m.n_batch, n_dense=m.n_dense, nse=11),
    "without batches": lambda s, m: m.update_layout(n_batch=0, on_inefficient=None),
    "without dense axes": lambda s, m: m.update_layout(n_dense=0, on_inefficient=None),
    "extract": lambda s, m: s.bcoo_extract(m, m.todense() + 1, assume_unique=True),
    "reduce last": lambda s, m: s.bcoo_reduce_sum(m, axes=(len(m.shape) - 1,)),
    "product": lambda s, m: s.bcoo_dot_general(m, m.todense(), dimension_numbers=(((0,), (0,)), ((), ()))),
    "product over the last": lambda s, m: s.bcoo_dot_general(
        m, m.todense(), dimension_numbers=(((m.ndim - 1,), (m.ndim - 1,)), ((), ()))
    ),
    "negative": lambda s, m: -m,
    "twice": lambda s, m: m * 2,
    "sum of two": lambda s, m: m + m,
    "jacobian": lambda s, m: s.jacfwd(lambda m: m.todense().sum(0))(m),
    "gradient": lambda s, m: s.grad(lambda m: (m.todense() ** 2).sum())(m),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elements_and_indices_are_jaxs(name):
    jax = pytest.importorskip("jax")
    theirs = pytest.importorskip("jax.experimental.sparse")
    compared = 0
    for shape, n_batch, n_dense in CASES:
        data, indices, _ = entries(shape, n_batch, n_dense)
        try:
            want = FUNCTIONS[name](
                theirs, theirs.BCOO((jax.numpy.asarray(data), jax.numpy.asarray(indices)), shape=shape)
            )
        except NotImplementedError:
            continue
        found = FUNCTIONS[name](sparse, sparse.BCOO((jnp.asarray(data), jnp.asarray(indices)), shape=shape))
        assert repr(found).split("(")[0] == repr(want).split("(")[0]
        for ours, its in zip(gradix.tree.leaves(found), jax.tree.leaves(want), strict=True):
            assert ours.shape == its.shape and ours.dtype == its.dtype, (shape, n_batch, n_dense)
            np.testing.assert_allclose(ours, its, rtol=1e-5, atol=1e-5, err_msg=str((shape, n_batch, n_dense)))
        compared += 1
    assert compared >= 6
