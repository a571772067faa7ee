"""Philox 4x32 with 10 rounds, as XLA's generator runs it (Salmon et al., "Parallel random numbers", 2011).

A state is two uint64: the key, and the low half of a counter of 128 bits, whose high half is the
key once more. A block is four words of 32 bits; wider words are two of them, the low one first,
narrower words are the low bits of one each.
"""

from __future__ import annotations

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import is_symbolic_shape
from gradix._ops.random.storage import U32, U64

_FACTORS = U64.type(0xD2511F53), U64.type(0xCD9E8D57)
_STEPS = 0x9E3779B9, 0xBB67AE85
_MASK, _HALF = 0xFFFFFFFF, U64.type(32)


def philox_blocks(key: int, counter: int, numbers: np.ndarray) -> np.ndarray:
    """The blocks of the given numbers, uint64, counted from the state: uint32 of shape (n, 4)."""
    low = numbers + U64.type(counter)
    high = U64.type(key) + (low < numbers).astype(U64)  # the carry
    words = [low & U64.type(_MASK), low >> _HALF, high & U64.type(_MASK), high >> _HALF]
    k0, k1 = key & _MASK, key >> 32
    for _ in range(10):
        a, b = words[0] * _FACTORS[0], words[2] * _FACTORS[1]
        words = [
            (b >> _HALF) ^ words[1] ^ U64.type(k0),
            b & U64.type(_MASK),
            (a >> _HALF) ^ words[3] ^ U64.type(k1),
            a & U64.type(_MASK),
        ]
        k0, k1 = (k0 + _STEPS[0]) & _MASK, (k1 + _STEPS[1]) & _MASK
    return np.stack(words, -1).astype(U32)


def philox_words(key: int, counter: int, size: int, dtype: np.dtype) -> np.ndarray:
    """The first `size` words of an unsigned dtype from a state."""
    per_block = 2 if dtype.itemsize == 8 else 4
    words = philox_blocks(key, counter, np.arange(-(-size // per_block), dtype=U64)).reshape(-1)
    return words.view(U64)[:size] if dtype.itemsize == 8 else words[:size].astype(dtype, copy=False)


def emit_philox(em, state, shape, dtype):
    """Words of `shape` from a state, a value of type uint64[2]."""
    return emit_rng_bits(em, state, make_aval(tuple(shape), dtype), "PHILOX")[1]


def emit_rng_bits(em, state, out, algorithm: str):
    """The new state, and random words; `algorithm` is DEFAULT, THREE_FRY or PHILOX."""
    attrs, outs = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>", [state.aval, out]
    if not is_symbolic_shape(out.shape):
        return em.ops("rng_bit_generator", outs, state, attrs=attrs)
    return em.custom_call(
        "stablehlo.dynamic_rng_bit_generator",
        outs,
        state,
        em.sizes(out.shape),
        api_version=2,
        attrs=attrs,
        is_refined=True,
    )
