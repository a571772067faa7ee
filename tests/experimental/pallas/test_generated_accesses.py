"""Drawn kernels of many dtypes against a loop in NumPy: masks, prefetched indices, traced grids, elements, padding."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental import pallas as pl
from gradix.experimental.pallas import tpu as pltpu

S = gradix.ShapeDtypeStruct
pytestmark = pytest.mark.x32  # kernels write what jnp makes, and a reference keeps its dtype
DTYPES = [np.float32, np.float32, np.float32, ml_dtypes.bfloat16, np.float16, np.int32, np.int8, np.uint8, np.bool_]


def nothing(dtype):
    """What memory holds before it is written."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else np.nan


class Drawn:
    """A kernel `o[mask] = x[...] + y[table] (+ o)`, drawn from a seed, with all that it takes.

    - x has blocks at any element, with padding before and after; its second dimension may be squeezed.
    - y has rows that a prefetched table picks, blocks of it may reach beyond the end.
    - o is written where a mask is true, at a traced place within its block; it may begin with z.
    """

    def __init__(self, seed: int):
        r = self.rng = np.random.default_rng(1000 + seed)
        self.dtype = np.dtype(DTYPES[int(r.integers(len(DTYPES)))])
        self.grid = tuple(int(n) for n in r.integers(1, 4, int(r.integers(1, 3))))
        self.is_dynamic, self.is_squeezed, self.is_aliased, self.adds = (bool(b) for b in r.random(4) < 0.5)
        self.is_aliased |= self.adds and seed % 5 > 0  # else most sums would be NaN
        self.rows, self.columns = int(r.integers(1, 4)), 1 if self.is_squeezed else int(r.integers(1, 4))
        self.padding = tuple(int(n) for n in r.integers(0, 3, 2))
        self.step = int(r.integers(1, 3))
        last = self.step * (self.grid[0] - 1) + self.rows - sum(self.padding)
        self.x_shape = (int(max(last + r.integers(0, 2), 1)), self.columns + int(r.integers(0, 3)))
        self.y_shape = (int(r.integers(1, 3 * self.rows)), self.columns)
        whole = -(-self.y_shape[0] // self.rows)
        self.table = r.integers(0, whole, self.grid).astype(np.int32)
        self.o_rows = self.rows + int(r.integers(0, 3))
        self.o_shape = (max(self.o_rows * self.grid[0] - int(r.integers(0, self.o_rows)), 1), self.columns)
        self.mask = r.random((self.rows, self.columns)) < 0.7
        self.place = r.integers(0, self.o_rows - self.rows + 1, self.grid[0]).astype(np.int32)

    def arguments(self):
        found = []
        for shape in (self.x_shape, self.y_shape, self.o_shape):
            x = self.rng.normal(size=shape) * 3
            found.append(
                (x > 0 if self.dtype == np.bool_ else np.abs(x) if self.dtype.kind == "u" else x).astype(self.dtype)
            )
        return found

    def column(self, ids):
        """The first column of a block of x."""
        return (ids[-1] * 2) % (self.x_shape[1] - self.columns + 1)

    def kernel(self, table, place, mask, x, y, *rest):
        o, i = rest[-1], pl.program_id(0)
        at = (pl.ds(place[i], self.rows), slice(None))
        value = x[...].reshape(y.shape)
        value = value ^ y[...] if self.dtype == np.bool_ else value + y[...]
        if self.adds and self.dtype != np.bool_:
            value = value + pl.load(o, at, mask=mask[...], other=1)
        pl.store(o, at, value, mask=mask[...])

    def call(self):
        first = pl.BlockSpec(
            (pl.Element(self.rows, self.padding), pl.Squeezed() if self.is_squeezed else pl.Element(self.columns)),
            lambda *ids: (ids[0] * self.step, self.column(ids[: len(self.grid)])),
        )
        second = pl.BlockSpec((self.rows, self.columns), lambda *ids: (ids[-2][ids[:-2]], 0))
        third = pl.BlockSpec((self.o_rows, self.columns), lambda *ids: (ids[0], 0))

        def run(n, mask, x, y, z):
            spec = pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=2,
                grid=(n if self.is_dynamic else self.grid[0], *self.grid[1:]),
                in_specs=[pl.BlockSpec(), first, second, *([third] if self.is_aliased else [])],
                out_specs=third,
            )
            aliases = {5: 0} if self.is_aliased else {}
            call = pl.pallas_call(
                self.kernel, S(self.o_shape, self.dtype), grid_spec=spec, input_output_aliases=aliases
            )
            return call(self.table, self.place, mask, x, y, *([z] if self.is_aliased else []))

        return lambda x, y, z: run(jnp.int32(self.grid[0]), self.mask, x, y, z)

    def reference(self, x, y, z):
        wide = np.float64 if self.dtype.kind not in "iub" and x.dtype != np.float64 else None

        def pad(v, before, after):
            v = v.astype(wide) if wide else v
            return np.pad(v, [(before, after), (0, 0)], constant_values=nothing(self.dtype))

        x = pad(x, *self.padding)
        y, o = pad(y, 0, -len(y) % self.rows), pad(z, 0, -len(z) % self.o_rows)
        if not self.is_aliased:
            o = np.full(o.shape, nothing(self.dtype), o.dtype)
        for ids in itertools.product(*map(range, self.grid)):
            begin, column = ids[0] * self.step, self.column(ids)
            row = self.table[ids] * self.rows
            a, b = x[begin : begin + self.rows, column : column + self.columns], y[row : row + self.rows]
            value = a ^ b if self.dtype == np.bool_ else a + b
            to = slice(k := ids[0] * self.o_rows + self.place[ids[0]], k + self.rows)
            if self.adds and self.dtype != np.bool_:
                value = value + np.where(self.mask, o[to], np.ones((), o.dtype))
            o[to] = np.where(self.mask, value, o[to])
        return o[: self.o_shape[0]]

    def tolerance(self):
        return {2: 0.06, 4: 1e-5}.get(self.dtype.itemsize, 0) if self.dtype.kind not in "iub" else 0


FEW, MANY = range(12), range(12, 212)


@pytest.mark.parametrize("seed", [*FEW, *[pytest.param(s, marks=pytest.mark.slow) for s in MANY]])
def test_drawn_accesses_equal_a_loop(seed):
    drawn = Drawn(seed)
    f, args = drawn.call(), drawn.arguments()
    want = drawn.reference(*args)
    assert f(*args).dtype == drawn.dtype

    def check(got, want):
        np.testing.assert_allclose(np.asarray(got).astype(np.float64), want.astype(np.float64), **by)

    by = {"rtol": drawn.tolerance(), "atol": drawn.tolerance()}
    check(f(*args), want)
    if seed % 3 == 0:
        pairs = [np.stack([a, a[::-1], a]) for a in args]
        check(gradix.jit(gradix.vmap(f))(*pairs), np.stack([drawn.reference(*p) for p in zip(*pairs)]))
    if seed % 3 == 1 and drawn.dtype == np.float32:
        kept = np.isfinite(want)
        slopes = gradix.grad(lambda *t: jnp.where(kept, f(*t), 0).sum(), (0, 1, 2))(*args)
        ways = [drawn.rng.normal(size=a.shape) for a in args]
        there, back = [drawn.reference(*[a + np.float64(s) * t for a, t in zip(args, ways)]) for s in (1.0, -1.0)]
        slope = np.where(kept, (there - back) / 2, 0).sum()  # the kernel is linear
        np.testing.assert_allclose(sum([(s * t).sum() for s, t in zip(slopes, ways)]), slope, rtol=1e-4, atol=1e-4)
