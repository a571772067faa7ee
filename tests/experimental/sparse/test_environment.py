"""Sparse arrays that share their indices in a list of buffers."""

import operator

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental.sparse import BCOO, BCSR, COO
from gradix.experimental.sparse.transform import (
    SparsifyEnv,
    SparsifyValue,
    arrays_to_spvalues,
    sparsify_raw,
    spvalues_to_arrays,
    spvalues_to_avals,
)

DENSE = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]], np.float32)


def test_arrays_become_numbers_of_buffers_and_arrays_again():
    env, args = SparsifyEnv(), (jnp.asarray(DENSE), {"a": BCOO.fromdense(DENSE)}, [BCSR.fromdense(DENSE)])
    values = arrays_to_spvalues(env, args)
    dense, (sparse, rows) = values[0], (values[1]["a"], values[2][0])
    assert dense == SparsifyValue((2, 3), 0) and sparse[:3] == ((2, 3), 1, 2) and rows[:4] == ((2, 3), 3, 4, 5)
    assert [v.is_dense() for v in (dense, sparse, rows)] == [True, False, False]
    assert [v.is_bcoo() for v in (dense, sparse, rows)] == [False, True, False] and rows.is_bcsr()
    assert env.indptr(rows).tolist() == [0, 1, 3] and env.indices(sparse).shape == (3, 2)
    back = spvalues_to_arrays(env, values)
    assert type(back[1]["a"]) is BCOO and type(back[2][0]) is BCSR and back[1]["a"].indices_sorted
    for x in (back[0], back[1]["a"].todense(), back[2][0].todense()):
        np.testing.assert_array_equal(x, DENSE)
    assert [a.shape for a in gradix.tree.leaves(spvalues_to_avals(env, values))] == [(2, 3)] * 3


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit])
@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.sub])
def test_operations_on_arrays_that_share_their_indices(op, transform):
    @transform
    def f(indices, one, other):
        env = SparsifyEnv([indices, one, other])
        x, y = [env.sparse((2, 3), data_ref=k, indices_ref=0, unique_indices=True) for k in (1, 2)]
        results, tree = sparsify_raw(lambda x, y: {"r": op(x, y)})(env, x, y)
        return tree.unflatten(spvalues_to_arrays(env, results))["r"]

    x = BCOO.fromdense(DENSE)
    out = f(x.indices, x.data, 10 * x.data)
    np.testing.assert_array_equal(out.todense(), op(DENSE, 10 * DENSE))


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        (lambda env: env.indices(env.dense(jnp.ones(2))), ValueError, "no buffer 'indices'"),
        (lambda env: env.data(SparsifyValue((2,), 7)), ValueError, "no buffer 'data' among the 0"),
        (lambda env: env.sparse((2,), jnp.ones(1)), ValueError, "needs the elements and the indices"),
        (lambda env: env.sparse((2,), jnp.ones(1), data_ref=0), ValueError, "not as both"),
        (lambda env: arrays_to_spvalues(env, COO.fromdense(DENSE)), NotImplementedError, "got a COO"),
    ],
)
def test_buffers_that_are_not_there_are_named(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong(SparsifyEnv())
