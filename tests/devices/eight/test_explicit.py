"""Sharding in types: what each operation's result is divided over, and where the rules leave it open."""

import importlib.util

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.errors import ShardingTypeError
from gradix.sharding import AxisType, NamedSharding, PartitionSpec as P, auto_axes, explicit_axes, reshard


@pytest.fixture(autouse=True)
def mesh():
    made = gradix.make_mesh((4, 2), ("x", "y"))
    with gradix.set_mesh(made):
        yield made


def put(lib, shape, *spec, dtype="float32"):
    values = np.arange(np.prod(shape)).reshape(shape) % 11 / 8
    return lib.device_put(values.astype(dtype), lib.sharding.PartitionSpec(*spec))


def operands(lib) -> dict:
    return {
        "a": put(lib, (8, 8), "x", "y"),
        "b": put(lib, (8, 8), "x", None),
        "c": put(lib, (8, 8)),
        "d": put(lib, (8, 8), None, "y"),
        "e": put(lib, (8, 8), "y", "x"),
        "f": put(lib, (8, 8), ("x", "y"), None),
        "t": put(lib, (4, 2, 8), "x", None, "y"),
        "v": put(lib, (8,), "x"),
        "w": put(lib, (8,), "y"),
        "k": put(lib, (16,), ("x", "y")),
        "i": put(lib, (8,), dtype="int32"),
        "j": put(lib, (8,), "x", dtype="int32"),
    }


# Functions of operands by name (n: numpy, l: lax, g: the library), and what they are divided over: spec of the result.
TYPED = {
    "sin": (lambda n, l, g, a: n.sin(a), ("x", "y")),
    "add": (lambda n, l, g, a, b: a + b, ("x", "y")),
    "merge": (lambda n, l, g, b, d: b * d, ("x", "y")),
    "row": (lambda n, l, g, a, w: a + w, ("x", "y")),
    "scalar": (lambda n, l, g, a: 2 * a + 1, ("x", "y")),
    "sum": (lambda n, l, g, a: a.sum(), ()),
    "sum 0": (lambda n, l, g, a: a.sum(0), ("y",)),
    "max 1": (lambda n, l, g, a: a.max(1), ("x",)),
    "argmax": (lambda n, l, g, a: a.argmax(1), ("x",)),
    "mean": (lambda n, l, g, a: a.mean(1), ("x",)),
    "var": (lambda n, l, g, a: a.var(0), ("y",)),
    "transposed": (lambda n, l, g, a: a.T, ("y", "x")),
    "flat": (lambda n, l, g, a: a.reshape(-1), (("x", "y"),)),
    "merged": (lambda n, l, g, t: t.reshape(8, 8), ("x", "y")),
    "split": (lambda n, l, g, b: b.reshape(4, 2, 8), ("x", None, None)),
    "split 2": (lambda n, l, g, k: k.reshape(4, 4), ("x", "y")),
    "split pair": (lambda n, l, g, f: f.reshape(4, 2, 8), ("x", "y", None)),
    "new axis": (lambda n, l, g, a: a[:, None], ("x", None, "y")),
    "asked": (lambda n, l, g, t: n.reshape(t, (64,), out_sharding=g.sharding.PartitionSpec(("x", "y"))), (("x", "y"),)),
    "broadcast": (lambda n, l, g, v: n.broadcast_to(v, (3, 8)), (None, "x")),
    "matmul": (lambda n, l, g, b, d: b @ d, ("x", "y")),
    "half": (lambda n, l, g, c, a: c @ a, (None, "y")),
    "asked product": (
        lambda n, l, g, a: n.matmul(a, a.T, out_sharding=g.sharding.PartitionSpec("x", None)),
        ("x", None),
    ),
    "asked sum": (
        lambda n, l, g, a: n.einsum("ij,kj->ik", a, a, out_sharding=g.sharding.PartitionSpec("x", None)),
        ("x", None),
    ),
    "outer": (lambda n, l, g, v, w: n.outer(v, w), ("x", "y")),
    "stacked": (lambda n, l, g, a: n.stack([a, a]), (None, "x", "y")),
    "joined": (lambda n, l, g, a: n.concatenate([a, a]), ("x", "y")),
    "cut": (lambda n, l, g, b: b[:, :3], ("x", None)),
    "column": (lambda n, l, g, b: b[:, 0], ("x",)),
    "reversed": (lambda n, l, g, a: a[::-1], ("x", "y")),
    "padded": (lambda n, l, g, b: n.pad(b, ((4, 4), (1, 1))), ("x", None)),
    "where": (lambda n, l, g, a: n.where(a > 1, a, 0.0), ("x", "y")),
    "rows": (lambda n, l, g, a, i: a.at[i].get(out_sharding=g.sharding.PartitionSpec("x", None)), ("x", None)),
    "written": (lambda n, l, g, a: a.at[0].set(1.0, out_sharding=g.sharding.PartitionSpec("x", "y")), ("x", "y")),
    "block": (lambda n, l, g, b: l.dynamic_slice(b, (0, 1), (8, 2)), ("x", None)),
    "sorted": (lambda n, l, g, b: n.sort(b, 1), ("x", None)),
    "running": (lambda n, l, g, b: n.cumsum(b, 1), ("x", None)),
    "top": (lambda n, l, g, b: l.top_k(b, 2)[0], ("x", None)),
    "median": (lambda n, l, g, b: n.median(b, 1), ("x",)),
    "softmax": (lambda n, l, g, a: g.nn.softmax(a), ("x", "y")),
    "one hot": (lambda n, l, g, j: g.nn.one_hot(j, 4), ("x", None)),
    "tril": (lambda n, l, g, b: n.tril(b), ("x", None)),
    "fft": (lambda n, l, g, b: abs(n.fft.fft(b)), ("x", None)),
    "zeros": (lambda n, l, g, c: n.zeros((8, 2)), (None, None)),
    "ones": (lambda n, l, g, c: n.ones((8, 2), out_sharding=g.sharding.PartitionSpec("x", "y")) + c[:, :2], ("x", "y")),
    "arange": (lambda n, l, g, v: v + n.arange(8, out_sharding=g.sharding.PartitionSpec("x")), ("x",)),
    "uniform": (
        lambda n, l, g, c: c + g.random.uniform(g.random.key(0), (8, 8), out_sharding=g.sharding.PartitionSpec("x")),
        ("x", None),
    ),
    "scan": (lambda n, l, g, d: l.scan(lambda s, r: (s + r.sum(), r * 2), 0.0, d)[1], (None, "y")),
    "carry": (lambda n, l, g, w, d: l.scan(lambda s, r: (s + r, None), w, d)[0], ("y",)),
    "loop": (lambda n, l, g, a: l.fori_loop(0, 3, lambda i, s: s + 1, a), ("x", "y")),
    "cond": (lambda n, l, g, a: l.cond(a.sum() > 0, lambda v: v, lambda v: v * 2, a), ("x", "y")),
    "vmap": (lambda n, l, g, a, w: g.vmap(lambda p, q: (p * q).sum(), (0, None))(a, w), ("x",)),
    "remat": (lambda n, l, g, a: g.checkpoint(n.sin)(a), ("x", "y")),
    "jit": (lambda n, l, g, a: g.jit(n.sin)(a), ("x", "y")),
    "reshard": (lambda n, l, g, a: g.sharding.reshard(a, g.sharding.PartitionSpec(None, "x")), (None, "x")),
    "auto": (
        lambda n, l, g, a: g.sharding.auto_axes(lambda v: n.cumsum(v, 0), out_sharding=g.sharding.PartitionSpec("x"))(
            a
        ),
        ("x", None),
    ),
    "auto over y": (
        lambda n, l, g, a: g.sharding.auto_axes(
            lambda v: v * 2, axes="y", out_sharding=g.sharding.PartitionSpec("x", None)
        )(a),
        ("x", None),
    ),
    "shard_map": (
        lambda n, l, g, a: g.shard_map(lambda v: v.sum(keepdims=True), out_specs=g.sharding.PartitionSpec("x", "y"))(a),
        ("x", "y"),
    ),
    "grad": (lambda n, l, g, a: g.grad(lambda v: (n.sin(v) ** 2).sum())(a), ("x", "y")),
    "grad of product": (lambda n, l, g, b, d: g.grad(lambda w: (n.tanh(b @ w) ** 2).sum())(d), (None, "y")),
    "grad of spread": (lambda n, l, g, c, a: g.grad(lambda v: ((v + a) ** 2).sum())(c), (None, None)),
    "grad of rows": (
        lambda n, l, g, d, b, j: g.grad(
            lambda v: (v.at[j].get(out_sharding=g.sharding.PartitionSpec("x", None)) * b).sum()
        )(d),
        (None, "y"),
    ),
    "grad of asked": (
        lambda n, l, g, a: g.grad(
            lambda v: (n.matmul(v, v.T, out_sharding=g.sharding.PartitionSpec("x", None)) ** 2).sum()
        )(a),
        ("x", "y"),
    ),
    "grad of scan": (
        lambda n, l, g, d, c: g.grad(
            lambda w: l.scan(
                lambda s, r: (n.tanh(s + r @ w), None), n.zeros(8, out_sharding=g.sharding.PartitionSpec("y")), c
            )[0].sum()
        )(d),
        (None, "y"),
    ),
    "loss": (
        lambda n, l, g, b, j: g.grad(lambda v: -n.take_along_axis(g.nn.log_softmax(v), j[:, None] % 8, axis=1).mean())(
            b
        ),
        ("x", None),
    ),
    "remat grad": (lambda n, l, g, a: g.grad(g.checkpoint(lambda v: (n.sin(v) * a).sum()))(a), ("x", "y")),
}


def names_of(f):
    return f.__code__.co_varnames[3 : f.__code__.co_argcount]


def all_of(lib, numpy, library_lax) -> dict:
    have = operands(lib)
    rows = {k: (f, [have[name] for name in names_of(f)]) for k, (f, _) in TYPED.items()}
    return lib.jit(lambda rows_in: {k: rows[k][0](numpy, library_lax, lib, *given) for k, given in rows_in.items()})(
        {k: given for k, (_, given) in rows.items()}
    )


def test_types_and_values():
    """In one program: each result's type, where it lies, and its value beside that of arrays that are not divided."""
    got = all_of(gradix, jnp, lax)
    whole = {k: np.asarray(v) for k, v in operands(gradix).items()}
    wrong = []
    for k, (_, spec) in TYPED.items():
        r = got[k]
        if tuple(gradix.typeof(r).sharding.spec) != spec or tuple(r.sharding.spec) != spec:
            wrong.append((k, gradix.typeof(r), r.sharding.spec, spec))
    assert not wrong
    plain = gradix.make_mesh((1, 1), ("x", "y"))
    same = [k for k in TYPED if k not in ("shard_map", "auto over y", "auto")]
    with gradix.set_mesh(plain):  # nothing is divided
        given = {k: [jnp.asarray(whole[n]) for n in names_of(TYPED[k][0])] for k in same}
        want = gradix.jit(lambda given: {k: TYPED[k][0](jnp, lax, gradix, *xs) for k, xs in given.items()})(given)
    for k in same:
        np.testing.assert_allclose(got[k], want[k], rtol=1e-4, atol=1e-5, err_msg=k)


def test_eager_operations_have_the_types_of_traced_ones():
    have = operands(gradix)
    for k in (
        "sin",
        "merge",
        "sum 0",
        "flat",
        "matmul",
        "asked product",
        "rows",
        "written",
        "where",
        "grad of product",
        "arange",
        "auto",
    ):
        f, spec = TYPED[k]
        r = f(jnp, lax, gradix, *[have[n] for n in names_of(f)])
        assert tuple(r.sharding.spec) == spec == tuple(gradix.typeof(r).sharding.spec), k


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="the peer is not installed")
def test_as_the_peer():
    peer = importlib.import_module("jax")
    with peer.set_mesh(peer.make_mesh((4, 2), ("x", "y"))):
        skipped = {"written"}  # its compiled form writes elsewhere
        want = all_of(peer, importlib.import_module("jax.numpy"), peer.lax)
    for k, r in all_of(gradix, jnp, lax).items():
        assert tuple(r.sharding.spec) == tuple(want[k].sharding.spec), k
        if k not in skipped:
            np.testing.assert_allclose(r, want[k], rtol=1e-4, atol=1e-5, err_msg=k)


OPEN = [
    (lambda a, e: a + e, "incompatible shardings for broadcasting"),
    (lambda a, v: a + v, "incompatible shardings"),
    (lambda a: a @ a.T, "out_sharding"),
    (lambda a: a @ a, "consistent sharding"),
    (lambda a: jnp.einsum("bi,bj->bij", a, a), "illegally"),
    (lambda t: t.reshape(64), "out_sharding"),
    (lambda a: jnp.sort(a, 0), "undivided over the axis to sort"),
    (lambda a: jnp.cumsum(a, 0), "undivided over the axis of the running"),
    (lambda a, i: a[i], r"at\[...\].get\(out_sharding="),
    (lambda a: a.at[0].set(1.0), r"at\[...\].set/add"),
    (lambda b: b[:3], "not divisible by mesh axes"),
]


def test_what_types_leave_open_raises_and_says_what_to_write():
    have = operands(gradix)
    for f, match in OPEN:
        given = [have[n] for n in f.__code__.co_varnames[: f.__code__.co_argcount]]
        with pytest.raises(ShardingTypeError, match=match):
            gradix.jit(f)(*given)


def test_a_foreign_function_gets_whole_arrays():
    from gradix.lax import linalg

    whole = np.eye(4, dtype="float32") * 4 + 1
    linalg.cholesky(jnp.asarray(whole))  # registers LAPACK's functions
    types = [gradix.ShapeDtypeStruct((4, 4), np.float32), gradix.ShapeDtypeStruct((), np.int32)]

    def factored(a):
        call = gradix.ffi.ffi_call("lapack_spotrf_ffi", types, input_layouts=[(1, 0)], output_layouts=[(1, 0), ()])
        return call(a, uplo=np.uint8(ord("L")))[0]

    divided = gradix.device_put(whole, NamedSharding(operands(gradix)["a"].sharding.mesh, P("x")))
    lower = gradix.jit(factored)(divided)
    assert lower.sharding.spec == P(None, None)
    np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(whole), rtol=1e-5)


def test_wrong_use(mesh):
    a, c = operands(gradix)["a"], operands(gradix)["c"]
    with pytest.raises(AssertionError, match="acts as an assert"):
        lax.with_sharding_constraint(a, P("y"))
    assert lax.with_sharding_constraint(a, P("x", "y")) is not None
    with pytest.raises(ValueError, match="does not match the specs of the input"):
        gradix.shard_map(lambda v: v, in_specs=P("y", "x"), out_specs=P("y", "x"))(a)
    with pytest.raises(TypeError, match="out_sharding"):
        auto_axes(lambda v: v)(a)
    with pytest.raises(TypeError, match="in_sharding"):
        explicit_axes(lambda v: v)(a)
    with pytest.raises(ValueError, match=r"names \['q'\]"):
        auto_axes(lambda v: v, axes="q", out_sharding=P())(a)
    with pytest.raises(TypeError, match="NamedSharding or PartitionSpec"):
        jnp.matmul(c, c, out_sharding="x")
    other = gradix.device_put(np.ones((8, 8), "f"), NamedSharding(gradix.make_mesh((2, 4), ("x", "y")), P("x")))
    with pytest.raises(ValueError, match="mesh"):
        gradix.jit(lambda p, q: p + q)(a, other)


@pytest.mark.x32
def test_parts_with_other_axis_types():
    with gradix.set_mesh(gradix.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)):
        seen = []

        @explicit_axes(in_sharding=(P("x"), P(None, "y")))
        def f(p, q):
            seen.append(gradix.typeof(p @ q).str_short())
            return p @ q

        r = gradix.jit(f)(jnp.ones((8, 4)), jnp.ones((4, 8)))
    assert seen == ["float32[8@x,8@y]"] and gradix.typeof(r).division is None
    mixed = gradix.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit, AxisType.Auto))
    with gradix.set_mesh(mixed):
        z = gradix.device_put(np.ones((8, 8), "f"), P("x", "y"))
        assert gradix.typeof(z).str_short() == "float32[8@x,8]" and z.sharding.spec == P("x", "y")
        out = gradix.jit(lambda v: jnp.cumsum(v * 2, 1))(z)
    assert gradix.typeof(out).str_short() == "float32[8@x,8]"
    np.testing.assert_array_equal(out, np.cumsum(2 * np.ones((8, 8)), 1))


def test_jaxprs_show_what_is_divided():
    a = operands(gradix)["a"]
    text = str(gradix.make_jaxpr(lambda v: reshard(jnp.sin(v), P(None, "x")))(a))
    assert "a:f32[8@x,8@y]" in text and "c:f32[8,8@x] = reshard b" in text
    lowered = gradix.jit(jnp.sin).lower(a).as_text()
    assert "sdy.sharding_constraint" in lowered and '[{"x"}, {"y"}]' in lowered


def test_arrays_like_another_are_divided_as_it_is(mesh):
    x = put(gradix, (8, 8), "x", "y")
    for make in (jnp.zeros_like, jnp.empty_like, lambda a: jnp.full_like(a, jnp.float32(2), dtype="int8")):
        assert make(x).sharding.spec == gradix.jit(make)(x).sharding.spec == P("x", "y")
        assert gradix.eval_shape(make, x).sharding.spec == P("x", "y")
    assert jnp.zeros_like(x, shape=(4, 4)).sharding.is_fully_replicated


def test_shapes_that_are_asked_for_say_how_they_are_divided(mesh):
    struct = gradix.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(mesh, P("x", "y")))
    for out in (gradix.eval_shape(lambda a: a.sum(0), struct), gradix.jit(lambda a: a.sum(0)).eval_shape(struct)):
        assert out.shape == (8,) and out.sharding.spec == P("y")
    assert gradix.eval_shape(jnp.sum, struct).sharding is None


@pytest.mark.parametrize("name", [None, "x"])
@pytest.mark.parametrize("check", [True, False])
def test_vmap_of_shard_map_keeps_the_mapped_axis_divided(name, check):
    mesh = gradix.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2, devices=gradix.devices()[:4])
    rows = np.arange(16.0, dtype="f4").reshape(4, 4) / 16
    with gradix.set_mesh(mesh):
        a = gradix.device_put(rows, NamedSharding(mesh, P("x", "y")))
        w = gradix.device_put(rows[0], NamedSharding(mesh, P("y")))
        double = gradix.shard_map(lambda x: 2 * x, in_specs=P("y"), out_specs=P("y"), check_vma=check)
        out = gradix.jit(gradix.vmap(double, spmd_axis_name=name))(a)
        assert out.sharding.spec == P("x", "y")
        np.testing.assert_array_equal(out, 2 * rows)

        def loss(w, a, body):
            part = gradix.shard_map(body, in_specs=(P("y"), P("y")), out_specs=P("y"), check_vma=check)
            return gradix.vmap(part, in_axes=(0, None), spmd_axis_name=name)(a, w).sum()

        # All examples contribute to the gradient of what they share.
        got = gradix.jit(gradix.grad(lambda w, a: loss(w, a, lambda x, w: x * w)))(w, a)
        np.testing.assert_allclose(got, rows.sum(0), rtol=1e-6)

        def loop(x, w):
            return gradix.lax.scan(lambda c, _: (c + x * w, None), 0 * x, None, length=2)[0]

        got = gradix.jit(gradix.grad(lambda w, a: loss(w, a, loop)))(w, a)
        np.testing.assert_allclose(got, 2 * rows.sum(0), rtol=1e-6)
        # A program that uses the axis itself gets all examples on each device.
        index = gradix.shard_map(
            lambda x: x + gradix.lax.axis_index("x"), in_specs=P("y"), out_specs=P(("x", "y")), check_vma=check
        )
        if name is None:
            assert gradix.jit(gradix.vmap(index))(a).shape == (4, 8)


@pytest.mark.parametrize("spec", [P("x", "y"), P(None, "x"), P("y", "x"), P(("x", "y"))])
def test_windows_and_convolutions_extend_over_divided_axes(spec):
    a, w = (
        np.sin(np.arange(8 * 16 * 4.0, dtype="f")).reshape(8, 16, 4),
        np.cos(np.arange(60.0, dtype="f")).reshape(5, 4, 3),
    )

    def convolved(x, w):
        return lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))

    def pooled(x):
        return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 1), (1, 2, 1), "SAME")

    def summed(x):
        return lax.reduce_window(x, 0.0, lax.add, (1, 3, 1), (1, 1, 1), "SAME")

    loss = lambda f: lambda *args: (f(*args) ** 2).sum()  # noqa: E731
    for f in (lambda x: convolved(x, w), pooled, summed, gradix.grad(loss(pooled))):
        out = gradix.jit(f)(reshard(a, spec))
        assert out.sharding.spec == P(*spec, *[None] * (3 - len(spec)))
        np.testing.assert_allclose(reshard(out, P()), f(a), rtol=2e-5, atol=1e-5)
    for i in (0, 1):
        g = gradix.jit(gradix.grad(loss(convolved), i))(reshard(a, spec), w)
        np.testing.assert_allclose(reshard(g, P()), gradix.grad(loss(convolved), i)(a, w), rtol=2e-4, atol=1e-4)
    with pytest.raises(ShardingTypeError, match="features"):
        convolved(reshard(a, P(None, None, "x")), w)


def test_columns_are_solved_for_where_they_lie():
    a, b = np.eye(4, dtype="f") * 2 + 1, np.arange(32.0, dtype="f").reshape(8, 4)
    out = gradix.vmap(jnp.linalg.solve, in_axes=(None, 0))(a, reshard(b, P("x")))
    assert out.sharding.spec == P("x", None)
    np.testing.assert_allclose(out, np.linalg.solve(a, b.T).T, rtol=1e-4, atol=1e-4)


def test_broadcast_like_divides_alike():
    like = reshard(np.zeros((8, 2)), P("x", "y"))
    assert lax.broadcast_like(np.ones(2), like).sharding.spec == P("x", "y")
    with pytest.raises(ValueError, match="Incompatible shardings for broadcasting"):
        lax.broadcast_like(reshard(np.ones(8), P("x")), reshard(np.ones((4, 8)), P("x", "y")))


def test_parts_of_other_axes_keep_their_division_inside_of_shard_map():
    x = reshard(np.arange(32.0, dtype="f").reshape(4, 8), P("x", "y"))

    @gradix.jit
    @gradix.shard_map(in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    def f(x):
        ones = lax.pcast(reshard(jnp.ones((1, 8)), P(None, "y")), ("x",), to="varying")
        return x + ones + lax.pmax(x, "x")

    np.testing.assert_allclose(f(x), x + 1 + np.max(x, 0), rtol=1e-6)


def test_concrete_arrays_stay_concrete_among_the_compilers_axes(mesh):
    """Outside of programs the function runs at once, so that it can look at values and where they lie."""
    seen = []

    @auto_axes
    def f(x):
        seen.append((float(x[0]), x.sharding.spec, gradix.typeof(x).sharding.spec))
        return x * 2

    x = gradix.device_put(np.arange(1, 9, dtype=np.float32), P("x"))
    y = f(x, out_sharding=P("x"))
    assert seen == [(1.0, P("x"), P(None))]
    assert gradix.typeof(y).sharding.spec == y.sharding.spec == P("x")
    np.testing.assert_array_equal(y, 2 * np.arange(1, 9))


def test_axes_that_are_the_compilers_outside_too():
    """Types say nothing of such axes: the result lies as asked."""
    with gradix.set_mesh(gradix.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)):
        x = gradix.device_put(np.arange(8, dtype=np.float32), P("x"))
        f = auto_axes(lambda x: x * 2, out_sharding=P("y"))
        for call in (f, gradix.jit(f)):
            assert call(x).sharding.spec == P("y")
            np.testing.assert_array_equal(call(x), 2 * np.arange(8))
