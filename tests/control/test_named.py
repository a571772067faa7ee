"""Code with a name of its own, and for a platform of its own; tokens and constraints."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

X = np.arange(6, dtype="f4").reshape(2, 3)
SCALED_SIN = lax.composite(lambda x, *, k, unused=None: (lax.sin(x) * k, x), name="my.scaled_sin", version=2)


def total(x):
    return SCALED_SIN(x, k=2.0)[0].sum()


def test_composite_is_written_by_name():
    text = gradix.jit(lambda x: SCALED_SIN(x, k=2, unused=None)).lower(X).as_text()
    assert (
        'stablehlo.composite "my.scaled_sin" %arg0 {composite_attributes = {k = 2 : i64}, decomposition = @my.scaled_sin'
        in text
    )
    np.testing.assert_allclose(gradix.jit(lambda x: SCALED_SIN(x, k=2.0)[0])(X), 2 * np.sin(X), rtol=1e-6)
    plain = gradix.jit(lambda x: lax.composite(lambda a: a + x.sum(), name="plain")(x))
    np.testing.assert_array_equal(plain(X), X + 15)
    assert "composite" not in plain.lower(X).as_text()


@pytest.mark.parametrize(
    "derivative",
    [
        gradix.grad(total),
        gradix.jit(gradix.grad(total)),
        gradix.grad(gradix.jit(total)),
        gradix.jit(gradix.jacfwd(total)),
        gradix.jit(gradix.vmap(gradix.grad(total))),
    ],
)
def test_composite_is_differentiated_and_mapped_as_its_decomposition(derivative):
    np.testing.assert_allclose(derivative(X), 2 * np.cos(X), rtol=1e-6)


def test_composite_second_derivative():
    got = gradix.hessian(gradix.jit(total))(X[0])
    np.testing.assert_allclose(got, np.diag(-2 * np.sin(X[0])), rtol=1e-6)


def test_composite_wrong_attributes():
    for value, pattern in ((object(), "no MLIR attribute"), (X, None)):
        call = gradix.jit(lambda x, v=value: lax.composite(lambda a, k: a, name="my.id")(x, k=v))
        if pattern is None:
            np.testing.assert_array_equal(call(X), X)
        else:
            with pytest.raises(TypeError, match=pattern):
                call(X)
    with pytest.raises(gradix.errors.UnexpectedTracerError, match="'k' of composite 'my.id' is traced"):
        gradix.jit(lambda x: lax.composite(lambda a, k: a, name="my.id")(x, k=x))(X)
    with pytest.raises(TypeError, match="expects a name"):
        lax.composite(abs, 3)


def doubled_here(x):
    return lax.platform_dependent(x, tpu=lambda x: x * 0, cpu=lambda x: x * 2, default=lambda x: x)


def test_the_platform_chooses():
    want = 2 * X
    for f in (
        doubled_here,
        gradix.jit(doubled_here),
        gradix.vmap(gradix.jit(doubled_here)),
        gradix.jit(gradix.vmap(doubled_here)),
    ):
        np.testing.assert_array_equal(f(X), want)
    assert "stablehlo.case" not in gradix.jit(doubled_here).lower(X).as_text()
    for grad in (
        gradix.grad(lambda x: doubled_here(x).sum()),
        gradix.grad(gradix.jit(lambda x: doubled_here(x).sum())),
    ):
        np.testing.assert_array_equal(grad(X), np.full_like(X, 2))
    np.testing.assert_array_equal(lax.scan(lambda c, a: (c, doubled_here(a)), 0, X)[1], want)


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_no_alternative_for_the_platform(wrap):
    with pytest.raises(NotImplementedError, match="no alternative for platform 'cpu', only for: tpu"):
        wrap(lambda x: lax.platform_dependent(x, tpu=lambda x: x))(X)
    with pytest.raises(ValueError, match="'cuda' or 'rocm'"):
        wrap(lambda x: lax.platform_dependent(x, gpu=lambda x: x))(X)


def test_alternatives_must_agree():
    with pytest.raises(TypeError, match="cpu"):
        gradix.jit(lambda x: lax.platform_dependent(x, cpu=lambda x: x, tpu=lambda x: x.sum()))(X)


def pass_on(x):
    token = lax.after_all(lax.psend({"x": x}, "i", [(0, 1)]), lax.create_token())
    return lax.precv(token, {"x": x}, "i", [(0, 1)])["x"]


def test_messages_arrive():
    mapped = gradix.vmap(pass_on, axis_name="i")
    want = np.stack([0 * X[0], X[0]])
    np.testing.assert_array_equal(mapped(X), want)
    np.testing.assert_array_equal(gradix.jit(mapped)(X), want)
    np.testing.assert_array_equal(gradix.grad(lambda x: (mapped(x) ** 2).sum())(X), np.stack([2 * X[0], 0 * X[0]]))


@pytest.mark.parametrize(
    "call, kind, pattern",
    [
        (lambda x: lax.after_all(x), TypeError, "must be tokens"),
        (lambda x: lax.precv(1, x, "i", [(0, 1)]), TypeError, "takes a token"),
        (lambda x: lax.precv(lax.create_token(), x, "i", [(0, 1)]), NotImplementedError, "needs the token of a psend"),
        (lambda x: lax.precv(lax.psend(x, "i", [(0, 1)]), x[:1], "i", [(0, 1)]), TypeError, "what was sent"),
    ],
)
def test_wrong_tokens(call, kind, pattern):
    with pytest.raises(kind, match=pattern):
        gradix.vmap(call, axis_name="i")(X)


def exchanged(operand, output, starts, sizes, places, received):
    """What ragged_all_to_all does, one slice after the other."""
    out = output.copy()
    members, count = starts.shape
    for sender in range(members):
        for i in range(count):
            to, n = i // (count // members), sizes[sender, i]
            out[to, places[sender, i] : places[sender, i] + n] = operand[
                sender, starts[sender, i] : starts[sender, i] + n
            ]
    return out


@pytest.mark.parametrize("each", [1, 2])
def test_ragged_all_to_all(each):
    rng = np.random.default_rng(each)
    members, count, rows = 3, 3 * each, 8
    operand, output = rng.normal(size=(members, rows, 2)).astype("f4"), rng.normal(size=(members, 20, 2)).astype("f4")
    sizes = rng.integers(0, 3, (members, count)).astype("i4")
    starts = rng.integers(0, rows - 2, (members, count)).astype("i4")
    received = sizes.reshape(members, members, each).transpose(1, 0, 2).reshape(members, count)
    places_at_receiver = np.cumsum(received, 1) - received
    places = places_at_receiver.reshape(members, members, each).transpose(1, 0, 2).reshape(members, count).astype("i4")
    args = operand, output, starts, sizes, places, received.astype("i4")
    call = gradix.vmap(lambda *xs: lax.ragged_all_to_all(*xs, axis_name="i"), axis_name="i")
    want = exchanged(*args)
    np.testing.assert_array_equal(call(*args), want)
    np.testing.assert_array_equal(gradix.jit(call)(*args), want)
    with pytest.raises(ValueError, match="cannot be divided among 3"):
        call(operand, output, *[a[:, :2] for a in args[2:]])


def test_sharding_constraints_are_checked():
    here = gradix.sharding.SingleDeviceSharding(gradix.devices()[0])
    np.testing.assert_array_equal(gradix.jit(lambda x: lax.with_sharding_constraint({"a": x}, here)["a"])(X), X)
    for wrong, kind, pattern in (
        (None, ValueError, "None"),
        (gradix.devices()[0], TypeError, "SingleDeviceSharding"),
        (gradix.sharding.PartitionSpec("a"), RuntimeError, "mesh"),
        ({"b": here}, ValueError, "prefix"),
    ):
        with pytest.raises(kind, match=pattern):
            lax.with_sharding_constraint({"a": jnp.asarray(X)}, wrong)


@pytest.mark.x32
def test_broadcast_like_and_stage():
    np.testing.assert_array_equal(lax.broadcast_like(X[:, :1], X), np.broadcast_to(X[:, :1], X.shape))
    with pytest.raises(ValueError, match="fewer dimensions"):
        lax.broadcast_like(X, X[0])
    with pytest.raises(ValueError, match="Incompatible shapes"):
        lax.broadcast_like(X[:, :2], X)
    assert (
        lax.stage(2).weak_type and str(gradix.make_jaxpr(lambda: lax.stage(2))()) == "{ lambda ; . let  in (2:i32[],) }"
    )
    with pytest.raises(TypeError, match="list"):
        lax.stage([1, 2])
