"""The blocks of one array: where each program's block lies, and how it is cut out and put back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.arguments import Names, name_of, place_of
from gradix._api.mapping.vmap import vmap
from gradix._api.tracing import called
from gradix._base.errors import class_of
from gradix._base.tree import tree_flatten, tree_structure
from gradix._core.array import as_array
from gradix._core.aval import ShapedArray
from gradix._core.dimensions.expression import as_dim, is_symbolic_dim, larger
from gradix._core.jaxpr import ClosedJaxpr, Literal
from gradix._core.refs import AbstractRef
from gradix._core.trace import is_unknown, outside
from gradix._transforms.staging import eval_closed, stage_open
from gradix.experimental.pallas._contents import reads_beyond, undefined
from gradix.experimental.pallas._refs import KernelRef, dynamic_window, window_beyond, with_window
from gradix.experimental.pallas._specs import Blocked, BlockSpec, BoundedSlice, Element, Indirect, Slice, Squeezed

INDEX = np.dtype(np.int32)
_INDEX_TYPE = ShapedArray((), INDEX)


class Dim(NamedTuple):
    """One dimension: a block has `size` elements, and begins at its index times `unit`.

    The array is extended by `before` and `after` elements, to `extent`.
    """

    size: int
    unit: int
    extent: int
    before: int = 0
    after: int = 0
    is_squeezed: bool = False


class Affine(NamedTuple):
    """An index that is `constant` plus the sum of grid indices times `factors`."""

    constant: int
    factors: tuple


class Window:
    """The blocks of one array of a kernel.

    - `origin` names the array in messages; `aval` is its type, `block` that of the kernel's ref.
    - `dims` has a `Dim` for each dimension.
    - `index` is the program that computes the block's index from captured values `consts`, the
      indices in the grid, and prefetched scalars; `forms` holds each index as `Affine`, or None.
    """

    __slots__ = ("origin", "aval", "block", "dims", "index", "consts", "forms", "memory_space")

    def __init__(self, origin: str, aval, spec: BlockSpec, grid_rank: int, prefetched):
        self.origin, self.aval, self.memory_space = origin, aval, spec.memory_space
        shape = aval.shape
        if spec.block_shape is None:
            self.dims = [Dim(n, n, n) for n in shape]
        else:
            self.dims = _dims(origin, spec.block_shape, shape)
        kept = tuple([d.size for d in self.dims if not d.is_squeezed])
        self.block = ShapedArray(kept, aval.dtype)
        if spec.index_map is None:
            self.index, self.consts = None, []
            self.forms: list = [Affine(0, (0,) * grid_rank)] * len(shape)
        else:
            self.index, self.consts = _index_program(self, spec.index_map, spec.block_shape, grid_rank, prefetched)
            self.forms = affine_forms(self.index, len(self.consts), grid_rank)

    def starts(self, ids, prefetched) -> list:
        """Where the block of the program at `ids` begins, an element for each dimension."""
        if self.index is None:
            return [0] * len(self.dims)
        found = []
        numbers = [isinstance(i, (int, np.integer)) for i in ids]
        whole = None
        for n, (dim, form) in enumerate(zip(self.dims, self.forms)):
            if form is not None and all(known or not f for known, f in zip(numbers, form.factors)):
                index = form.constant + sum([int(i) * f for i, f in zip(ids, form.factors) if f])
                found.append(index * dim.unit)
                continue
            if whole is None:
                whole = eval_closed(self.index, *self.consts, *map(as_index, ids), *prefetched)
            found.append(lax.mul(whole[n], as_index(dim.unit)) if dim.unit != 1 else whole[n])
        return found

    def numbers(self, ids: np.ndarray) -> np.ndarray | None:
        """The index of the block of each program, (programs, dimensions); None if it is not known.

        Args:
            ids: the programs, (programs, axes of the grid).
        """
        if all(f is not None for f in self.forms):
            columns = [form.constant + ids @ np.array(form.factors, np.int64) for form in self.forms]
            return np.stack(columns, -1) if columns else np.zeros((len(ids), 0), np.int64)
        index, n = self.index, len(self.consts) + ids.shape[1]
        if index is None or len(index.jaxpr.invars) > n or any(is_unknown(c) for c in self.consts):
            return None
        with outside():
            rows = vmap(lambda row: eval_closed(index, *self.consts, *[row[a] for a in range(ids.shape[1])]))
            return np.stack([np.asarray(x) for x in rows(ids.astype(INDEX))], -1)

    def padded(self, x):
        """The array with all of its blocks inside; elements beyond the array are undefined."""
        if all(not d.before and not d.after for d in self.dims):
            return x
        fill = undefined((), self.aval.dtype)
        return lax.pad(x, fill, [(d.before, d.after, 0) for d in self.dims])

    def trimmed(self, x):
        """The array without what `padded` added."""
        if all(not d.before and not d.after for d in self.dims):
            return x
        starts = [d.before for d in self.dims]
        return lax.slice(x, starts, [s + n for s, n in zip(starts, self.aval.shape)])

    @property
    def padded_shape(self) -> tuple:
        return tuple([d.extent for d in self.dims])

    def cut(self, x, starts):
        """The block at `starts`, as the kernel sees it."""
        sizes = [d.size for d in self.dims]
        is_inside = not reads_beyond() or all(
            isinstance(s, int) and 0 <= s <= d.extent - d.size for s, d in zip(starts, self.dims)
        )
        y = dynamic_window(x, starts, sizes) if is_inside else window_beyond(x, starts, sizes)
        return lax.reshape(y, self.block.shape) if y.shape != self.block.shape else y

    def put(self, x, starts, block):
        """The array with the block at `starts` replaced."""
        y = lax.reshape(block, [d.size for d in self.dims])
        return with_window(x, y, starts)


def as_index(i):
    """A grid index, or a size, as an int32 array."""
    if isinstance(i, (int, np.integer)):
        return as_array(np.int32(i))
    return jnp.asarray(i).astype(INDEX) if is_symbolic_dim(i) else i


def _dims(origin: str, block_shape, shape) -> list[Dim]:
    if len(block_shape) != len(shape):
        raise ValueError(
            f"Block shape for {origin} (= {tuple(block_shape)}) must have the same number of dimensions as the "
            f"array shape {shape}. Write None for a dimension of which a block has one element."
        )
    return [_dim(origin, i, b, n) for i, (b, n) in enumerate(zip(block_shape, shape))]


def _dim(origin: str, axis: int, block, n: int) -> Dim:
    if block is None or isinstance(block, Squeezed):
        extent = _at_least(n, 1)
        return Dim(1, 1, extent, 0, extent - n, True)
    if is_unknown(block):
        raise TypeError(
            f"Block shape for {origin} must be known, but that of dimension {axis} is traced: {block!r}. Make it "
            "static (static_argnums or static_argnames of jit), or mask what is beyond it in a larger block."
        )
    if (isinstance(block, (int, np.integer, Blocked)) and not isinstance(block, bool)) or is_symbolic_dim(block):
        size = block.block_size if isinstance(block, Blocked) else block
        _check_size(origin, axis, size)
        size = as_dim(size)
        extent = _at_least(-(-n // size), 1) * size
        return Dim(size, size, extent, 0, extent - n)
    if isinstance(block, Element):
        _check_size(origin, axis, block.block_size)
        before, after = _padding(origin, axis, block)
        extent = _at_least(before + n + after, block.block_size)
        return Dim(block.block_size, 1, extent, before, extent - before - n)
    if isinstance(block, BoundedSlice):
        _check_size(origin, axis, block.block_size)
        extent = n + block.block_size
        return Dim(block.block_size, 1, extent, 0, block.block_size)
    if isinstance(block, Indirect):
        raise NotImplementedError(
            f"Block shape for {origin}: Indirect dimensions are for the sparse cores of TPUs, and are not "
            "implemented here. Read the rows in the kernel: ref[indices]."
        )
    raise ValueError(
        f"Unsupported block dim type: {class_of(block)} in the block shape for {origin}. Use ints, None, pl.Element or "
        "pl.Blocked."
    )


def _at_least(n, least: int):
    """The greater of a size and a number; a symbolic size is at least 1."""
    return n if least == 1 and is_symbolic_dim(n) else larger(n, least)


def _padding(origin: str, axis: int, block: Element) -> tuple:
    given = block.padding
    if not isinstance(given, (tuple, list)) or len(given) != 2 or any(not _is_int(p) or p < 0 for p in given):
        raise ValueError(
            f"Block shape for {origin}: the padding of pl.Element at dimension {axis} must be two numbers of elements, "
            f"(before, after), got {given!r}."
        )
    return tuple(given)


def _is_int(x) -> bool:
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def _check_size(origin: str, axis: int, size) -> None:
    if is_symbolic_dim(size):
        return
    if not _is_int(size):
        raise TypeError(f"Block shape for {origin} must hold integers, got {size!r} at dimension {axis}.")
    if size < 1:
        raise ValueError(f"Block shape for {origin} must hold positive sizes, got {size} at dimension {axis}.")


# -- index maps ------------------------------------------------------------------------------------


def _index_program(window: Window, index_map, block_shape, rank: int, prefetched):
    """The program of an index map, with its captured values as leading inputs, and those."""
    where = f"Index map function {name_of(index_map)} at {place_of(index_map)} for {window.origin}"
    avals, prefetched_tree = tree_flatten(tuple(prefetched))

    def indices(*values):
        ids, scalars = values[:rank], values[rank:]
        refs = [KernelRef(AbstractRef(s.aval), s) for s in scalars]
        roles = [f"the index along axis {i} of the grid" for i in range(rank)]
        given = prefetched_tree.unflatten(refs)
        roles += [f"prefetched reference {i}" for i in range(len(given))]
        out = called(f"the BlockSpec of {window.origin}", index_map, *ids, *given, roles=tuple(roles))
        out = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        if len(out) != len(window.dims):
            raise ValueError(
                f"{where} must return {len(window.dims)} values to match block_shape={block_shape} of the array of "
                f"shape {window.aval.shape}. Currently returning {len(out)} values: {out}."
            )
        if any(ref.read() is not s for ref, s in zip(refs, scalars)):
            raise ValueError(f"{where} writes to a prefetched scalar, which it may only read.")
        return [_as_scalar(o, i, where) for i, o in enumerate(out)]

    tree = tree_structure(((*(0,) * rank, *prefetched_tree.unflatten(avals)), {}))
    return stage_open(indices, [_INDEX_TYPE] * rank + avals, Names(index_map, tree))


def _as_scalar(value, place: int, where: str):
    if isinstance(value, Slice):
        value = value.start
    must = f"{where} must return integer scalars. Output[{place}]"
    try:
        x = as_array(value)
    except TypeError:
        raise TypeError(
            f"{must} is {value!r} of type {type(value).__name__}. Return an integer for each dimension, such as (i, 0)."
        ) from None
    if x.aval.shape:
        raise ValueError(f"{must} has type {x.aval.str_short()}. Take one of its elements, s[{'0, ' * x.ndim}i].")
    if x.dtype.kind not in "iu":
        raise ValueError(
            f"{must} has type {x.aval.str_short()}. Convert it: i.astype(jnp.int32), or use // in place of /."
        )
    return x.astype(INDEX)


def affine_forms(program: ClosedJaxpr, skip: int, rank: int) -> list:
    """Each result of an index program as `Affine`, or None where it is none or is not recognised."""
    jaxpr = program.jaxpr
    known: dict = {}
    for i, v in enumerate(jaxpr.invars[skip : skip + rank]):
        known[v] = Affine(0, tuple([int(i == j) for j in range(rank)]))

    def form(atom):
        if type(atom) is Literal:
            return Affine(int(np.asarray(atom.val)), (0,) * rank)
        return known.get(atom)

    for eqn in jaxpr.eqns:
        rule = _AFFINE.get(eqn.primitive.name)
        parts = [form(a) for a in eqn.invars] if rule else []
        if rule and len(eqn.outvars) == 1 and all(p is not None for p in parts):
            known[eqn.outvars[0]] = rule(*parts)
    return [form(v) for v in jaxpr.outvars]


def _scaled(a: Affine, c: int) -> Affine:
    return Affine(a.constant * c, tuple([f * c for f in a.factors]))


def _sum(a: Affine, b: Affine) -> Affine:
    return Affine(a.constant + b.constant, tuple([f + g for f, g in zip(a.factors, b.factors)]))


def _product(a: Affine, b: Affine) -> Affine | None:
    if not any(a.factors):
        return _scaled(b, a.constant)
    return None if any(b.factors) else _scaled(a, b.constant)


_AFFINE: dict[str, Any] = {
    "add": _sum,
    "sub": lambda a, b: _sum(a, _scaled(b, -1)),
    "mul": _product,
    "neg": lambda a: _scaled(a, -1),
    "convert_element_type": lambda a: a,
    "copy": lambda a: a,
}
