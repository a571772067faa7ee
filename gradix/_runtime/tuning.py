"""What the tables of `_platforms` say of a program, under the option `gradix_rewrites`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradix._base import config
from gradix._base.lazy import lazy_module
from gradix._runtime import xla
from gradix._runtime.cores import cores

if TYPE_CHECKING:
    from gradix._stablehlo.module import LoweredModule

_platforms: Any = lazy_module("gradix._platforms")


def _checked(name: str, value) -> str:
    if value not in ("all", "correctness", "off"):
        _platforms.check_selection(value)
    return value


config.define("gradix_rewrites", "all", _checked, traced=True)
_options = config.state


def rewrites_of(platform: str) -> Mapping[Any, tuple] | None:
    """The rewrites that the emitter is to consult, by primitive; None where there are none."""
    return _platforms.rewrites_of(platform, _options.gradix_rewrites)


def needed_rewrites_of(platform: str) -> Mapping[Any, tuple] | None:
    """Those without which a program in a file cannot run on another platform; for the CPU there are none."""
    return None if platform == "cpu" else _platforms.rewrites_of(platform, "correctness")


def quick_options_for(module: LoweredModule) -> dict:
    """The compiler options by which a program is compiled in the least time; none where that is not known."""
    return _platforms.quick_options_for(module.platform, module.facts)


def tuned(executable: xla.Executable, module: LoweredModule) -> xla.Executable:
    """The executable of a program, with LAPACK kept to one thread where its matrices are not large."""
    if _platforms.factors_on_one_thread(module.platform, module.facts):
        executable.keep_to_one_thread()
    return executable


def options_for(
    module: LoweredModule, compiler_options: dict | None = None, is_alone: bool = True
) -> xla.Options:
    """What to ask of the compiler for a program.

    Args:
        compiler_options: the user's, which win.
        is_alone: False for programs over several devices, which have choices of their own.
    """
    chosen = _platforms.options_for(
        module.platform, _options.gradix_rewrites, module.facts, cores()
    )
    if not is_alone:
        chosen = {k: v for k, v in chosen.items() if k in ("unroll", "fusion_emitters")}
    return xla.options(compiler_options=compiler_options, **chosen)
