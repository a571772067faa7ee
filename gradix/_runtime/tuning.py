"""Rewrites and compiler options from the tables of `_platforms`, as `gradix_rewrites` selects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gradix._base import config
from gradix._base.lazy import lazy_module
from gradix._runtime import pending, xla
from gradix._runtime.machine import cores

if TYPE_CHECKING:
    from gradix._stablehlo.module import LoweredModule

_platforms: Any = lazy_module("gradix._platforms")


def _checked(name: str, value) -> str:
    if value not in ("all", "correctness", "off"):
        _platforms.check_selection(value)
    return value


config.define("gradix_rewrites", "all", _checked, traced=True)
_options = config.state
_JAXLIB = tuple(map(int, xla.jaxlib_version.split(".")[:2]))


def rewrites_of(platform: str) -> Mapping[Any, tuple] | None:
    """The rewrites that the emitter consults, by primitive; None if there are none."""
    return _platforms.rewrites_of(platform, _options.gradix_rewrites, _JAXLIB)


def needed_rewrites_of(platform: str) -> Mapping[Any, tuple] | None:
    """The rewrites without which an exported program is wrong, or not compiled, on a platform.

    Those for the CPU are for any version of jaxlib that may read the file. A file cannot call a
    function of this process.
    """
    selection = "off,+keys_through_memory" if platform == "cpu" else "correctness,-by_host"
    return _platforms.rewrites_of(platform, selection)


def tuned(executable: xla.Executable, module: LoweredModule) -> xla.Executable:
    """The executable, which keeps LAPACK to one thread if the program's matrices are small."""
    if _platforms.factors_on_one_thread(module.platform, module.facts):
        executable.keep_to_one_thread()
    return executable


def runners(
    executable: xla.Executable, module: LoweredModule, donates: bool
) -> tuple[Callable[[list], list], Callable[[list], list]]:
    """The function of buffers that runs a program, and the one for arguments that are pending."""
    run, count, calls_python = executable.run, len(module.out_avals), executable.is_awaited
    pace: pending.Pace | None = None
    if executable.device.platform == "cpu" and _platforms.may_take_long("cpu", module.facts):
        pace = pending.Pace(count)
        executable.pace = pace
    return (
        pending.runner(run, count, pace, donates=donates, calls_python=calls_python),
        pending.waiting(run) if calls_python else pending.later(run, count, pace),
    )


def options_for(
    module: LoweredModule, compiler_options: dict | None = None, is_alone: bool = True, is_quick: bool = False
) -> xla.Options:
    """The compiler options for a program.

    Args:
        module: the lowered program.
        compiler_options: the user's options, which override those of the table.
        is_alone: whether the program runs on one device. Only some options suit several devices.
        is_quick: whether to compile in the shortest time, for a program that runs more slowly.
    """
    chosen = _platforms.options_for(module.platform, _options.gradix_rewrites, module.facts, cores(), _JAXLIB)
    if not is_alone:
        chosen = {k: v for k, v in chosen.items() if k in ("unroll", "fusion_emitters")}
    if is_quick:
        chosen |= _platforms.quick_options_for(module.platform, module.facts)
    return xla.options(compiler_options=compiler_options, **chosen)
