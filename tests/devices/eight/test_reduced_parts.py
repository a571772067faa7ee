"""Within `shard_map`, a reduced value is the same on all devices, and each device has a summand of its cotangent: gradients are those of the function without devices."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import AxisType, PartitionSpec as P, reshard

X = np.random.RandomState(0).randn(8, 4).astype(np.float32)
W = np.random.RandomState(1).randn(4, 2).astype(np.float32)
CALLS = {"eager": lambda f: f, "jit": gradix.jit}


def reduced(*row, over="y"):
    return P(*row, reduced={over})


def gather(part):
    """The parts along "y" of an array of which rows lie along "x"."""
    return lax.all_gather(part, "y", axis=1, tiled=True, to="reduced")


def mesh():
    return gradix.set_mesh(gradix.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2))


def scanned(part):
    start = lax.pcast(lax.pcast(jnp.zeros((4,)), "x", to="varying"), "y", to="reduced")
    return lax.psum(jnp.sum(lax.scan(lambda c, row: (jnp.sin(c + row), None), start, gather(part))[0]), "x")


def whole_scan(x):
    return sum(
        jnp.sum(lax.scan(lambda c, row: (jnp.sin(c + row), None), jnp.zeros((4,)), half)[0]) for half in (x[:4], x[4:])
    )


# What each device does with its part, the spec of the result, and the function of the whole array.
FUNCTIONS = {
    "sum": (lambda p: lax.psum(gather(p).sum(), "x"), reduced(), jnp.sum),
    "sine": (lambda p: lax.psum(jnp.sin(gather(p)).sum(), "x"), reduced(), lambda x: jnp.sin(x).sum()),
    "square": (lambda p: lax.psum((gather(p) ** 2).sum(), "x"), reduced(), lambda x: (x**2).sum()),
    "stacked": (
        lambda p: lax.psum((lax.all_gather(p, "y", to="reduced") ** 3).sum(), "x"),
        reduced(),
        lambda x: (x**3).sum(),
    ),
    "rows too": (
        lambda p: jnp.sin(lax.all_gather(p, ("x", "y"), to="reduced")).sum(),
        P(reduced={"x", "y"}),
        lambda x: jnp.sin(x).sum(),
    ),
    "with parts": (
        lambda p: lax.psum((gather(p) * p.sum()).sum(), ("x", "y")),
        P(),
        lambda x: sum(
            x[4 * i : 4 * i + 4].sum() * x[4 * i : 4 * i + 4, 2 * j : 2 * j + 2].sum() for i in (0, 1) for j in (0, 1)
        ),
    ),
    "varying": (
        lambda p: lax.psum((lax.pcast(jnp.sin(gather(p)), "y", to="varying") ** 2).sum(), ("x", "y")),
        P(),
        lambda x: 2 * (jnp.sin(x) ** 2).sum(),
    ),
    "cast": (
        lambda p: jnp.sin(lax.pcast(lax.psum(p.sum(), ("x", "y")), "y", to="reduced")),
        reduced(),
        lambda x: jnp.sin(x.sum()),
    ),
    "with equal": (
        lambda p: lax.psum(jnp.sum(gather(p) * lax.psum(p.sum(), ("x", "y"))), "x"),
        reduced(),
        lambda x: x.sum() ** 2,
    ),
    "unsaid": (lambda p: lax.psum(jnp.sin(p).sum(), ("x", "y")), reduced(), lambda x: jnp.sin(x).sum()),
    "jit": (
        lambda p: gradix.jit(lambda q: lax.psum(jnp.sin(gather(q)).sum(), "x"))(p),
        reduced(),
        lambda x: jnp.sin(x).sum(),
    ),
    "checkpoint": (
        lambda p: gradix.checkpoint(lambda q: lax.psum(jnp.sin(gather(q)).sum(), "x"))(p),
        reduced(),
        lambda x: jnp.sin(x).sum(),
    ),
    "cond": (
        lambda p: lax.psum(lax.cond(True, lambda q: jnp.sin(q).sum(), lambda q: q.sum(), gather(p)), "x"),
        reduced(),
        lambda x: jnp.sin(x).sum(),
    ),
    "scan": (scanned, reduced(), whole_scan),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_values_that_become_reduced(name, call):
    inner, out, plain = FUNCTIONS[name]
    call = CALLS[call]
    with mesh():
        x = gradix.device_put(X, P("x", "y"))
        f = gradix.shard_map(inner, out_specs=out)
        np.testing.assert_allclose(call(f)(x), plain(X), rtol=1e-4)
        slope = call(gradix.grad(f))(x)
        assert gradix.typeof(slope).sharding.spec == P("x", "y")
        np.testing.assert_allclose(slope, gradix.grad(plain)(X), rtol=1e-4, atol=1e-4)
        second, want = (gradix.grad(lambda v, f=f: (gradix.grad(f)(v) ** 2).sum()) for f in (f, plain))
        np.testing.assert_allclose(call(second)(x), want(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", [k for k in FUNCTIONS if k not in ("cast", "scan", "varying", "unsaid")])
def test_derivatives_without_types(name):
    """With check_vma=False the results of all_gather have derivatives of the same value."""
    inner, out, plain = FUNCTIONS[name]
    with mesh():
        x = gradix.device_put(X, P("x", "y"))
        f = gradix.shard_map(inner, out_specs=out, check_vma=False)
        np.testing.assert_allclose(gradix.jit(gradix.grad(f))(x), gradix.grad(plain)(X), rtol=1e-4, atol=1e-4)


# What each device does with its rows of X and the matrix W, which all have; and the function of the whole arrays.
LAYERS = {
    "product": (lambda v, w: v @ w, lambda x, w: (x @ w).sum()),
    "sine": (lambda v, w: v @ jnp.sin(w), lambda x, w: (x @ jnp.sin(w)).sum()),
    "transposed": (lambda v, w: v @ w.T.reshape(2, 4).T * 2.0, lambda x, w: (x @ w).sum() * 2),
    "cast first": (lambda v, w: v @ lax.pcast(w, "x", to="varying"), lambda x, w: (x @ w).sum()),
    "half": (lambda v, w: (v.astype("bfloat16") @ w.astype("bfloat16")).astype("float32"), lambda x, w: (x @ w).sum()),
    "jit": (lambda v, w: gradix.jit(lambda v, w: jnp.sin(v @ w))(v, w), lambda x, w: jnp.sin(x @ w).sum()),
    "scan": (
        lambda v, w: lax.scan(lambda c, _: (jnp.sin(c @ (w @ w.T)), None), v, None, length=2)[0],
        lambda x, w: lax.scan(lambda c, _: (jnp.sin(c @ (w @ w.T)), None), x, None, length=2)[0].sum(),
    ),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name, checked", [(k, c) for k in LAYERS for c in (True, False) if c or k != "cast first"])
def test_derivatives_by_arguments_that_are_reduced(name, call, checked):
    inner, plain = LAYERS[name]
    call, rtol = CALLS[call], 3e-2 if name == "half" else 1e-4
    with mesh():
        x, w = gradix.device_put(X, P("x")), gradix.device_put(W, reduced(over="x"))
        f = gradix.shard_map(
            inner, in_specs=(P("x", None), P(None, None, reduced={"x"})), out_specs=P("x", None), check_vma=checked
        )
        slopes = call(gradix.grad(lambda x, w: f(x, w).sum(), (0, 1)))(x, w)
        assert gradix.typeof(slopes[1]).sharding.spec.unreduced == {"x"}
        for got, want in zip(slopes, gradix.grad(plain, (0, 1))(X, W)):
            np.testing.assert_allclose(reshard(got, P(None, None)), want, rtol=rtol, atol=rtol)


def test_types_tell_over_which_axes_values_are_reduced():
    seen = []

    def inner(part):
        whole = gather(part)
        seen.extend([gradix.typeof(v) for v in (part, whole, jnp.sin(whole), whole * part.sum(), lax.psum(whole, "x"))])
        return whole

    with mesh():
        gradix.eval_shape(gradix.shard_map(inner, out_specs=reduced("x", None)), gradix.device_put(X, P("x", "y")))
    assert [t.str_short() for t in seen] == [
        "float32[4,2]{V:(x,y)}",
        "float32[4,4]{V:x, R:y}",
        "float32[4,4]{V:x, R:y}",
        "float32[4,4]{V:(x,y)}",
        "float32[4,4]{R:y}",
    ]
    assert [(t.mat.varying, t.mat.reduced) for t in seen[:2]] == [({"x", "y"}, set()), ({"x"}, {"y"})]


@pytest.mark.parametrize(
    "inner, out, message",
    [
        (gather, P("x", None), r"(?s)reduced present on the out_aval.*V:x, R:y.*P\('x', None, reduced=\{'y'\}\)"),
        (gather, P("x", None, unreduced={"y"}), "reduced present on the out_aval"),
        (lambda p: p, P("x", None, reduced={"y"}), "(?s)require replication"),
        (lambda p: lax.pcast(p, "y", to="reduced"), P("x", "y"), "from='varying', to='reduced'"),
        (lambda p: lax.pcast(gather(p), "y", to="reduced"), P("x", "y"), "from='reduced', to='reduced'"),
        (lambda p: lax.pcast(gather(p), "y", to="unreduced"), P("x", "y"), "from='reduced', to='unreduced'"),
    ],
)
def test_what_is_not_reduced_is_refused(inner, out, message):
    with mesh(), pytest.raises(ValueError, match=message):
        gradix.shard_map(inner, out_specs=out)(gradix.device_put(X, P("x", "y")))


@pytest.mark.parametrize("name", ["sine", "square", "power", "double", "minus"])
def test_operations_outside_of_programs_keep_the_type(name):
    f = {
        "sine": jnp.sin,
        "square": lambda v: v * v,
        "power": lambda v: v**3,
        "double": lambda v: 2.0 * v,
        "minus": lambda v: 1 - v,
    }[name]
    with mesh():
        w = gradix.device_put(W, reduced(over="x"))
        out, slope = f(w), gradix.grad(lambda v: f(v).sum())(w)
        assert gradix.typeof(out).sharding.spec.reduced == {"x"} and gradix.typeof(slope).sharding.spec.unreduced == {
            "x"
        }
        np.testing.assert_allclose(out, f(W), rtol=1e-6)
        np.testing.assert_allclose(reshard(slope, P(None, None)), gradix.grad(lambda v: f(v).sum())(W), rtol=1e-5)


@pytest.mark.parametrize("order", [1, -1])
def test_derivatives_of_branches_vary_as_their_values_do(order):
    """A branch without a derivative gives zeros, which are equal everywhere; the other's are not."""
    branches = (lambda q: jnp.float32(3) + 0 * q[0, 0], lambda q: (q**3).sum())[::order]
    f = gradix.shard_map(
        lambda p: lax.psum(lax.switch((p.sum() > 1e9).astype("int32") + (order == 1), branches, p), ("x", "y")),
        out_specs=P(),
    )

    def varying(jaxpr):
        for eqn in jaxpr.eqns:
            if eqn.primitive.name == "cond":
                yield from zip(*[b.out_avals for b in eqn.params["branches"]])
            for inner in eqn.params.values():
                if hasattr(inner, "jaxpr"):
                    yield from varying(inner.jaxpr)

    with mesh():
        x = gradix.device_put(X, P("x", "y"))
        second = gradix.grad(lambda v: (gradix.grad(f)(v) ** 2).sum())
        pairs = list(varying(gradix.make_jaxpr(second)(x).jaxpr))
        assert len(pairs) > 3 and all(a.vma == b.vma for a, b in pairs)
        np.testing.assert_allclose(second(x), 36 * X.astype(float) ** 3, rtol=1e-4)
