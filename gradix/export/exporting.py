"""`export`, which traces a jitted function for types, also with symbolic shapes, and lowers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from gradix._api.derivatives.autodiff import vjp
from gradix._api.devices import default_backend
from gradix._api.jit.jit import jit
from gradix._api.jit.jitted_function import JitFunction
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.config import state as _options
from gradix._base.lazy import lazy_module
from gradix._base.source import is_inside
from gradix._base.tracebacks import boundary
from gradix._base.tree import keystr, tree_flatten_with_path
from gradix._core import dtypes
from gradix._core.aval import seen
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dimensions.scope import several_scopes
from gradix._core.dimensions.solving import Solver
from gradix._core.effects import MeshEffect, is_ordered
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr
from gradix._core.refs import AbstractRef
from gradix._runtime import program, tuning, xla_artifact
from gradix._stablehlo.emitter import identifier
from gradix._stablehlo.open_dimensions import OpenDimensions
from gradix._transforms.cse import simplify
from gradix._transforms.staging import eval_closed
from gradix.export import calling, shardings
from gradix.export.checks import DisabledSafetyCheck
from gradix.export.effects import name_of
from gradix.export.exported import Exported
from gradix.export.portability import check_platform, check_stable

_results = lazy_module("gradix._api.counted.results")
_counted = lazy_module("gradix.export.counted")

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def default_export_platform() -> str:
    """The name of the platform that `export` lowers for by default, that of the default device.

    Example:
        >>> from gradix import export
        >>> export.default_export_platform()
        'cpu'
    """
    backend = default_backend()
    return "cuda" if backend == "gpu" else backend


def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """A function that exports a jitted function for arguments of given types.

    Args:
        fun_jit: a function returned by `jit`, or one of this package.
        platforms: the platforms to lower for, such as "cpu", "cuda", "rocm" and "tpu"; by default
            that of the default device.
        disabled_checks: the checks to omit.

    Returns:
        A function that takes the arguments, or `ShapeDtypeStruct`s in their place, and returns an
        `Exported`. A static argument may be a symbolic dimension that no array has; then
        `Exported.bind_dims` sets its value.

    Raises:
        ValueError: `fun_jit` is not jitted, a platform is no name, or the sizes of the arguments
            do not determine their dimension variables.
        TypeError: `platforms` is a string.
        NotImplementedError: the function calls back into Python, which a file cannot hold.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix import export
        >>> exported = export.export(gradix.jit(jnp.sin))(1.0)
        >>> export.deserialize(exported.serialize()).call(0.5)
        Array(0.47942555, dtype=float32)
    """
    if type(fun_jit) is FunctionType and is_inside(fun_jit.__code__.co_filename):
        fun_jit = jit(fun_jit)  # a function of this package
    if not isinstance(fun_jit, JitFunction):
        raise ValueError(
            f"Function to be exported must be the result of `jit` but is: {fun_jit!r}. Write export(gradix.jit(f))."
        )
    if isinstance(platforms, str):
        raise TypeError(f"platforms must be a sequence of names, got the string {platforms!r}. Write ({platforms!r},).")
    version = _options.jax_export_calling_convention_version
    least, most = (minimum_supported_calling_convention_version, maximum_supported_calling_convention_version)
    if not least <= version <= most:
        raise ValueError(
            f"the option jax_export_calling_convention_version must be from {least} to {most}, got {version}."
        )
    where = tuple(platforms) if platforms is not None else (default_export_platform(),)
    if not where or any(not isinstance(p, str) or not p for p in where):
        raise ValueError(f"platforms must be one or more names, as {PLATFORMS}, got {where}.")

    @boundary
    def do_export(*args, **kwargs) -> Exported:
        _check_scopes(fun_jit, args, kwargs)
        traced = fun_jit.trace(*args, **kwargs)
        return _export(traced, where, tuple(disabled_checks))

    return do_export


def _export(stage, platforms: tuple, disabled: tuple) -> Exported:
    traced = stage._traced
    if traced.out_tree is None:
        raise NotImplementedError(
            "a function of jit(specialize=True) decides by values, which an exported program "
            "cannot. Export a function of jit without specialize."
        )
    _check_arguments(traced)
    whole = closed = _physical(_whole(traced))
    out_tree, counted = traced.out_tree, None
    if seen.counts is not None:
        if type(out_tree) is _results.CountedTree:
            out_tree, counted = _counted.described(out_tree)
        closed = seen.counts.masked(closed)
    plan = shardings.Plan(traced, stage._places)
    in_avals = tuple([a.plain.update(weak_type=False) for a in traced.avals])
    out_avals = [a.plain.update(weak_type=False) for a in traced.jaxpr.out_avals]
    shown = _Names(stage.in_tree, in_avals)
    solver = Solver(closed.in_avals, calling.argument_names(shown))
    variables = _variables(closed.jaxpr, set())
    if solver.unsolved:
        solver.require_solvable()
    places = OpenDimensions(closed.in_avals, solver, variables) if variables else None
    effects = [x for x in sorted(closed.jaxpr.effects, key=name_of) if type(x) is not MeshEffect]
    ordered = [x for x in effects if is_ordered(x)]
    options = {**plan.options(), "tokens": len(ordered)}
    modules = [_lowered(closed, traced.name, platform, places, options) for platform in platforms]
    if any(m.host_callbacks for m in modules):
        raise NotImplementedError(
            f"serialization of host_callbacks is not possible: '{traced.name}' calls Python "
            "functions of this process, such as callbacks or debug prints. Remove these calls from the "
            "exported function."
        )
    allowed = {c.is_custom_call() for c in disabled}
    for platform, module in zip(platforms, modules):
        check_platform(module.facts.custom_calls, platform, traced.name, allowed)
    text, kept = _joined(modules, len(places.given) if places else 0, traced.name)
    check_stable(text, allowed)
    scope = next(
        (d.scope for a in (*in_avals, *traced.jaxpr.out_avals) for d in a.shape if type(d) is SymbolicDim), None
    )
    return Exported(
        fun_name=traced.name,
        in_tree=stage.in_tree,
        in_avals=shardings.with_divisions(in_avals, plan.ins),
        out_tree=out_tree,
        out_avals=shardings.with_divisions(out_avals, plan.outs),
        _has_named_shardings=True,
        _in_named_shardings=shardings.without_devices(plan.ins),
        _out_named_shardings=shardings.without_devices(plan.outs),
        in_shardings_hlo=shardings.native(plan.ins, in_avals),
        out_shardings_hlo=shardings.native(plan.outs, out_avals),
        nr_devices=plan.nr_devices,
        platforms=platforms,
        ordered_effects=tuple(ordered),
        unordered_effects=tuple([x for x in effects if not is_ordered(x)]),
        disabled_safety_checks=disabled,
        mlir_module_serialized=xla_artifact.serialize(text),
        calling_convention_version=maximum_supported_calling_convention_version,
        module_kept_var_idx=kept,
        uses_global_constants=len(platforms) > 1 or bool(variables),
        # derivatives come before masking, which is not exact to differentiate
        _get_vjp=_vjp_of(whole, traced, platforms, disabled, plan),
        constraints=tuple([text for text, _ in scope.constraints]) if scope is not None else (),
        assumptions=tuple(scope.assumptions) if scope is not None else (),
        _counted=counted,
    )


def _check_arguments(traced) -> None:
    """Check that no argument is a ref (a mutable array).

    Raises:
        NotImplementedError: an argument is one.
    """
    if any(isinstance(a, AbstractRef) for a in traced.avals):
        raise NotImplementedError(
            f"'{traced.name}' takes a mutable array (Ref), which an exported program cannot. Take an array "
            "instead, and return the new array."
        )


def _check_scopes(fun_jit, args: tuple, kwargs: dict) -> None:
    """Check that all symbolic dimensions of the arguments are of one scope.

    Raises:
        ValueError: they are of several scopes.
    """
    paths, _ = tree_flatten_with_path((args, kwargs))
    shapes = [
        (x,) if type(x) is SymbolicDim else s if isinstance(s := getattr(x, "shape", ()), tuple) else ()
        for _, x in paths
    ]
    names = [f"{('args', 'kwargs')[p[0].idx]}{keystr(p[1:])}" for p, _ in paths]
    problem = several_scopes(shapes, names)
    if problem:
        name = getattr(fun_jit, "__name__", fun_jit)
        raise ValueError(f"Invalid mixing of symbolic scopes when exporting {name}: {problem}")


class _Names:
    """What `argument_names` reads of an exported function."""

    def __init__(self, in_tree, in_avals):
        self.in_tree, self.in_avals = in_tree, in_avals


def _whole(traced) -> ClosedJaxpr:
    """The program as a function of the arguments only, with captured arrays as its constants."""
    n = len(traced.consts)
    jaxpr = traced.jaxpr.jaxpr
    if not n:
        return traced.jaxpr
    return ClosedJaxpr(
        Jaxpr(
            [*jaxpr.constvars, *jaxpr.invars[:n]],
            jaxpr.invars[n:],
            jaxpr.outvars,
            jaxpr.eqns,
            jaxpr.effects,
            jaxpr.debug_info,
        ),
        [*traced.jaxpr.consts, *traced.consts],
    )


def _physical(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program as one of arrays in the form that they have in files."""
    ins, outs = closed.in_avals, closed.out_avals
    if all(calling.physical(a) is a for a in (*ins, *outs)):
        return closed

    def run(*args):
        results = eval_closed(closed, *[calling.wrapped(x, a) for x, a in zip(args, ins)])
        return [calling.unwrapped(x) for x in results]

    return jit(run).trace(*[ShapeDtypeStruct(p.shape, p.dtype) for p in map(calling.physical, ins)]).jaxpr


def _variables(x, found: set) -> set:
    """The names of the dimension variables anywhere in a program, a type or a parameter."""
    kind = type(x)
    if kind is SymbolicDim:
        found |= x.variables()
    elif kind is ClosedJaxpr:
        _variables(x.jaxpr, found)
    elif kind is Jaxpr:
        for v in (*x.constvars, *x.invars):
            _variables(v.aval.shape, found)
        for eqn in x.eqns:
            for v in eqn.outvars:
                _variables(v.aval.shape, found)
            for value in eqn.params.values():
                _variables(value, found)
    elif isinstance(x, (tuple, list)):
        for value in x:
            _variables(value, found)
    return found


def _lowered(closed: ClosedJaxpr, name: str, platform: str, places, options: dict):
    return program.lower(
        simplify(closed),
        name,
        keep_unused=False,
        hoist_bytes=None,
        platform=platform,
        rewrites=tuning.needed_rewrites_of(platform),
        named=False,
        dimensions=places,
        module_attrs={"jax.uses_shape_polymorphism": places is not None},
        **options,
    )


def _joined(modules: list, given: int, name: str) -> tuple[str, tuple]:
    """The module of all platforms, and the arguments it takes.

    If there are several platforms, its first argument selects one of their modules.
    """
    if len(modules) == 1:
        return modules[0].text, tuple(modules[0].kept)
    return xla_artifact.choice([m.text for m in modules], identifier(name)), tuple(modules[0].kept)


def _vjp_of(closed: ClosedJaxpr, traced, platforms: tuple, disabled: tuple, plan):
    """A function that makes the exported gradient of an exported function."""
    n = len(closed.in_avals)

    def fun_vjp(*flat):
        _, pull = vjp(lambda *primals: eval_closed(closed, *primals), *flat[:n])
        return pull(list(flat[n:]))

    fun_vjp.__name__ = f"{traced.name}_vjp"

    def get_vjp(primal: Exported) -> Exported:
        outs = [calling.physical(a) for a in primal.out_avals]
        cts = [ShapeDtypeStruct(a.shape, a.dtype if a.dtype in dtypes.INEXACT else dtypes.float0) for a in outs]
        args = [ShapeDtypeStruct(a.shape, a.dtype) for a in map(calling.physical, primal.in_avals)]
        divided: dict[str, Any] = (
            {"in_shardings": (*plan.ins, *plan.outs), "out_shardings": tuple(plan.ins)} if plan.devices else {}
        )
        return export(jit(fun_vjp, keep_unused=True, **divided), platforms=platforms, disabled_checks=disabled)(
            *args, *cts
        )

    return get_vjp
