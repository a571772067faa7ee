"""Messages about retraces: a log line for each if the option asks, a warning if there are many."""

from __future__ import annotations

from types import CodeType

from gradix._base import config, events, source
from gradix._base.errors import RetraceWarning
from gradix._base.lazy import lazy_module
from gradix._core.trace import state

advice = lazy_module("gradix._base.advice")
config.define("gradix_retrace_warning", 3)
_options = config.state


def is_own(code: CodeType | None) -> bool:
    """Whether a function of this code is this package's, so that the user cannot avoid its retraces."""
    return code is not None and source.is_inside(code.co_filename)


def log_miss(name: str, reason: str) -> None:
    """Log the reason of a retrace, as the option jax_explain_cache_misses asks."""
    events.warn("trace", "TRACING CACHE MISS at %s: %s: %s", events.place(), name, reason)


def is_due(retraces: int) -> bool:
    """Whether to warn about a function that was traced again `retraces` times.

    There is no warning while another function is traced: a layer that is used in five sizes is
    meant to have five programs, and the retraces of the outer function are counted.
    """
    return retraces == _options.gradix_retrace_warning and retraces > 0 and state.stage is None


def warn(name: str, reasons: list[str]) -> None:
    """Warn, at the user's line, of a function's many retraces; briefly after the first warning.

    Args:
        reasons: the reasons of all retraces; each names arguments with their old and new types.
    """
    listed = "\n".join([f"  {reason}" for reason in reasons])
    text = (
        f"{name} was traced {len(reasons) + 1} times; each trace is compiled anew. What differed:\n{listed}\n"
        f"  instead: {_advice(reasons)}\n"
        "Each function is reported once. f.stats().reasons lists all reasons, jit(f, max_traces=n) raises\n"
        "an error instead, and gradix.config.update('gradix_retrace_warning', 0) turns the warning off."
    )
    brief = f"{name} was traced {len(reasons) + 1} times too; the last time {reasons[-1]}"
    advice.tell_of_function(name, text, brief, RetraceWarning, source.current())


def _advice(reasons: list[str]) -> str:
    text = " ".join(reasons)
    if "static argument" in text:
        return "pass what changes from call to call as an array, not as a static argument."
    if "structure" in text or "is new" in text:
        return "call it with arguments of the same structure, with None or zeros for what is missing."
    if "weakly typed" in text:
        return "give Python numbers a dtype before the first call: jnp.asarray(x, jnp.float32)."
    return "call it with arrays of a few shapes and dtypes: pad to the next power of two, drop the last batch."
