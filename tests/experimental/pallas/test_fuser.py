"""Functions around kernels that the kernels apply to their blocks: `pallas.fuser`."""

import functools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import pallas as pl
from gradix.experimental.pallas import fuser, tpu as pltpu

RNG = np.random.default_rng(0)


def normal(*shape):
    return jnp.asarray(RNG.normal(size=shape).astype("float32"))


def struct(*shape, dtype="float32"):
    return gradix.ShapeDtypeStruct(shape, dtype)


def close(got, want, **tolerance):
    got, want = gradix.tree.leaves(got), gradix.tree.leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, **{"rtol": 1e-4, "atol": 1e-5, **tolerance})


# -- fuse and fusible ------------------------------------------------------------------------------


@fuser.fusible
def product(x, y, out, *, b=4, seen=None):
    """A product in blocks, whose operands and result are computed block by block."""
    (n, k), m = x.shape, y.shape[1]
    grid = (n // b, m // b, k // b)
    type_ = struct(n, m)
    out = out or (lambda z: z)
    specs = [
        pl.BlockSpec((b, b), lambda i, j, k, *_: (i, k)),
        pl.BlockSpec((b, b), lambda i, j, k, *_: (k, j)),
        pl.BlockSpec((b, b), lambda i, j, k, *_: (i, j)),
    ]
    found = [fuser.get_fusion_values(f, *types) for f, types in ((x, ()), (y, ()), (out, (type_,)))]
    if seen is not None:
        seen += [[v.shape for v in values] for _, values, _ in found]
    specs[2] = fuser.push_block_spec(out, specs[2])(type_)
    functions, of_values = [], []
    for i, ((f, values, _), spec) in enumerate(zip(found, specs)):
        handler = fuser.make_scalar_prefetch_handler(i)
        pulled = fuser.pull_block_spec(f, spec, scalar_prefetch_handler=handler, grid_len=3)
        function, (own, *_), _ = pulled(values, *([type_] if i == 2 else []))
        functions.append(function)
        of_values.append(own)
    scalars = gradix.tree.map(lambda s: s[None], tuple([s for *_, s in found]))

    def kernel(sx, sy, sz, x_refs, y_refs, z_refs, o, acc):
        ids = tuple(map(pl.program_id, range(3)))
        x, y, z = [
            functools.partial(f, ids, (sx, sy, sz), gradix.tree.map(lambda r: r.get(), refs))
            for f, refs in zip(functions, (x_refs, y_refs, z_refs))
        ]

        @pl.when(ids[2] == 0)
        def _():
            acc.set(jnp.zeros(acc.shape))

        acc[...] += x() @ y()

        @pl.when(ids[2] == pl.num_programs(2) - 1)
        def _():
            gradix.tree.map(lambda r, v: r.set(v), o, z(acc[...]))

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=3,
        grid=grid,
        scratch_shapes=[pltpu.VMEM((b, b), jnp.float32)],
        in_specs=of_values,
        out_specs=[specs[2]],
    )
    types = gradix.eval_shape(out, type_)
    return pl.pallas_call(kernel, [types], grid_spec=spec)(*scalars, *[v for _, v, _ in found])[0]


X, Y, Z, ROW = normal(8, 12), normal(12, 16), normal(8, 16), normal(16)
STACK = normal(3, 8, 12)

AROUND = {
    "nothing": lambda x, y, z, row, i, mm: mm(x, y),
    "before": lambda x, y, z, row, i, mm: mm(jnp.exp(x) * 2 + 1, y * row),
    "after": lambda x, y, z, row, i, mm: jnp.tanh(mm(x, y) * row + z),
    "transposes": lambda x, y, z, row, i, mm: mm(x.T.T, (y.T * 2).T).T,
    "part": lambda x, y, z, row, i, mm: mm(jnp.concatenate([STACK[0], x], 0)[8:], y),
    "chosen": lambda x, y, z, row, i, mm: mm(lax.dynamic_index_in_dim(STACK, i, keepdims=False) + x, y) + z,
    "sums": lambda x, y, z, row, i, mm: mm(x - STACK.sum(0), y) + jnp.sum(z, 0),
    "rules": lambda x, y, z, row, i, mm: gradix.nn.relu(mm(gradix.nn.silu(x), y)),
    "counted": lambda x, y, z, row, i, mm: mm(x, y) + jnp.arange(16.0) + lax.broadcasted_iota("float32", (8, 16), 0),
    "scaled": lambda x, y, z, row, i, mm: mm(x * i, y) * jnp.where(z > 0, 1.0, 0.5),
    "shapes": lambda x, y, z, row, i, mm: mm(x.reshape(2, 4, 12).reshape(8, 12), y)[None, :, :].squeeze(0),
    "pairs": lambda x, y, z, row, i, mm: (lambda p: (p * 2, p + z))(mm(x, y))[1],
}


@pytest.mark.x32
@pytest.mark.parametrize("name", AROUND)
def test_fused_products_are_the_same(name):
    plain = lambda x, y, z, row, i: AROUND[name](x, y, z, row, i, jnp.matmul)
    fused = fuser.fuse(lambda x, y, z, row, i: AROUND[name](x, y, z, row, i, product))
    args = X, Y, Z, ROW, jnp.int32(2)
    close(gradix.jit(fused)(*args), plain(*args))
    loss = lambda f: gradix.jit(gradix.grad(lambda *t: (f(*t) ** 2).sum(), (0, 1, 2, 3)))
    close(loss(fused)(*args), loss(plain)(*args), rtol=1e-3, atol=1e-3)


@pytest.mark.x32
def test_fused_functions_are_mapped():
    fused = fuser.fuse(lambda x, y, row: jnp.exp(product(x, y) / 8) + row)
    plain = lambda x, y, row: jnp.exp(x @ y / 8) + row
    xs = normal(3, 8, 12)
    close(gradix.vmap(fused, (0, None, None))(xs, Y, ROW), gradix.vmap(plain, (0, None, None))(xs, Y, ROW))


@pytest.mark.x32
def test_what_surrounds_a_kernel_is_given_to_it():
    seen = []
    fused = fuser.fuse(lambda x, y, z: product(x, y * ROW, seen=seen) + z)
    gradix.jit(fused)(X, Y, Z)
    assert [sorted(shapes) for shapes in seen[-3:]] == [[(8, 12)], [(12, 16), (16,)], [(8, 16)]]


def fusions_of(function, *args, prefix=True):
    """The output fusions that a fusible of the identity gets."""
    seen = []

    @functools.partial(fuser.fusible, output_fusion_prefix=prefix)
    def same(*fusions):
        *ins, outs = fusions
        seen.append(outs)
        values = tuple([f() for f in ins])
        if prefix is True:
            values = values[0] if len(values) == 1 else values
            return values if outs is None else outs(values)
        return tuple([v if o is None else o(v) for v, o in zip(values, outs)])

    got = fuser.fuse(functools.partial(function, same))(*args)
    return got, seen[-1] if seen else None


def test_results_of_a_fusible():
    a, b = normal(3, 2), normal(1, 2)
    got, out = fusions_of(lambda f, a: f(a), a)
    assert out is None
    close(got, a)
    got, out = fusions_of(lambda f, a, b: (b * 3, {"x": f(a * 2) + b}), a, b)
    assert out.in_shape == (3, 2) and out.shape == (3, 2) and out.dtype == np.float32
    close(got, (b * 3, {"x": a * 2 + b}))
    got, outs = fusions_of(lambda f, a, b: f(a, b)[::-1], a, b, prefix=(True, True))
    assert outs == (None, None)
    close(got, (b, a))

    def both(f, a, b):
        x, y = f(a, b)
        return y + b, (x * 2, x + a), a

    got, (first, second) = fusions_of(both, a, b, prefix=(True, True))
    assert [t.shape for t in first.out_type] == [(3, 2), (3, 2)] and second.shape == (1, 2)
    close(got, (b + b, (a * 2, a + a), a))
    with pytest.raises(ValueError, match="one result|2 results|no single type"):
        _ = first.shape
    got, out = fusions_of(lambda f, a, b: (lambda p: p[0] * p[1])(f(a, b)), a, b)
    close(got, a * b)


def test_results_that_need_several_output_fusions():
    a = normal(3, 2)
    with pytest.raises(ValueError, match="disjoint.*result 0 of the fused function depends on 2"):
        fusions_of(lambda f, a: sum(f(a, a)), a, prefix=(True, True))


def test_functions_without_a_fusible_and_with_two():
    a = normal(3, 2)
    close(fuser.fuse(lambda a: a + 1)(a), a + 1)
    same = fuser.fusible(lambda x, out: x() if out is None else out(x()))
    with pytest.raises(ValueError, match="calls 2 fusibles, .*Fuse a function around each"):
        fuser.fuse(lambda a: same(same(a)))(a)
    close(same(a), a)
    close(fuser.fuse(lambda a: gradix.grad(lambda a: same(a * a).sum())(a))(a), 2 * a)
    close(fuser.fuse(lambda a: gradix.jit(lambda a: same(a) + 1)(a))(a), a + 1)
    with pytest.raises(TypeError, match="takes a function"):
        fuser.fusible(3)


def test_mutable_arrays_around_a_fusible():
    ref = gradix.new_ref(jnp.ones(2))
    same = fuser.fusible(lambda x, out: x() if out is None else out(x()))
    read = gradix.jit(fuser.fuse(lambda a: same(a) + ref[...]))
    close(read(jnp.ones(2)), np.full(2, 2.0))
    ref[...] = jnp.full(2, 5.0)
    close(read(jnp.ones(2)), np.full(2, 6.0))

    def write(a):
        ref[...] = same(a)
        return a

    with pytest.raises(NotImplementedError, match="ref|mutable array"):
        gradix.jit(fuser.fuse(write))(jnp.ones(2))
    with pytest.raises(NotImplementedError, match="Read mutable arrays before"):
        fuser.get_stateful_input_fusion_values(None)
    with pytest.raises(NotImplementedError, match="prints"):
        gradix.jit(fuser.fuse(lambda a: (gradix.debug.print("{}", a), same(a))[1]))(jnp.ones(2))


def test_static_arguments_and_decorators():
    same = fuser.fusible()(lambda x, out, *, times: times * (x() if out is None else out(x())))

    @fuser.fuse(static_argnums=1, static_argnames="more")
    def f(x, times, *, more):
        assert type(times) is int and more == "a"
        return same(x, times=times)

    close(f(jnp.ones(2), 3, more="a"), 3 * jnp.ones(2))


# -- blocks of functions ---------------------------------------------------------------------------


def blocks_of(x, spec, ids):
    """The block of an array, by the spec's index map."""
    where = []
    for dim, i in zip(spec.block_shape, spec.index_map(*ids)):
        if dim is None:
            where.append(int(i))
        elif isinstance(dim, pl.Element):
            where.append(slice(int(i), int(i) + dim.block_size))
        else:
            where.append(slice(int(i) * dim, int(i) * dim + dim))
    return np.asarray(x)[tuple(where)]


PULLED = {
    "elementwise": (lambda x: jnp.exp(x) + 1, [(8, 12)], (2, 4)),
    "stretched": (lambda x, y: x * y, [(8, 12), (8, 1)], (2, 4)),
    "stretched, squeezed": (lambda x, y: x * y, [(8, 12), (1, 12)], (None, 4)),
    "transpose": (lambda x: x.transpose(2, 0, 1), [(4, 6, 8)], (4, 2, 3)),
    "transpose, squeezed": (lambda x: x.transpose(2, 0, 1), [(4, 6, 8)], (4, None, 3)),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (6, 4, 8)), [(6, 8)], (3, 2, 4)),
    "broadcast, squeezed": (lambda x: jnp.broadcast_to(x[:, None], (6, 4, 8)), [(6, 8)], (None, 2, None)),
    "squeeze": (lambda x: x[0, :, 0], [(1, 6, 1)], (2,)),
    "merged": (lambda x: x.reshape(24, 8), [(4, 6, 8)], (3, 4)),
    "split": (lambda x: x.reshape(4, 6, 8), [(24, 8)], (1, 3, 4)),
    "split, whole rows": (lambda x: x.reshape(4, 6, 8), [(24, 8)], (2, 6, 8)),
    "flat": (lambda x: x.reshape(192), [(4, 6, 8)], (16,)),
    "slice": (lambda x: x[4:8, 1:7], [(8, 8)], (2, 3)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y], 1), [(4, 6), (4, 9)], (2, 3)),
    "concatenate, whole": (lambda x, y: jnp.concatenate([x, y], 1), [(4, 6), (4, 9)], (2, 15)),
    "sum": (lambda x: x.sum((0, 2)), [(4, 6, 8)], (3,)),
    "largest": (lambda x: x.max(1), [(4, 6, 8)], (2, None)),
    "product": (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), [(2, 4, 6), (2, 6, 8)], (1, 2, 4)),
    "product, squeezed": (lambda x, y: jnp.einsum("bij,bjk->bik", x, y), [(2, 4, 6), (2, 6, 8)], (None, 2, None)),
    "iota": (lambda x: x + lax.broadcasted_iota("float32", (8, 6), 0), [(8, 6)], (4, 2)),
    "iota, squeezed": (lambda x: x + lax.broadcasted_iota("float32", (8, 6), 0), [(8, 6)], (None, 2)),
    "copies": (lambda x: lax.tile(x, (2, 3)), [(4, 6)], (2, 12)),
    "copies of blocks": (lambda x: lax.tile(x, (2, 3)), [(4, 6)], (2, 3)),
    "choice": (lambda x, y: jnp.where(x > y, x, y).astype("int32"), [(4, 6), (4, 6)], (2, 3)),
    "captured": (lambda x: x + STACK[1], [(8, 12)], (4, 6)),
    "diamond": (lambda x: jnp.exp(x) * (jnp.exp(x) + x).T.T, [(4, 6)], (2, 3)),
}


@pytest.mark.parametrize("name", PULLED)
def test_blocks_pulled_through_a_function(name):
    f, shapes, block = PULLED[name]
    args = [normal(*s) for s in shapes]
    out = np.asarray(f(*args))
    counts = [n // (b or 1) for n, b in zip(out.shape, block)]
    spec = pl.BlockSpec(block, lambda *ids: ids)
    run, specs, named = fuser.pull_block_spec(f, spec, grid_len=len(block))(*args)
    assert named == {}
    for ids in np.ndindex(*counts):
        got = run(ids, (), *[blocks_of(x, s, ids) for x, s in zip(args, specs)])
        np.testing.assert_allclose(got, blocks_of(out, spec, ids), rtol=1e-5, atol=1e-5)


PUSHED = {
    "elementwise": (lambda x: jnp.exp(x) + Z[:, :12], [((8, 12), (2, 4))]),
    "one of two": (lambda x, y: x * y, [((8, 12), (2, 4)), ((8, 1), None)]),
    "transpose": (lambda x: x.transpose(2, 0, 1), [((4, 6, 8), (2, 3, 4))]),
    "broadcast": (lambda x: jnp.broadcast_to(x, (4, 8)), [((8,), (2,))]),
    "split": (lambda x: x.reshape(4, 6, 8), [((24, 8), (3, 4))]),
    "merged": (lambda x: x.reshape(24, 8), [((4, 6, 8), (1, 3, 4))]),
    "sum": (lambda x: x.sum(1), [((4, 6), (2, 6))]),
    "rule": (gradix.nn.relu, [((4, 6), (2, 3))]),
    "squeeze": (lambda x: x[:, 0], [((4, 1), (2, 1))]),
}


@pytest.mark.parametrize("name", PUSHED)
def test_pushed_blocks_are_made_of_the_given_ones(name):
    """Pulling what was pushed gives the blocks of the arguments back."""
    f, given = PUSHED[name]
    specs = [pl.no_block_spec if b is None else pl.BlockSpec(b, lambda *ids: ids) for _, b in given]
    types = [struct(*s) for s, _ in given]
    out, type_ = fuser.push_block_spec(f, *specs, return_out_type=True)(*types)
    assert len(out.block_shape) == len(type_.shape)
    rank = len(given[0][0])
    _, back, _ = fuser.pull_block_spec(f, out, grid_len=rank)(*types)
    counts = [n // b for n, b in zip(*given[0])]
    for ids in np.ndindex(*counts):
        assert tuple(map(int, back[0].index_map(*ids))) == tuple(specs[0].index_map(*ids))
    assert tuple(back[0].block_shape) == tuple(given[0][1]) or name == "squeeze"


REFUSED = {
    "no rule": (lambda x: jnp.sort(x), (4, 6), (2, 3), "sort in a fusion: it has no rule"),
    "a mixing reshape": (lambda x: x.reshape(6, 4), (4, 6), (3, 2), "blocks of the other shape"),
    "strides": (lambda x: lax.slice(x, (0, 0), (4, 6), (2, 1)), (4, 6), (1, 3), "strides"),
    "cut copies": (lambda x: jnp.concatenate([x, x], 1), (4, 6), (2, 4), "parts of two operands"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_mixes_blocks_is_refused(name):
    f, shape, block, words = REFUSED[name]
    with pytest.raises(NotImplementedError, match=words):
        fuser.pull_block_spec(f, pl.BlockSpec(block, lambda *ids: ids), grid_len=2)(struct(*shape))


def test_an_argument_that_is_needed_in_two_blocks():
    spec = pl.BlockSpec((2, 2), lambda i, j: (i, j))
    with pytest.raises(ValueError, match="needed in two different blocks"):
        fuser.pull_block_spec(lambda x: x + x.T, spec, grid_len=2)(struct(4, 4))
    _, (own,), _ = fuser.pull_block_spec(lambda x: x + x.T.T, spec)(struct(4, 4))
    assert own.index_map(1, 0) == (1, 0)
    with pytest.raises(ValueError, match="operands in different blocks"):
        fuser.push_block_spec(jnp.add, spec, spec.replace(index_map=lambda i, j: (j, i)))(struct(4, 4), struct(4, 4))
    with pytest.raises(ValueError, match=r"stretches an array of shape \(4, 1\)"):
        fuser.push_block_spec(jnp.add, pl.no_block_spec, pl.BlockSpec((2, 1)))(struct(4, 4), struct(4, 1))
    with pytest.raises(ValueError, match="grid_len"):
        f, values, _ = fuser.get_fusion_values(gradix.jit(lambda x: x), struct(4, 4))
        gradix.jit(
            lambda i: fuser.pull_block_spec(
                fuser.get_fusion_values(lambda: lax.dynamic_index_in_dim(STACK, i, keepdims=False))[0],
                pl.BlockSpec((8, 12), lambda *_: (0, 0)),
            )((STACK,))[1][0][0].index_map(0)
        )(1)


def test_custom_fusions():
    @fuser.custom_fusion
    def scaled(x, by=2.0):
        return x * by, x - 1

    with pytest.raises(NotImplementedError, match="scaled has no pull_block_spec: set it with"):
        fuser.pull_block_spec(lambda x: scaled(x)[0], pl.BlockSpec((2,), lambda i: (i,)))(struct(6))
    scaled.def_pull_block_spec(lambda outs: (next(o for o in outs if o is not None), None))
    scaled.def_push_block_spec(lambda ins: (ins[0], ins[0]))
    places = []

    @scaled.def_eval_rule
    def rule(context, x, by):
        places.append((context.out_block_specs[0].block_shape, context.out_block_indices[0]))
        return x * 2.0, x - 1

    x = normal(6)
    close(scaled(x), (x * 2, x - 1))
    close(gradix.grad(lambda x: scaled(x, 3.0)[0].sum())(x), np.full(6, 3.0))
    spec = pl.BlockSpec((2,), lambda i: (i,))
    assert fuser.push_block_spec(lambda x: scaled(x)[0] + 1, spec)(x) is spec
    run, (own,), _ = fuser.pull_block_spec(lambda x: scaled(x)[0] + 1, spec)(x)
    close(run((1,), (), x[2:4]), x[2:4] * 2 + 1)
    assert own.block_shape == (2,) and places == [((2,), (1,))]


def test_derivatives_of_ones_own_hold_for_blocks():
    @gradix.custom_jvp
    def straight(x):
        return jnp.round(x)

    straight.defjvp(lambda p, t: (straight(*p), 10 * t[0]))
    x, spec = normal(8), pl.BlockSpec((4,), lambda i: (i,))
    run, _, _ = fuser.pull_block_spec(straight, spec)(x)
    close(gradix.grad(lambda x: run((0,), (), x).sum())(x[:4]), np.full(4, 10.0))

    @gradix.custom_jvp
    def total(x):
        return x - x.sum()

    @gradix.custom_jvp
    def mean(x):
        return x + 1

    total.defjvp(lambda p, t: (total(*p), t[0]))
    mean.defjvp(lambda p, t: (mean(*p), t[0] - t[0].mean()))
    for f in (total, mean):
        with pytest.raises(
            NotImplementedError, match="derivative of its own, and is not a function of single elements"
        ):
            fuser.pull_block_spec(f, spec)(x)

    @gradix.custom_vjp
    def scaled(x):
        return x + 1

    scaled.defvjp(lambda x: (scaled(x), None), lambda _, ct: (ct / jnp.linalg.norm(ct),))
    run, _, _ = fuser.pull_block_spec(scaled, spec)(x)
    close(run((0,), (), x[:4]), x[:4] + 1)
    with pytest.raises(
        NotImplementedError, match="scaled in a fusion: its rule for reverse mode is one of whole arrays"
    ):
        gradix.grad(lambda x: run((0,), (), x).sum())(x[:4])


def test_trees_of_references_are_copied():
    def kernel(x, y, o, p):
        pltpu.sync_copy({"a": x, "b": [y, ()]}, {"a": o, "b": [p, ()]})

    x, y = normal(4), normal(2, 3)
    close(pl.pallas_call(kernel, (struct(4), struct(2, 3)))(x, y), (x, y))
    with pytest.raises(ValueError, match="trees of one structure"):
        pl.pallas_call(lambda x, o: pltpu.sync_copy((x,), [o]), struct(4))(x)


@pytest.mark.x32
def test_index_maps_get_trees_of_what_is_prefetched():
    def kernel(where, x, o):
        o[...] = x[...] * where["times"][0]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((2,), lambda i, where: (where["rows"][i],))],
        out_specs=pl.BlockSpec((2,), lambda i, where: (i,)),
    )
    where = {"rows": jnp.array([3, 0, 1, 1]), "times": jnp.array([10])}
    got = pl.pallas_call(kernel, struct(8), grid_spec=spec)(where, jnp.arange(8.0))
    close(got, np.array([60, 70, 0, 10, 20, 30, 20, 30]))


def test_references_by_their_methods():
    ref = gradix.new_ref(jnp.arange(4.0))
    ref.set(10.0, 1)
    assert float(ref.swap(20.0, 1)) == 10 and float(ref.get(1)) == 20
    ref.set(jnp.zeros(4))
    close(ref.get(), np.zeros(4))
