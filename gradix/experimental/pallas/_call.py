"""`pallas_call`: kernels on references to blocks, run for each program of a grid."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradix import numpy as jnp
from gradix._api.arguments import Names, name_of, place_of
from gradix._api.boundary import arrays
from gradix._api.jit.jit import jit
from gradix._api.tracing import called
from gradix._base.config import trace_context
from gradix._base.tracebacks import boundary
from gradix._base.tree import equality_errors, keystr, tree_flatten, tree_flatten_with_path, tree_structure
from gradix._control.kernel_call import pallas_call_p
from gradix._control.program_interning import interned
from gradix._core.aval import ShapedArray
from gradix._core.dtypes import requested_dtype
from gradix._core.jaxpr import Jaxpr
from gradix._core.refs import AbstractRef
from gradix._core.trace import bind
from gradix._transforms.staging import hoist, stage_open, stage_with_refs
from gradix.experimental.pallas._checking import Record, note
from gradix.experimental.pallas._contents import Contents, memory_of
from gradix.experimental.pallas._joining import joined
from gradix.experimental.pallas._kernels import Kernel
from gradix.experimental.pallas._memory import as_memory, is_scratch, memory_ref
from gradix.experimental.pallas._orders import order_of
from gradix.experimental.pallas._programs import program
from gradix.experimental.pallas._races import check_parallel
from gradix.experimental.pallas._refs import KernelRef
from gradix.experimental.pallas._remote import untracked
from gradix.experimental.pallas._running import run
from gradix.experimental.pallas._simulation import check_revisits, simulating
from gradix.experimental.pallas._skipping import without_arithmetic
from gradix.experimental.pallas._specs import BlockSpec, GridSpec, no_block_spec
from gradix.experimental.pallas._windows import INDEX, Window

_INDEX_TYPE = ShapedArray((), INDEX)


@boundary
def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] = {},
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """A function that runs a kernel for each program of a grid, on blocks of its arguments and results.

    Programs run as if one after another, the last axis of the grid fastest. Where each is shown to
    write blocks of its own, they run side by side. The function can be differentiated, mapped and
    jitted as any other.

    Args:
        kernel: a function of references: to the prefetched scalars, to a block of each argument and
            of each result, and to scratch memory. It returns None.
        out_shape: the types of the results, a pytree; of a tuple or list, each entry is an argument
            of the kernel.
        grid_spec: the grid, specs and scratch shapes in one; the arguments of these names are then
            left out.
        grid: the number of programs along each axis. An int stands for one axis; sizes may be
            traced or symbolic, and pairs of a name and a size name the axes. `()` is one program.
        in_specs, out_specs: a `BlockSpec` for each argument and result, as trees; without one, the
            block is the whole array.
        scratch_shapes: places of memory, such as `pltpu.VMEM((8, 128), jnp.float32)`; a dict gives
            them to the kernel by name. A program finds there what the one before it left.
        input_output_aliases: from the number of an argument to that of a result, which begins with
            the argument's values.
        debug: whether to print the traced kernel.
        interpret: kernels are compiled in any case. Parameters such as `pltpu.InterpretParams()` ask for
            checks that blocks and indices are in bounds, and say what memory holds at first.
        name: the name of the call in printed programs.
        compiler_params, cost_estimate, metadata: accepted; they have no effect here, but that
            `pltpu.InterpretParams(detect_races=True)` looks at which axes are called parallel.

    Returns:
        A function from arrays to results of the types `out_shape`. Elements that no program writes
        are NaN, of integers the smallest number, and false.

    Raises:
        ValueError: specs do not fit the arguments, an index map returns something other than
            integers, the kernel returns something, or aliases differ in type.
        TypeError: the kernel does not take the references that there are.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def add(x, y, o):
        ...     o[...] = x[...] + y[...]
        >>> block = pl.BlockSpec((2,), lambda i: (i,))
        >>> add_vectors = pl.pallas_call(
        ...     add, out_shape=gradix.ShapeDtypeStruct((6,), jnp.float32),
        ...     grid=(3,), in_specs=[block, block], out_specs=block,
        ... )
        >>> add_vectors(jnp.arange(6.0), jnp.ones(6))
        Array([1., 2., 3., 4., 5., 6.], dtype=float32)
        >>> gradix.grad(lambda x: (add_vectors(x, x) ** 2).sum())(jnp.ones(6))
        Array([8., 8., 8., 8., 8., 8.], dtype=float32)
    """
    if not callable(kernel):
        raise TypeError(f"pallas_call: the kernel must be a function of references, got {kernel!r}.")
    if grid_spec is None:
        spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        _check_unused(grid, in_specs, out_specs, scratch_shapes)
        spec = grid_spec
    if not isinstance(spec, GridSpec):
        raise TypeError(
            f"grid_spec must be a pl.GridSpec or a pltpu.PrefetchScalarGridSpec, got {spec!r} of type "
            f"{type(spec).__name__}."
        )
    if not (name is None or isinstance(name, str)):
        raise TypeError(f"the name of a pallas_call must be a string, got {name!r} of type {type(name).__name__}.")
    if not (spec.in_specs is no_block_spec or isinstance(spec.in_specs, (tuple, list))):
        raise ValueError(
            f"`in_specs` must be a tuple or a list, with an entry for each argument, got {spec.in_specs!r}. Write "
            "in_specs=[spec]."
        )
    simulated = interpret if hasattr(interpret, "uninitialized_memory") else None
    call = _Call(
        kernel, out_shape, spec, _aliases(input_output_aliases), name, simulated=simulated, params=compiler_params
    )

    @boundary
    def wrapped(*args, **named):
        if named:
            raise TypeError(
                f"the pallas_call of {call.where} takes its arguments by position, got {', '.join(named)} by name."
            )
        return call(args, debug)

    if simulated is not None:
        wrapped = jit(wrapped, check="index")
    wrapped.__name__ = wrapped.__qualname__ = call.name
    wrapped.__doc__ = f"The kernel {call.name}, run for each program of the grid {spec.grid}."
    return wrapped


def _check_unused(grid, in_specs, out_specs, scratch_shapes) -> None:
    """Raise if what a grid spec holds is given beside one."""
    for what, value, default in (
        ("grid", grid, ()),
        ("in_specs", in_specs, no_block_spec),
        ("out_specs", out_specs, no_block_spec),
        ("scratch_shapes", scratch_shapes, ()),
    ):
        if value is not default and value != default:
            raise ValueError(
                f"If `grid_spec` is specified, then `{what}` must be `{default!r}`. It is {value}. Give it to the "
                "grid spec."
            )


def _aliases(given: Any) -> dict[int, int]:
    """`input_output_aliases` as a dict, which may be given as pairs."""
    try:
        found: dict[Any, Any] = dict(given)
    except (TypeError, ValueError):
        found = {None: None}
    for number in (*found, *found.values()):
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise TypeError(
                "input_output_aliases must go from the numbers of arguments to those of results, such as {0: 0}, got "
                f"{given!r}."
            )
    return found


class _Call:
    """A kernel with its grid and specs, to be applied to arguments."""

    def __init__(
        self, kernel, out_shape, spec: GridSpec, aliases: dict, name: str | None, *, simulated: Any, params: Any
    ):
        self.kernel, self.spec, self.aliases = kernel, spec, aliases
        self.simulated, self.compiler_params = simulated, params
        self.contents = Contents()
        if simulated is not None:
            number = "zero" if simulated.uninitialized_memory == "zero" else "largest"
            self.contents = Contents(number, reads_beyond=simulated.out_of_bounds_reads == "uninitialized")
        self.name = name or name_of(kernel)
        self.where = f"{name_of(kernel)} at {place_of(kernel)}"
        self.is_many = isinstance(out_shape, (tuple, list))
        out_shape = tuple(out_shape) if isinstance(out_shape, list) else out_shape
        leaves, self.out_tree = tree_flatten(out_shape, lambda x: hasattr(x, "dtype"))
        self.out_avals = [_type_of(x, self.where) for x in leaves]
        paths = tree_flatten_with_path(self.out_tree.unflatten(range(len(leaves))))[0]
        self.out_names = [f"outputs{keystr(path)}" for path, _ in paths]
        self.programs: dict = {}  # of kernels that captured nothing

    def __call__(self, args, debug: bool):
        leaves, in_tree = tree_flatten(args)
        leaves = arrays("pallas_call", leaves, in_tree, "args")
        key = (in_tree, tuple([x.aval for x in leaves]), trace_context())
        found = self.programs.get(key)
        if found is None:
            with memory_of(self.contents), simulating(self.simulated):
                params, consts, given, back = self._program(args, in_tree, leaves, debug)
            if not (consts or given):
                self.programs[key] = params
        else:
            params, consts, given, back = found, [], [], []
        outs = bind(pallas_call_p, [*consts, *leaves, *given], params)
        k = len(self.out_avals)
        for ref, value in zip(back, outs[k:]):
            ref.write(value)
        return self.out_tree.unflatten(outs[:k])

    def _program(self, args, in_tree, leaves, debug: bool):
        """The parameters of the call, captured values, values of captured refs, and those it writes."""
        n = self.spec.num_scalar_prefetch
        if len(args) < n:
            raise ValueError(
                f"pallas_call of {self.where} prefetches {n} scalars, its first arguments, but got {len(args)} "
                "arguments."
            )
        num_prefetched = tree_structure(args[:n]).num_leaves
        grid = tuple([n if isinstance(n, int) else jnp.asarray(n).astype(INDEX) for n in self.spec.grid])
        prefetched = tree_structure(args[:n]).unflatten([_strong(x.aval) for x in leaves[:num_prefetched]])
        windows = self._windows(args, in_tree, leaves, prefetched, len(grid))
        self._check_aliases(leaves)
        check_revisits(windows[len(leaves) :], grid)
        check_parallel(windows[len(leaves) :], grid, self.compiler_params)
        kernel, given, back = self._traced(grid, windows, in_tree, num_prefetched)
        order = order_of(kernel, len(leaves), self.aliases, self.simulated, self.compiler_params)
        kernel = kernel._replace(order=order)
        if debug:
            print(f"The kernel {self.where}:\n{kernel.program}")

        own = kernel.consts
        n, num_in = len(own), len(leaves) + len(given)
        kept = [*range(num_in, num_in + len(self.out_avals)), *[w for w, _ in back]]

        def program_of(*xs):
            first = {o: xs[n + i] for i, o in self.aliases.items()}
            outs = run(kernel._replace(consts=list(xs[:n])), list(xs[n:]), first)
            return [outs[w] for w in kept]

        jaxpr, consts = stage_open(
            program_of, [x.aval for x in (*own, *leaves, *given)], Names(self.kernel, tree_structure(((), {})))
        )
        jaxpr = interned(joined(jaxpr))
        if not consts:
            first = {o: i for i, o in self.aliases.items()}
            note(jaxpr, Record(kernel._replace(consts=[]), self.name, n, first, kept))
        params = {
            "jaxpr": jaxpr,
            "name": self.name,
            "kernel": interned(kernel.program),
            "grid": tuple([n if isinstance(n, int) else None for n in grid]),
        }
        return params, [*consts, *own], given, [ref for _, ref in back]

    # -- blocks ------------------------------------------------------------------------------------

    def _windows(self, args, in_tree, leaves, prefetched, rank: int) -> list[Window]:
        n = self.spec.num_scalar_prefetch
        specs = [BlockSpec()] * tree_structure(args[:n]).num_leaves
        specs += _specs("in_specs", self.spec.in_specs, tree_structure(args[n:]), "inputs")
        out_specs = self.spec.out_specs
        specs += _specs("out_specs", out_specs, self.out_tree, "outputs")
        paths = tree_flatten_with_path(in_tree.unflatten(range(len(leaves))))[0]
        names = [f"args{keystr(path)}" for path, _ in paths] + self.out_names
        avals = [*[_strong(x.aval) for x in leaves], *self.out_avals]
        return [Window(name, aval, spec, rank, prefetched) for name, aval, spec in zip(names, avals, specs)]

    def _check_aliases(self, leaves) -> None:
        for i, o in self.aliases.items():
            for what, place, size in (("input", i, len(leaves)), ("output", o, len(self.out_avals))):
                if not 0 <= place < size:
                    raise ValueError(
                        f"input_output_aliases contains the mapping '{i}:{o}' with {what} index {place} outside "
                        f"the range [0, {size})."
                    )
            given, made = _strong(leaves[i].aval), self.out_avals[o]
            if given.shape != made.shape or given.dtype != made.dtype:
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}' referring to input of type "
                    f"{given.str_short()} and output {self.out_names[o]} of type {made.str_short()}, which must be "
                    "equal."
                )
        if len(set(self.aliases.values())) < len(self.aliases):
            raise ValueError(
                f"input_output_aliases {self.aliases} gives two inputs to one output. Each output can begin with one."
            )

    # -- the kernel --------------------------------------------------------------------------------

    def _traced(self, grid, windows, in_tree, num_prefetched: int):
        """The kernel as a program, the values of refs that it captured, and those that it writes."""
        scratch_leaves, scratch_tree = tree_flatten(self.spec.scratch_shapes, is_scratch)
        memories = [as_memory(x) for x in scratch_leaves]
        rank, k, num_in = len(grid), len(windows), in_tree.num_leaves
        spaces = [w.memory_space for w in windows]

        def function(*values):
            ids = values[:rank]
            refs = [KernelRef(AbstractRef(x.aval, space), x) for x, space in zip(values[rank : rank + k], spaces)]
            refs += [memory_ref(x, m.memory_space) for x, m in zip(values[rank + k :], memories)]
            args = [*in_tree.unflatten(refs[:num_in])]
            outs = self.out_tree.unflatten(refs[num_in:k])
            counts = len(args), len(outs) if self.is_many else 1
            args += outs if self.is_many else [outs]
            scratch = scratch_tree.unflatten(refs[k:])
            named = scratch if isinstance(scratch, dict) else {}
            args += [] if named else [*scratch] if isinstance(scratch, (tuple, list)) else [scratch]
            roles = (
                *["a reference to an argument"] * counts[0],
                *["one to a result"] * counts[1],
                *["one to scratch memory"] * (len(args) - sum(counts)),
            )
            kernel = functools.partial(self.kernel, **named) if named else self.kernel
            with program(ids, grid, self.spec.grid_names):
                returned = called("pallas_call", kernel, *args, roles=roles)
            if returned is not None:
                raise ValueError(
                    f"The kernel function in the pallas_call {self.where} should return None. It returns a PyTree: "
                    f"{tree_structure(returned)}. Write results to its references: o_ref[...] = value."
                )
            return [ref.read() for ref in refs]

        avals = [_INDEX_TYPE] * rank + [w.block for w in windows] + [m.inner_aval for m in memories]
        debug = Names(self.kernel, tree_structure(((), {})))
        with untracked():
            jaxpr, consts, captured = stage_with_refs(function, avals, debug)
        # references from outside are arguments, whose block is the whole array
        n = len(avals)
        ins = [*jaxpr.invars[: rank + num_in], *[r.var for r in captured], *jaxpr.invars[rank + num_in : n]]
        extra = [Window("a captured reference", r.ref.aval.inner_aval, BlockSpec(), rank, []) for r in captured]
        windows = [*windows[:num_in], *extra, *windows[num_in:]]
        written_refs = iter(jaxpr.outvars[n - rank :])
        last = [next(written_refs) if r.is_written else r.var for r in captured]
        outs = [*jaxpr.outvars[:num_in], *last, *jaxpr.outvars[num_in : n - rank]]
        written = [i for i, (v, o) in enumerate(zip(ins[rank:], outs)) if v is not o]
        whole = Jaxpr(jaxpr.constvars, ins, [outs[i] for i in written], jaxpr.eqns, jaxpr.effects, jaxpr.debug_info)
        closed, consts = hoist(whole, consts)
        if self.simulated is not None and self.simulated.skip_floating_point_ops:
            closed = without_arithmetic(closed)
        held, num_outputs = self.contents, k - num_in
        kernel = Kernel(closed, consts, grid, windows, memories, tuple(written), num_prefetched, num_outputs, held)
        back = [(num_in + i, r.ref) for i, r in enumerate(captured) if r.is_written]
        return kernel, [r.ref.read() for r in captured], back


def _strong(aval) -> ShapedArray:
    return ShapedArray(aval.shape, aval.dtype)


def _type_of(x, where: str) -> ShapedArray:
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise ValueError(
            f"out_shape of the pallas_call of {where} must hold types such as jax.ShapeDtypeStruct((8,), jnp.float32), "
            f"got {x!r}."
        )
    if any(isinstance(n, int) and n < 0 for n in x.shape):
        raise ValueError(f"out_shape of the pallas_call of {where} has a negative size: {tuple(x.shape)}.")
    return ShapedArray(tuple(x.shape), requested_dtype(x.dtype))


def _specs(what: str, specs, tree, values: str) -> list[BlockSpec]:
    """A block spec for each leaf of a tree of arguments or results."""
    if specs is no_block_spec or specs is None:
        return [BlockSpec()] * tree.num_leaves
    found, own = tree_flatten(specs, _is_spec)
    for x in found:
        if not _is_spec(x):
            raise TypeError(f"{what} must hold BlockSpecs, got {x!r} of type {type(x).__name__}.")
    if own != tree:
        lines = _differences(what, own, tree, values)
        raise ValueError(
            f"Pytree for `{what}` and `{values}` do not match. There are {len(lines)} mismatches, including:\n"
            + "\n".join(lines)
        )
    return [x if isinstance(x, BlockSpec) else BlockSpec() for x in found]


def _is_spec(x) -> bool:
    return x is None or x is no_block_spec or isinstance(x, BlockSpec)


def _differences(what: str, specs, tree, values: str) -> list[str]:
    one, two = [t.unflatten(range(t.num_leaves)) for t in (specs, tree)]
    found = []
    for path, a, b, _ in equality_errors(one, two):
        at = f" at {keystr(path)}," if path else ""
        found.append(f"    *{at} `{what}` is {a} but `{values}` is {b}")
    return found
