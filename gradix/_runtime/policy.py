"""Where eager work runs: on the host while it is small, by XLA when it is the better engine."""
from __future__ import annotations

from gradix._base import config

config.define("gradix_eager", "auto", ("auto", "xla", "host"), traced=True)
_options = config.state

# What the options ask of eager work, by trace context: the mode, and whether results are checked for NaN or inf.
_modes: dict[tuple, tuple[str, bool, bool]] = {}


def mode_of(context) -> tuple[str, bool, bool]:
    """(where eager work runs, check for NaN, check for inf) under the current options, whose context this is.

    "auto": NumPy up to a primitive's `host_limit` elements, where it is quicker than XLA's dispatch and needs no
    compilation; the limits were measured (docs/performance.md). "host" and "xla" override.
    """
    if len(_modes) > 256:
        _modes.clear()
    found = _modes[context] = (_options.gradix_eager, _options.jax_debug_nans, _options.jax_debug_infs)
    return found


def modes() -> dict:
    return _modes


_LARGE = 1 << 14        # elements


def wants_fusion_emitters(module) -> bool:
    """Whether a lowered program should go through XLA:CPU's newer code generator.

    It compiles small programs in twice the time, and runs large fusions, scatters and loop bodies up to three times
    faster, but windows (running sums) more than twice slower.
    """
    if "stablehlo.reduce_window" in module.text:
        return False
    return any(a.size > _LARGE for a in (*module.in_avals, *module.out_avals))


_SMALL = 1 << 11        # elements


def wants_unrolling(module) -> bool:
    """Whether LLVM should unroll the loops of a lowered program.

    A loop over a small array has a known count, and LLVM writes out every step of it: tanh of 16 x 32 numbers compiles
    in 130 ms and runs in 4.2 us, as a loop in 22 ms and 3.9 us; an MLP's step in 236 and 91 ms, 18.4 us both. Loops of
    the user, over small matrices, run quicker unrolled.
    """
    return '"stablehlo.while"' in module.text or any(a.size > _SMALL for a in (*module.in_avals, *module.out_avals))
