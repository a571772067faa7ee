"""Sparse arrays of every layout, with duplicates and places out of bounds, beside the ordinary arrays they stand for."""

from itertools import product

import numpy as np

from gradix import numpy as jnp
from gradix.experimental import sparse

SHAPES = ((5,), (3, 4), (2, 3, 4), (2, 1, 3))


def layouts(shape):
    """All numbers of batch and dense axes."""
    return [(b, d) for b, d in product(range(len(shape) + 1), repeat=2) if b + d <= len(shape)]


def entries(shape, n_batch, n_dense, nse=4, seed=0, dtype="float32"):
    """Data and indices, some of which are given twice and some out of bounds, and what they stand for."""
    rng = np.random.default_rng((seed, n_batch, n_dense, *shape))
    n_sparse = len(shape) - n_batch - n_dense
    lead, sizes, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
    data = rng.integers(-4, 5, (*lead, nse, *dense)).astype(dtype)
    indices = (
        np.stack([rng.integers(0, n, (*lead, nse)) for n in sizes], -1) if n_sparse else np.zeros((*lead, nse, 0), int)
    )
    if n_sparse:
        indices[..., -1, :] = sizes
        data[(..., -1, *[slice(None)] * n_dense)] = 0
    whole = np.zeros(shape, dtype)
    for place in np.ndindex(*lead, nse):
        if not n_sparse or (indices[place] < sizes).all():
            whole[(*place[:-1], *indices[place])] += data[place]
    return data, indices.astype("int32"), whole


def array(shape, n_batch=0, n_dense=0, **options):
    """A BCOO array and the ordinary one."""
    data, indices, whole = entries(shape, n_batch, n_dense, **options)
    return sparse.BCOO((jnp.asarray(data), jnp.asarray(indices)), shape=shape), whole


def every():
    """All shapes and layouts."""
    return [(s, b, d) for s in SHAPES for b, d in layouts(s)]


def same(found, expected):
    """Whether a sparse or ordinary array is the expected one, in shape, dtype and value."""
    dense = found.todense() if isinstance(found, sparse.JAXSparse) else found
    assert dense.shape == np.shape(expected)
    if isinstance(found, sparse.JAXSparse):
        assert found.shape == dense.shape and found.dtype == dense.dtype
    np.testing.assert_allclose(dense, expected, rtol=2e-5, atol=2e-5)
