"""Programs drawn at random: divided over eight devices they give what they give on one, and lie where the peer's do."""

import importlib
import importlib.util

import numpy as np
import pytest

import gradix
from tests.devices.eight.common import mesh

SPECS = [
    (),
    ("x",),
    ("y",),
    (None, "x"),
    (None, "y"),
    ("x", "y"),
    ("y", "x"),
    (("x", "y"),),
    (None, ("x", "y")),
    (("y", "x"), None),
]
ONE = [
    lambda n, a: n.sin(a),
    lambda n, a: a * 2 + 1,
    lambda n, a: a.T,
    lambda n, a: n.cumsum(a, 1),
    lambda n, a: n.sort(a, 0),
    lambda n, a: n.flip(a, 1),
    lambda n, a: n.roll(a, 3, 0),
    lambda n, a: n.tanh(a - a.mean(0)),
    lambda n, a: a.reshape(4, 16).reshape(8, 8),
    lambda n, a: n.where(a > 0, a, 0.5),
    lambda n, a: a[::-1],
    lambda n, a: n.concatenate([a[4:], a[:4]]),
    lambda n, a: a - a.max(1, keepdims=True),
    lambda n, a: a.at[2].set(1.0),
    lambda n, a: n.pad(a, 1)[1:-1, 1:-1],
    lambda n, a: a.astype("int32").astype("float32"),
    lambda n, a: n.broadcast_to(a[:, :1], (8, 8)),
    lambda n, a: a.reshape(2, 4, 8).swapaxes(0, 1).reshape(8, 8),
]
TWO = [
    lambda n, a, b: a + b,
    lambda n, a, b: a * b,
    lambda n, a, b: a @ b / 8,
    lambda n, a, b: n.maximum(a, b),
    lambda n, a, b: a.T @ b / 8,
    lambda n, a, b: n.einsum("ij,kj->ik", a, b) / 8,
    lambda n, a, b: n.where(a > b, a, b),
]
LAST = [
    lambda n, a: a,
    lambda n, a: a.sum(0),
    lambda n, a: a.sum(1),
    lambda n, a: a.max(),
    lambda n, a: a[3],
    lambda n, a: a.reshape(-1),
]


def program(seed: int):
    """A function of three arrays, drawn by a number; `n` is a NumPy-like module."""
    rng = np.random.RandomState(seed)
    sizes = (3, len(ONE), len(TWO), 3, 3)
    steps = [tuple([rng.randint(n) for n in sizes]) for _ in range(rng.randint(1, 5))]
    last = rng.randint(len(LAST))

    def f(n, *values):
        values = list(values)
        for kind, one, two, i, j in steps:
            values[i] = ONE[one](n, values[i]) if kind else TWO[two](n, values[i], values[j])
        return LAST[last](n, values[steps[-1][3]])

    return f


def parts(sharding, shape):
    return {
        d.id: tuple([s.indices(n)[:2] for s, n in zip(index, shape)])
        for d, index in sharding.devices_indices_map(shape).items()
    }


def compare(seeds, specs, with_peer: bool):
    rng = np.random.RandomState(seeds[0])
    arrays = [rng.randn(8, 8).astype(np.float32) for _ in range(3)]
    fs = [program(s) for s in seeds]

    def results(name):
        lib, numpy = importlib.import_module(name), importlib.import_module(name + ".numpy")
        m = lib.sharding.Mesh(np.array(lib.devices()).reshape(4, 2), ("x", "y"))
        on = [
            lib.device_put(a, lib.sharding.NamedSharding(m, lib.sharding.PartitionSpec(*s)))
            for a, s in zip(arrays, specs)
        ]
        return lib.jit(lambda *xs: [f(numpy, *xs) for f in fs])(*on)

    got = results("gradix")
    alone = gradix.jit(lambda *xs: [f(gradix.numpy, *xs) for f in fs])(*arrays)
    for s, a, b in zip(seeds, got, alone):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4, err_msg=f"program {s} with {specs}")
    if not with_peer:
        return 0
    differing = 0
    for s, a, b in zip(seeds, got, results("jax")):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4, err_msg=f"program {s} with {specs}")
        differing += parts(a.sharding, a.shape) != parts(b.sharding, b.shape)
    return differing


def test_some_programs():
    compare(list(range(12)), (("x",), (None, "y"), ()), False)


peer_is_needed = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="the peer is not installed")


@pytest.mark.slow
@peer_is_needed
@pytest.mark.parametrize("part", range(10))
def test_1600_programs_and_where_their_results_lie(part):
    """The compiler chooses shardings for both; a handful may differ, as our programs are spelled otherwise."""
    assert mesh().size == 8
    rng, differing = np.random.RandomState(part), 0
    for start in range(160 * part, 160 * (part + 1), 16):
        specs = [SPECS[i] for i in rng.randint(len(SPECS), size=3)]
        differing += compare(list(range(start, start + 16)), specs, True)
    assert differing <= 8, f"{differing} of 160 results lie elsewhere than the peer's"


# -- over explicit axes: types say where results lie -----------------------------------------------


def typed_programs(name: str, seeds, specs, arrays) -> list:
    """For each program its result's division and value, or None where its types leave something open."""
    lib, numpy = importlib.import_module(name), importlib.import_module(name + ".numpy")
    refused = (
        lib.errors.ShardingTypeError if name == "gradix" else importlib.import_module("jax._src.core").ShardingTypeError
    )
    m = lib.make_mesh((4, 2), ("x", "y"))
    found = []
    with lib.set_mesh(m):
        xs = [lib.device_put(a, lib.sharding.PartitionSpec(*s)) for a, s in zip(arrays, specs)]
        for seed in seeds:
            try:
                traced = lib.jit(lambda *xs, seed=seed: program(seed)(numpy, *xs)).trace(*xs)
                out = traced.lower().compile()(*xs)
                found.append((tuple(lib.typeof(out).sharding.spec), tuple(out.sharding.spec), np.asarray(out)))
            except (refused, NotImplementedError, ValueError):
                found.append(None)
    return found


def compare_typed(seeds, specs, with_peer: bool) -> tuple[int, int]:
    rng = np.random.RandomState(seeds[0])
    arrays = [rng.randn(8, 8).astype(np.float32) for _ in range(3)]
    ours = typed_programs("gradix", seeds, specs, arrays)
    alone = gradix.jit(lambda *xs: [program(s)(gradix.numpy, *xs) for s in seeds])(*arrays)
    for s, a, b in zip(seeds, ours, alone):
        if a is not None:
            assert a[0] == a[1], (s, specs, a[:2])
            np.testing.assert_allclose(a[2], b, rtol=2e-4, atol=2e-4, err_msg=f"program {s} with {specs}")
    both = 0
    for s, a, b in zip(seeds, ours, typed_programs("jax", seeds, specs, arrays) if with_peer else [None] * len(seeds)):
        if a is not None and b is not None:
            both += 1
            assert a[0] == b[0], (s, specs, a[:2], b[:2])
    return sum([a is not None for a in ours]), both


def test_some_programs_over_explicit_axes():
    given, _ = compare_typed(list(range(6)), (("x",), (None, "y"), ()), False)
    assert given


@pytest.mark.slow
@peer_is_needed
def test_programs_over_explicit_axes_have_the_peer_s_types():
    rng, given, compared = np.random.RandomState(5), 0, 0
    for start in range(5000, 5240, 12):
        specs = [SPECS[i] for i in rng.randint(len(SPECS), size=3)]
        a, b = compare_typed(list(range(start, start + 12)), specs, True)
        given, compared = given + a, compared + b
    assert given >= 60 and compared >= 40, (given, compared)


# -- of one device's part: collectives, and transformations around and inside -----------------------

GROUPS = [[0, 3], [6, 1], [2, 7], [5, 4]]
COLLECT = [
    lambda l, n, v: l.psum(v, "i") / 8,
    lambda l, n, v: l.pmean(v, "i"),
    lambda l, n, v: v - l.pmax(l.stop_gradient(v), "i"),
    lambda l, n, v: v + l.pmin(l.stop_gradient(v), "i"),
    lambda l, n, v: l.psum(v, "i", axis_index_groups=GROUPS) / 2,
    lambda l, n, v: l.all_gather(v, "i").mean(0),
    lambda l, n, v: l.all_gather(v, "i", tiled=True)[4:12],
    lambda l, n, v: l.all_gather(v, "i", axis=1, tiled=True, axis_index_groups=GROUPS)[:, 2:6],
    lambda l, n, v: n.tile(l.psum_scatter(v, "i", tiled=True), (8, 1)),
    lambda l, n, v: v + l.psum_scatter(v, "i"),
    lambda l, n, v: l.all_to_all(v, "i", 0, 0, tiled=True),
    lambda l, n, v: l.all_to_all(v, "i", 0, 1).T.reshape(8, 4),
    lambda l, n, v: l.ppermute(v, "i", [(k, (k + 3) % 8) for k in range(8)]),
    lambda l, n, v: v - l.ppermute(v, "i", [(0, 5), (5, 0), (7, 7)]),
    lambda l, n, v: l.pshuffle(v, "i", [3, 0, 1, 2, 7, 6, 4, 5]),
    lambda l, n, v: v * l.pbroadcast(v, "i", 3),
    lambda l, n, v: v + l.axis_index("i"),
    lambda l, n, v: l.pswapaxes(v, "i", 0) * 0.5,
    lambda l, n, v: v / l.axis_size("i"),
]
LOCAL = [
    lambda l, n, v: n.sin(v),
    lambda l, n, v: n.tanh(v * 2),
    lambda l, n, v: v - v.mean(0),
    lambda l, n, v: n.flip(v, 0),
    lambda l, n, v: n.sort(v, 0),
    lambda l, n, v: n.cumsum(v, 0) / 8,
    lambda l, n, v: n.where(v > 0, v, 0.25 * v),
    lambda l, n, v: v.at[1].add(1.0),
]
AROUND = ["plain", "scan", "remat", "vmap", "jit", "cond"]


def body(seed: int):
    """A function of one member's rows, drawn by a number."""
    rng = np.random.RandomState(seed)
    steps = [
        (rng.randint(len(COLLECT)), rng.randint(len(LOCAL)), AROUND[rng.randint(len(AROUND))])
        for _ in range(rng.randint(1, 4))
    ]

    def f(lib, n, v):
        l = lib.lax  # noqa: E741

        def wrapped(kind, g, v):
            if kind == "scan":
                return l.scan(lambda c, _: (g(c), None), v, None, length=2)[0]
            if kind == "remat":
                return lib.checkpoint(g)(v)
            if kind == "vmap":
                return lib.vmap(g, in_axes=0, out_axes=0)(n.stack([v, v * 0.5])).sum(0)
            if kind == "jit":
                return lib.jit(g)(v)
            if kind == "cond":
                return l.cond(l.axis_size("i") > 4, g, lambda u: u, v)
            return g(v)

        for c, k, around in steps:
            v = wrapped(around, lambda u, c=c, k=k: LOCAL[k](l, n, n.clip(COLLECT[c](l, n, u), -4, 4)), v)
        return v

    return f


def of_parts(name: str, seeds, x, by_vmap: bool):
    """Values, and gradients of their sum, of all programs in one."""
    lib, n = importlib.import_module(name), importlib.import_module(name + ".numpy")

    def every(v):
        return [body(s)(lib, n, v) for s in seeds]

    if by_vmap:
        whole = lib.vmap(every, axis_name="i")
    else:
        shard = lib.sharding
        m = shard.Mesh(np.array(lib.devices()), "i")
        whole = lib.shard_map(
            lambda v: [o[None] for o in every(v[0])],
            mesh=m,
            in_specs=shard.PartitionSpec("i"),
            out_specs=shard.PartitionSpec("i"),
            check_vma=False,
        )
    weights = np.random.RandomState(1).randn(8, 8, 4).astype(np.float32)
    loss = lambda x: sum([(o * weights).sum() for o in whole(x)])  # noqa: E731
    if name == "jax":  # whose pmax and all_to_all have no, or wrong, derivatives
        return lib.jit(whole)(x), None
    return lib.jit(lambda x: (whole(x), lib.grad(loss)(x)))(x)


def compare_parts(seeds, with_peer: bool) -> int:
    """How many could be compared with the peer's."""
    x = np.random.RandomState(seeds[0]).randn(8, 8, 4).astype(np.float32)
    ours, ours_grad = of_parts("gradix", seeds, x, False)
    want, want_grad = of_parts("gradix", seeds, x, True)
    for s, a, b in zip(seeds, ours, want):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=f"program {s}")
    np.testing.assert_allclose(ours_grad, want_grad, rtol=5e-3, atol=5e-3, err_msg=f"gradient of {seeds}")
    compared = 0
    for s, a in zip(seeds, ours if with_peer else ()):
        try:
            (b,), _ = of_parts("jax", [s], x, False)
        except (NotImplementedError, KeyError):  # it has no pbroadcast on the CPU
            continue
        compared += 1
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=f"program {s}")
    return compared


def test_some_programs_of_parts():
    compare_parts(list(range(3)), False)


@pytest.mark.slow
@peer_is_needed
@pytest.mark.parametrize("part", range(8))
def test_320_programs_of_parts(part):
    compared = sum(
        [compare_parts(list(range(start, start + 8)), True) for start in range(9000 + 40 * part, 9040 + 40 * part, 8)]
    )
    assert compared >= 20
