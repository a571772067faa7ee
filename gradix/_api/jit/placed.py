"""Signatures of jitted functions with arguments or results on chosen devices or several devices."""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradix._api.constraints import with_layout_constraint, with_sharding_constraint
from gradix._api.devices import local_devices
from gradix._api.jit import donation
from gradix._api.jit.traced import Traced
from gradix._api.placing import as_sharding, placed
from gradix._base import config as _config
from gradix._base.lazy import lazy_module
from gradix._base.tree import flatten_axes, numbered, tree_flatten as flatten, tree_map
from gradix._core.array import ArrayImpl, as_array
from gradix._core.array_layouts import AutoLayout, Format, Layout, layout_in, order_in
from gradix._core.aval import located, within
from gradix._core.effects import MeshEffect
from gradix._core.jaxpr import ClosedJaxpr, Var
from gradix._core.mesh import AbstractMesh, Mesh
from gradix._core.named_sharding import IndivisibleError, NamedSharding, parts_of
from gradix._core.operators import Array
from gradix._core.refs import AbstractRef
from gradix._core.sharding import PartitionSpec, Placement, Sharding, SingleDeviceSharding
from gradix._ops.sharding import layout_constraint_p
from gradix._runtime import xla
from gradix._runtime.placement import Home, Orders, Sides, abstract_home, check_move, committed, home_of, order_of
from gradix._runtime.program import Program, lower

_options = _config.state
_budget = lazy_module("gradix._api.costs.budget")


class WholeOnMesh:
    """Stands for the empty spec where a mesh is in force, and for no sharding where none is."""

    __slots__ = ()


WHOLE_ON_MESH = WholeOnMesh()


class Shardings:
    """The shardings of arguments and results that the options of `jit` request."""

    __slots__ = ("ins", "outs", "_device", "_backend")

    def __init__(self, ins, outs, device, backend=None):
        self.ins, self.outs = tuple(ins) if isinstance(ins, list) else ins, outs
        self._device, self._backend = device, backend

    @property
    def device(self):
        """The device asked for, or the first of the platform asked for; None without either."""
        if self._device is None and self._backend is not None:
            self._device = local_devices(backend=self._backend)[0]
        return self._device

    def of_arguments(self, name: str, in_tree, avals, arg_names) -> list[Sharding | None]:
        """A sharding for each leaf of the arguments.

        Raises:
            ValueError: there are keyword arguments beside shardings, or a leaf cannot be divided
                as its sharding says.
        """
        given = self._of_leaves(name, in_tree, avals)
        return [_fitting("arguments", n, a, s) for n, a, s in zip(_padded(arg_names, len(avals)), avals, given)]

    def layouts_of_arguments(self, name: str, in_tree, avals) -> list[Layout | AutoLayout | None]:
        """The layout requested for each leaf of the arguments."""
        return [getattr(s, "layout", None) for s in self._of_leaves(name, in_tree, avals)]

    def _of_leaves(self, name: str, in_tree, avals) -> list:
        """What `in_shardings` says of each leaf of the arguments."""
        if self.ins is None:
            return [None] * len(avals)
        args, kwargs = numbered(in_tree)
        if kwargs:
            raise ValueError(
                f"pjit does not support kwargs when in_shardings is specified: {name} was called with "
                f"{', '.join(kwargs)} by keyword. Pass them by position."
            )
        if isinstance(self.ins, tuple) and len(self.ins) != len(args):
            raise ValueError(
                "pjit in_shardings specification must be a tree prefix of the positional arguments "
                f"tuple. In particular, you're passing in a tuple of length {len(self.ins)} for "
                f"{len(args)} positional arguments of {name}."
            )
        return flatten_axes("jit in_shardings", in_tree, (self.ins, None))

    def of_results(self, out_tree, avals) -> list[Sharding | None]:
        """A sharding for each leaf of the results."""
        if self.outs is None:
            return [None] * len(avals)
        given = flatten_axes("jit out_shardings", out_tree, self.outs)
        own = [_fitting("outputs", f"result[{i}]", a, s) for i, (a, s) in enumerate(zip(avals, given))]
        return own + [None] * (len(avals) - len(own))  # of checks and mutable arrays

    def layouts_of_results(self, out_tree, avals) -> list[Layout | AutoLayout | None]:
        """The layout requested for each leaf of the results."""
        if self.outs is None:
            return [None] * len(avals)
        own = [getattr(s, "layout", None) for s in flatten_axes("jit out_shardings", out_tree, self.outs)]
        return own + [None] * (len(avals) - len(own))

    def putting(self, name: str, in_tree, avals, names) -> Callable[[list, Any], list]:
        """A function that moves arrays to where they are asked to be.

        `put(arrays, None)` moves the arguments, of which those that are refs are left out, and
        `put(arrays, out_tree)` moves results.
        """
        there = None if self.device is None else SingleDeviceSharding(self.device)
        wanted = self.of_arguments(name, in_tree, avals, names)
        ins = [
            (s or there, w)
            for s, w, a in zip(wanted, self.layouts_of_arguments(name, in_tree, avals), avals)
            if not isinstance(a, AbstractRef)
        ]

        def put(arrays, out_tree):
            out = ins
            if out_tree is not None:
                types = [x.aval for x in arrays]
                out = list(zip(self.of_results(out_tree, types), self.layouts_of_results(out_tree, types)))
            moved = _laid_out([_put(x, s) for x, (s, _) in zip(arrays, out)], [w for _, w in out])
            return [*moved, *arrays[len(out) :]]

        return put


def _put(x: Array, sharding: Sharding | None) -> Array:
    """An array where it is asked to be; a traced one gets a constraint."""
    if sharding is None:
        return x
    if type(x) is not ArrayImpl:
        return with_sharding_constraint(x, sharding)
    _check_same(x.aval, sharding)
    return placed(x, sharding)


def _constrained(arrays, shardings, layouts) -> list:
    arrays = [x if s is None else with_sharding_constraint(x, s) for x, s in zip(arrays, shardings)]
    return _laid_out(arrays, layouts)


def _laid_out(arrays, layouts) -> list:
    return [with_layout_constraint(x, w) if isinstance(w, Layout) else x for x, w in zip(arrays, layouts)]


def _padded(names, n: int) -> list[str]:
    return [*names[:n], *[f"number {i}" for i in range(len(names), n)]]


def _fitting(what: str, name: str, aval, given) -> Sharding | None:
    if isinstance(given, (Layout, AutoLayout)):
        raise ValueError(
            "`jit` does not accept device-local layouts directly. Create a `Format` instance wrapping "
            f"this device-local layout and pass that to `jit` instead. Got {given}."
        )
    if isinstance(given, Format):
        if isinstance(given.layout, Layout):
            try:
                given.layout.check_compatible_aval(aval.shape)
            except (ValueError, NotImplementedError) as e:
                raise type(e)(
                    f"One of jit {what} with pytree key path {name} is incompatible with its layout "
                    f"annotation {given.layout}: {e}"
                ) from None
        given = given.sharding
    if isinstance(given, WholeOnMesh):
        mesh = _options.gradix_mesh
        given = PartitionSpec() if mesh is not None and mesh.axis_names else None
    if given is None:
        return None
    _check_kind("in_shardings" if what == "arguments" else "out_shardings", given)
    sharding = as_sharding(given, "jit")
    head = f"One of pjit {what} with pytree key path {name} was given the sharding of {sharding}, which"
    n_entries = len(getattr(sharding, "spec", ()))
    if n_entries > aval.ndim:
        raise ValueError(
            f"{head} is only valid for values of rank at least {n_entries}, but was applied to a "
            f"value of rank {aval.ndim}"
        )
    factors: Any = getattr(sharding, "factors", None)
    for i, (n, f) in enumerate(zip(aval.shape, factors(aval.ndim) if factors is not None else ())):
        if type(n) is int and n % f:
            raise IndivisibleError(
                f"{head} implies that the global size of its dimension {i} should be divisible by {f}, "
                f"but it is equal to {n} (full shape: {aval.shape}). Pad the axis to a multiple of {f}, or "
                "divide another one."
            )
    return sharding


def _check_leaf(which: str, given) -> None:
    """Raise for a value that is neither sharding nor device, and for a sharding that leaves an axis open."""
    if isinstance(given, (Format, Layout, AutoLayout, WholeOnMesh)) or given is None:
        return
    if not isinstance(given, (Sharding, PartitionSpec)) and not hasattr(given, "device_kind"):
        raise TypeError(
            f"{which} leaf specifications are expected to be PartitionSpec instances or None, or Shardings, "
            f"but got {given!r} of type {type(given).__name__}."
        )
    spec = given if isinstance(given, PartitionSpec) else getattr(given, "spec", ())
    if any(p is PartitionSpec.UNCONSTRAINED for p in spec):
        raise ValueError(
            f"Unconstrained dims are not allowed in {which} of jit: got {given}. Leave the choice to the compiler with "
            "None in place of the sharding, or constrain a value inside of the function with "
            "gradix.lax.with_sharding_constraint."
        )


def _check_kind(which: str, given) -> None:
    """Raise for a value that is no sharding, and for a spec without a mesh."""
    _check_leaf(which, given)
    mesh = _options.gradix_mesh
    if isinstance(given, PartitionSpec) and (mesh is None or not mesh.axis_names):
        raise RuntimeError(
            f"jit requires a non-empty mesh in context if you are passing `PartitionSpec`s to {which}: got "
            f"{given}. You can define a context mesh via `gradix.set_mesh(mesh)`. Alternatively, provide "
            "`Sharding`s, such as NamedSharding(mesh, spec)."
        )


class Plan(NamedTuple):
    """Where a program runs, None standing for the first device, and how it takes arguments and gives results."""

    home: Home | None
    in_shardings: list
    out_shardings: list
    orders: Orders


class Placing:
    """The programs of a signature, one for each placement of its arguments.

    Attributes:
        traced: the signature.
        asked: the shardings that the options of `jit` request.
        in_tree: the tree of the arguments.
        budget: the most bytes for temporaries on a device, where the trace does not keep to it.
        programs: the programs, by the types of the arguments with their places.
    """

    __slots__ = ("_traced", "asked", "in_tree", "budget", "programs")

    def __init__(self, traced: Traced, asked: Shardings | None, in_tree, budget: int | None = None):
        self._traced, self.asked, self.in_tree, self.budget = weakref.ref(traced), asked, in_tree, budget
        self.programs: dict = {}

    @property
    def traced(self) -> Traced:
        return self._traced()  # type: ignore[return-value]  # it holds this object

    def of(self, traced: Traced) -> Placing:
        """The same for another signature of these arguments."""
        return Placing(traced, self.asked, self.in_tree, self.budget)

    def run(self, args):
        """Call the program for the places of these operands."""
        traced, key = self.traced, tuple([x.aval for x in args])
        program = self.programs.get(key)
        if program is None:
            with traced.owner.log.lock:
                program = self.programs.get(key)
                if program is None:
                    self._check_layouts(key)
                    program = self.programs.setdefault(key, self._make(key))
        if program is _ORDINARY:
            return traced.unplaced(args)
        return traced.execute(program, args)

    def _wanted(self) -> list[Sharding | None]:
        """The sharding requested for each operand but the constants."""
        traced = self.traced
        if self.asked is None:
            return [None] * len(traced.operands)
        names = traced.debug.arg_names
        leaves = self.asked.of_arguments(traced.name, self.in_tree, traced.avals, names)
        return [None if i is None else leaves[i] for i in traced.operands]

    def constrained(self, args) -> list:
        """The operands with the constraints that `in_shardings` names, for a call inside of another program."""
        return _constrained(args, self._wanted(), self._layouts())

    def constrained_results(self, outs) -> list:
        assert self.asked is not None
        wanted = self.asked.of_results(self.traced.out_tree, [x.aval for x in outs])
        return _constrained(outs, wanted, self.asked.layouts_of_results(self.traced.out_tree, [x.aval for x in outs]))

    def _layouts(self) -> list[Layout | AutoLayout | None]:
        """The layout requested for each operand but the constants."""
        traced = self.traced
        if self.asked is None:
            return [None] * len(traced.operands)
        asked = self.asked.layouts_of_arguments(traced.name, self.in_tree, traced.avals)
        return [None if i is None else asked[i] for i in traced.operands]

    def plan(self, avals) -> Plan:
        """The devices to run on, and the requested shardings and orders of inputs and of results.

        Args:
            avals: the types of the operands, with their places.
        """
        home, ins, outs = self._devices(avals)
        orders = self._orders(avals)
        if home is None or home.mesh is None:  # over several devices XLA picks the results that take memory
            _check_donated(self.traced, orders)
        return Plan(home, ins, outs, orders)

    def _orders(self, avals) -> Orders:
        """The orders of axes: those asked for, else those in which arguments are."""
        traced, consts = self.traced, [order_of(c.aval) for c in self.traced.consts]
        outs = constrained_layouts(traced.jaxpr)
        if self.asked is None:
            return Orders([*consts, *map(order_of, avals)], list(map(order_in, outs)))
        wanted = self._layouts()
        outs = [w or o for w, o in zip(self.asked.layouts_of_results(traced.out_tree, traced.jaxpr.out_avals), outs)]
        ins = [order_of(a) if w is None else order_in(w) for a, w in zip(avals, wanted)]
        return Orders([*consts, *ins], list(map(order_in, outs)))

    def _check_layouts(self, avals) -> None:
        """Raise for arguments that are committed in another layout than `in_shardings` asks for."""
        for wanted, a in zip(self._layouts(), avals):
            if wanted is None or a.place is None or not a.place.is_committed:
                continue
            have = layout_in(a.place.order, a.ndim)
            if isinstance(wanted, AutoLayout):
                instead = (
                    "The layout given to jit is Layout.AUTO, but the argument is an array with a layout of its own: "
                    "lower the function for gradix.ShapeDtypeStruct arguments, compile it, and put the array with "
                    "device_put into the format that the compiled function's input_formats names."
                )
            elif wanted.major_to_minor != have.major_to_minor:
                instead = "Put the argument into that layout first: gradix.device_put(x, Format(layout, sharding))."
            else:
                continue
            raise ValueError(
                f"Layout passed to jit does not match the layout on the respective arg. Got jit layout: {wanted},\n"
                f"arg layout: {have} for arg type: {a.plain.str_short()}. {instead}"
            )

    def _devices(self, avals) -> tuple[Home | None, list, list]:
        """The devices to run on, and the requested shardings of inputs and of results."""
        traced, ins = self.traced, self._wanted()
        n, names = len(traced.consts), _padded(traced.debug.arg_names, len(traced.avals))
        outs: list[Sharding | None] = [None] * len(traced.jaxpr.out_avals)
        if self.asked is not None:
            outs = self.asked.of_results(traced.out_tree, traced.jaxpr.out_avals)
        named = [
            (
                f"a mutable array of shape {a.plain.str_short()} captured by {traced.name}"
                if i is None
                else f"argument {names[i]} of {traced.name} with shape {a.plain.str_short()}",
                a.place.sharding,
            )
            for i, a in zip(traced.operands, avals)
            if a.place is not None and a.place.is_committed
        ]
        named += [
            (f"an array of shape {c.aval.plain.str_short()} captured by {traced.name}", c.aval.place.sharding)
            for c in traced.consts
            if type(c) is ArrayImpl and c.aval.place is not None and c.aval.place.is_committed
        ]
        named += [(f"in_shardings of {traced.name}", s) for s in ins if s is not None]
        named += [(f"out_shardings of {traced.name}", s) for s in outs if s is not None]
        if self.asked is not None and self.asked.device is not None:
            # whatever lies elsewhere is moved there
            there = SingleDeviceSharding(self.asked.device)
            named = [(f"the device of {traced.name}", there)]
            home = home_of(named, traced.jaxpr.effects, traced.name)
            return home, [there] * (n + len(avals)), outs
        for a, s in zip(avals, ins):
            _check_same(a, s)
        home = home_of(named, traced.jaxpr.effects, traced.name)
        return home, [*[None] * n, *ins], outs

    def _make(self, avals, options: dict | None = None) -> Any:
        home, ins, outs, orders = self.plan(avals)
        is_committed = True
        if home is None:
            device = xla.default_device()
            place = next((a.place for a in avals if a.place is not None), None)
            if place is None and device is not None and device is not xla.local_devices()[0]:
                place = Placement(SingleDeviceSharding(device), False)
            chosen = None if place is None else place.device
            if chosen is None and self.budget is None and orders.are_usual:
                return _ORDINARY
            home, is_committed = Home((chosen or xla.local_devices()[0],), None), False
        elif (
            self.asked is self.budget is None
            and home == Home((xla.local_devices()[0],), None)
            and not any(a.place is not None for a in avals)
            and not any(type(e) is MeshEffect for e in self.traced.jaxpr.effects)
            and orders.are_usual
        ):
            return _ORDINARY
        start = time.perf_counter()
        donated = self.traced.donated_inputs
        closed = self.traced.simplified()
        every = [*[c.aval for c in self.traced.consts], *avals]
        make = functools.partial(
            Program,
            name=self.traced.name,
            home=home,
            avals=every,
            in_shardings=ins,
            out_shardings=outs,
            orders=orders,
            donated=donated,
            keep_unused=self.traced.keep_unused,
            compiler_options={**(self.traced.compiler_options or {}), **(options or {})} or None,
        )
        if self.budget is not None:
            closed = _budget.within(self.traced.jaxpr, self.budget, self.traced.name, make)
        program = make(closed)
        if donated:
            donation.check(program.lowered, self.traced)
        if not is_committed:
            program.uncommit()
        self.traced.owner.log.compiled(time.perf_counter() - start, program.is_loaded)
        return program

    def program_for(self, avals: tuple, compiler_options: dict | None = None):
        """The program for arguments of these types and places; None for the unplaced program."""
        if compiler_options:
            program = self._make(avals, compiler_options)
            return None if program is _ORDINARY else program
        program = self.programs.get(avals)
        if program is None:
            program = self.programs[avals] = self._make(avals)
        return None if program is _ORDINARY else program

    def made_for(self, avals: tuple) -> Program | None:
        """The program for arguments of these types and places, if it has been made."""
        found = self.programs.get(avals)
        return self.traced.program if found is _ORDINARY else found

    def fitted(self, program: Program, args, avals) -> list:
        """The operands, moved to where the compiled program takes them.

        Raises:
            ValueError: an argument is committed to other devices, or in another layout.
        """
        out, n = [], len(self.traced.consts)
        check_layouts(self.traced, args, program.orders.ins[n:])
        for x, want, sharding, order in zip(args, avals, program.in_shardings[n:], program.orders.ins[n:]):
            x = as_array(x) if not isinstance(x, Array) else x
            if type(x) is ArrayImpl and x.aval is not want:
                _check_same(x.aval, sharding)
                if want.place is not None:
                    check_move(x, sharding)
                x = placed(x, sharding, order) if want.place is not None else unplaced(x)
            out.append(x)
        return out

    def lowered(self, avals, places: bool = False, platform: str | None = None):
        """The module for arguments of these types; `platform` is that of devices still to be named."""
        called = self.programs.get(tuple(avals))
        if type(called) is Program and self.budget is platform is None and not places:
            return called.lowered  # a call has lowered it
        home, ins, outs, orders = self.plan(avals)
        context = _options.gradix_mesh
        if platform is not None and isinstance(context, AbstractMesh) and not context.empty:
            if home is None:
                home = abstract_home(context)
            elif home.mesh is not None and home.mesh.size != context.size:
                raise ValueError(
                    f"the mesh in force, {context}, should match that of the shardings of {self.traced.name}, "
                    f"{home.mesh}. Enter a mesh of as many devices."
                )
        if home is None and not orders.are_usual:
            home = Home((xla.default_device() or xla.local_devices()[0],), None)
        if home is None:
            return None
        if home.is_abstract and platform is None:
            raise ValueError(
                f"Passing lowering_platforms to .lower is required, since {self.traced.name} has shardings on an "
                f"AbstractMesh, {home.mesh}, which has no devices: write "
                "f.trace(...).lower(lowering_platforms=('cpu',))."
            )
        options: dict = {} if platform is None else {"platform": platform}
        own = [
            w if w is not None else a.place.sharding if a.place is not None else None
            for w, a in zip(ins, [*[c.aval for c in self.traced.consts], *avals])
        ]
        return lower(
            self.traced.simplified(),
            self.traced.name,
            home,
            Sides(own, outs, None if orders.are_usual else orders),
            donated=self.traced.donated_inputs,
            keep_unused=self.traced.keep_unused,
            places=places,
            **options,
        )

    def on_devices(self, avals, devices: tuple) -> tuple[Placing, list]:
        """The same, and the operands' types, for shardings on an AbstractMesh that get these devices.

        Raises:
            ValueError: the mesh has another number of devices.
        """

        def there(s):
            mesh = getattr(s, "mesh", None)
            if not isinstance(mesh, AbstractMesh):
                return s
            if mesh.size != len(devices):
                raise ValueError(
                    f"The size of abstract mesh {mesh.size} in {s} must match the length of device assignment: "
                    f"{len(devices)}."
                )
            placed_on = Mesh(np.array(devices, dtype=object).reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)
            return NamedSharding(placed_on, s.spec, memory_kind=s._memory_kind)

        asked = self.asked
        if asked is not None:
            ins, outs = [tree_map(there, x, is_leaf=lambda s: s is None) for x in (asked.ins, asked.outs)]
            asked = Shardings(ins, outs, asked._device, asked._backend)
        types = [
            a
            if a.place is None
            else located(a.plain, committed(there(a.place.sharding), a.place.order), a.vma, a.division)
            for a in avals
        ]
        return Placing(self.traced, asked, self.in_tree, self.budget), types


_ORDINARY = object()  # everything is on the first device


def _check_same(aval, wanted: Sharding | None) -> None:
    if wanted is None or aval.place is None or not aval.place.is_committed:
        return
    have = aval.place.sharding
    if have == wanted or any(isinstance(getattr(s, "mesh", None), AbstractMesh) for s in (have, wanted)):
        return
    if have.device_set == wanted.device_set and parts_of(have, aval.ndim)[:2] != parts_of(wanted, aval.ndim)[:2]:
        raise ValueError(
            "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: "
            f"{wanted},\narg sharding: {have} for arg type: {aval.plain.str_short()}. Put the argument "
            "there first, with device_put."
        )


def constrained_layouts(closed: ClosedJaxpr) -> list[Layout | None]:
    """The layouts of those results of a program that its layout constraints give."""
    made = {e.outvars[0]: e.params["layout"] for e in closed.eqns if e.primitive is layout_constraint_p}
    return [made.get(v) if type(v) is Var else None for v in closed.jaxpr.outvars]


def check_layouts(traced: Traced, args, orders) -> None:
    """Raise for arrays that lie on devices in another order than that in which a compiled program takes them.

    Raises:
        ValueError: there are such arrays.
    """
    wrong = [
        (i, x, order)
        for i, x, order in zip(traced.operands, args, orders)
        if type(x) is ArrayImpl and (place := x.aval.place) is not None and place.is_committed and place.order != order
    ]
    if not wrong:
        return
    names = _padded(traced.debug.arg_names, len(traced.avals))
    rows = [
        f"Argument {'that was captured' if i is None else names[i]} with shape {x.aval.plain.str_short()}:\n"
        f"  Passed layout: {layout_in(x.aval.place.order, x.ndim)}\n  Required layout: {layout_in(order, x.ndim)}"
        for i, x, order in wrong
    ]
    raise ValueError(
        "Computation was compiled for input layouts that disagree with the layouts of arguments passed to it. "
        f"Here are the {len(rows)} mismatches:\n" + "\n".join(rows) + "\nPut the arguments into the formats that the "
        "compiled function's input_formats names, with gradix.device_put(x, format)."
    )


def _check_donated(traced: Traced, orders: Orders) -> None:
    """Raise where XLA chooses the layout of an argument given away, but of no result for it, or the reverse."""
    if orders.are_usual:
        return
    outs = [(a.shape, a.dtype, isinstance(o, AutoLayout)) for a, o in zip(traced.jaxpr.out_avals, orders.outs)]
    for i in traced.donated_inputs:
        aval, is_open = traced.jaxpr.in_avals[i], isinstance(orders.ins[i], AutoLayout)
        fitting = {o for shape, dtype, o in outs if shape == aval.shape and dtype == aval.dtype}
        if fitting == {not is_open}:
            own, other, side = ("AUTO", "None", "output") if is_open else ("None", "AUTO", "input")
            raise ValueError(
                f"Input layout being donated was {own} while output layout was {other} in {traced.name}, so that no "
                f"result can take the memory of {aval.str_short()}. Did you mean to set the **{side} layout** to "
                "**Layout.AUTO**? Then the compiler chooses both."
            )


def unplaced(x):
    """The array without its place, for programs on the first device."""
    return ArrayImpl(x.host, x.aval.plain) if type(x) is ArrayImpl and x.aval.place is not None else x


def shardings_of(ins, outs, device, backend=None) -> Shardings | None:
    """The shardings that the options of `jit` request; None where there are none.

    Raises:
        ValueError: both a device and shardings are given, or a device and a backend, or a sharding leaves
            the division of an axis open.
        TypeError: a leaf of the shardings is something else.
    """
    if ins is None and outs is None and device is None and backend is None:
        return None
    if device is not None and backend is not None:
        raise ValueError(
            f"jit can't specify both a device and a backend: got device={device} and backend={backend!r}. A device is "
            "of one backend, so name the device alone."
        )
    if (device is not None or backend is not None) and (ins is not None or outs is not None):
        raise ValueError(
            "If backend or device is specified on jit, then in_shardings should not be specified, nor "
            "out_shardings: shardings name their devices."
        )
    for which, asked in (("in_shardings", ins), ("out_shardings", outs)):
        for given in flatten(asked, lambda s: s is None)[0]:
            _check_leaf(which, given)
    return Shardings(ins, outs, device, backend)


class WithoutPlace:
    """Stands for an array's type without its place."""

    __slots__ = ("aval",)

    def __init__(self, x):
        self.aval = x.aval if x.aval.place is None else within(x.aval)
