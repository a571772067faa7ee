"""Ways of calling public functions with a vector `v` whose size values decide.

`FORMS` are tried with every function; `CALLS` has those that only one function takes, by its name.
"""

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import lax

_MATRIX = np.array([1.0, 2.5, -4.0], np.float32)
_KERNEL = np.array([0.5, -1.0, 0.25], np.float32)


def matrix(v):
    """A matrix of as many rows, and three columns."""
    return jnp.sin(v[:, None] * _MATRIX)


def square(v):
    """A symmetric matrix of as many rows and columns, of different eigenvalues that are positive for small numbers."""
    return jnp.outer(v, v) + jnp.diag(2 + jnp.arange(v.shape[0]) / 2)


def integers(v):
    return (v * 4).astype(int)


def key():
    return gradix.random.key(3)


FORMS = {
    "x": lambda f: lambda v: f(v),
    "x, x": lambda f: lambda v: f(v, v + 1),
    "x, x, x": lambda f: lambda v: f(v, v + 1, v + 2),
    "(x, x)": lambda f: lambda v: f((v, v + 1)),
    "x, 2": lambda f: lambda v: f(v, 2),
    "x, 1.5": lambda f: lambda v: f(v, np.float32(1.5)),
    "2, x": lambda f: lambda v: f(2, v),
    "x, axis 0": lambda f: lambda v: f(v, axis=0),
    "x, (0,)": lambda f: lambda v: f(v, (0,)),
    "matrix": lambda f: lambda v: f(matrix(v)),
    "matrix, axis 0": lambda f: lambda v: f(matrix(v), axis=0),
    "matrix, axis 1": lambda f: lambda v: f(matrix(v), axis=1),
    "matrix, matrix": lambda f: lambda v: f(matrix(v), matrix(v).T),
    "square": lambda f: lambda v: f(square(v)),
    "square, x": lambda f: lambda v: f(square(v), v),
    "square, square": lambda f: lambda v: f(square(v), square(v + 1)),
    "positive": lambda f: lambda v: f(1 + v * v, 2 + v * v),
    "probability": lambda f: lambda v: f(jnp.abs(v) / 2, 1 + v * v, 2 + v * v),
    "integers": lambda f: lambda v: f(integers(v)),
    "integers, integers": lambda f: lambda v: f(integers(v), integers(v) + 1),
    "integers, x": lambda f: lambda v: f(integers(v), jnp.abs(v) / 2),
    "integers, x, x": lambda f: lambda v: f(integers(v), 1 + jnp.abs(v), jnp.abs(v) / 2),
    "mask": lambda f: lambda v: f(v > 0.5),
    "mask, mask": lambda f: lambda v: f(v > 0.5, v < 0.8),
    "mask, x, x": lambda f: lambda v: f(v > 0.5, v, 0 * v),
    "complex": lambda f: lambda v: f(v + 1j * v * v),
    "key, x": lambda f: lambda v: f(key(), v),
    "key, 1 + x²": lambda f: lambda v: f(key(), 1 + v * v),
    "key, 1 + x², 1 + x²": lambda f: lambda v: f(key(), 1 + v * v, 2 + v * v),
    "key, shape": lambda f: lambda v: f(key(), (v.shape[0],)),
    "key, shape=": lambda f: lambda v: f(key(), shape=(v.shape[0],)),
    "key, 2, shape": lambda f: lambda v: f(key(), 2.0, (v.shape[0],)),
    "shape": lambda f: lambda v: f((v.shape[0], 2)),
    "size": lambda f: lambda v: f(v.shape[0]),
}


def _window(v):
    return lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))


def _scattered(f):
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    return lambda v: f(v, jnp.arange(v.shape[0])[:, None] // 2, 2 * v, numbers)


def _total(x, y):
    return x + y


def _positions(v):
    return jnp.arange(v.shape[0])


_pair = {"(mask, x)": lambda f: lambda v: f([v > 0.5, v <= 0.5], [v, -v])}

# of these functions, several results are right
ONLY_OWN = {"numpy.partition", "numpy.argpartition"}
CALLS = {
    "numpy.arange": lambda v: jnp.arange(v.shape[0]) * v,
    "numpy.block": lambda v: jnp.block([[v, v + 1], [2 * v, 3 * v]]),
    "numpy.bincount": lambda v: jnp.bincount(jnp.abs(integers(v)), length=6),
    "numpy.broadcast_to": lambda v: jnp.broadcast_to(v, (3, v.shape[0])),
    "numpy.choose": lambda v: jnp.choose((v > 0.5).astype(int), [v, -v], mode="clip"),
    "numpy.dsplit": lambda v: jnp.dsplit(matrix(v)[:, None, :], [1]),
    "numpy.kaiser": lambda v: jnp.kaiser(v.shape[0], 2.0),
    "numpy.unpackbits": lambda v: jnp.unpackbits(integers(v).astype(jnp.uint8)),
    "numpy.clip": lambda v: jnp.clip(v, 0.2, 0.8),
    "numpy.compress": lambda v: jnp.compress(v > 0.5, v),
    "numpy.convolve": lambda v: jnp.convolve(v, _KERNEL),
    "numpy.correlate": lambda v: jnp.correlate(v, _KERNEL, "same"),
    "numpy.cross": lambda v: jnp.cross(matrix(v), matrix(v + 1)),
    "numpy.delete": lambda v: jnp.delete(v, v > 0.5),
    "numpy.digitize": lambda v: jnp.digitize(v, np.array([0.0, 0.5, 1.0])),
    "numpy.einsum": lambda v: jnp.einsum("ij,ik->jk", matrix(v), square(v)),
    "numpy.expand_dims": lambda v: jnp.expand_dims(v, 0),
    "numpy.extract": lambda v: jnp.extract(v > 0.5, v),
    "numpy.eye": lambda v: jnp.eye(v.shape[0], 3) + v[:, None],
    "numpy.flip": lambda v: jnp.flip(v),
    "numpy.full": lambda v: jnp.full(v.shape, 2.5),
    "numpy.full_like": lambda v: jnp.full_like(v, 2.5),
    "numpy.histogram": lambda v: jnp.histogram(v, 4, (-1.0, 2.0))[0],
    "numpy.histogram2d": lambda v: jnp.histogram2d(v, v, np.linspace(-1, 2, 4))[0],
    "numpy.histogramdd": lambda v: jnp.histogramdd(matrix(v), [np.linspace(-1, 1, 3)] * 3)[0],
    "numpy.insert": lambda v: jnp.insert(v, 1, 0.5),
    "numpy.interp": lambda v: jnp.interp(v, np.array([0.0, 0.5, 1.0]), np.array([1.0, 3.0, 2.0])),
    "numpy.isin": lambda v: jnp.isin(integers(v), jnp.array([1, 2])),
    "numpy.lexsort": lambda v: jnp.lexsort((v, integers(v))),
    "numpy.linspace": lambda v: jnp.linspace(v, v + 1, 3),
    "numpy.logspace": lambda v: jnp.logspace(v, v + 1, 3),
    "numpy.geomspace": lambda v: jnp.geomspace(1 + v * v, 3 + v * v, 3),
    "numpy.mask_indices": lambda v: jnp.mask_indices(3, jnp.triu) [0] + v.sum().astype(int),
    "numpy.meshgrid": lambda v: jnp.meshgrid(v, _KERNEL),
    "numpy.moveaxis": lambda v: jnp.moveaxis(matrix(v), 0, 1),
    "numpy.nonzero": lambda v: jnp.nonzero(v > 0.5),
    "numpy.ones": lambda v: jnp.ones((v.shape[0], 2)),
    "numpy.pad": lambda v: jnp.pad(v, (1, 2), mode="edge"),
    "numpy.poly": lambda v: jnp.poly(jnp.concatenate([v, jnp.ones(1)])),
    "numpy.polymul": lambda v: jnp.polymul(jnp.concatenate([v, jnp.ones(1)]), _KERNEL),
    "numpy.argpartition": lambda v: jnp.sort(v[jnp.argpartition(v, 1)]),
    "numpy.partition": lambda v: jnp.sort(jnp.partition(v, 0)),
    "numpy.place": lambda v: jnp.place(v, v > 0.5, jnp.array([1.0, 2.0]), inplace=False),
    "numpy.put": lambda v: jnp.put(v, jnp.array([0]), 9.0, inplace=False, mode="clip"),
    "numpy.put_along_axis": lambda v: jnp.put_along_axis(v, _positions(v), 9.0, 0, inplace=False),
    "numpy.quantile": lambda v: jnp.quantile(v, jnp.array([0.25, 0.5])),
    "numpy.percentile": lambda v: jnp.percentile(v, 30.0),
    "numpy.nanquantile": lambda v: jnp.nanquantile(v, jnp.array([0.25, 0.5])),
    "numpy.nanpercentile": lambda v: jnp.nanpercentile(v, 30.0),
    "numpy.polyfit": lambda v: jnp.polyfit(jnp.concatenate([v, jnp.arange(4.0)]), jnp.concatenate([v, jnp.ones(4)]), 1),
    "numpy.polyval": lambda v: jnp.polyval(_KERNEL, v),
    "numpy.ravel_multi_index": lambda v: jnp.ravel_multi_index((_positions(v), _positions(v)), (9, 9), mode="clip"),
    "numpy.repeat": lambda v: jnp.repeat(v, (v > 0.5).astype(int), total_repeat_length=5),
    "numpy.reshape": lambda v: jnp.reshape(matrix(v), (-1,)),
    "numpy.resize": lambda v: jnp.resize(v, (v.shape[0],)),
    "numpy.roll": lambda v: jnp.roll(v, 2),
    "numpy.rot90": lambda v: jnp.rot90(matrix(v)),
    "numpy.searchsorted": lambda v: jnp.searchsorted(jnp.sort(v), jnp.array([0.1, 0.8])),
    "numpy.select": lambda v: jnp.select([v > 0.8, v > 0.4], [v, -v], 0.0),
    "numpy.split": lambda v: jnp.split(v, [2]),
    "numpy.array_split": lambda v: jnp.array_split(v, 2),
    "numpy.swapaxes": lambda v: jnp.swapaxes(matrix(v), 0, 1),
    "numpy.take": lambda v: jnp.take(v, _positions(v)[::-1], mode="clip"),
    "numpy.take_along_axis": lambda v: jnp.take_along_axis(v, _positions(v)[::-1], 0),
    "numpy.tensordot": lambda v: jnp.tensordot(matrix(v), matrix(v), ((0,), (0,))),
    "numpy.tile": lambda v: jnp.tile(v, 2),
    "numpy.trapezoid": lambda v: jnp.trapezoid(v),
    "numpy.tri": lambda v: jnp.tri(v.shape[0]),
    "numpy.tril_indices": lambda v: jnp.tril_indices(3)[0] + v.sum().astype(int),
    "numpy.unravel_index": lambda v: jnp.unravel_index(_positions(v), (2, 4)),
    "numpy.unstack": lambda v: jnp.unstack(matrix(v), axis=1),
    "numpy.vander": lambda v: jnp.vander(v, 3),
    "numpy.where": lambda v: jnp.where(v > 0.5, v, 0),
    "numpy.zeros": lambda v: jnp.zeros(v.shape),
    "numpy.empty": lambda v: 0 * jnp.empty(v.shape),
    "numpy.fill_diagonal": lambda v: jnp.fill_diagonal(square(v), 5.0, inplace=False),
    "numpy.astype": lambda v: jnp.astype(v, jnp.int32),
    "numpy.permute_dims": lambda v: jnp.permute_dims(matrix(v), (1, 0)),
    "numpy.matrix_transpose": lambda v: jnp.matrix_transpose(matrix(v)),
    "numpy.fromfunction": lambda v: jnp.fromfunction(lambda i: i * 2.0, (v.shape[0],)),
    "numpy.piecewise": lambda v: jnp.piecewise(v, [v > 0.5], [jnp.sin, jnp.cos]),
    "numpy.apply_along_axis": lambda v: jnp.apply_along_axis(jnp.cumsum, 0, matrix(v)),
    "numpy.apply_over_axes": lambda v: jnp.apply_over_axes(jnp.sum, matrix(v), [0]),
    "numpy.vectorize": lambda v: jnp.vectorize(lambda a: a * 2)(v),
    "numpy.frompyfunc": lambda v: jnp.frompyfunc(_total, nin=2, nout=1, identity=0)(v, v),
    "numpy.shape": lambda v: v * jnp.shape(v)[0],
    "numpy.size": lambda v: v * jnp.size(v),
    "numpy.ndim": lambda v: v * jnp.ndim(v),
    "numpy.result_type": lambda v: v.astype(jnp.result_type(v, 1)),
    "numpy.promote_types": lambda v: v.astype(jnp.promote_types(v.dtype, jnp.int32)),
    "numpy.indices": lambda v: jnp.indices((v.shape[0], 2)),
    "numpy.diag_indices": lambda v: jnp.diag_indices(v.shape[0]),
    "numpy.triu_indices": lambda v: jnp.triu_indices(3)[0] + v.sum().astype(int),
    "numpy.identity": lambda v: jnp.identity(v.shape[0]),
    "numpy.linalg.lstsq": lambda v: jnp.linalg.lstsq(jnp.concatenate([matrix(v), jnp.eye(3)]),
                                                     jnp.concatenate([v, jnp.ones(3)]))[0],
    "numpy.linalg.matrix_power": lambda v: jnp.linalg.matrix_power(square(v), 3),
    "numpy.linalg.solve": lambda v: jnp.linalg.solve(square(v), v),
    "numpy.linalg.multi_dot": lambda v: jnp.linalg.multi_dot([matrix(v).T, square(v), matrix(v)]),
    "numpy.linalg.tensorsolve": lambda v: jnp.linalg.tensorsolve(square(v), v),
    "numpy.linalg.tensordot": lambda v: jnp.linalg.tensordot(matrix(v), matrix(v), axes=((0,), (0,))),
    "numpy.linalg.cross": lambda v: jnp.linalg.cross(matrix(v), matrix(v + 1)),
    "nn.glu": lambda v: gradix.nn.glu(v[: v.shape[0] // 2 * 2]),
    "nn.one_hot": lambda v: gradix.nn.one_hot(integers(v), 5),
    "nn.dot_product_attention": lambda v: gradix.nn.dot_product_attention(
        *[jnp.sin(matrix(v + i))[None, :, None, :] for i in range(3)]),
    "ops.segment_sum": lambda v: gradix.ops.segment_sum(v, integers(v) % 3, 3),
    "ops.segment_max": lambda v: gradix.ops.segment_max(v, integers(v) % 3, 3),
    "ops.segment_min": lambda v: gradix.ops.segment_min(v, integers(v) % 3, 3),
    "ops.segment_prod": lambda v: gradix.ops.segment_prod(v, integers(v) % 3, 3),
    "lax.argmax": lambda v: lax.argmax(v, 0, jnp.int32),
    "lax.argmin": lambda v: lax.argmin(v, 0, jnp.int32),
    "lax.conv_general_dilated_local": lambda v: lax.conv_general_dilated_local(
        matrix(v)[:, None, :], jnp.ones((1, 2, 2)), (1,), "VALID", (2,)),
    "lax.associative_scan": lambda v: lax.associative_scan(_total, v),
    "lax.batch_matmul": lambda v: lax.batch_matmul(matrix(v)[:, None], matrix(v)[:, :, None]),
    "lax.bitcast_convert_type": lambda v: lax.bitcast_convert_type(v, jnp.int32),
    "lax.betainc": lambda v: lax.betainc(1 + v * v, 2 + v * v, jnp.abs(v) / 2),
    "lax.broadcast": lambda v: lax.broadcast(v, (2,)),
    "lax.broadcast_in_dim": lambda v: lax.broadcast_in_dim(v, (3, v.shape[0]), (1,)),
    "lax.broadcast_like": lambda v: lax.broadcast_like(jnp.float32(2), v),
    "lax.broadcast_to_rank": lambda v: lax.broadcast_to_rank(v, 3),
    "lax.broadcasted_iota": lambda v: lax.broadcasted_iota(jnp.int32, (v.shape[0], 2), 0),
    "lax.clamp": lambda v: lax.clamp(0.2, v, 0.8),
    "lax.collapse": lambda v: lax.collapse(matrix(v), 0, 2),
    "lax.concatenate": lambda v: lax.concatenate([v, v + 1, _KERNEL], 0),
    "lax.cond": lambda v: lax.cond(v.sum() > 1, jnp.sin, jnp.cos, v),
    "lax.conv": lambda v: lax.conv(v[None, None], _KERNEL[None, None], (1,), "SAME"),
    "lax.conv_general_dilated": lambda v: lax.conv_general_dilated(v[None, None], _KERNEL[None, None], (2,), [(1, 1)]),
    "lax.conv_general_dilated_patches": lambda v: lax.conv_general_dilated_patches(v[None, None], (3,), (1,), [(1, 1)]),
    "lax.conv_transpose": lambda v: lax.conv_transpose(v[None, :, None], _KERNEL[:, None, None], (1,), "SAME"),
    "lax.conv_with_general_padding": lambda v: lax.conv_with_general_padding(
        v[None, None], _KERNEL[None, None], (1,), [(1, 1)], (1,), (1,)),
    "lax.convert_element_type": lambda v: lax.convert_element_type(v, jnp.int32),
    "lax.custom_linear_solve": lambda v: lax.custom_linear_solve(lambda x: 2 * x, v, lambda m, b: b / 2, symmetric=True),
    "lax.custom_root": lambda v: lax.custom_root(
        lambda x: x - v, 0 * v, lambda f, x: x - f(x), lambda g, y: y),
    "lax.dot_general": lambda v: lax.dot_general(matrix(v), matrix(v), (((0,), (0,)), ((), ()))),
    "lax.dynamic_index_in_dim": lambda v: lax.dynamic_index_in_dim(matrix(v), 1, 1),
    "lax.dynamic_slice": lambda v: lax.dynamic_slice(jnp.pad(v, (0, 3)), (jnp.int32(1),), (3,)),
    "lax.dynamic_slice_in_dim": lambda v: lax.dynamic_slice_in_dim(jnp.pad(v, (0, 3)), 1, 3),
    "lax.dynamic_update_index_in_dim": lambda v: lax.dynamic_update_index_in_dim(matrix(v), v, 1, 1),
    "lax.dynamic_update_slice": lambda v: lax.dynamic_update_slice(jnp.pad(v, (0, 3)), 2 * v, (1,)),
    "lax.dynamic_update_slice_in_dim": lambda v: lax.dynamic_update_slice_in_dim(jnp.pad(v, (0, 3)), _KERNEL, 1, 0),
    "lax.empty": lambda v: 0 * lax.empty(v.shape, jnp.float32),
    "lax.expand_dims": lambda v: lax.expand_dims(v, (0, 2)),
    "lax.fft": lambda v: lax.fft(v + 0j, "FFT", (v.shape[0],)),
    "lax.fori_loop": lambda v: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + i, v),
    "lax.full": lambda v: lax.full(v.shape, 2.5),
    "lax.full_like": lambda v: lax.full_like(v, 2.5),
    "lax.gather": lambda v: lax.gather(
        v, jnp.arange(4)[:, None], lax.GatherDimensionNumbers((), (0,), (0,)), (1,), mode="fill", fill_value=7.0),
    "lax.index_in_dim": lambda v: lax.index_in_dim(matrix(v), 1, 1),
    "lax.index_take": lambda v: lax.index_take(matrix(v), (jnp.array([0, 2]),), (1,)),
    "lax.integer_pow": lambda v: lax.integer_pow(v, 3),
    "lax.iota": lambda v: lax.iota(jnp.int32, v.shape[0]),
    "lax.map": lambda v: lax.map(jnp.sin, v),
    "lax.optimization_barrier": lambda v: lax.optimization_barrier((v, v + 1)),
    "lax.pad": lambda v: lax.pad(v, np.float32(3), [(1, 2, 1)]),
    "lax.platform_dependent": lambda v: lax.platform_dependent(v, cpu=jnp.sin, default=jnp.cos),
    "lax.ragged_dot": lambda v: lax.ragged_dot(matrix(v), jnp.ones((2, 3, 2)), jnp.array([1, 1])),
    "lax.reduce": lambda v: lax.reduce(v, jnp.float32(0), lax.add, (0,)),
    "lax.reduce_and": lambda v: lax.reduce_and(v > 0.5, (0,)),
    "lax.reduce_or": lambda v: lax.reduce_or(v > 0.5, (0,)),
    "lax.reduce_xor": lambda v: lax.reduce_xor(integers(v), (0,)),
    "lax.reduce_precision": lambda v: lax.reduce_precision(v, 5, 3),
    "lax.reduce_window": lambda v: lax.reduce_window(v, 0.0, lax.add, (3,), (1,), [(1, 1)]),
    "lax.reshape": lambda v: lax.reshape(matrix(v), (3 * v.shape[0],)),
    "lax.scan": lambda v: lax.scan(lambda c, x: (c + x, c * x), jnp.float32(0), v),
    "lax.scatter": _scattered(lambda *a: lax.scatter_add(*a)),
    "lax.scatter_add": _scattered(lax.scatter_add),
    "lax.scatter_sub": _scattered(lax.scatter_sub),
    "lax.scatter_mul": _scattered(lambda *a: lax.scatter_mul(*a, unique_indices=False)),
    "lax.scatter_max": _scattered(lax.scatter_max),
    "lax.scatter_min": _scattered(lax.scatter_min),
    "lax.scatter_apply": lambda v: lax.scatter_apply(
        v, jnp.arange(v.shape[0])[:, None], jnp.sin, lax.ScatterDimensionNumbers((), (0,), (0,)),
        update_shape=v.shape),
    "lax.select": lambda v: lax.select(v > 0.5, v, -v),
    "lax.select_n": lambda v: lax.select_n((v > 0.5).astype(int), v, -v),
    "lax.slice": lambda v: lax.slice(matrix(v), (0, 1), (v.shape[0], 3)),
    "lax.slice_in_dim": lambda v: lax.slice_in_dim(v, 0, v.shape[0]),
    "lax.sort": lambda v: lax.sort((integers(v) % 2, v), num_keys=2),
    "lax.sort_key_val": lambda v: lax.sort_key_val(v, 2 * v),
    "lax.split": lambda v: lax.split(matrix(v), (1, 2), axis=1),
    "lax.squeeze": lambda v: lax.squeeze(v[None], (0,)),
    "lax.switch": lambda v: lax.switch(1, [jnp.sin, jnp.cos], v),
    "lax.tile": lambda v: lax.tile(v[None], (2, 1)),
    "lax.top_k": lambda v: lax.top_k(matrix(v), 2),
    "lax.approx_max_k": lambda v: lax.approx_max_k(matrix(v), 2),
    "lax.approx_min_k": lambda v: lax.approx_min_k(matrix(v), 2),
    "lax.transpose": lambda v: lax.transpose(matrix(v), (1, 0)),
    "lax.unstack": lambda v: lax.unstack(matrix(v), axis=1),
    "lax.while_loop": lambda v: lax.while_loop(lambda c: c.sum() > 0.5, lambda c: c / 2, v),
    "lax.random_gamma_grad": lambda v: lax.random_gamma_grad(1 + v * v, 1 + v * v),
    "lax.igamma_grad_a": lambda v: lax.igamma_grad_a(1 + v * v, 2 + v * v),
    "lax.linalg.triangular_solve": lambda v: lax.linalg.triangular_solve(square(v), v[:, None], left_side=True, lower=True),
    "lax.linalg.cholesky_update": lambda v: lax.linalg.cholesky_update(square(v), v),
    "lax.linalg.symmetric_product": lambda v: lax.linalg.symmetric_product(matrix(v), square(v)),
    "lax.linalg.tridiagonal_solve": lambda v: lax.linalg.tridiagonal_solve(v, 5 + v, v, v[:, None]),
    "lax.linalg.householder_product": lambda v: lax.linalg.householder_product(square(v), v),
    "random.categorical": lambda v: gradix.random.categorical(key(), v),
    "random.choice": lambda v: gradix.random.choice(key(), v, (4,)),
    "random.permutation": lambda v: gradix.random.permutation(key(), v),
    "random.dirichlet": lambda v: gradix.random.dirichlet(key(), 1 + v * v),
    "random.multivariate_normal": lambda v: gradix.random.multivariate_normal(key(), v, square(v)),
    "random.randint": lambda v: gradix.random.randint(key(), v.shape, 0, 9),
    "random.split": lambda v: gradix.random.key_data(gradix.random.split(key(), v.shape[0])),
    "random.ball": lambda v: gradix.random.ball(key(), 2, shape=v.shape),
    "random.truncated_normal": lambda v: gradix.random.truncated_normal(key(), v, v + 1),
    "random.triangular": lambda v: gradix.random.triangular(key(), v, v + 0.5, v + 1),
    "random.binomial": lambda v: gradix.random.binomial(key(), 5, jnp.abs(v) / 2),
    "random.multinomial": lambda v: gradix.random.multinomial(key(), 5, jnp.abs(v) / 4),
    "random.orthogonal": lambda v: gradix.random.orthogonal(key(), 2, v.shape),
    "random.generalized_normal": lambda v: gradix.random.generalized_normal(key(), 2.0, v.shape),
    "random.key": lambda v: gradix.random.normal(gradix.random.key(1), v.shape),
    "random.PRNGKey": lambda v: gradix.random.normal(gradix.random.PRNGKey(1), v.shape),
    "random.fold_in": lambda v: gradix.random.normal(gradix.random.fold_in(key(), 3), v.shape),
    "random.f": lambda v: gradix.random.f(key(), 1 + v * v, 2 + v * v),
    "scipy.stats.truncnorm": lambda v: gradix.scipy.stats.truncnorm.pdf(v, -1.0, 2.0),
    "scipy.special.logsumexp": lambda v: gradix.scipy.special.logsumexp(v),
    "scipy.special.lpmn_values": lambda v: gradix.scipy.special.lpmn_values(2, 2, v / 2, True),
    "scipy.special.sph_harm_y": lambda v: gradix.scipy.special.sph_harm_y(
        jnp.array([1]), jnp.array([1]), v, v, n_max=2),
    "scipy.linalg.companion": lambda v: gradix.scipy.linalg.companion(jnp.concatenate([jnp.ones(2), v])),
    "scipy.linalg.solve_sylvester": lambda v: gradix.scipy.linalg.solve_sylvester(square(v), square(v), square(v)),
    "scipy.linalg.eigh_tridiagonal": lambda v: gradix.scipy.linalg.eigh_tridiagonal(v, 1 + v[1:], eigvals_only=True),
    "scipy.linalg.leslie": lambda v: gradix.scipy.linalg.leslie(v, v[1:]),
    "scipy.linalg.fiedler_companion": lambda v: gradix.scipy.linalg.fiedler_companion(jnp.concatenate([jnp.ones(2), v])),
    "scipy.special.hyp2f1": lambda v: gradix.scipy.special.hyp2f1(1.0, 2.0, 3.0, v / 2),
    "scipy.special.bessel_jn": lambda v: gradix.scipy.special.bessel_jn(v, v=2),
    "scipy.linalg.solve": lambda v: gradix.scipy.linalg.solve(square(v), v, assume_a="pos"),
    "scipy.linalg.cho_solve": lambda v: gradix.scipy.linalg.cho_solve((jnp.linalg.cholesky(square(v)), True), v),
    "scipy.linalg.lu_solve": lambda v: gradix.scipy.linalg.lu_solve(gradix.scipy.linalg.lu_factor(square(v)), v),
    "scipy.linalg.solve_triangular": lambda v: gradix.scipy.linalg.solve_triangular(square(v), v, lower=True),
    "scipy.linalg.block_diag": lambda v: gradix.scipy.linalg.block_diag(square(v), jnp.ones((2, 2))),
    "scipy.linalg.convolution_matrix": lambda v: gradix.scipy.linalg.convolution_matrix(_KERNEL, v.shape[0]),
    "scipy.signal.convolve": lambda v: gradix.scipy.signal.convolve(v, _KERNEL, "full"),
    "scipy.signal.correlate": lambda v: gradix.scipy.signal.correlate(v, _KERNEL, "full"),
    "scipy.signal.fftconvolve": lambda v: gradix.scipy.signal.fftconvolve(v, _KERNEL),
    "scipy.signal.convolve2d": lambda v: gradix.scipy.signal.convolve2d(matrix(v), np.ones((2, 2), np.float32)),
    "scipy.signal.correlate2d": lambda v: gradix.scipy.signal.correlate2d(matrix(v), np.ones((2, 2), np.float32)),
    "scipy.cluster.vq.vq": lambda v: gradix.scipy.cluster.vq.vq(matrix(v), jnp.eye(3)),
    "scipy.ndimage.map_coordinates": lambda v: gradix.scipy.ndimage.map_coordinates(_KERNEL, [jnp.abs(v)], 1),
    "scipy.integrate.trapezoid": lambda v: gradix.scipy.integrate.trapezoid(v),
    "scipy.sparse.linalg.cg": lambda v: gradix.scipy.sparse.linalg.cg(lambda x: square(v) @ x, v)[0],
    "scipy.sparse.linalg.bicgstab": lambda v: gradix.scipy.sparse.linalg.bicgstab(lambda x: square(v) @ x, v)[0],
    "scipy.sparse.linalg.gmres": lambda v: gradix.scipy.sparse.linalg.gmres(lambda x: square(v) @ x, v)[0],
    "scipy.optimize.minimize": lambda v: gradix.scipy.optimize.minimize(
        lambda x: ((x - 1) ** 2).sum() + v.sum(), jnp.zeros(2), method="BFGS").x,
    "image.resize": lambda v: gradix.image.resize(v[:, None], (v.shape[0], 2), "nearest"),
    "image.scale_and_translate": lambda v: gradix.image.scale_and_translate(
        v[:, None], (v.shape[0], 2), (1,), jnp.array([2.0]), jnp.array([0.0]), "linear"),
}  # fmt: skip
for _name in ("normal", "uniform", "truncated_normal"):
    CALLS[f"nn.initializers.{_name}"] = lambda v, f=_name: getattr(gradix.nn.initializers, f)()(key(), (v.shape[0], 2))
for _name in ("ones", "zeros"):
    CALLS[f"nn.initializers.{_name}"] = lambda v, f=_name: getattr(gradix.nn.initializers, f)(key(), (v.shape[0], 2))
CALLS["nn.initializers.constant"] = lambda v: gradix.nn.initializers.constant(3.0)(key(), (v.shape[0], 2))
