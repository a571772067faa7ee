"""What the pages on sharded computation, explicit sharding, shard_map, distributed arrays and pmap say that programs do.

Each program is written anew, after what the pages show; it gives what is looked at, and beside it stands what the pages say of it. Where the
peer is installed, it gives the same.
"""

import functools
import importlib
import importlib.util

import numpy as np
import pytest

ROWS = np.arange(32, dtype=np.float32).reshape(8, 4)
RNG = np.random.RandomState(0)
BIG, TALL = RNG.randn(16, 8).astype(np.float32), RNG.randn(8, 16).astype(np.float32)
PROGRAMS: dict = {}


def program(expected):
    """A program of a library `g`, its NumPy `n`, mesh shape helpers, and what is said of it: values by NumPy, shardings as text."""

    def register(f):
        PROGRAMS[f.__name__] = f, expected
        return f

    return register


class Kit:
    """A library and what the pages import of it."""

    def __init__(self, name: str):
        self.g, self.n = importlib.import_module(name), importlib.import_module(name + ".numpy")
        s = self.g.sharding
        self.s, self.P, self.lax, self.grid = s, s.PartitionSpec, self.g.lax, np.array(self.g.devices())

    def mesh(self, shape=(4, 2), names=("a", "b")):
        return self.s.Mesh(self.grid[: int(np.prod(shape))].reshape(shape), names)

    def put(self, x, mesh, *spec):
        return self.g.device_put(x, self.s.NamedSharding(mesh, self.P(*spec)))

    def error(self, call):
        try:
            call()
        except Exception as e:
            return "ValueError" if isinstance(e, ValueError) else type(e).__name__
        return "nothing"


def spec(x):
    return str(x.sharding.spec)


def typed(kit, x):
    text = str(kit.g.typeof(x))
    return text[text.index("(") + 1 : -1] if "ShapedArray" in text else text


# -- sharded computation ---------------------------------------------------------------------------


@program([True, {0}, "P('a', 'b')", (2, 2), 8, [(0, 2), (0, 2)], True])
def arrays_lie_on_one_device_or_over_a_mesh(k):
    one = k.n.arange(8.0)
    x = k.put(ROWS, k.mesh(), "a", "b")
    rows, columns = x.sharding.devices_indices_map(x.shape)[k.grid[0]]
    return [
        one.sharding.is_fully_replicated,
        {d.id for d in one.devices()},
        spec(x),
        x.addressable_shards[0].data.shape,
        len(x.addressable_shards),
        [(rows.start, rows.stop), (columns.start, columns.stop)],
        bool((np.asarray(x) == ROWS).all()),
    ]


@program([np.sin(2 * ROWS + 1), "P('a', 'b')", ROWS.sum(0), "P('b',)", ROWS.sum(), True])
def the_compiler_divides_a_jitted_function(k):
    x = k.put(ROWS, k.mesh(), "a", "b")
    y = k.g.jit(lambda v: k.n.sin(2 * v + 1))(x)
    column, total = k.g.jit(lambda v: v.sum(0))(x), k.g.jit(lambda v: v.sum())(x)
    return [y, spec(y), column, spec(column), total, total.sharding.is_fully_replicated]


@program(["float32[8@a,4@b]", "float32[8@a]", "float32[8@a,4@b]", np.tanh(ROWS).sum(1), "ShardingTypeError"])
def types_tell_how_arrays_are_divided(k):
    m = k.g.make_mesh((4, 2), ("a", "b"))
    seen = []
    with k.g.set_mesh(m):
        x = k.g.device_put(ROWS, k.P("a", "b"))

        @k.g.jit
        def f(v):
            seen.append(typed(k, v))
            out = k.n.tanh(v)
            seen.append(typed(k, out.sum(1)))
            seen.append(typed(k, out))
            return out.sum(1)

        total = f(x)
        wrong = k.error(lambda: x + k.g.device_put(ROWS, k.P(None, "a")))
    return [*seen, total, wrong]


@program([np.tanh(ROWS), "P('a',)", BIG @ TALL, "P('a',)", (4, 8), (8, 16)])
def the_user_divides_with_shard_map(k):
    m, seen = k.mesh((4,), ("a",)), []

    def product(x, y):
        seen.extend([x.shape, y.shape])
        return x @ y

    f = k.g.jit(k.g.shard_map(k.n.tanh, mesh=m, in_specs=k.P("a"), out_specs=k.P("a")))
    h = k.g.jit(k.g.shard_map(product, mesh=m, in_specs=(k.P("a"), k.P()), out_specs=k.P("a")))
    y, z = f(ROWS), h(BIG, TALL)
    return [y, spec(y), z, spec(z), *seen[:2]]


# -- distributed arrays and automatic parallelization ----------------------------------------------


@program([BIG @ TALL, "P('a', 'b')", True, "P('a',)", 2.0 * ROWS, "P('b',)"])
def products_lie_as_their_factors(k):
    m = k.mesh()
    x, y = k.put(BIG, m, "a", None), k.put(TALL, m, None, "b")
    z = k.n.dot(x, y)
    text = k.g.jit(k.n.dot).lower(x, y).compile().as_text()
    w = k.put(ROWS, m, "a")
    moved = k.put(w, m, "b")
    return [z, spec(z), "all-reduce" not in text and "all-gather" not in text, spec(k.n.sin(w)), w * 2.0, spec(moved)]


@program([ROWS + 1, "ValueError", "ValueError", "P('a',)"])
def computation_follows_data(k):
    d, m = k.grid, k.mesh()
    one, two = k.g.device_put(ROWS, d[1]), k.g.device_put(ROWS, d[2])
    free = one + k.n.ones((8, 4))  # what was put nowhere goes along
    x, y = k.put(ROWS, m, "a"), k.put(ROWS, k.mesh((2, 2)), "a")
    return [free, k.error(lambda: one + two), k.error(lambda: x + y), spec(x + k.n.ones((8, 4)))]


@program([ROWS * 2, "P('a', 'b')", "P(None, 'b')", "P()", "P('b',)"])
def constraints_decide_inside(k):
    m = k.mesh()
    ns = lambda *s: k.s.NamedSharding(m, k.P(*s))  # noqa: E731
    f = lambda *s: k.g.jit(lambda v: k.lax.with_sharding_constraint(v * 2, ns(*s)))(k.put(ROWS, m, "a"))  # noqa: E731
    asked = k.g.jit(lambda v: v * 2, out_shardings=ns("b"))(ROWS)
    return [f("a", "b"), spec(f("a", "b")), spec(f(None, "b")), spec(f()), spec(asked)]


def mlp(n, params, x):
    for w, b in params:
        x = n.maximum(x @ w + b, 0)
    return x


@program([True, True, ["P('batch',)", "P()"], ["P('batch',)", "P(None, 'model')"]])
def networks_by_batch_and_by_model(k):
    m = k.mesh((4, 2), ("batch", "model"))
    rng = np.random.RandomState(3)
    params = [(rng.randn(8, 8).astype("f") / 3, rng.randn(8).astype("f")) for _ in range(2)]
    x, y = rng.randn(16, 8).astype("f"), rng.randn(16, 8).astype("f")
    loss = lambda p, x, y: ((mlp(k.n, p, x) - y) ** 2).mean()  # noqa: E731
    grads = k.g.jit(k.g.grad(loss))
    alone = grads(params, x, y)
    close = lambda got: all(np.allclose(a, b, atol=1e-5) for a, b in zip(k.g.tree.leaves(got), k.g.tree.leaves(alone)))  # noqa: E731
    by_data = grads(k.put(params, m), k.put(x, m, "batch"), k.put(y, m, "batch"))
    halves = [(k.put(w, m, None, "model"), k.put(b, m, "model")) for w, b in params]
    by_both = grads(halves, k.put(x, m, "batch"), k.put(y, m, "batch"))
    return [
        close(by_data),
        close(by_both),
        [spec(k.put(x, m, "batch")), spec(by_data[0][0])],
        [spec(k.put(x, m, "batch")), spec(by_both[0][0])],
    ]


@program([True, True])
def random_numbers_do_not_depend_on_the_division(k):
    m, key = k.mesh((8,), ("i",)), k.g.random.key(42)
    draw = lambda key: k.g.random.uniform(key, (16,))  # noqa: E731
    divided = k.g.jit(draw, out_shardings=k.s.NamedSharding(m, k.P("i")))
    text = divided.lower(key).compile().as_text()
    return [
        bool((np.asarray(divided(key)) == np.asarray(draw(key))).all()),
        not any(w in text for w in ("all-gather", "all-reduce", "collective-permute")),
    ]


# -- explicit sharding -----------------------------------------------------------------------------


@program(
    [
        "float32[8@a,4]",
        "float32[8@a,4@b]",
        "float32[8@a]",
        "float32[4]",
        "float32[8@a,4]",
        "float32[4@b,8@a]",
        "float32[8@a,4@b]",
    ]
)
def operations_have_rules(k):
    with k.g.set_mesh(k.g.make_mesh((4, 2), ("a", "b"))):
        x = k.g.device_put(ROWS, k.P("a", None))
        w = k.g.device_put(TALL[:4, :4], k.P(None, "b"))
        y = x @ w
        return [
            typed(k, v)
            for v in (x, y, x.sum(1), x.sum(0), k.n.sin(x) * 2, y.T, k.g.grad(lambda v: k.n.sin(v).sum())(y))
        ]


@program(["ShardingTypeError", "float32[8@a,8]", "float32[8]", "float32[32@a]", "ShardingTypeError", "float32[4@a,4]"])
def what_is_ambiguous_is_asked(k):
    with k.g.set_mesh(k.g.make_mesh((4, 2), ("a", "b"))):
        x = k.g.device_put(ROWS, k.P("a", "b"))
        rows = k.g.device_put(ROWS, k.P("a", None))
        product = k.n.einsum("ij,kj->ik", x, x, out_sharding=k.P("a", None))
        total = k.n.einsum("ij,ij->i", x, x, out_sharding=k.P(None))
        flat = k.n.reshape(rows, (32,), out_sharding=k.P("a"))
        picked = rows.at[np.array([0, 2, 4, 6])].get(out_sharding=k.P("a", None))
        return [
            k.error(lambda: x @ x.T),
            typed(k, product),
            typed(k, total),
            typed(k, flat),
            k.error(lambda: rows[np.array([0, 2])]),
            typed(k, picked),
        ]


@program(
    ["float32[8,4@a]", "float32[8@b,4]", np.cumsum(ROWS, 0), "float32[8@a,4]", "float32[8,4]", True, "float32[8@a,4]"]
)
def reshard_and_the_modes_of_axes(k):
    m, seen = k.g.make_mesh((4, 2), ("a", "b")), []
    with k.g.set_mesh(m):
        x = k.g.device_put(ROWS, k.P("a", None))

        @functools.partial(k.s.auto_axes, out_sharding=k.P("a", None))
        def running(v):
            seen.append(typed(k, v))
            return k.n.cumsum(v, 0)

        y = running(x)
        mesh_inside = k.s.get_abstract_mesh()
        drawn = k.g.random.uniform(k.g.random.key(0), (8, 4), "float32", out_sharding=k.P("a", None))
        return [
            typed(k, k.s.reshard(x, k.P(None, "a"))),
            typed(k, k.s.reshard(x, k.P("b", None))),
            y,
            typed(k, y),
            *seen[:1],
            mesh_inside == m.abstract_mesh,
            typed(k, drawn),
        ]


@program([2, 3])
def each_type_is_traced_once(k):
    count = []
    with k.g.set_mesh(k.g.make_mesh((4, 2), ("a", "b"))):
        f = k.g.jit(lambda v: (count.append(1), v + 1)[1])
        for s in (k.P("a"), k.P("a"), k.P("b")):
            f(k.g.device_put(ROWS, s))
        two = len(count)
        f(k.g.device_put(ROWS, k.P()))
    return [two, len(count)]


# -- shard_map -------------------------------------------------------------------------------------


def smap(k, f, ins, outs, mesh=None, **options):
    return k.g.shard_map(f, mesh=mesh or k.mesh((4,), ("i",)), in_specs=ins, out_specs=outs, **options)


@program([BIG @ TALL, "P('a', 'b')", (4, 4), (4, 16), True])
def blocks_are_multiplied_and_scattered(k):
    m, seen = k.mesh(), []

    def block(x, y):
        seen.append((x.shape, y.shape))
        return k.lax.psum_scatter(x @ y, "b", scatter_dimension=1, tiled=True)

    f = k.g.jit(smap(k, block, (k.P("a", "b"), k.P("b", None)), k.P("a", "b"), m))
    z = f(BIG, TALL)
    return [z, spec(z), *seen[0], "reduce-scatter" in f.lower(BIG, TALL).compile().as_text()]


@program(
    [
        np.tile(np.arange(4.0), 4),
        np.arange(16.0),
        (4,),
        np.arange(16.0).reshape(4, 4).sum(0),
        "ValueError",
        np.arange(4.0),
    ]
)
def specs_split_repeat_and_join(k):
    x, seen = np.arange(16, dtype=np.float32), []
    repeated = smap(k, lambda v: v, k.P(), k.P("i"), check_vma=False)(
        x[:4]
    )  # each device gives the same block: four of them
    same = smap(k, lambda v: (seen.append(v.shape), v)[1], k.P("i"), k.P("i"))(x)
    summed = smap(k, lambda v: k.lax.psum(v, "i"), k.P("i"), k.P())(x)
    wrong = k.error(lambda: smap(k, lambda v: v, k.P("i"), k.P())(x))
    unchecked = smap(k, lambda v: v, k.P("i"), k.P(), check_vma=False)(x)
    return [repeated, same, seen[0], summed, wrong, unchecked]


@program(
    [
        np.repeat(np.arange(16.0).reshape(1, 16), 4, 0),
        np.arange(16.0),
        np.arange(16.0).reshape(4, 4).sum(0),
        np.roll(np.arange(16.0), 4),
        np.arange(16.0).reshape(4, 4).T.ravel(),
        np.arange(4),
    ]
)
def collectives_as_pictured(k):
    x, lax = np.arange(16, dtype=np.float32), k.lax
    gathered = smap(k, lambda v: lax.all_gather(v, "i", tiled=True)[None], k.P("i"), k.P("i"))(x)
    once = smap(k, lambda v: lax.all_gather(v, "i", tiled=True), k.P("i"), k.P(), check_vma=False)(x)
    scattered = smap(k, lambda v: lax.psum_scatter(v, "i", tiled=True), k.P("i"), k.P("i"))(x)
    turned = smap(k, lambda v: lax.ppermute(v, "i", [(j, (j + 1) % 4) for j in range(4)]), k.P("i"), k.P("i"))(x)
    dealt = smap(k, lambda v: lax.all_to_all(v, "i", 0, 0, tiled=True), k.P("i"), k.P("i"))(x)
    index = smap(k, lambda: lax.axis_index("i")[None], (), k.P("i"))()
    return [gathered, once, scattered, turned, dealt, index]


@program([BIG @ TALL] * 4 + [True])
def one_product_in_four_ways(k):
    lax, n = k.lax, k.n

    def gathers(x, y):
        return lax.all_gather(x, "i", tiled=True) @ y

    def passes_on(x, y):
        """While one block is multiplied, the next is on its way."""
        at, rows = lax.axis_index("i"), x.shape[0]
        out = n.zeros((rows * 4, y.shape[1]), x.dtype)
        out = lax.pcast(out, "i", to="varying")

        def turn(j, carry):
            out, x = carry
            out = lax.dynamic_update_slice(out, x @ y, (((at - j) % 4) * rows, 0))
            return out, lax.ppermute(x, "i", [(s, (s + 1) % 4) for s in range(4)])

        return lax.fori_loop(0, 4, turn, (out, x))[0]

    def sums(x, y):
        return lax.psum(x @ y, "i")

    def scatters(x, y):
        return lax.psum_scatter(x @ y, "i", scatter_dimension=0, tiled=True)

    P = k.P
    fs = [
        smap(k, gathers, (P("i"), P(None, "i")), P(None, "i")),
        smap(k, passes_on, (P("i"), P(None, "i")), P(None, "i")),
        smap(k, sums, (P(None, "i"), P("i")), P()),
        smap(k, scatters, (P(None, "i"), P("i")), P("i")),
    ]
    text = k.g.jit(fs[1]).lower(BIG, TALL).compile().as_text()
    return [*[k.g.jit(f)(BIG, TALL) for f in fs], "collective-permute" in text and "all-gather" not in text]


@program([True, True, True])
def networks_sharded_in_full_and_by_layer(k):
    """Gradients of FSDP and of tensor parallelism are those of one device; values that vary are cast, sums are their transposes."""
    m, lax, P = k.mesh((8,), ("i",)), k.lax, k.P
    rng = np.random.RandomState(4)
    w1, w2 = rng.randn(8, 16).astype("f") / 3, rng.randn(16, 8).astype("f") / 4
    x = rng.randn(16, 8).astype("f")
    loss = lambda w1, w2, x: (k.n.tanh(x @ w1) @ w2**2).mean()  # noqa: E731

    def in_full(w1, w2, x):
        w1, w2 = [lax.all_gather(w, "i", tiled=True) for w in (w1, w2)]
        return lax.pmean(loss(w1, w2, x), "i")

    def by_layer(w1, w2, x):
        return lax.psum((k.n.tanh(x @ w1) @ w2**2), "i").mean()

    want = k.g.grad(loss, (0, 1))(w1, w2, x)

    def close(f, *specs):
        got = k.g.jit(k.g.grad(smap(k, f, specs, P(), m), (0, 1)))(w1, w2, x)
        return all(np.allclose(a, b, atol=1e-5) for a, b in zip(got, want))

    pipe = smap(
        k, lambda w, v: lax.ppermute(k.n.tanh(v @ w[0]), "i", [(j, j + 1) for j in range(7)]), (P("i"), P()), P("i"), m
    )
    shifted = pipe(np.stack([w1[:, :8]] * 8), x)
    return [
        close(in_full, P("i"), P("i"), P("i")),
        close(by_layer, P(None, "i"), P("i"), P()),
        not np.asarray(shifted)[:16].any(),
    ]


# -- pmap ------------------------------------------------------------------------------------------


@program(
    [
        np.arange(8.0) ** 2,
        ROWS @ ROWS.T[:, :1],
        np.arange(8.0) / 28,
        ROWS.sum(0),
        np.arange(8.0) + 3,
        "ValueError",
        (1, 4),
    ]
)
def pmap_maps_over_devices(k):
    g, v = k.g, np.arange(8, dtype=np.float32)
    dots = g.pmap(lambda r, w: r @ w, in_axes=(0, None))(ROWS, ROWS[:1].T)
    share = g.pmap(lambda x: x / k.lax.psum(x, "i"), axis_name="i")(v)
    total = g.pmap(lambda r: k.lax.psum(r, "i"), axis_name="i", out_axes=None)(ROWS)
    static = g.pmap(lambda x, c: x + c, static_broadcasted_argnums=1)(v, 3)
    return [
        g.pmap(lambda x: x**2)(v),
        dots,
        share,
        total,
        static,
        k.error(lambda: g.pmap(lambda x: x)(np.ones((9, 2)))),
        g.pmap(lambda r: r * 1)(ROWS).addressable_shards[0].data.shape,
    ]


@program(
    [
        np.arange(8.0).reshape(4, 2) / np.arange(8.0).reshape(4, 2).sum(0),
        np.array([2, 4, 2, 4, 10, 12, 10, 12.0]),
        2 * np.arange(8.0) * 8,
    ]
)
def pmap_of_vmap_groups_and_gradients(k):
    g, lax, v = k.g, k.lax, np.arange(8, dtype=np.float32)
    grid = g.pmap(
        g.vmap(lambda x: x / lax.psum(x, "rows"), axis_name="columns"), axis_name="rows", devices=list(k.grid[:4])
    )(v.reshape(4, 2))
    groups = [[0, 2], [1, 3], [4, 6], [5, 7]]
    summed = g.pmap(lambda x: lax.psum(x, "i", axis_index_groups=groups), axis_name="i")(v)
    grads = g.pmap(lambda x: g.grad(lambda y: lax.psum(y * y, "i"))(x), axis_name="i")(v)
    return [grid, summed, grads]


def same(a, b) -> bool:
    if isinstance(b, (np.ndarray, np.floating)) or hasattr(a, "sharding"):
        return np.allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-4)
    return a == b


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_what_the_pages_say(name):
    f, expected = PROGRAMS[name]
    got = f(Kit("gradix"))
    assert len(got) == len(expected)
    assert not [(i, a, b) for i, (a, b) in enumerate(zip(got, expected)) if not same(a, b)]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="the peer is not installed")
@pytest.mark.parametrize("name", PROGRAMS)
def test_and_so_does_the_peer(name):
    f, _ = PROGRAMS[name]
    ours, peers = f(Kit("gradix")), f(Kit("jax"))
    assert not [(i, a, b) for i, (a, b) in enumerate(zip(ours, peers)) if not same(a, b)]
