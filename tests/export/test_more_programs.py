"""Sizes that are variables where functions take numbers, and operations with forms of their own for them."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export, lax
from tests.export.common import SIZES, arrays_of, assert_same, function_of, specs_of

PROGRAMS = (
    ("(jnp.tile(x, x.shape[0]), jnp.tile(x, (x.shape[0], 2)), jnp.tile(x[0], (2, x.shape[0] + 1)))", ("a, 3",)),
    (
        "(jnp.repeat(x, x.shape[0], axis=1), jnp.repeat(x, x.shape[0] + 1, axis=0), jnp.repeat(x, x.shape[0]))",
        ("a, 3",),
    ),
    (
        "(jnp.pad(x, ((0, x.shape[0]), (1, 0))), jnp.pad(x, (x.shape[0], 2), constant_values=3.), jnp.pad(x, x.shape[0], mode='edge'))",
        ("a, 3",),
    ),
    ("jnp.pad(x, ((x.shape[0], 1), (0, 0)), mode='wrap')", ("a, 3",)),
    (
        "(jax.ops.segment_sum(x, jnp.argsort(x[:, 0]), num_segments=x.shape[0]), jax.ops.segment_max(x, jnp.zeros(x.shape[0], int), num_segments=x.shape[0] * 2))",
        ("a, 3",),
    ),
    (
        "(jnp.packbits(x > 0), jnp.packbits(x > 0, axis=0, bitorder='little'), jnp.unpackbits(jnp.packbits(x[:, 0] > 0))[:x.shape[0]])",
        ("a, 3",),
    ),
    (
        "(jnp.tril_indices(x.shape[0]), jnp.triu_indices(x.shape[0]), jnp.tril_indices_from(x, -1), jnp.triu_indices_from(x, 1))",
        ("a, a",),
    ),
    (
        "(jnp.tril_indices(x.shape[0], 1, 4), jnp.triu_indices(x.shape[0], -2, 3), jnp.tril_indices(3, 0, x.shape[0]), jnp.triu_indices(5, 2, x.shape[0]))",
        ("a",),
    ),
    (
        "lax.rng_bit_generator(jnp.arange(4, dtype='uint32'), (x.shape[0], 3), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)",
        ("a",),
    ),
    ("jax.random.normal(jax.random.key(3, impl='rbg'), (x.shape[0], 2))", ("a",)),
    ("[jnp.abs(t) for t in jnp.linalg.svd(x, full_matrices=False)]", ("a, 3",)),
    ("(jnp.linalg.svd(x, compute_uv=False), jnp.linalg.svdvals(x.T))", ("a, 3",)),
    ("lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 1), 'SAME')", ("a, 3",)),
    ("lax.reduce_window(x, jnp.inf, lax.min, x.shape, None, 'VALID')", ("a, 3",)),
    ("lax.reduce_window(x, 0., lax.add, (2, x.shape[0] // 2 + 1), (1, 2), 'SAME', window_dilation=(1, 2))", ("a, 5",)),
    ("lax.reduce_window(x, 1., lambda a, b: a * b, (x.shape[0], 2), (1, x.shape[0]), ((0, 1), (1, 2)))", ("a, 5",)),
    ("jax.grad(lambda x: (lax.reduce_window(x, 0., lax.add, (1, x.shape[0])) ** 2).sum())(x)", ("a, a + 2",)),
    ("jax.vmap(lambda r: lax.reduce_window(r, -jnp.inf, lax.max, (x.shape[0],)))(x)", ("a, a + 1",)),
    (
        "lax.reduce_window((x, x), (1., 2.), lambda a, b: (a[0] + b[0], a[1] - b[1]), (2, x.shape[0]), (1, 2), 'VALID')",
        ("a + 1, a + 2",),
    ),
    ("jax.nn.one_hot(jnp.arange(4), x.shape[0])", ("a",)),
    ("[jnp.pad(x, ((x.shape[0], 1), (2, 0)), mode=m) for m in ('linear_ramp', 'maximum', 'mean')]", ("a, 3",)),
    ("jnp.pad(x, 2, mode='minimum', stat_length=x.shape[0])", ("a, 3",)),
    (
        "jax.random.key_data(jax.random.split(jax.random.wrap_key_data(jnp.arange(4, dtype='uint32'), impl='rbg'), x.shape[0]))",
        ("a",),
    ),
    ("jax.random.gamma(jax.random.key(3, impl='unsafe_rbg'), jnp.abs(x) + 1)", ("a, 2",)),
    (
        "jax.vmap(lambda k, x: jax.random.key_data(jax.random.fold_in(k, 2)))(jax.random.split(jax.random.key(3, impl='rbg'), x.shape[0]), x)",
        ("a",),
    ),
    ("lax.conv_general_dilated(x[None, None], jnp.ones((1, 1, 4)), (2,), 'VALID')", ("a",)),
    (
        "(lax.slice_in_dim(x, 0, x.shape[0], stride=1 + x.shape[0] // 2), jnp.split(x, (x.shape[0] - 1,)))",
        ("a + 1, 3",),
    ),
    ("lax.dynamic_slice(x, (-1, 1), (x.shape[0] - 1, 2))", ("a + 1, 3",)),
    ("jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (3, 2), (2, 1), 'SAME') ** 2).sum())(x)", ("a, 3",)),
    ("jax.grad(lambda x: (lax.reduce_window(x, 0., lax.add, (3, 1), (3, 1), 'SAME') ** 2).sum())(x)", ("a, 3",)),
    ("lax.reduce_window(x, 1., lax.mul, (2, 2), (2, 2), 'SAME', base_dilation=(2, 1))", ("a, 3",)),
    ("jax.vmap(lambda r: lax.reduce_window(r, 0., lax.add, (2,), (2,), 'SAME'))(x)", ("a, b",)),
    (
        "(jax.scipy.linalg.pascal(x.shape[0]), jax.scipy.linalg.pascal(x.shape[0], 'lower'), jax.scipy.linalg.pascal(x.shape[0], 'upper'))",
        ("a",),
    ),
    (
        "(jax.scipy.linalg.dft(x.shape[0]), jax.scipy.linalg.dft(x.shape[0], 'sqrtn'), jax.scipy.linalg.dft(x.shape[0], 'n'))",
        ("a",),
    ),
    ("jax.scipy.linalg.sqrtm(x @ x.T + 3 * jnp.eye(x.shape[0]))", ("a, 3",)),
    ("jax.scipy.linalg.solve_sylvester(x @ x.T + 3 * jnp.eye(x.shape[0]), 2 * jnp.eye(3), x)", ("a, 3",)),
    ("lax.scan(lambda c, _: (c * 0.5 + 1, c), x[0], None, length=x.shape[0] // 2 + 1)", ("a, 3",)),
    ("lax.scan(lambda c, r: (c + r, c), x[0], x, length=x.shape[0], unroll=2)", ("a, 3",)),
    ("jnp.einsum('bi,ij,bj->b', x, jnp.ones((3, 3)), x)", ("a, 3",)),
    ("(jnp.einsum('ab,bc,cd->ad', x, y, x), jnp.linalg.multi_dot([x, y, x, y]))", ("a, b", "b, a")),
    ("jax.grad(lambda x: jnp.einsum('ai,bi,ab,i->', x, x, x @ x.T, x[0], optimize='optimal'))(x)", ("a, 3",)),
)


@pytest.mark.promotes
@pytest.mark.parametrize(("text", "shapes"), PROGRAMS)
def test_one_export_serves_all_sizes(text, shapes):
    f = function_of(text, len(shapes))
    exported = export.deserialize(export.export(gradix.jit(f))(*specs_of(shapes)).serialize())
    for sizes in SIZES[:3]:
        args = arrays_of(shapes, sizes)
        assert_same(exported.call(*args), gradix.jit(f)(*args), rtol=2e-3, atol=2e-3)


def test_orders_of_contractions_weigh_open_sizes_as_large():
    path = lambda n: gradix.eval_shape(
        lambda x, w: orders.append(jnp.einsum_path("ni,ij,jk,nk->n", x, w, w, x)[0]),
        *[gradix.ShapeDtypeStruct(s, "float32") for s in ((n, 9), (9, 9))],
    )
    orders: list = []
    for n in (
        100,
        *export.symbolic_shape("n"),
        *export.symbolic_shape("n", constraints=["n >= 1000"]),
        1000,
        *export.symbolic_shape("n", constraints=["n <= 2"]),
        2,
    ):
        path(n)
    assert orders[0] == orders[1] and orders[2] == orders[3] and orders[4] == orders[5] != orders[0]


def test_scans_of_a_length_that_is_no_size_of_theirs_are_refused():
    a, b = export.symbolic_shape("a, b")
    with pytest.raises(ValueError, match="disagrees with leading axis sizes"):
        gradix.eval_shape(
            lambda x: lax.scan(lambda c, r: (c, r), 0.0, x, length=b), gradix.ShapeDtypeStruct((a,), "float32")
        )
    assert np.asarray(lax.scan(lambda c, _: (c + 1, c), 0.0, None, length=np.int64(3))[1]).tolist() == [0, 1, 2]


def test_derivatives_in_integers_of_open_sizes():
    def f(i, x):
        return 2 * i.T, x.T * x.T

    i, x = np.arange(6, dtype=np.int32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(3, 4)
    cts = np.zeros((3, 2), gradix.dtypes.float0), np.ones((4, 3), np.float32)
    exported = export.export(gradix.jit(f))(*export.symbolic_args_specs([i, x], ["2, a", "a, 4"]))
    again = export.deserialize(exported.serialize(vjp_order=2))
    _, pull = gradix.vjp(again.call, i, x)
    no, ct = pull(cts)
    assert no.dtype == gradix.dtypes.float0 and no.shape == (2, 3)
    np.testing.assert_array_equal(ct, 2 * x)
    second = gradix.vjp(pull, cts)[1]((no, ct))[0]
    assert second[0].shape == (3, 2)
    np.testing.assert_array_equal(second[1], 2 * x.T * ct.T)
