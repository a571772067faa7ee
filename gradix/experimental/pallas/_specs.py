"""How a kernel's arrays are divided into blocks: `BlockSpec`, `GridSpec`, and kinds of dimensions."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradix._api.arguments import name_of, place_of
from gradix._core.aval import ShapedArray
from gradix._core.dimensions.expression import is_symbolic_dim
from gradix._core.dtypes import requested_dtype
from gradix._core.refs import AbstractRef
from gradix._core.slices import Slice as Slice, ds as ds, dslice as dslice
from gradix._core.trace import is_unknown


class _NoBlockSpec:
    """The type of `no_block_spec`, which stands for the whole array as a block."""

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = _NoBlockSpec()


# -- dimensions of a block -------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Blocked:
    """A dimension divided into blocks of `block_size`; its index counts blocks.

    The last block may reach beyond the end of the array. There it reads NaN (of integers the
    smallest number), and what is written there is dropped.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(x, o):
        ...     o[...] = x[...] + pl.program_id(0)
        >>> pairs = pl.BlockSpec((pl.Blocked(2),), lambda i: (i,))
        >>> shape = gradix.ShapeDtypeStruct((4,), "int32")
        >>> pl.pallas_call(kernel, shape, grid=2, in_specs=[pairs], out_specs=pairs)(jnp.arange(4))
        Array([0, 1, 3, 4], dtype=int32)
    """

    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """A dimension of which `block_size` elements are taken from any place; its index counts elements.

    `padding` elements are put before and after the array; they read NaN.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def largest(x, o):
        ...     o[...] = jnp.max(x[...], keepdims=True)
        >>> windows = pl.BlockSpec((pl.Element(3),), lambda i: (i,))
        >>> call = pl.pallas_call(
        ...     largest, gradix.ShapeDtypeStruct((3,), "int32"), grid=3,
        ...     in_specs=[windows], out_specs=pl.BlockSpec((1,), lambda i: (i,)),
        ... )
        >>> call(jnp.array([5, 1, 2, 3, 0]))
        Array([5, 3, 3], dtype=int32)
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """A dimension of which a `Slice` of at most `block_size` elements is taken; its index is the slice.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(x, o):
        ...     o[...] = x[...] * 10
        >>> part = pl.BlockSpec((pl.BoundedSlice(2),), lambda i: (pl.ds(2 * i, 2),))
        >>> shape = gradix.ShapeDtypeStruct((4,), "int32")
        >>> pl.pallas_call(kernel, shape, grid=2, in_specs=[part], out_specs=part)(jnp.arange(4))
        Array([ 0, 10, 20, 30], dtype=int32)
    """

    block_size: int


@dataclasses.dataclass(frozen=True)
class Indirect:
    """A dimension whose blocks are rows that an array of indices picks; only for sparse cores.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.BlockSpec((pl.Indirect(8), 128), lambda i: (i, 0)).block_shape
        (Indirect(block_size=8), 128)
    """

    block_size: int


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """A dimension of which one element is taken, and which the kernel does not see; as None.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def reverse(x, o):
        ...     o[...] = x[::-1]
        >>> row = pl.BlockSpec((pl.Squeezed(), 2), lambda i: (i, 0))
        >>> shape = gradix.ShapeDtypeStruct((2, 2), "int32")
        >>> pl.pallas_call(reverse, shape, grid=2, in_specs=[row], out_specs=row)(jnp.array([[1, 2], [3, 4]]))
        Array([[2, 1],
               [4, 3]], dtype=int32)
    """


squeezed = Squeezed()
BlockDim = Element | Squeezed | Blocked | BoundedSlice | Indirect


class RevisitMode(enum.Enum):
    """Whether the transfer of a block is left out if it follows itself; it has no effect here.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.BlockSpec((8,), pipeline_mode=pl.Buffered(2, revisit=pl.RevisitMode.IMMEDIATE)).pipeline_mode.revisit
        <RevisitMode.IMMEDIATE: 'immediate'>
    """

    ANY = "any"
    IMMEDIATE = "immediate"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many buffers a pipeline keeps of an array's blocks; it has no effect here.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(3)).pipeline_mode
        Buffered(buffer_count=3, use_lookahead=False, revisit=None)
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


# -- memory ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """A place for an array of a type in a memory space, such as scratch memory of a kernel.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> place = pl.ANY((8, 128), jnp.float32)
        >>> type(place).__name__, place.shape, place.dtype
        ('MemoryRef', (8, 128), dtype('float32'))
    """

    inner_aval: Any
    memory_space: Any

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)

    def get_array_aval(self) -> ShapedArray:
        """The type of the array."""
        return self.inner_aval

    def get_ref_aval(self) -> AbstractRef:
        """The type of a reference to it."""
        return AbstractRef(self.inner_aval, self.memory_space)


def memory_of(shape: Sequence[int], dtype: Any, space: Any) -> MemoryRef:
    """A place of that shape and dtype in a memory space."""
    return MemoryRef(ShapedArray(tuple(shape), requested_dtype(dtype)), space)


class Space(enum.Enum):
    """A kind of memory, of which calling it gives a place."""

    def __str__(self) -> str:
        return self.value

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return memory_of(shape, dtype, self)

    def like(self, x: Any) -> MemoryRef:
        """A place for an array of the shape and dtype of `x`."""
        return self(x.shape, x.dtype)


class MemorySpace(Space):
    """A kind of memory. All are one here; calling one gives a place in it, `ANY((8,), "float32")`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(x, o, scratch):
        ...     scratch[...] = x[...]
        ...     o[...] = scratch[...] + 1
        >>> room = [pl.MemorySpace.ANY((2,), jnp.int32)]
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((2,), "int32"), scratch_shapes=room)(jnp.array([3, 5]))
        Array([4, 6], dtype=int32)
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    HOST = "host"
    INDEX = "index"
    KEY = "key"


ANY, HOST = MemorySpace.ANY, MemorySpace.HOST


# -- specs -----------------------------------------------------------------------------------------


@dataclasses.dataclass
class BlockSpec:
    """Which block of an array each program of a kernel gets.

    Args:
        block_shape: an entry for each dimension of the array: the size of a block; None (or
            `squeezed`) for one element of a dimension that the kernel does not see; `Element`,
            `Blocked`, `BoundedSlice`. None for the whole array.
        index_map: from the indices of the program in the grid, and the references to prefetched
            scalars if there are any, to the index of the block along each dimension; block i of a
            dimension begins at element i times its size. None for the first block.
        pipeline_mode: accepted, as `memory_space` is; neither has an effect here.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
        >>> rows.block_shape
        (8, 128)
    """

    block_shape: Sequence[Any] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Buffered | None = None
    _: dataclasses.KW_ONLY
    memory_space: Any = None

    def __post_init__(self) -> None:
        shape, index_map = self.block_shape, self.index_map
        if callable(shape):
            raise TypeError(
                f"BlockSpec takes the shape of a block before its index map, got {name_of(shape)} at {place_of(shape)} "
                "first. Write BlockSpec(block_shape, index_map)."
            )
        if shape is not None and (isinstance(shape, str) or not isinstance(shape, (Sequence, np.ndarray))):
            instead = f" Write ({shape},) for one dimension." if isinstance(shape, int) else ""
            raise TypeError(
                f"the block_shape of a BlockSpec must have an entry for each dimension of the array, got {shape!r} of "
                f"type {type(shape).__name__}.{instead}"
            )
        if index_map is not None and not callable(index_map):
            raise TypeError(
                "the index_map of a BlockSpec must be a function from the indices of a program to those of its block, "
                f"got {index_map!r} of type {type(index_map).__name__}. Write lambda *ids: {index_map!r} for one "
                "block."
            )

    def __repr__(self) -> str:
        return (
            f"BlockSpec(block_shape={self.block_shape}, index_map={self.index_map}, "
            f"memory_space={self.memory_space}, pipeline_mode={self.pipeline_mode})"
        )

    def replace(self, /, **changes) -> BlockSpec:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)


class GridSpec:
    """The grid of a kernel, and the blocks that its programs get.

    Args:
        grid: the number of programs along each axis; an int for one axis. A size may be traced, or
            a symbolic dimension; a pair of a name and a size names an axis for `lax.axis_index`.
        in_specs, out_specs: a `BlockSpec` for each argument and result.
        scratch_shapes: places of memory that all programs share, one after another.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.GridSpec(grid=3).grid
        (3,)
    """

    num_scalar_prefetch = 0

    def __init__(
        self, grid: Any = (), in_specs: Any = no_block_spec, out_specs: Any = no_block_spec, scratch_shapes: Any = ()
    ):
        self.grid, self.grid_names = _grid(grid)
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        self.scratch_shapes = tuple(scratch_shapes) if isinstance(scratch_shapes, list) else scratch_shapes

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(grid={self.grid}, grid_names={self.grid_names}, in_specs={self.in_specs}, "
            f"out_specs={self.out_specs}, scratch_shapes={self.scratch_shapes})"
        )


_MOST_PROGRAMS = (1 << 31) - 1


def _grid(grid) -> tuple[tuple, tuple | None]:
    """The sizes of a grid, and the names of its axes if they are given as pairs (name, size)."""
    if isinstance(grid, (int, np.integer)) or is_unknown(grid) or is_symbolic_dim(grid):
        grid = (grid,)
    try:
        grid = tuple(grid)
    except TypeError:
        raise TypeError(
            f"grid must be an int or a tuple of ints, got {grid!r}. Write grid=(n,) for n programs."
        ) from None
    names = None
    if grid and all(isinstance(g, tuple) and len(g) == 2 and isinstance(g[0], str) for g in grid):
        names, grid = tuple([n for n, _ in grid]), tuple([s for _, s in grid])
    for axis, size in enumerate(grid):
        is_size = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
        is_size = is_size or is_symbolic_dim(size)
        dtype = getattr(size, "dtype", None)
        if not is_size and not (getattr(size, "shape", None) == () and np.dtype(dtype).kind in "iu"):
            raise TypeError(
                f"grid must hold integers, got {size!r} of type {type(size).__name__} at axis {axis}. "
                "Use pl.cdiv(n, block) for the number of blocks."
            )
        if isinstance(size, (int, np.integer)) and size < 0:
            raise ValueError(
                f"grid must hold numbers of programs, got {size} at axis {axis}. Write 0 for a kernel that does "
                "not run."
            )
    known = [int(s) for s in grid if isinstance(s, (int, np.integer))]
    if math.prod(known) > _MOST_PROGRAMS:
        raise ValueError(
            f"grid {grid!r} has {math.prod(known)} programs, and at most 2**31 - 1 can be counted. Let a program "
            "compute a larger block."
        )
    return tuple([int(s) if isinstance(s, (int, np.integer)) else s for s in grid]), names
