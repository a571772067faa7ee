"""The stages of `jit`: traced, lowered and compiled functions, to inspect or to process further."""

from __future__ import annotations

import operator
from typing import Any, Protocol, runtime_checkable

from gradix._api.boundary import opened
from gradix._api.jit import donation
from gradix._api.jit.placed import check_layouts, unplaced
from gradix._api.structs import struct_of
from gradix._base.lazy import lazy_module
from gradix._base.tree import equality_errors, keystr, numbered, tree_flatten_with_path
from gradix._core.array import ArrayImpl, as_array
from gradix._core.array_layouts import Format, Layout, layout_in
from gradix._core.aval import located, seen
from gradix._core.divisions import explicit_part
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr
from gradix._core.operators import Array
from gradix._core.refs import Ref
from gradix._core.sharding import SingleDeviceSharding
from gradix._core.trace import Tracer
from gradix._runtime import program as _program, xla
from gradix._runtime.program import Program
from gradix._stablehlo.emitter import identifier

_lines = lazy_module("gradix._api.costs.lines")
_showing = lazy_module("gradix._api.showing")
_results = lazy_module("gradix._api.counted.results")


@runtime_checkable
class Wrapped(Protocol):
    """A function that can be traced, lowered and compiled ahead of time, such as `jit` returns.

    Example:
        >>> import gradix
        >>> isinstance(gradix.jit(abs), gradix.stages.Wrapped)
        True
    """

    def __call__(self, *args, **kwargs): ...

    def trace(self, *args, **kwargs) -> Traced: ...

    def lower(self, *args, **kwargs) -> Lowered: ...


class ArgInfo:
    """The type of an argument, and whether its memory is donated.

    Example:
        >>> import gradix
        >>> lowered = gradix.jit(lambda x: x + 1, donate_argnums=0).lower(1.0)
        >>> gradix.tree.leaves(lowered.args_info)[0].donated
        True
    """

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval, donated: bool):
        self._aval, self.donated = _aval, donated

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)

    def __eq__(self, other) -> bool:
        return isinstance(other, ArgInfo) and (self._aval, self.donated) == (other._aval, other.donated)

    def __hash__(self) -> int:
        return hash((self._aval, self.donated))

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"


def _is_counted(tree) -> bool:
    """Whether a tree is that of results of which values decide sizes."""
    return seen.counts is not None and type(tree) is _results.CountedTree


class _Stage:
    """The base class of the stages: the trees and types of arguments and results."""

    __slots__ = ("_traced", "in_tree", "_places")

    def __init__(self, traced, in_tree, places=None):
        self._traced, self.in_tree = traced, in_tree
        # the types of the arguments given
        self._places = places if traced.placing is not None else None

    def _operand_places(self) -> list | None:
        """The types of the operands with their places, where these matter."""
        refs = self._traced.refs
        return self._places if refs is None or self._places is None else refs.avals(self._places)

    @property
    def out_tree(self):
        """The structure of the result."""
        found = self._traced.out_tree
        return found.tree if _is_counted(found) else found

    def _result_avals(self) -> list:
        """The types of the results; sizes that values decide stand as variables."""
        avals, found = self._traced.jaxpr.out_avals, self._traced.out_tree
        return found.avals(avals) if _is_counted(found) else avals[: found.num_leaves]

    donate_argnums = property(lambda self: tuple(self._traced.donated))

    @property
    def in_avals(self):
        """The types of the arguments, as `(args, kwargs)`."""
        return self.in_tree.unflatten(self._traced.avals)

    def _avals_as_asked(self) -> list:
        """The types of the arguments, divided over explicit mesh axes as `in_shardings` says."""
        traced, placing = self._traced, self._traced.placing
        asked = None if placing is None else placing.asked
        if asked is None:
            return list(traced.avals)
        wanted = asked.of_arguments(traced.name, self.in_tree, traced.avals, traced.debug.arg_names)
        return [
            a if s is None else located(a.plain, vma=a.vma, division=explicit_part(s, a.ndim))
            for a, s in zip(traced.avals, wanted)
        ]

    @property
    def args_info(self):
        """An `ArgInfo` for each argument, as `(args, kwargs)`."""
        donated = set(self._traced.donated)
        return self.in_tree.unflatten([ArgInfo(a, i in donated) for i, a in enumerate(self._traced.avals)])

    @property
    def out_info(self):
        """A `ShapeDtypeStruct` for each result, with the sharding or format asked for by `out_shardings`."""
        avals = self._result_avals()
        placing = self._traced.placing
        asked = None if placing is None else placing.asked
        if asked is None:
            return self.out_tree.unflatten([struct_of(a) for a in avals])
        wanted, layouts = asked.of_results(self.out_tree, avals), asked.layouts_of_results(self.out_tree, avals)
        places = [Format(x, s) if isinstance(x, Layout) else s for x, s in zip(layouts, wanted)]
        return self.out_tree.unflatten([struct_of(a, s) for a, s in zip(avals, places)])


class Traced(_Stage):
    """A function traced for the types of some arguments; made by `jit(f).trace(*args)`.

    Example:
        >>> import gradix
        >>> gradix.jit(lambda x: x + 1).trace(2.0).jaxpr
        { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    """

    __slots__ = ()

    fun_name = property(lambda self: self._traced.name)

    def _repr_html_(self) -> str:
        return self.jaxpr._repr_html_()

    @property
    def out_avals(self):
        return self.out_tree.unflatten(self._result_avals())

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program of the arguments, with the arrays the function captured as its constants."""
        inner, n = self._traced.jaxpr.jaxpr, len(self._traced.consts)
        if not n:
            return self._traced.jaxpr
        return ClosedJaxpr(
            Jaxpr(inner.invars[:n], inner.invars[n:], inner.outvars, inner.eqns, inner.effects, inner.debug_info),
            self._traced.consts,
        )

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None) -> Lowered:
        """Lower the program to StableHLO, for this machine or for the platform named.

        Raises:
            NotImplementedError: more than one platform is named; export to each instead.
        """
        platforms = lowering_platforms or (xla.default_platform(),)
        if len(platforms) != 1:
            raise NotImplementedError(
                f"lower takes one platform at a time, got {platforms}. Lower for each separately."
            )
        traced = self._traced
        donated, places = traced.donated_inputs, self._operand_places()
        asked = lowering_platforms[0] if lowering_platforms else None
        module = traced.placing.lowered(places, platform=asked) if places is not None else None
        if module is None and traced.program is not None and traced.program.lowered.platform == platforms[0]:
            module = traced.program.lowered  # a call has lowered it
        if module is None:
            module = _program.lower(
                traced.simplified(), traced.name, donated=donated, keep_unused=traced.keep_unused, platform=platforms[0]
            )
        if donated:
            donation.check(module, traced)
        return Lowered(traced, self.in_tree, module, platforms[0], self._places)


class Lowered(_Stage):
    """A program lowered to StableHLO; made by `jit(f).lower(*args)`.

    Example:
        >>> import gradix
        >>> lowered = gradix.jit(lambda x: x + 1).lower(1.0)
        >>> "stablehlo.add" in lowered.as_text(), lowered.compile()(2.0)
        (True, Array(3., dtype=float32, weak_type=True))
    """

    __slots__ = ("_module", "_platform")

    in_avals = property(lambda self: self.in_tree.unflatten(self._avals_as_asked()))

    def __init__(self, traced, in_tree, module, platform: str = "cpu", places=None):
        super().__init__(traced, in_tree, places)
        self._module, self._platform = module, platform

    def _repr_html_(self) -> str:
        return _showing.lowered(self)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program's text.

        Args:
            dialect: "stablehlo", the default, or "hlo".
            debug_info: write, with each operation, its name within the enclosing scopes and
                transformations, and the line of the user's program.

        Raises:
            ValueError: there is no such dialect.
        """
        if dialect in (None, "stablehlo"):
            text = self._placed_text() if debug_info else self._module.text
            paths = [keystr(path) for path, _ in tree_flatten_with_path(self.out_info)[0]]
            results = [f"result{path}" for path in paths]
            return xla.printed(text, identifier(f"jit_{self._traced.name}"), results, with_places=debug_info)
        if dialect == "hlo":
            text = self._placed_text() if debug_info else self._module.text
            return xla.hlo_text(text, with_metadata=debug_info)
        raise ValueError(f"unknown dialect: {dialect}. There are 'stablehlo' and 'hlo'.")

    def _placed_text(self) -> str:
        traced, places = self._traced, self._operand_places()
        on_devices = traced.placing.lowered(places, places=True) if places is not None else None
        if on_devices is not None:
            return on_devices.text
        return _program.lower(
            traced.simplified(),
            traced.name,
            donated=traced.donated_inputs,
            keep_unused=traced.keep_unused,
            platform=self._platform,
            places=True,
        ).text

    def compiler_ir(self, dialect: str | None = None):
        """The program as a compiler object: an MLIR module, or an `XlaComputation` for "hlo"."""
        if dialect in (None, "stablehlo"):
            return xla.parse_module(self._module.text)
        if dialect == "hlo":
            return xla.hlo_computation(self._module.text)
        raise ValueError(f"unknown dialect: {dialect}. There are 'stablehlo' and 'hlo'.")

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates before optimisation: 'flops', 'bytes accessed', ..."""
        return xla.cost_of(self._module.text)

    def compile(self, compiler_options: dict | None = None, *, device_assignment=None) -> Compiled:
        """Compile the program.

        Args:
            compiler_options: XLA debug options by name, in addition to those given to `jit`.
            device_assignment: the devices to run on, which must be those of the shardings.

        Raises:
            ValueError: the shardings are on other devices than `device_assignment`.
            RuntimeError: they are on an AbstractMesh, and `device_assignment` is not given.
        """
        traced = self._traced
        places = self._operand_places()
        placed, own_places = None, self._places
        if places is not None:
            placing = traced.placing
            home = placing.plan(places)[0]
            if home is not None and home.is_abstract:
                if device_assignment is None:
                    raise RuntimeError(
                        "device_assignment cannot be `None` during compilation: shardings are on an AbstractMesh, "
                        f"{home.mesh}, which has no devices. Pass a tuple of {home.mesh.size} devices to .compile("
                        "device_assignment=...)."
                    )
                placing, places = placing.on_devices(places, tuple(device_assignment))
                own_places = places
            placed = placing.program_for(tuple(places), compiler_options)
        if device_assignment is not None:
            given = tuple(device_assignment)
            own = (xla.local_devices()[0],) if placed is None else tuple(placed.home.devices)
            if given != own:
                raise ValueError(
                    "device_assignment passed to `.compile` must match the devices of the shardings of "
                    f"arguments and results: got {[d.id for d in given]} for {[d.id for d in own]}."
                )
        if placed is not None:
            return Compiled(traced, self.in_tree, placed, own_places)
        options = {**(traced.compiler_options or {}), **(compiler_options or {})} or None
        program = Program(
            traced.jaxpr, traced.name, donated=traced.donated_inputs, compiler_options=options, lowered=self._module
        )
        return Compiled(traced, self.in_tree, program)


class Compiled(_Stage):
    """A compiled program, to be called with arguments of the types for which it was compiled.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> double = gradix.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile()
        >>> double(jnp.arange(3.0))
        Array([0., 2., 4.], dtype=float32)
    """

    __slots__ = ("_program",)

    in_avals = property(lambda self: self.in_tree.unflatten(self._avals_as_asked()))

    def __init__(self, traced, in_tree, program: Any, places=None):
        super().__init__(traced, in_tree, places)
        self._program = program

    def _execute(self, args) -> list:
        """Call the program with operands, on the devices where it takes them."""
        program = self._program
        if program.home is None:
            check_layouts(self._traced, args, program.orders.ins[len(self._traced.consts) :])
            args = [unplaced(x) for x in args]
        else:
            args = self._traced.placing.fitted(program, args, self._operand_places())
        return self._traced.execute(program, args)

    def __call__(self, *args, **kwargs):
        leaves, tree = opened((args, kwargs))
        if tree != self.in_tree:
            raise TypeError(self._tree_mismatch(args, kwargs))
        traced, avals = self._traced, self._traced.avals
        for i, (x, aval) in enumerate(zip(leaves, avals)):
            if type(x) is not ArrayImpl:
                x = leaves[i] = self._concrete(x)
            have = x.aval
            if have is not aval and (have.shape != aval.shape or have.dtype != aval.dtype):
                raise TypeError(self._type_mismatch(args, kwargs, leaves))
        return traced.out_tree.unflatten(traced.around(self._execute)(leaves))

    call = __call__

    def _concrete(self, x) -> Array | Ref:
        if isinstance(x, Tracer):
            raise TypeError(
                f"Cannot apply transformations to a function compiled for a particular signature: "
                f"{self._traced.name} got an argument of type {type(x).__name__}. Transform first, compile "
                "after: jit(vmap(f)).lower(...).compile()."
            )
        return x if isinstance(x, Ref) else as_array(x)

    def _tree_mismatch(self, args, kwargs) -> str:
        seen = numbered(self.in_tree)
        differences = []
        for what, was, now in (("args", seen[0], args), ("kwargs", seen[1], kwargs)):
            differences += [
                f"  * at {what}{keystr(path)}, seen {before} but now given {after}, so the {_PLURAL[why]} "
                f"differ{_key_difference(was, now, path) if why == 'keys' else ''}"
                for path, before, after, why in equality_errors(was, now)
            ]
        return (
            f"Function {self._traced.name} was compiled with an input pytree that does not match the one it was "
            f"called with. There are {len(differences)} differences:\n"
            + "\n".join(differences)
            + "\nStatic arguments are part of the compiled program: leave them out of the call."
        )

    def _type_mismatch(self, args, kwargs, leaves) -> str:
        names = [keystr(p) for p, _ in tree_flatten_with_path((args, kwargs))[0]]
        known = self._traced.debug.arg_names
        rows = []
        for i, (x, want) in enumerate(zip(leaves, self._traced.avals)):
            have = x.aval if isinstance(x, Ref) else as_array(x).aval
            if have.shape != want.shape or have.dtype != want.dtype:
                name = known[i] if i < len(known) else names[i]
                rows.append(f"Argument '{name}' compiled with {want.str_short()} and called with {have.str_short()}")
        return (
            f"Argument types differ from the types for which the computation {self._traced.name} was compiled. "
            "The mismatches are:\n" + "\n".join(rows) + "\nConvert the arguments, or compile for their types."
        )

    def _repr_html_(self) -> str:
        return _showing.compiled(self)

    def as_text(self, *, debug_info: bool = False) -> str:
        """The program after XLA's optimisations.

        Args:
            debug_info: write, with each instruction, the line of the user's program; the program is
                compiled once more for that.
        """
        program = self._program
        if debug_info:
            program = _lines.lined(self._traced, tuple(self._operand_places() or ())).program
        return program.executable.hlo_text()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates: 'flops', 'bytes accessed', ..."""
        return self._program.executable.cost_analysis()

    def memory_analysis(self):
        """Bytes of arguments, results, temporaries and code, as attributes `..._size_in_bytes`."""
        return self._program.executable.memory_analysis()

    def runtime_executable(self) -> Any:
        """XLA's executable object."""
        return self._program.executable.loaded

    @property
    def out_info(self):
        """A `ShapeDtypeStruct` for each result, with its sharding where devices were chosen."""
        if self._program.home is None:
            return super().out_info
        return self.out_tree.unflatten([struct_of(a, s) for a, s in zip(self._result_avals(), self._shardings()[1])])

    @property
    def input_shardings(self):
        """The shardings in which the program takes its arguments, as `(args, kwargs)`."""
        return self.in_tree.unflatten(self._shardings()[0])

    @property
    def output_shardings(self):
        """The shardings of the results."""
        return self.out_tree.unflatten(self._shardings()[1])

    @property
    def input_formats(self):
        """The memory layouts in which the program takes its arguments, as `(args, kwargs)`."""
        traced, orders = self._traced, self._program.orders.ins
        known = dict(zip(traced.operands, orders[len(traced.consts) :]))
        return self.in_tree.unflatten(
            [
                Format(layout_in(known.get(i), a.ndim), s)
                for i, (a, s) in enumerate(zip(traced.avals, self._shardings()[0]))
            ]
        )

    @property
    def output_formats(self):
        """The memory layouts of the results."""
        avals = self._traced.jaxpr.out_avals
        orders = self._program.orders.outs
        return self.out_tree.unflatten(
            [Format(layout_in(o, a.ndim), s) for o, a, s in zip(orders, avals, self._shardings()[1])]
        )

    def _shardings(self) -> tuple[list, list]:
        """The shardings of all arguments, and of all results."""
        traced, program, n = self._traced, self._program, self.out_tree.num_leaves
        here: Any = SingleDeviceSharding(program.executable.device)
        if program.home is None:
            return [here] * self.in_tree.num_leaves, [here] * n
        known = dict(zip(traced.operands, program.in_shardings[len(traced.consts) :]))
        ins = [known.get(i, here) for i in range(self.in_tree.num_leaves)]
        return ins, list(program.executable.out_shardings)[:n]


_PLURAL = {"type": "types", "keys": "keys", "length": "lengths", "data": "metadata"}


def _key_difference(was, now, path) -> str:
    """The keys that only one of two dicts has, at the same path in two trees."""
    for key in path:
        name = key.key if hasattr(key, "key") else key.idx if hasattr(key, "idx") else key.name
        step = getattr if hasattr(key, "name") else operator.getitem
        was, now = step(was, name), step(now, name)
    sides = (("missing", set(was) - set(now)), ("unexpected", set(now) - set(was)))
    return ": " + ", ".join([f"{what} {', '.join(sorted(map(repr, keys)))}" for what, keys in sides if keys])


CompilerOptions = dict[str, Any]
