"""Drawn kernels against a slow loop in NumPy: block shapes, grids, index maps, aliases, scratch, and blocks beyond the end."""

import itertools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental import pallas as pl

S = gradix.ShapeDtypeStruct
pytestmark = pytest.mark.x32  # kernels write what jnp makes, and a reference keeps its dtype


class Drawn:
    """A kernel `o = 2x·w + op(o or s) + Σ ids`, drawn from a seed, with all that it takes."""

    def __init__(self, seed: int):
        r = self.rng = np.random.default_rng(seed)
        self.rank, axes = int(r.integers(1, 3)), int(r.integers(1, 4))
        self.grid = tuple(int(n) for n in r.integers(1, 4, axes))
        self.blocks = tuple(int(n) for n in r.integers(1, 4, self.rank))
        self.squeezed = [bool(b) for b in r.random(self.rank) < 0.25]
        self.blocks = tuple(1 if q else b for b, q in zip(self.blocks, self.squeezed))
        self.out_map, self.in_map = self._map(), self._map()
        # the arrays reach as far as some of the blocks do: the last may be cut
        self.shape = tuple(
            int(max(1, b * n - r.integers(0, b))) for b, n in zip(self.blocks, r.integers(1, 4, self.rank))
        )
        self.accumulates, self.has_scratch, self.is_aliased = (bool(b) for b in r.random(3) < [0.5, 0.3, 0.4])
        self.first = r.random() < 0.5
        self.loop_axis = int(r.integers(0, axes))

    def _map(self):
        """Along each dimension the index is an axis of the grid, a sum, a constant, or goes backwards."""
        kind = [
            (
                str(self.rng.choice(["axis", "axis", "constant", "sum", "back", "half"])),
                *map(int, self.rng.integers(0, len(self.grid), 2)),
            )
            for _ in range(self.rank)
        ]

        def index_map(*ids):
            found = []
            for how, a, b in kind:
                found.append(
                    {
                        "axis": lambda: ids[a],
                        "constant": lambda: 0,
                        "sum": lambda: ids[a] + ids[b],
                        "back": lambda: self.grid[a] - 1 - ids[a],
                        "half": lambda: ids[a] // 2,
                    }[how]()
                )
            return tuple(found)

        return index_map

    def spec(self, index_map):
        return pl.BlockSpec([None if q else b for b, q in zip(self.blocks, self.squeezed)], index_map)

    def kernel(self, x, w, o, *scratch):
        value = 2 * x[...] * w[...] + sum(pl.program_id(a).astype("float32") for a in range(len(self.grid)))
        if scratch:

            @pl.when(pl.program_id(self.loop_axis) == 0)
            def _():
                scratch[0][...] = jnp.zeros(scratch[0].shape)

            scratch[0][...] += value
            value = scratch[0][...]
        if self.accumulates:
            if self.first:

                @pl.when(pl.program_id(self.loop_axis) == 0)
                def _():
                    o[...] = jnp.zeros(o.shape)

            o[...] = o[...] * 0.5 + value
        else:
            o[...] = value

    def call(self):
        block = self.spec(self.in_map)
        kept = tuple(b for b, q in zip(self.blocks, self.squeezed) if not q)
        return pl.pallas_call(
            self.kernel,
            S(self.shape, "float32"),
            grid=self.grid,
            in_specs=[block, block],
            out_specs=self.spec(self.out_map),
            scratch_shapes=[pl.ANY(kept, "float32")] if self.has_scratch else [],
            input_output_aliases={0: 0} if self.is_aliased else {},
        )

    def reference(self, x, w):
        """The same by a loop; the arrays extended by NaN to whole blocks, a block's start clamped."""
        extents = [-(-n // b) * b for n, b in zip(self.shape, self.blocks)]

        def pad(v):
            return np.pad(v, [(0, m - n) for m, n in zip(extents, self.shape)], constant_values=np.nan)

        x, w = pad(x.astype(np.float64)), pad(w.astype(np.float64))
        o = x.copy() if self.is_aliased else np.full(extents, np.nan)
        s = np.full(self.blocks, np.nan)

        def at(index_map, ids):
            return tuple(slice(k := min(i * b, m - b), k + b) for i, b, m in zip(index_map(*ids), self.blocks, extents))

        for ids in itertools.product(*map(range, self.grid)):
            value = 2 * x[at(self.in_map, ids)] * w[at(self.in_map, ids)] + sum(ids)
            if self.has_scratch:
                s = (0 if ids[self.loop_axis] == 0 else s) + value
                value = s
            to = at(self.out_map, ids)
            if self.accumulates:
                value = (np.zeros(self.blocks) if self.first and ids[self.loop_axis] == 0 else o[to]) * 0.5 + value
            o[to] = value
        return o[tuple(slice(n) for n in self.shape)]

    def arguments(self):
        return [self.rng.normal(size=self.shape).astype("float32") for _ in range(2)]


FEW, MANY = range(20), range(20, 220)


@pytest.mark.parametrize("seed", [*FEW, *[pytest.param(s, marks=pytest.mark.slow) for s in MANY]])
def test_drawn_kernels_equal_a_loop(seed):
    drawn = Drawn(seed)
    f, (x, w) = drawn.call(), drawn.arguments()
    want = drawn.reference(x, w)
    np.testing.assert_allclose(f(x, w), want, rtol=1e-5, atol=1e-5)
    if seed % 4 == 0:
        pairs = [np.stack([a, 3 * a, -a]) for a in (x, w)]
        np.testing.assert_allclose(
            gradix.jit(gradix.vmap(f))(*pairs), [drawn.reference(*p) for p in zip(*pairs)], rtol=1e-5, atol=1e-5
        )
    if seed % 4 == 1:
        kept = np.isfinite(want)

        def loss(x, w):
            return jnp.where(kept, f(x, w), 0).sum()

        dx, dw = gradix.grad(loss, (0, 1))(x, w)
        tx, tw = drawn.arguments()
        eps = 1e-6

        def total(s):
            return np.where(kept, drawn.reference(x + np.float64(s) * tx, w + np.float64(s) * tw), 0).sum()

        slope = (total(eps) - total(-eps)) / (2 * eps)
        np.testing.assert_allclose((dx * tx).sum() + (dw * tw).sum(), slope, rtol=1e-3, atol=1e-3)
