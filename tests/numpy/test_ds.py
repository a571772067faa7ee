"""`gradix.ds`: parts of known size at traced places, of arrays and of mutable arrays."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

X = np.arange(12).reshape(3, 4)
INDICES = {
    "rows": lambda i: gradix.ds(i, 2),
    "block": lambda i: (gradix.ds(i, 2), gradix.ds(i, 2)),
    "columns": lambda i: (slice(None), gradix.ds(i, 2)),
    "both kinds": lambda i: (gradix.ds(0, 2), gradix.ds(i, 3)),
    "after a number": lambda i: (1, gradix.ds(i, 3)),
    "last": lambda i: (..., gradix.ds(i, 2, 2)),
    "new axis": lambda i: (None, gradix.ds(i, 2)),
    "first ones": lambda i: gradix.ds(2),
}
PLAIN = {
    "rows": np.s_[1:3],
    "block": np.s_[1:3, 1:3],
    "columns": np.s_[:, 1:3],
    "both kinds": np.s_[0:2, 1:4],
    "after a number": np.s_[1, 1:4],
    "last": np.s_[..., 1:4:2],
    "new axis": np.s_[None, 1:3],
    "first ones": np.s_[0:2],
}


@pytest.mark.parametrize("name", INDICES)
def test_parts_of_arrays(name):
    index, want = INDICES[name], X[PLAIN[name]]
    updated = X.copy()
    updated[PLAIN[name]] = -1

    def both(x, i):
        return x[index(i)], x.at[index(i)].set(-1)

    for got in (both(jnp.asarray(X), 1), gradix.jit(both)(X, 1)):
        np.testing.assert_array_equal(got[0], want)
        np.testing.assert_array_equal(got[1], updated)


def test_beyond_the_end_is_as_any_index_out_of_bounds():
    x = jnp.arange(5)
    for part in (x[gradix.ds(4, 3)], gradix.jit(lambda x, i: x[gradix.ds(i, 3)])(x, 4)):
        assert part.tolist() == [4, 4, 4]
    assert x.at[gradix.ds(4, 3)].get(mode="fill", fill_value=-1).tolist() == [4, -1, -1]
    assert x.at[gradix.ds(4, 3)].set(9).tolist() == [0, 1, 2, 3, 9]


def test_mutable_arrays_take_them():
    ref = gradix.new_ref(jnp.arange(5))

    @gradix.jit
    def write(i):
        ref[gradix.ds(i, 2)] = jnp.array([7, 8])
        return ref[gradix.ds(i, 3)]

    assert write(1).tolist() == [7, 8, 3]
    assert ref[...].tolist() == [0, 7, 8, 3, 4]


def test_what_has_no_meaning_is_refused():
    x = jnp.ones((3, 4, 5))
    with pytest.raises(NotImplementedError, match="next to it"):
        gradix.jit(lambda i: x[gradix.ds(i, 2), :, gradix.ds(i, 2)])(0)
    with pytest.raises(NotImplementedError, match="not beside arrays"):
        gradix.jit(lambda i: x[gradix.ds(i, 2), np.array([0, 1])])(0)
    with pytest.raises(ValueError, match="must not be below"):
        gradix.ds(0, -1)
    with pytest.raises(TypeError, match="must be an int"):
        gradix.jit(lambda n: x[gradix.ds(0, n)])(2)
