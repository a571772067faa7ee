"""Within `shard_map`, types say of which values the devices hold summands, and gradients are those of the sums."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.errors import ShardingTypeError
from gradix.sharding import AxisType, PartitionSpec as P, reshard

W = np.random.RandomState(0).randn(4, 4).astype(np.float32)
B = np.random.RandomState(1).randn(4, 4).astype(np.float32)
U = P(None, None, unreduced={"x"})
R = P(None, None, reduced={"x"})
EYE = 9 * np.eye(4, dtype=np.float32)


def mesh(*shape):
    shape = shape or (2,)
    return gradix.set_mesh(
        gradix.make_mesh(shape, ("x", "y")[: len(shape)], axis_types=(AxisType.Explicit,) * len(shape))
    )


def summands():
    """The product of W and B, of which each of two devices has a summand."""
    rows, columns = gradix.device_put(W, P(None, "x")), gradix.device_put(B, P("x", None))
    return jnp.matmul(rows, columns, out_sharding=U)


def mapped(function, out=U, ins=(U,), **options):
    return gradix.jit(gradix.shard_map(function, in_specs=ins, out_specs=out, **options))


def whole(x):
    return np.asarray(reshard(x, P(*[None] * x.ndim)))


def test_types_say_what_is_still_to_be_summed():
    seen = []

    def inner(p):
        values = p, p * 2.0, p.T + p, lax.psum(p, "x"), lax.psum_scatter(p, "x", tiled=True)
        seen.extend([gradix.typeof(v) for v in values])
        seen.append(gradix.typeof(lax.pcast(values[-1], "x", to="unreduced")))
        return p

    with mesh():
        mapped(inner)(summands())
    assert [t.str_short() for t in seen] == [
        "float32[4,4]{U:x}",
        "float32[4,4]{U:x}",
        "float32[4,4]{U:x}",
        "float32[4,4]",
        "float32[2,4]{V:x}",
        "float32[2,4]{U:x}",
    ]
    assert (seen[0].mat.unreduced, seen[0].mat.varying, seen[0].mat.reduced) == ({"x"}, set(), set())


def test_sums_over_one_axis_keep_those_over_the_other():
    seen = []

    def scattered(p):
        out = lax.psum_scatter(p, "y", tiled=True)
        seen.append(gradix.typeof(out).str_short())
        return out

    def inner(p):
        seen.append(gradix.typeof(p).str_short())
        return lax.psum(p, ("x", "y"))

    with mesh(2, 2):
        rows = gradix.device_put(np.tile(W, 2), P(None, ("x", "y")))
        columns = gradix.device_put(np.tile(B, (2, 1)), P(("x", "y"), None))
        both = P(None, None, unreduced={"x", "y"})
        u = jnp.matmul(rows, columns, out_sharding=both)
        np.testing.assert_allclose(mapped(inner, P(None, None), (both,))(u), 2 * W @ B, rtol=1e-5)
        part = mapped(scattered, P("y", None, unreduced={"x"}), (both,))(u)
        np.testing.assert_allclose(whole(part), 2 * W @ B, rtol=1e-5)
    assert seen == ["float32[4,4]{U:(x,y)}", "float32[2,4]{V:y, U:x}"]


@pytest.mark.parametrize(
    "function, want",
    [
        (lambda p: p * jnp.arange(4.0), (W @ B) * np.arange(4.0)),
        (lambda p: p @ B, W @ B @ B),
        (lambda p: p + 1, W @ B + 1),
        (lambda p: jnp.where(jnp.arange(4) > 1, p, 3.0), np.where(np.arange(4) > 1, W @ B, 3)),
        (lambda p: lax.scan(lambda c, row: (c + row, None), jnp.zeros_like(p[0]), p)[0], (W @ B).sum(0)),
        (lambda p: lax.cond(p.shape[0] > 1, lambda q: q, lambda q: q * 2.0, p), W @ B),
    ],
)
def test_linear_functions_of_summands_are_summands(function, want):
    """A value that all devices have is added once."""
    with mesh():
        got = mapped(function, P(*[None] * want.ndim, unreduced={"x"}))(summands())
        np.testing.assert_allclose(whole(got), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "function, out, error, message",
    [
        (jnp.sin, P(None, None), NotImplementedError, "unreduced rule for sin is not implemented.*psum"),
        (lambda p: p @ p, U, NotImplementedError, "only one factor can be so"),
        (lambda p: 1 / p, U, NotImplementedError, "only the first operand can be so"),
        (lambda p: p * lax.axis_index("x"), U, ShardingTypeError, "while another varies over it.*psum.*pcast"),
        (lambda p: p + lax.axis_index("x"), U, ShardingTypeError, "while another varies over it"),
        (lambda p: p, P("x", None), ValueError, r"still to be summed over \{x\}.*unreduced=\{x\}.*check_vma=False"),
        (lambda p: p, P(None, None), ValueError, r"still to be summed over \{x\}"),
        (lambda p: lax.pmax(p, "x"), P(None, None), ValueError, "pmax cannot take.*still to be summed.*psum"),
        (lambda p: lax.ppermute(p, "x", [(0, 1)]), U, ValueError, "ppermute cannot take.*still to be summed"),
        (lambda p: lax.all_gather(p, "x"), U, ValueError, "all_gather cannot take.*still to be summed"),
        (lambda p: lax.psum(p, "x", axis_index_groups=[[0], [1]]), U, ValueError, "without axis_index_groups"),
        (lambda p: lax.pcast(p, "x", to="varying"), U, ValueError, "pcast from='unreduced', to='varying'"),
        (lambda p: lax.pcast(p, "x", to="reduced"), U, ValueError, "pcast from='unreduced', to='reduced'"),
        (lambda p: lax.pcast(lax.psum(p, "x"), "x", to="unreduced"), U, ValueError, "(?s)from='invarying'.*multiple"),
    ],
)
def test_what_is_no_function_of_the_sum_is_refused(function, out, error, message):
    with mesh(), pytest.raises(error, match=message):
        mapped(function, out)(summands())


# Operations whose derivatives by a reduced value are linear in summands, each in another way.
MOVES = {
    "rows": lambda w: w[jnp.array([0, 2, 2])] ** 2,
    "set": lambda w: jnp.zeros((5, 4)).at[jnp.array([1, 3, 0, 2])].set(w) ** 2,
    "slice": lambda w: lax.dynamic_slice(w, (jnp.int32(1), jnp.int32(0)), (2, 2)) ** 2,
    "update": lambda w: lax.dynamic_update_slice(w, w[:1] ** 2, (2, 0)) ** 2,
    "sort": lambda w: jnp.sort(w, 0) * B,
    "pad": lambda w: jnp.pad(w, 1, mode="reflect") ** 2,
    "stack": lambda w: jnp.stack([w, jnp.ones((4, 4))]) ** 3,
    "where": lambda w: jnp.where(w > 0, w**2, -w),
    "branch": lambda w: lax.cond(w.sum() > 0, lambda v: v**2, jnp.zeros_like, w),
}
PRODUCTS = {
    "dot": lambda w: w @ w.T + w @ B,
    "conv": lambda w: lax.conv(w[None, None], jnp.asarray(B)[None, None], (1, 1), "SAME") ** 2,
    "fft": lambda w: abs(jnp.fft.rfft(w)) ** 2,
    "prod": lambda w: jnp.cumprod(w, 1),
    "pool": lambda w: lax.reduce_window(w, 0.0, lax.add, (2, 2), (1, 1), "VALID") ** 2,
    "max": lambda w: lax.reduce_window(w, -np.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2,
}
SOLUTIONS = {
    "solve": lambda w: jnp.linalg.solve(w + EYE, jnp.asarray(B)),
    "triangular": lambda w: lax.linalg.triangular_solve(w + EYE, w, lower=True),
    "factor": lambda w: jnp.linalg.cholesky(w @ w.T + EYE),
    "iterated": lambda w: gradix.scipy.sparse.linalg.cg(lambda v: (w @ w.T + EYE) @ v, jnp.ones(4))[0],
    "scan": lambda w: lax.scan(lambda c, _: (jnp.sin(c @ w), c), jnp.asarray(B), None, length=3)[1],
    "while": lambda w: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, jnp.sin(c[1] @ c[1])), (0, w))[1],
    "checkpoint": lambda w: gradix.checkpoint(lambda v: jnp.sin(v @ v))(w),
    "rows": lambda w: gradix.vmap(lambda r: jnp.sin(r) @ w)(w),
}


@pytest.mark.parametrize("functions", [MOVES, PRODUCTS, SOLUTIONS], ids=["moves", "products", "solutions"])
def test_gradients_by_reduced_values_through_all_kinds_of_operations(functions):
    """Beside equal values they stay reduced; beside values of each device they become summands of it."""
    scales = np.float32([1, 2])

    def total(w):
        return sum(k * jnp.sum(f(w)) for k, f in enumerate(functions.values(), 1))

    def inner(w, s):
        return total(w), lax.psum(total(w) * s[0], "x")

    with mesh():
        w, s = gradix.device_put(W, R), gradix.device_put(scales, P("x"))
        f = gradix.shard_map(inner, in_specs=(R, P("x")), out_specs=(P(reduced={"x"}), P()))
        want = gradix.jit(gradix.grad(total))(W)
        alone, beside = gradix.jit(lambda v: [gradix.grad(lambda u, i=i: f(u, s)[i])(v) for i in range(2)])(w)
        for got, times in ((alone, 1), (beside, 3)):
            assert gradix.typeof(got).sharding.spec.unreduced == {"x"}
            np.testing.assert_allclose(whole(got), times * want, rtol=2e-3, atol=2e-3)


def test_a_product_of_summands_and_a_reduced_value():
    with mesh():
        u, w = summands(), gradix.device_put(W, R)
        f = gradix.shard_map(lambda p, q: jnp.sum(p * q), in_specs=(U, R), out_specs=P(unreduced={"x"}))
        by_sum, by_factor = gradix.jit(gradix.grad(lambda p, q: reshard(f(p, q), P()), (0, 1)))(u, w)
        assert gradix.typeof(by_sum).sharding.spec.reduced == {"x"}
        assert gradix.typeof(by_factor).sharding.spec.unreduced == {"x"}
        np.testing.assert_allclose(by_sum, W, rtol=1e-6)
        np.testing.assert_allclose(whole(by_factor), W @ B, rtol=1e-5)
        second = gradix.jit(gradix.grad(lambda q: reshard(f(u * q, q), P())))(w)
        np.testing.assert_allclose(whole(second), 2 * (W @ B) * W, rtol=1e-4)


@pytest.mark.parametrize("out, share", [(P(None, None), 1), (P("x", None), 0)])
def test_without_types_a_gradient_is_that_of_equal_shares(out, share):
    """With check_vma=False the parts may be used as they are; the function of a sum is that of equal parts of it."""
    weights = np.arange(1.0, 17.0, dtype=np.float32).reshape(4, 4)
    with mesh():
        u = summands()
        f = gradix.shard_map(lambda p: p, in_specs=(U,), out_specs=out, check_vma=False)
        weights = weights if share else np.concatenate([weights, 3 * weights])
        w = gradix.device_put(weights, out)
        got = gradix.jit(gradix.grad(lambda v: (f(v) * w).sum()))(u)
        assert gradix.typeof(got).sharding.spec.reduced == {"x"}
        np.testing.assert_allclose(got, weights / 2 if share else 2 * weights[:4], rtol=1e-6)
        summed = gradix.shard_map(lambda p: lax.psum(p, "x"), in_specs=(U,), out_specs=P(None, None), check_vma=False)
        np.testing.assert_allclose(gradix.jit(gradix.grad(lambda v: (summed(v) ** 2).sum()))(u), 2 * W @ B, rtol=1e-4)


def test_a_rule_that_returns_no_summands_is_refused():
    @gradix.custom_vjp
    def f(w):
        return w * 1.0

    f.defvjp(lambda w: (f(w), w), lambda w, ct: (w,))
    with (
        mesh(),
        pytest.raises(TypeError, match=r"(?s)must be unreduced over these axes, got float32\[4,4\]\{R:x\}.*pcast"),
    ):
        inner = lambda v: jnp.sum(f(lax.pcast(lax.psum(v, "x"), "x", to="reduced")))
        gradix.jit(gradix.grad(gradix.shard_map(inner, in_specs=P("x", None), out_specs=P(reduced={"x"}))))(
            gradix.device_put(np.tile(W, (2, 1)), P("x", None))
        )


def test_the_transpose_of_a_system_does_not_sum_over_devices():
    """Each device solves its own system, whose right-hand side is the same on all."""

    def inner(a):
        solved = lax.custom_linear_solve(
            lambda v: a[0] @ v, jnp.ones(4), lambda mv, b: jnp.linalg.solve(a[0], b), lambda vm, b: b - vm(b)
        )
        return solved[None]

    stack = np.stack([W + EYE, B + EYE])

    def transposed(a, ct):  # -λ xᵀ with λ = ct - aᵀ·ct, as the rule above has it
        return -np.outer(ct - a.T @ ct, np.linalg.solve(a, np.ones(4)))

    with mesh():
        f = gradix.shard_map(inner, in_specs=P("x"), out_specs=P("x"))
        got = gradix.jit(gradix.grad(lambda a: f(a).sum()))(gradix.device_put(stack, P("x")))
        np.testing.assert_allclose(got, [transposed(a, np.ones(4)) for a in stack], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("like", [jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda x: jnp.full_like(x, 2.0)])
def test_arrays_like_a_part_vary_as_it_does(like):
    seen = []
    with mesh():
        gradix.eval_shape(
            gradix.shard_map(lambda v: seen.append(gradix.typeof(like(v))) or v, in_specs=P("x"), out_specs=P("x")),
            gradix.device_put(np.ones(4, np.float32), P("x")),
        )
    assert seen[0].mat.varying == {"x"}
