"""Drawn statements of kernels against NumPy: loops, conditions, scoped memory, copies, pipelines, cores, outputs."""

import itertools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.experimental import pallas as pl
from gradix.experimental.pallas import tpu as pltpu

S = gradix.ShapeDtypeStruct
pytestmark = pytest.mark.x32  # kernels write what jnp makes, and a reference keeps its dtype
DTYPES = ["float32"] * 4 + ["complex64", "int32", "int8", "bool"]


def nothing(dtype):
    """What memory beyond an array holds."""
    kind = np.dtype(dtype).kind
    return np.iinfo(dtype).min if kind == "i" else False if kind == "b" else np.nan


class Library:
    """The statements as kernels write them."""

    np = jnp

    def loop(self, n, body):
        lax.fori_loop(0, n, lambda i, _: body(i), None)

    def until(self, limit, body):
        def step(c):
            body(c[0])
            return c[0] + 1, c[1] * 2

        lax.while_loop(lambda c: c[1] < limit, step, (jnp.int32(0), jnp.int32(1)))

    def when(self, condition, body):
        pl.when(condition)(body)

    def choose(self, number, one, other):
        lax.cond(number > 0, one, other)

    def scoped(self, shape, dtype, body):
        pl.run_scoped(body, pltpu.VMEM(shape, dtype))

    def copy(self, source, target, adds):
        if adds:
            pltpu.sync_copy(source, target, add=True)
        else:
            pl.run_scoped(lambda sem: pltpu.async_copy(source, target, sem).wait(), pltpu.SemaphoreType.DMA)

    def exchange(self, ref, index, value):
        return pl.swap(ref, index, value)

    def pipeline(self, body, rows, columns, x, o):
        block = pl.BlockSpec((1, columns), lambda i: (i, 0))
        pltpu.emit_pipeline(body, grid=(rows,), in_specs=[block], out_specs=[block])(x, o)

    ds = staticmethod(pl.ds)


class Loops:
    """The same statements as Python runs them, on views of arrays."""

    np = np

    def loop(self, n, body):
        for i in range(n):
            body(i)

    def until(self, limit, body):
        i, c = 0, 1
        while c < limit:
            body(i)
            i, c = i + 1, c * 2

    def when(self, condition, body):
        if condition:
            body()

    def choose(self, number, one, other):
        (one if number > 0 else other)()

    def scoped(self, shape, dtype, body):
        body(View(np.zeros(shape, dtype)))

    def copy(self, source, target, adds):
        value = source[...].copy()
        target[...] = target[...] + value if adds else value

    def exchange(self, ref, index, value):
        old = ref[index].copy()
        ref[index] = value
        return old

    def pipeline(self, body, rows, columns, x, o):
        for i in range(rows):
            body(x.at[i : i + 1], o.at[i : i + 1])

    def ds(self, start, size):
        return slice(start, start + size)


class View:
    """What stands for a reference in NumPy."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    at = property(lambda self: Views(self.array))

    def __getitem__(self, index):
        return self.array[index]

    def __setitem__(self, index, value):
        self.array[index] = value


class Views:
    def __init__(self, array):
        self.array = array

    def __getitem__(self, index):
        return View(self.array[index])


class Drawn:
    """A kernel of drawn statements over an input by blocks, a whole one, scratch memory and three outputs."""

    def __init__(self, seed: int):
        r = self.rng = np.random.default_rng(7000 + seed)
        self.dtype = np.dtype(DTYPES[int(r.integers(len(DTYPES)))])
        self.is_float = self.dtype.kind in "fc"
        self.rows, self.columns = int(r.integers(2, 4)), int(r.integers(1, 4))
        self.grid = tuple(int(n) for n in r.integers(1, 4, int(r.integers(1, 4))))
        self.on_cores = r.random() < 0.15
        if self.on_cores:
            self.grid = (2,)
        self.kind = str(r.choice(["blocked", "element", "bounded", "table", "halo"]))
        self.axis = int(r.integers(len(self.grid)))
        self.is_dynamic = not self.on_cores and r.random() < 0.3
        n = self.grid[self.axis]
        self.table = r.integers(0, n, self.grid).astype(np.int32)
        self.x_rows = {"halo": n * self.rows}.get(self.kind, n * self.rows + int(r.integers(0, 2)))
        self.block = self.rows + 2 if self.kind == "halo" else self.rows
        self.order = [int(a) for a in r.permutation(len(self.grid))]
        self.statements = self.drawn(2, 1 + int(r.integers(1, 4)), 0)
        self.width = int(np.prod([self.grid[a] for a in self.order]))

    # -- statements --------------------------------------------------------------------------------

    def drawn(self, depth, count, counters):
        return [self.statement(depth, counters) for _ in range(count)]

    def statement(self, depth, counters):
        r = self.rng
        simple = ["write", "add", "copy", "exchange", "pipeline"]
        kind = str(r.choice([*simple, "loop", "until", "when", "choose", "scoped"] if depth else simple))
        if kind in simple:
            target = str(r.choice(["s", "o", "p"]))
            source = str(r.choice([n for n in ("x", "y", "s", "o", "p", "t") if n != target]))
            return (
                kind,
                target,
                source,
                self.part(counters),
                float(r.choice([0.5, -0.5, 1.0])),
                bool(r.random() < 0.5),
                int(r.integers(3)),
            )
        inner = counters + (kind in ("loop", "until"))
        body = self.drawn(depth - 1, int(r.integers(1, 3)), inner)
        other = self.drawn(depth - 1, 1, inner) if kind == "choose" else []
        return kind, int(r.integers(1, 4)), body, other, int(r.integers(len(self.grid)))

    def part(self, counters):
        """A row: a number, one that counts, or that of the program; or a slice from there, or the whole."""
        how = str(self.rng.choice(["whole", "row", "slice"]))
        which = str(self.rng.choice(["known", "program", *["counter"] * (2 if counters else 0)]))
        return how, which, int(self.rng.integers(2)), int(self.rng.integers(0, max(counters, 1)))

    def index(self, lib, part, ids, counters):
        how, which, number, place = part
        if how == "whole":
            return ...
        at = {
            "known": lambda: number,
            "program": lambda: ids[number % len(ids)] % 2,
            "counter": lambda: counters[place] % 2,
        }[which]()
        return (at,) if how == "row" else (lib.ds(at, self.rows - 1),)

    def run(self, lib, refs, ids, counters, statements):
        for kind, *args in statements:
            if kind == "loop":
                n, body, *_ = args
                lib.loop(n, lambda i, body=body: self.run(lib, refs, ids, [*counters, i], body))
            elif kind == "until":
                n, body, *_ = args
                lib.until(ids[0] + n, lambda i, body=body: self.run(lib, refs, ids, [*counters, i], body))
            elif kind == "when":
                n, body, _, axis = args
                lib.when(ids[axis] < n - 1, lambda body=body: self.run(lib, refs, ids, counters, body))
            elif kind == "choose":
                n, body, other, axis = args
                branches = [lambda b=b: self.run(lib, refs, ids, counters, b) for b in (body, other)]
                lib.choose(ids[axis] - n + 1, *branches)
            elif kind == "scoped":
                _, body, *_ = args

                def inside(t, body=body):
                    t[...] = refs["s"][...]
                    self.run(lib, {**refs, "t": t}, ids, counters, body)

                lib.scoped((self.rows, self.columns), self.dtype, inside)
            else:
                self.simple(lib, refs, ids, counters, kind, *args)

    def simple(self, lib, refs, ids, counters, kind, target, source, part, factor, adds, shift):
        index = self.index(lib, part, ids, counters)
        o, i = refs[target], refs.get(source, refs["y"])
        if source == "x" and self.block != self.rows:
            i = i.at[shift : shift + self.rows]
        if kind == "copy":
            adds = adds and self.dtype.kind != "b"
            lib.copy(*[r if index is ... else r.at[index] for r in (i, o)], adds)
        elif kind == "exchange":
            o[index] = self.sum(lib.exchange(o, index, self.scaled(i[index], factor)), o[index])
        elif kind == "pipeline":

            def body(one, other):
                other[...] = self.sum(self.scaled(other[...], factor), one[...])

            lib.pipeline(body, self.rows, self.columns, i, o)
        elif kind == "add":
            o[index] = self.sum(self.scaled(o[index], 0.5), self.scaled(i[index], factor))
        else:
            o[index] = self.sum(self.scaled(i[index] * refs["y"][index], factor), refs["s"][index])

    def scaled(self, x, factor):
        if self.is_float:
            return x * np.asarray(factor * (1 + 0.5j if self.dtype.kind == "c" else 1), self.dtype)
        return x if factor > 0 or self.dtype.kind == "b" else -x

    def sum(self, a, b):
        return a ^ b if self.dtype.kind == "b" else a + b

    # -- the kernel --------------------------------------------------------------------------------

    def body(self, lib, ids, x, y, o, p, total, s):
        begins = ids[0] == 0
        for i in ids[1:]:
            begins = begins & (i == 0)

        def first():
            for ref in (s, total):
                ref[...] = lib.np.zeros(ref.shape, ref.dtype)

        lib.when(begins, first)
        for ref in (o, p):
            ref[...] = lib.np.zeros(ref.shape, ref.dtype)
        self.run(lib, {"x": x, "y": y, "s": s, "o": o, "p": p}, ids, [], self.statements)
        total[...] = self.sum(self.scaled(total[...], 0.5), self.sum(o[...], p[...]))

    def place(self, ids):
        """The number of a program, its axes in another order."""
        at = 0
        for a in self.order:
            at = at * self.grid[a] + ids[a]
        return at

    def chosen(self, ids, table):
        """Which block or element of x a program gets."""
        i = ids[self.axis]
        if self.kind == "table":
            return (table[ids] + i) % self.grid[self.axis]
        if self.kind in ("element", "bounded", "halo"):
            return i * self.rows
        return self.grid[self.axis] - 1 - i

    def call(self):
        shapes = [S((self.width * self.rows, self.columns), self.dtype)] * 2 + [
            S((self.rows, self.columns), self.dtype)
        ]
        if self.on_cores:
            return self.on_a_mesh(shapes)
        size = {
            "element": pl.Element(self.rows),
            "bounded": pl.BoundedSlice(self.rows),
            "halo": pl.Element(self.block, (1, 1)),
        }.get(self.kind, self.rows)

        def chosen(*args):
            at = self.chosen(args[:-1], args[-1])
            return (pl.ds(at, self.rows) if self.kind == "bounded" else at), 0

        block = pl.Element(self.columns) if self.kind in ("element", "bounded", "halo") else self.columns
        own = [
            pl.BlockSpec((self.rows, self.columns), lambda *a: (self.place(a[:-1]), 0)),
            pl.BlockSpec((self.rows, self.columns), lambda *a: (self.width - 1 - self.place(a[:-1]), 0)),
            pl.BlockSpec((self.rows, self.columns), lambda *a: (0, 0)),
        ]

        def kernel(_, *refs):
            self.body(Library(), [pl.program_id(a) for a in range(len(self.grid))], *refs)

        def call(x, y):
            grid = self.grid
            if self.is_dynamic:
                grid = (jnp.int32(grid[0]) + jnp.int32(0 * x.size), *grid[1:])
            spec = pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1,
                grid=grid,
                in_specs=[pl.BlockSpec((size, block), chosen), pl.BlockSpec(memory_space=pl.ANY)],
                out_specs=own,
                scratch_shapes=[pltpu.VMEM((self.rows, self.columns), self.dtype)],
            )
            return pl.pallas_call(kernel, shapes, grid_spec=spec)(self.table, x, y)

        return call

    def on_a_mesh(self, shapes):
        mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)

        def call(x, y):
            @pl.kernel(out_type=shapes, mesh=mesh)
            def run(x, y, o, p, total):
                core = lax.axis_index("core")
                s = pl.get_global(pltpu.VMEM((self.rows, self.columns), self.dtype))
                start = self.first_row(self.chosen((core,), jnp.asarray(self.table)))
                own = [
                    x.at[pl.ds(start, self.block)],
                    y,
                    o.at[pl.ds(core * self.rows, self.rows)],
                    p.at[pl.ds((1 - core) * self.rows, self.rows)],
                ]
                self.body(Library(), [core], *own, total, s)

            return run(self.padded(jnp, x), y)

        return call

    def first_row(self, chosen):
        return chosen if self.kind in ("element", "bounded", "halo") else chosen * self.rows

    def padded(self, np, x):
        """The rows of all blocks; those that x lacks are 0 where cores get it, and no program reads the others."""
        before = int(self.kind == "halo")
        return np.pad(x, [(before, self.rows), (0, 0)])

    def reference(self, x, y):
        dtype = self.dtype
        wide = {"f": np.float64, "c": np.complex128}.get(dtype.kind, dtype)
        x, y = self.padded(np, x.astype(wide)), View(y.astype(wide))
        if self.kind == "halo" and not self.on_cores:
            x[0] = x[1 + self.x_rows :] = nothing(wide)
        outs = [np.zeros((self.width * self.rows, self.columns), wide) for _ in range(2)]
        total, s = View(np.zeros((self.rows, self.columns), wide)), View(np.zeros((self.rows, self.columns), wide))
        keep, self.dtype = self.dtype, np.dtype(wide)
        try:
            for ids in itertools.product(*map(range, self.grid)):
                at = self.place(ids)
                start = int(self.first_row(self.chosen(ids, self.table)))
                blocks = [View(a[n * self.rows : (n + 1) * self.rows]) for a, n in zip(outs, (at, self.width - 1 - at))]
                with np.errstate(all="ignore"):
                    self.body(Loops(), list(ids), View(x[start : start + self.block]), y, *blocks, total, s)
        finally:
            self.dtype = keep
        return [*outs, total.array]

    def arguments(self):
        found = []
        for shape in ((self.x_rows, self.columns), (self.rows, self.columns)):
            x = self.rng.normal(size=shape)
            if self.dtype.kind == "c":
                x = x + 1j * self.rng.normal(size=shape)
            found.append(x > 0 if self.dtype.kind == "b" else (x if self.is_float else 3 * x).astype(self.dtype))
        return found


def same(found, want, scale=1.0):
    for a, b in zip(found, want):
        size = np.nan_to_num(np.abs(b)).max(initial=1) if b.dtype.kind in "fc" else 1
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-5 * size * scale)


def slopes(drawn, f, x, y, want):
    """The derivative of the sum of all finite results along a direction: of a kernel, and of its reference.

    It is that with respect to x alone where y is multiplied by NaN from beyond the array: 0 times NaN is NaN.
    """
    kept, t = [np.isfinite(w) for w in want], drawn.arguments()
    if drawn.kind == "halo":
        t[1] = np.zeros_like(t[1])

    def loss(x, y):
        return sum([jnp.where(k, v, 0).sum() for k, v in zip(kept, f(x, y))])

    found = gradix.grad(loss, (0, 1))(x, y)
    terms = [(g * v)[v != 0] for g, v in zip(found, t)]

    def at(h):
        moved = [a + np.float64(h) * v for a, v in zip((x, y), t)]
        return sum([np.where(k, v, 0).sum() for k, v in zip(kept, drawn.reference(*moved))])

    eps = 1e-5
    size = sum([float(np.abs(v).sum()) for v in terms])
    return sum([float(v.sum()) for v in terms]), (at(eps) - at(-eps)) / (2 * eps), size


def check(drawn, seed):
    f, (x, y) = drawn.call(), drawn.arguments()
    want = drawn.reference(x, y)
    same(gradix.jit(f)(x, y), want)
    if seed % 4 == 0:
        pairs = [np.stack([a, a[::-1]]) for a in (x, y)]
        each = [drawn.reference(*p) for p in zip(*pairs)]
        same(gradix.jit(gradix.vmap(f))(*pairs), [np.stack(w) for w in zip(*each)])
    if seed % 4 == 1 and drawn.dtype == np.float32:
        found, slope, size = slopes(drawn, f, x, y, want)
        np.testing.assert_allclose(found, slope, rtol=1e-3, atol=1e-3 * max(size, 1))


FEW, MANY = range(6), range(6, 200)


@pytest.mark.parametrize("seed", [*FEW, *[pytest.param(s, marks=pytest.mark.slow) for s in MANY]])
def test_drawn_statements_equal_numpy(seed):
    check(Drawn(seed), seed)
