"""Random numbers by XLA's generators: rng_bit_generator, rng_uniform; see also `gradix.random`."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.operators import Array
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.basis import move_axis
from gradix._ops.canonicalization import canonical_shape
from gradix._ops.families import NonDifferentiable
from gradix._ops.indexing.slicing import slice_in_dim
from gradix._ops.joining import concatenate
from gradix._ops.operands import as_operand, operands
from gradix._ops.random.philox import emit_rng_bits
from gradix._ops.shape import reshape
from gradix._ops.sharding import asked, of_rank, reshard

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike, Size
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

_WORD, _WIDE = np.dtype("uint32"), np.dtype("uint64")
_BITS = tuple(map(np.dtype, ("uint8", "uint16", "uint32", "uint64")))


class RandomAlgorithm(enum.IntEnum):
    """The generators of XLA; the default is the fastest of the platform, Philox on the CPU.

    Example:
        >>> RandomAlgorithm.RNG_PHILOX
        <RandomAlgorithm.RNG_PHILOX: 2>
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


class RngBitGenerator(NonDifferentiable, Primitive):
    """The next state of a generator, and random bits."""

    multiple_results = True

    def abstract(self, key, *, shape, dtype, algorithm, out_sharding):
        if (key.shape, key.dtype) not in (((4,), _WORD), ((2,), _WIDE)):
            raise TypeError(
                "rng_bit_generator takes the state of a generator, of type uint32[4] or uint64[2], as its "
                f"key; got {key.str_short()}. random.bits takes the keys of gradix.random."
            )
        return [make_aval(key.shape, key.dtype), make_aval(shape, dtype)]

    def batch(self, size, args, axes, *, shape, **params):
        """Draw for all examples from the first state, as XLA cannot draw from many states."""
        keys = move_axis(args[0], axes[0], 0)
        first = reshape(slice_in_dim(keys, 0, 1), keys.aval.shape[1:])
        state, bits = bind(self, (first,), {"shape": (size, *shape), **params})
        rest = slice_in_dim(keys, 1, size)
        return [concatenate([reshape(state, (1, *state.aval.shape)), rest], 0), bits], [0, 0]

    def lower(self, em, outs, key, *, shape, dtype, algorithm, out_sharding):
        state = outs[0]
        if key.aval.dtype == _WORD:
            key = em.bitcast(em.reshape(key, (2, 2)), make_aval((2,), _WIDE))
        name = ("DEFAULT", "THREE_FRY", "PHILOX")[algorithm]
        after, bits = emit_rng_bits(em, key, outs[1], name)
        if state.dtype == _WORD:
            after = em.reshape(em.bitcast(after, make_aval((2, 2), _WORD)), (4,))
        return [after, bits]


class RngUniform(NonDifferentiable, Primitive):
    """Uniform numbers from a generator outside the program, different ones in each run."""

    host_limit = 1 << 62

    @cached_property
    def _generator(self):
        # NumPy imports its generators on first use.
        return np.random.default_rng()

    def abstract(self, a, b, *, shape, draw):
        if a.dtype != b.dtype:
            raise ValueError(
                "Arguments to rng_uniform must have identical dtypes, got "
                f"{dtypes.dtype_name(a.dtype)} and {dtypes.dtype_name(b.dtype)}."
            )
        if a.shape or b.shape:
            raise ValueError(
                f"Arguments to rng_uniform must be scalars; got shapes {a.shape} and {b.shape}. "
                "random.uniform takes arrays of bounds."
            )
        if a.dtype not in dtypes.FLOAT and a.dtype not in dtypes.INTEGER:
            raise TypeError(f"rng_uniform draws floats and integers, got bounds of dtype {dtypes.dtype_name(a.dtype)}.")
        return make_aval(shape, a.dtype)

    def host(self, a, b, *, shape, draw):
        if a.dtype.kind in "iu":
            return np.asarray(self._generator.integers(a, b, shape, a.dtype))
        low, high = float(a), float(b)
        return np.asarray(low + (high - low) * self._generator.random(shape)).astype(a.dtype)

    def batch(self, size, args, axes, *, shape, draw):
        """One draw per example: their bounds differ."""
        rows = []
        for i in range(size):
            bounds = [x if axis is None else reshape(slice_in_dim(x, i, i + 1), ()) for x, axis in zip(args, axes)]
            rows.append(reshape(bind(self, tuple(bounds), {"shape": shape, "draw": next(_draws)}), (1, *shape)))
        return concatenate(rows, 0), 0

    def show(self, params):
        return {"shape": params["shape"]}

    def lower(self, em, out, a, b, *, shape, draw):
        sizes = em.constant(np.array(shape, np.int64), make_aval((len(shape),), np.dtype("int64")))
        attrs = "rng_distribution = #stablehlo<rng_distribution UNIFORM>"
        return em.op("rng", out, a, b, sizes, attrs=attrs)


rng_bit_generator_p = RngBitGenerator("rng_bit_generator")
rng_uniform_p = RngUniform("rng_uniform")
_draws = itertools.count()


def rng_bit_generator(
    key: ArrayLike,
    shape: Sequence[Size],
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> tuple[Array, Array]:
    """Random bits by a generator of XLA, and its next state; the default depends on the platform.

    Args:
        key: the state of the generator, uint32[4] or uint64[2].
        shape: the shape of the bits.
        dtype: uint8, uint16, uint32 or uint64.
        algorithm: a `RandomAlgorithm`, or its number.
        out_sharding: the sharding of the bits.

    Returns:
        The next state, of the type of `key`, and the bits.

    Raises:
        TypeError: `key` is not such a state, or `dtype` is another one.

    Example:
        >>> from gradix import lax, numpy as jnp
        >>> lax.rng_bit_generator(jnp.arange(4, dtype="uint32"), (2,))[1]
        Array([ 895509795, 3230209149], dtype=uint32)
    """
    if out_sharding is not None:
        state, bits = rng_bit_generator(key, shape, dtype, algorithm)
        return state, reshard(bits, of_rank(asked("rng_bit_generator", out_sharding, [bits]), bits.aval.ndim))
    dtype = dtypes.requested_dtype(dtype, "rng_bit_generator")
    if dtype not in _BITS:
        raise TypeError(
            f"rng_bit_generator: unsupported dtype {dtypes.dtype_name(dtype)}. It makes uint8, uint16, "
            "uint32 and uint64; convert the bits, or reinterpret them with lax.bitcast_convert_type."
        )
    state, bits = bind(
        rng_bit_generator_p,
        (as_operand("rng_bit_generator", key),),
        {
            "shape": canonical_shape(shape),
            "dtype": dtype,
            "algorithm": RandomAlgorithm(algorithm),
            "out_sharding": out_sharding,
        },
    )
    return state, bits


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[Size]) -> Array:
    """Uniform random numbers in [a, b), which differ at each call and are not reproducible.

    Args:
        a, b: scalars of one dtype, floats or integers.
        shape: the shape of the result.

    Raises:
        ValueError: the bounds are arrays, or their dtypes differ.

    Example:
        >>> from gradix import lax
        >>> x = lax.rng_uniform(0.0, 1.0, (100,))
        >>> bool((x >= 0).all() & (x < 1).all())
        True
    """
    return bind(rng_uniform_p, operands("rng_uniform", a, b), {"shape": canonical_shape(shape), "draw": next(_draws)})
