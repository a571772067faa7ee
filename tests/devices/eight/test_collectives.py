"""Each collective in vmap, pmap and shard_map: its NumPy definition, its adjoint, and the gradient of a program around it."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import PartitionSpec as P
from tests.devices.eight.common import mesh, on

N = 8
GROUPS = [[0, 3], [6, 1], [2, 7], [5, 4]]
LONG = [[7, 0, 2, 5], [1, 3, 4, 6]]
RING = [(i, (i + 1) % N) for i in range(N)]
SOME = [(0, 5), (5, 0), (2, 3), (7, 7)]
SHUFFLE = [3, 0, 1, 2, 7, 6, 4, 5]
X = np.random.RandomState(0).randn(N, 8, 4).astype(np.float32)

# -- definitions: of what the members hold, stacked, what they get ---------------------------------


def grouped(groups, of_group):
    """What members get, where those of each group in order get `of_group` of what theirs hold."""

    def definition(x):
        rows = [None] * len(x)
        for g in groups or [list(range(len(x)))]:
            for i, row in zip(g, of_group(np.stack([x[k] for k in g]))):
                rows[i] = row
        return np.stack(rows)

    return definition


def everyone(function):
    return lambda x: [function(x)] * len(x)


def gathered(axis, tiled):
    return everyone(lambda x: np.concatenate(list(x), axis) if tiled else np.stack(list(x), axis))


def scattered(axis, tiled):
    def of_group(x):
        parts = np.split(x.sum(0), len(x), axis)
        return parts if tiled else [p.squeeze(axis) for p in parts]

    return of_group


def exchanged(split, concat, tiled):
    def of_group(x):
        n = len(x)
        parts = [np.split(row, n, split) for row in x]
        if tiled:
            return [np.concatenate([parts[s][t] for s in range(n)], concat) for t in range(n)]
        return [np.stack([parts[s][t].squeeze(split) for s in range(n)], concat) for t in range(n)]

    return of_group


def sent(pairs):
    def definition(x):
        out = np.zeros_like(x)
        for s, t in pairs:
            out[t] = x[s]
        return out

    return definition


def swapped(axis):
    return exchanged(axis, axis, False)


# Of member s for member t: two rows at 2t, of which t - s odd are sent one, to where s writes.
SIZES = np.array([[1 + (s + t) % 2 for t in range(N)] for s in range(N)], np.int32)
STARTS = np.array([list(range(N)) for _ in range(N)], np.int32) % 7
LANDS = np.array([[2 * s for _ in range(N)] for s in range(N)], np.int32)


def ragged(groups=None):
    def definition(x):
        out = np.full((len(x), 2 * N, 4), 0.5, x.dtype)
        for g in groups or [list(range(len(x)))]:
            for a, s in enumerate(g):
                for b, t in enumerate(g):
                    n = SIZES[s, b]
                    out[t, LANDS[s, b] if groups is None else 2 * a :][:n] = x[s, STARTS[s, b] :][:n]
        return out

    def of_members(x):
        i = lax.axis_index("i")
        k = N if groups is None else len(groups[0])
        place = np.zeros(N, np.int32)
        for g in groups or [list(range(N))]:
            place[g] = range(len(g))
        lands = jnp.asarray(LANDS)[i][:k] if groups is None else jnp.full(k, 2 * jnp.asarray(place)[i], "int32")
        received = jnp.asarray(
            np.array(
                [
                    [SIZES[s, list(g).index(t)] for s in g]
                    for t in range(N)
                    for g in (groups or [list(range(N))])
                    if t in g
                ],
                np.int32,
            )
        )[i]
        return lax.ragged_all_to_all(
            x,
            jnp.full((2 * N, 4), 0.5, x.dtype),
            jnp.asarray(STARTS)[i][:k],
            jnp.asarray(SIZES)[i][:k],
            lands,
            received,
            axis_name="i",
            axis_index_groups=groups,
        )

    return of_members, definition


# name: (function of one member's value, definition)
LINEAR = {
    "psum": (lambda x: lax.psum(x, "i"), grouped(None, everyone(lambda x: x.sum(0)))),
    "psum groups": (
        lambda x: lax.psum(x, "i", axis_index_groups=GROUPS),
        grouped(GROUPS, everyone(lambda x: x.sum(0))),
    ),
    "pmean": (lambda x: lax.pmean(x, "i"), grouped(None, everyone(lambda x: x.mean(0)))),
    "pmean groups": (lambda x: lax.pmean(x, "i", axis_index_groups=LONG), grouped(LONG, everyone(lambda x: x.mean(0)))),
    "ppermute": (lambda x: lax.ppermute(x, "i", RING), sent(RING)),
    "ppermute some": (lambda x: lax.ppermute(x, "i", SOME), sent(SOME)),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", SHUFFLE), lambda x: x[SHUFFLE]),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 5), lambda x: np.broadcast_to(x[5], x.shape)),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0), grouped(None, swapped(0))),
    "pswapaxes groups": (lambda x: lax.pswapaxes(x, "i", 1, axis_index_groups=LONG), grouped(LONG, swapped(1))),
    "ragged": ragged(),
    "ragged groups": ragged(LONG),
    **{
        f"all_gather {axis} {tiled} {groups}": (
            lambda x, axis=axis, tiled=tiled, groups=groups: lax.all_gather(
                x, "i", axis=axis, tiled=tiled, axis_index_groups=groups
            ),
            grouped(groups, gathered(axis, tiled)),
        )
        for axis in (0, 1, 2)
        for tiled in (False, True)
        if not (tiled and axis == 2)
        for groups in (None, GROUPS)
    },
    **{
        f"psum_scatter {axis} {tiled} {groups}": (
            lambda x, axis=axis, tiled=tiled, groups=groups: lax.psum_scatter(
                x, "i", scatter_dimension=axis, tiled=tiled, axis_index_groups=groups
            ),
            grouped(groups, scattered(axis, tiled)),
        )
        for axis, tiled, groups in (
            (0, False, None),
            (0, True, None),
            (0, True, LONG),
            (1, False, LONG),
            (1, True, LONG),
            (1, True, GROUPS),
        )
    },
    **{
        f"all_to_all {split} {concat} {tiled} {groups}": (
            lambda x, s=split, c=concat, tiled=tiled, groups=groups: lax.all_to_all(
                x, "i", s, c, tiled=tiled, axis_index_groups=groups
            ),
            grouped(groups, exchanged(split, concat, tiled)),
        )
        for split, concat, tiled, groups in (
            (0, 0, False, None),
            (0, 1, False, None),
            (0, 0, True, None),
            (0, 1, True, None),
            (1, 0, False, LONG),
            (1, 1, False, LONG),
            (1, 0, True, LONG),
            (0, 1, True, GROUPS),
            (1, 1, True, GROUPS),
        )
    },
}
OTHERS = {
    "pmax": (lambda x: lax.pmax(x, "i"), grouped(None, everyone(lambda x: x.max(0)))),
    "pmin": (lambda x: lax.pmin(x, "i"), grouped(None, everyone(lambda x: x.min(0)))),
    "pmax groups": (
        lambda x: lax.pmax(x, "i", axis_index_groups=GROUPS),
        grouped(GROUPS, everyone(lambda x: x.max(0))),
    ),
    "pmin groups": (lambda x: lax.pmin(x, "i", axis_index_groups=LONG), grouped(LONG, everyone(lambda x: x.min(0)))),
    "axis_index": (lambda x: x * 0 + lax.axis_index("i"), lambda x: x * 0 + np.arange(N).reshape(N, 1, 1)),
    "axis_size": (lambda x: x * lax.axis_size("i"), lambda x: x * N),
}


def by_vmap(f):
    return gradix.vmap(f, axis_name="i")


def by_pmap(f):
    return gradix.pmap(f, axis_name="i")


def by_shard_map(checked: bool):
    def whole(f):
        def part(x):
            outs = gradix.tree.map(
                lambda o: lax.pcast(o, "i", to="varying") if checked and "i" not in gradix.typeof(o).vma else o, f(x[0])
            )
            return gradix.tree.map(lambda o: o[None], outs)

        return gradix.shard_map(part, mesh=mesh((8,), ("i",)), in_specs=P("i"), out_specs=P("i"), check_vma=checked)

    return whole


MAPS = {"vmap": by_vmap, "pmap": by_pmap, "shard_map": by_shard_map(True), "shard_map unchecked": by_shard_map(False)}


def all_of(table):
    return lambda x: {k: f(x) for k, (f, _) in table.items()}


@pytest.mark.parametrize("mapping", MAPS)
def test_values_are_the_definitions(mapping):
    got = gradix.jit(MAPS[mapping](all_of({**LINEAR, **OTHERS})))(X)
    for k, (_, definition) in {**LINEAR, **OTHERS}.items():
        np.testing.assert_allclose(got[k], definition(X), rtol=1e-5, atol=1e-6, err_msg=k)


def matrix(definition) -> np.ndarray:
    """A definition as a matrix: a row for each basis vector, with what is made of it."""
    origin, rows = definition(np.zeros_like(X)), []
    for at in np.ndindex(X.shape):
        unit = np.zeros_like(X)
        unit[at] = 1
        rows.append((definition(unit) - origin).ravel())
    return np.stack(rows)


@functools.lru_cache(None)
def adjoints() -> dict:
    """For each collective what its transpose makes of cotangents."""
    found = {}
    for k, (_, definition) in LINEAR.items():
        m = matrix(definition)
        found[k] = lambda ct, m=m: (m @ ct.ravel()).reshape(X.shape)
    return found


@functools.lru_cache(None)
def cotangents() -> dict:
    rng = np.random.RandomState(1)
    return {k: rng.randn(*definition(X).shape).astype(np.float32) for k, (_, definition) in LINEAR.items()}


def each_of_its_own(function=lambda x: x):
    """All collectives, each of its own operand."""
    return lambda xs: {k: f(function(xs[k])) for k, (f, _) in LINEAR.items()}


def mapped(mapping, function=lambda x: x):
    """A function of a dict of stacked operands."""
    if mapping.startswith("shard_map"):
        f, whole = each_of_its_own(function), MAPS[mapping]
        return lambda xs: whole(lambda row: f(dict(zip(LINEAR, row))))(jnp.stack([xs[k] for k in LINEAR], 1))
    return MAPS[mapping](each_of_its_own(function))


@pytest.mark.parametrize("mapping", MAPS)
def test_transposes_are_the_definitions_adjoints(mapping):
    cts = cotangents()
    (got,) = gradix.jit(lambda xs, cts: gradix.vjp(mapped(mapping), xs)[1](cts))(dict.fromkeys(LINEAR, X), cts)
    for k in LINEAR:
        np.testing.assert_allclose(got[k], adjoints()[k](cts[k]), rtol=1e-4, atol=1e-4, err_msg=k)


@pytest.mark.slow
@pytest.mark.parametrize("mapping", MAPS)
def test_gradients_of_programs_around_them(mapping):
    """Through a nonlinear program, and forward as well: the tangent of each is the collective of the tangent."""
    cts, whole = cotangents(), mapped(mapping, jnp.sin)

    def loss(xs):
        return sum([(jnp.tanh(o) * cts[k]).sum() for k, o in whole(xs).items()])

    xs, turned = dict.fromkeys(LINEAR, X), dict.fromkeys(LINEAR, X[::-1])
    got, tangents = gradix.jit(lambda xs, ts: (gradix.grad(loss)(xs), gradix.jvp(whole, (xs,), (ts,))[1]))(xs, turned)
    for k, (_, definition) in LINEAR.items():
        out, origin = definition(np.sin(X)), definition(np.zeros_like(X))
        want = np.cos(X) * adjoints()[k](cts[k] / np.cosh(out) ** 2)
        np.testing.assert_allclose(got[k], want, rtol=1e-3, atol=1e-4, err_msg=k)
        np.testing.assert_allclose(
            tangents[k], definition(np.cos(X) * X[::-1]) - origin, rtol=1e-4, atol=1e-4, err_msg=k
        )


TWO = {
    "psum": (lambda x: lax.psum(x, ("x", "y")), lambda x: np.broadcast_to(x.sum((0, 1)), x.shape)),
    "psum y": (lambda x: lax.psum(x, "y"), lambda x: np.broadcast_to(x.sum(1, keepdims=True), x.shape)),
    "pmax": (lambda x: lax.pmax(x, ("y", "x")), lambda x: np.broadcast_to(x.max((0, 1)), x.shape)),
    "all_gather": (lambda x: lax.all_gather(x, ("x", "y")), lambda x: np.broadcast_to(x.reshape(8, 8), (4, 2, 8, 8))),
    "all_gather turned": (
        lambda x: lax.all_gather(x, ("y", "x"), tiled=True),
        lambda x: np.broadcast_to(x.swapaxes(0, 1).reshape(64), (4, 2, 64)),
    ),
    "psum_scatter": (lambda x: lax.psum_scatter(x, ("x", "y"), tiled=True), lambda x: x.sum((0, 1)).reshape(4, 2, 1)),
    "all_to_all": (lambda x: lax.all_to_all(x, ("x", "y"), 0, 0), lambda x: x.reshape(8, 8).T.reshape(4, 2, 8)),
    "ppermute": (
        lambda x: lax.ppermute(x, ("x", "y"), RING),
        lambda x: np.roll(x.reshape(8, 8), 1, 0).reshape(4, 2, 8),
    ),
    "axis_index": (
        lambda x: x * 0 + lax.axis_index(("y", "x")),
        lambda x: x * 0 + (np.arange(4)[:, None] + 4 * np.arange(2))[..., None],
    ),
}


@pytest.mark.parametrize("mapping", ["vmap", "pmap", "shard_map"])
def test_over_several_names(mapping):
    x = np.random.RandomState(2).randn(4, 2, 8).astype(np.float32)

    def every(v):
        return {k: f(v) for k, (f, _) in TWO.items()}

    if mapping == "vmap":
        whole = gradix.vmap(gradix.vmap(every, axis_name="y"), axis_name="x")
    elif mapping == "pmap":
        whole = gradix.pmap(gradix.vmap(every, axis_name="y"), axis_name="x", devices=gradix.devices()[:4])
    else:
        whole = gradix.shard_map(
            lambda v: gradix.tree.map(lambda o: o[None, None], every(v[0, 0])),
            mesh=mesh(),
            in_specs=P("x", "y"),
            out_specs=P("x", "y"),
            check_vma=False,
        )
    got = gradix.jit(whole)(x)
    for k, (_, definition) in TWO.items():
        np.testing.assert_allclose(got[k], definition(x), rtol=1e-5, atol=1e-6, err_msg=k)


WRONG = [
    (lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]]), ValueError, "cover all indices.*'i'"),
    (
        lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 1, 2], [3, 4], [5, 6, 7]]),
        NotImplementedError,
        "different sizes",
    ),
    (lambda x: lax.all_gather(x, "i", axis=5), ValueError, "all_gather axis"),
    (lambda x: lax.psum_scatter(x, "i", scatter_dimension=1), ValueError, "(?s)psum_scatter|reduce_scatter"),
    (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
        ValueError,
        "(?s)psum_scatter|reduce_scatter",
    ),
    (lambda x: lax.psum_scatter(x.sum(), "i"), ValueError, "needs an operand with an axis"),
    (lambda x: lax.all_to_all(x, "i", 1, 0), ValueError, "all_to_all"),
    (lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True), ValueError, "equal parts"),
    (lambda x: lax.all_to_all(x.sum(), "i", 0, 0), ValueError, "needs an operand with an axis"),
    (lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), ValueError, "must be unique"),
    (lambda x: lax.ppermute(x, "i", [(0, 8)]), ValueError, "within"),
    (lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2, 3, 4, 5, 6]), ValueError, "permutation"),
    (lambda x: lax.psum(x, "j"), NameError, "unbound axis name: j"),
    (lambda x: lax.axis_index("j"), NameError, "unbound axis name: j"),
]


@pytest.mark.parametrize("mapping", MAPS)
def test_wrong_use_is_said_in_each(mapping):
    for call, kind, match in WRONG:
        with pytest.raises(kind, match=match):
            gradix.jit(MAPS[mapping](call))(X)


UNEVEN = [[0, 5, 2], [3, 4], [7, 6, 1]]


@pytest.mark.parametrize("mapping", ["pmap", "shard_map"])
def test_sums_of_groups_of_different_sizes(mapping):
    total = MAPS[mapping](lambda x: lax.psum(x, "i", axis_index_groups=UNEVEN))
    want = grouped(UNEVEN, lambda x: [x.sum(0)] * len(x))
    np.testing.assert_allclose(total(X), want(X), rtol=1e-5)
    pulled = gradix.grad(lambda x: (total(x) * X).sum())(X)
    np.testing.assert_allclose(pulled, want(X), rtol=1e-5)


def test_vmap_refuses_groups_of_different_sizes():
    with pytest.raises(NotImplementedError, match="one size"):
        gradix.vmap(lambda x: lax.psum(x, "i", axis_index_groups=UNEVEN), axis_name="i")(X)


def test_groups_of_members_along_several_axes():
    joint = gradix.make_mesh((2, 2, 2), ("x", "y", "z"), axis_types=(gradix.sharding.AxisType.Auto,) * 3)
    x = np.arange(64.0, dtype="float32").reshape(8, 8)

    parts = P("x", ("y", "z"))

    def run(f, ins):
        return gradix.jit(gradix.shard_map(f, mesh=joint, in_specs=ins, out_specs=parts))(x)

    options = {"axis_index_groups": ((0, 3), (1, 2)), "tiled": True}
    columns = np.split(x, 4, 1)
    pairs = {0: (0, 3), 1: (1, 2), 2: (1, 2), 3: (0, 3)}
    got = run(lambda a: lax.all_gather(a, ("y", "z"), axis=1, **options), parts)
    want = [np.concatenate([columns[i] for i in pairs[k]], 1) for k in range(4)]
    np.testing.assert_array_equal(got, np.concatenate(want, 1))

    got = run(lambda a: lax.psum(a, ("y", "z"), axis_index_groups=((0, 3), (1, 2))), parts)
    np.testing.assert_array_equal(got, np.concatenate([sum(columns[i] for i in pairs[k]) for k in range(4)], 1))

    got = run(lambda a: lax.psum_scatter(a, ("y", "z"), scatter_dimension=1, **options), P("x", None))
    halves = np.split(x, 2, 1)
    want = [2 * halves[pairs[k].index(k)] for k in range(4)]
    np.testing.assert_array_equal(got, np.concatenate(want, 1))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("at", [0, 3, 7])
def test_extrema_over_devices_keep_nan(dtype, at):
    x = np.arange(8, dtype=np.float32)
    x[at] = np.nan
    m = mesh((8,), ("x",))
    a = gradix.device_put(jnp.asarray(x, dtype), on(m, "x"))
    for call in (lax.pmax, lax.pmin):
        assert np.isnan(
            np.asarray(
                gradix.jit(gradix.shard_map(lambda v: call(v, "x"), mesh=m, in_specs=P("x"), out_specs=P()))(a),
                np.float32,
            )
        ).all()
        assert np.isnan(np.asarray(gradix.pmap(lambda v: call(v, "i"), axis_name="i")(a), np.float32)).all()
        assert np.isnan(
            np.asarray(
                gradix.jit(
                    gradix.shard_map(lambda v: call(v[:, None], ("x", 0)), mesh=m, in_specs=P("x"), out_specs=P())
                )(a),
                np.float32,
            )
        ).all()
    assert (
        np.isnan(gradix.jit(jnp.max)(a))
        and np.isnan(jnp.min(a))
        and np.isnan(gradix.jit(lambda v: jnp.max(v[:, None] * jnp.ones((8, 600), v.dtype)))(a))
    )


@pytest.mark.parametrize(
    ("rewrite", "call"),
    [
        (
            "collective_extrema_keep_nan",
            lambda a: gradix.shard_map(
                lambda v: lax.pmax(v, "x"), mesh=mesh((8,), ("x",)), in_specs=P("x"), out_specs=P()
            )(a),
        ),
        ("extrema_over_devices", jnp.max),
    ],
)
def test_the_compiler_drops_nan_between_devices(rewrite, call):
    a = gradix.device_put(np.array([np.nan, *range(7)], np.float32), on(mesh((8,), ("x",)), "x"))
    assert np.isnan(gradix.jit(lambda v: call(v))(a)).all()
    gradix.config.update("gradix_rewrites", f"all,-{rewrite}")
    try:
        assert not np.isnan(gradix.jit(lambda v: call(v))(a)).any(), f"{rewrite} is no longer needed"
    finally:
        gradix.config.update("gradix_rewrites", "all")
