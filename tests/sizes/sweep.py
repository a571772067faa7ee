"""Runs one program at one size, divided in one way and transformed in one way, against NumPy and one device."""

from __future__ import annotations

import contextlib
import functools
import zlib

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
from tests.sizes.programs import Program, made

MODES = ("jit", "eager", "grad", "vmap", "shard_map")
DIVISIONS = {
    "one device": None,
    "rows": P("x"),
    "columns": P(None, "y"),
    "both": P("x", "y"),
    "rows by two": P(("x", "y")),
    "columns by two": P(None, ("y", "x")),
    "repeated": P(),
    "explicit rows": P("x"),
    "explicit both": P("x", "y"),
    "on one": P("one"),
}
_LOOSE = {"float16": 5e-3, "bfloat16": 4e-2}


@functools.cache
def mesh(division: str) -> Mesh:
    kind = AxisType.Explicit if "explicit" in division else AxisType.Auto
    if division == "on one":
        return Mesh(np.array(gradix.devices()[1:2]), ("one",))
    return Mesh(np.array(gradix.devices()[:8]).reshape(4, 2), ("x", "y"), axis_types=(kind,) * 2)


def placed(x: np.ndarray, division: str):
    if DIVISIONS[division] is None:
        return jnp.asarray(x)
    m, spec = mesh(division), DIVISIONS[division]
    parts = [int(np.prod([m.shape[a] for a in ((e,) if isinstance(e, str) else e or ())], initial=1)) for e in spec][
        : x.ndim
    ]
    fits = len(parts) <= x.ndim and all(n % k == 0 for n, k in zip(x.shape, parts))
    return gradix.device_put(x, NamedSharding(m, P(*spec[: x.ndim]) if fits else P()))


def loss(call, x, *rest):
    """A smooth function of all results: their sum with weights."""
    total = 0.0
    for out in gradix.tree.leaves(call(x, *rest)):
        if not jnp.issubdtype(out.dtype, jnp.inexact):
            continue
        weights = jnp.cos(jnp.arange(out.shape[-1] if out.ndim else 1, dtype="float32")).reshape(-1 if out.ndim else ())
        if jnp.iscomplexobj(out):
            out = out.real + 2 * out.imag
        total += jnp.sum(jnp.where(jnp.isfinite(out), out, 0).astype("float32") * weights)
    return total


def _gradient(call, operands):
    x = operands[0]
    slope = gradix.grad(lambda x, *rest: loss(call, x, *rest))
    return lambda *args: slope(args[0], *args[1:]) if jnp.issubdtype(x.dtype, jnp.inexact) else call(*args)


def transformed(program: Program, mode: str, division: str, operands):
    """The function of the operands that a mode runs, and the same function by the plainest means."""
    call = program.call
    if mode == "grad":
        found = _gradient(call, operands)
        return gradix.jit(found), found
    if mode == "vmap":
        stacked = lambda *args: gradix.vmap(call)(*[jnp.stack([a, a[::-1]]) for a in args])
        return gradix.jit(stacked), lambda *args: _stacked([call(*args), call(*[a[::-1] for a in args])])
    if mode == "shard_map":
        m, lead = mesh(division), mesh(division).axis_names[0]
        parts, one = m.shape[lead], lambda x: gradix.tree.map(lambda r: r[None], call(x))
        mapped = gradix.shard_map(one, mesh=m, in_specs=P(lead), out_specs=P(lead), check_vma=False)
        # Explicit divisions are a part of the type, and `in_specs` have to say the same.
        rows = (lambda x: gradix.sharding.reshard(x, P(lead))) if "explicit" in division else lambda x: x
        return gradix.jit(lambda x: mapped(rows(x))), lambda x: _stacked([call(rows) for rows in jnp.split(x, parts)])
    return (gradix.jit(call) if mode == "jit" else call), call


def _stacked(results):
    return gradix.tree.map(lambda *rows: jnp.stack(rows), *results)


def _tolerance(program: Program, dtype: str, mode: str) -> float:
    return max(program.rtol * (10 if mode == "grad" else 1), _LOOSE.get(dtype, 0))


def close(found, want, program: Program, dtype: str, mode: str, label: str):
    rtol = _tolerance(program, dtype, mode)
    for f, w in zip(gradix.tree.leaves(found), gradix.tree.leaves(want), strict=True):
        f, w = np.asarray(f), np.asarray(w)
        assert f.shape == w.shape, f"{label}: shape {f.shape}, not {w.shape}"
        if f.dtype.kind in "biu":
            np.testing.assert_array_equal(f, w.astype(f.dtype), label)
            continue
        kind = np.complex128 if f.dtype.kind == "c" else np.float64
        f, w = f.astype(kind), w.astype(kind)
        bound = np.max(np.abs(w[np.isfinite(w)]), initial=1e-3)
        np.testing.assert_allclose(f, w, rtol, rtol * bound, err_msg=label)


def fits(program: Program, dtype: str, mode: str) -> bool:
    """Whether a program is run in this mode."""
    if mode == "grad":
        return program.has_gradient and dtype[0] in "fbc" and dtype != "bool"
    if mode == "shard_map":
        return program.is_mapped and len(program.operands) == 1
    return mode != "vmap" or program.is_mapped


def shape_of(size: int) -> tuple[int, int]:
    """A matrix of about `size` elements, whose axes eight devices share and whose blocks have 256 elements."""
    rows = max(16, 1 << int(np.log2(max(size, 1))) // 2)
    return rows, max(16, -(-size // rows // 16) * 16)


def check(program: Program, dtype: str, size: int, division: str, mode: str) -> None:
    """Run a program, and compare.

    Raises:
        AssertionError: the result differs from NumPy's, or from that of one device.
    """
    shape = shape_of(min(size, program.most))
    arrays = [made(kind, shape, dtype, zlib.crc32(kind.encode()) + i) for i, kind in enumerate(program.operands)]
    label = f"{program.name} {dtype}{list(shape)} {division} {mode}"
    operands = [placed(a, division) for a in arrays]
    function, plain = transformed(program, mode, division, [jnp.asarray(a) for a in arrays])
    with gradix.set_mesh(mesh(division)) if "explicit" in division else contextlib.nullcontext():
        try:
            found = function(*operands)
        except gradix.errors.ShardingTypeError:
            # Types do not say how some results are divided. There the compiler decides, as the error's text advises.
            found = gradix.sharding.auto_axes(function, out_sharding=P())(*operands)
    if mode in ("jit", "eager") and program.numpy is not None:
        with np.errstate(all="ignore"):
            wide = [
                a.astype("float32") if a.dtype.kind == "V" or a.dtype.itemsize < 4 and a.dtype.kind in "f" else a
                for a in arrays
            ]
            close(found, program.numpy(*wide), program, dtype, mode, label)
    else:
        close(found, plain(*map(jnp.asarray, arrays)), program, dtype, mode, label)
