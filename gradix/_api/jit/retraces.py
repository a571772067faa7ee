"""What is said when a function is traced again: a line of log where asked for, a warning where it goes on."""

from __future__ import annotations

from collections.abc import Callable

from gradix._base import config, events, source
from gradix._base.errors import RetraceWarning
from gradix._base.lazy import lazy_module
from gradix._core.trace import state

advice = lazy_module("gradix._base.advice")
config.define("gradix_retrace_warning", 3)
_options = config.state


def is_own(function: Callable) -> bool:
    """Whether a function belongs to this package, whose users cannot change how often it is traced."""
    code = getattr(function, "__code__", None)
    return code is not None and source.is_inside(code.co_filename)


def log_miss(name: str, reason: str) -> None:
    """What the option jax_explain_cache_misses asks for."""
    if _options.jax_explain_cache_misses:
        events.warn(
            "trace",
            "TRACING CACHE MISS at %s: %s: %s",
            events.place(),
            name,
            reason or "never traced before",
        )


def is_due(retraces: int) -> bool:
    """Whether the user should hear of a function traced again for the n-th time.

    Not while another function is traced: a layer used in five sizes is five programs by intention,
    and the outer function's own retraces are counted.
    """
    return retraces == _options.gradix_retrace_warning and retraces > 0 and state.stage is None


def warn(name: str, reasons: list[str]) -> None:
    """Warn, at the user's line, that a function keeps being traced; in a line, where others did before.

    Args:
        reasons: of the retraces so far, each naming arguments with their old and new types.
    """
    listed = "\n".join([f"  {reason}" for reason in reasons])
    text = (
        f"{name} was traced {len(reasons) + 1} times; each trace is compiled anew. What differed:\n{listed}\n"
        f"  instead: {_advice(reasons)}\n"
        "This is said once per function; f.stats().reasons lists all, jit(f, max_traces=n) raises, and "
        "gradix.config.update('gradix_retrace_warning', 0) silences it."
    )
    brief = f"{name} was traced {len(reasons) + 1} times too; the last time {reasons[-1]}"
    advice.tell_of_function(name, text, brief, RetraceWarning, source.current())


def _advice(reasons: list[str]) -> str:
    text = " ".join(reasons)
    if "static argument" in text:
        return "pass what changes from call to call as an array, not as a static argument."
    if "structure" in text or "is new" in text:
        return (
            "call it with arguments of the same structure, with None or zeros for what is missing."
        )
    if "weakly typed" in text:
        return "give Python numbers a dtype before the first call: jnp.asarray(x, jnp.float32)."
    return "call it with arrays of a few shapes and dtypes: pad to the next power of two, drop the last batch."
