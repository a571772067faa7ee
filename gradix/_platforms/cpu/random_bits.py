"""Random bits and keys on the CPU, made in loops of their own."""

from __future__ import annotations

from math import prod

from gradix._core.aval import make_aval
from gradix._ops.random.random import GENERATORS, random_bits_p, random_fold_in_p, random_split_p, threefry2x32_p
from gradix._platforms.cpu.kernel_loops import apart
from gradix._platforms.records import CORRECTNESS, Rewrite

_SHORT_ROW, _LARGE = 32, 1 << 12
_FEW = 1 << 8  # numbers


def _has_short_rows(site) -> bool:
    """Whether an array is large, and its last axis too short for vectorized loops."""
    shape = site.out.shape
    if GENERATORS[site.params.get("impl", "fry")].together:
        return False
    return all(type(n) is int for n in shape) and len(shape) > 1 and shape[-1] < _SHORT_ROW and prod(shape) >= _LARGE


def _as_one_row(em, site, keys):
    """Draw without fusion: what follows is then one loop, instead of a loop for each short row."""
    generator, out = GENERATORS[site.params.get("impl", "fry")], site.out
    flat = make_aval((*keys.aval.shape, prod(site.params["shape"])), out.dtype)
    return em.reshape(apart(em, "bits", flat, lambda keys: generator.emit_bits(em, flat, keys), keys), out.shape)


def _is_small(site) -> bool:
    """Whether few numbers are drawn, which fusion would repeat for each element of their users."""
    is_small = type(site.out.size) is int and site.out.size <= _FEW
    return is_small and not GENERATORS[site.params.get("impl", "fry")].together


def _on_their_own(em, site, keys):
    """Draw without fusion. In loops only single numbers are, as larger arrays depend on these."""
    if em.loops and prod(site.params["shape"]) > 1:
        return NotImplemented
    return apart(em, "bits", site.out, lambda keys: site.plain(em, keys), keys)


def _through_memory(em, site, *values):
    """Make words of which others may be made, as arrays: two generators in one loop may hang LLVM."""
    out = site.plain(em, *values)
    made = em.optimization_barrier(out if isinstance(out, list | tuple) else [out])
    return made if isinstance(out, list | tuple) else made[0]


REWRITES = (
    Rewrite(
        "keys_through_memory",
        (random_split_p, random_fold_in_p, threefry2x32_p),
        _through_memory,
        kind=CORRECTNESS,
        since=(0, 11),
        seen_on=("0.11.2", "0.12.0.1"),
    ),
    Rewrite("few_draws_apart", (random_bits_p,), _on_their_own, _is_small, alone=True),
    Rewrite("bits_in_one_row", (random_bits_p,), _as_one_row, _has_short_rows, alone=True),
)
