"""How blocks go through operations: which block of an operand a block of a result is made of, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from gradix import lax, numpy as jnp
from gradix._core.jaxpr import Jaxpr, JaxprEqn, Literal
from gradix._core.trace import bind
from gradix._ops.families import Elementwise
from gradix.experimental.pallas._specs import Blocked, BlockSpec, BoundedSlice, Element, Squeezed, no_block_spec

_LIKE_ELEMENTWISE = frozenset({"convert_element_type", "select_n", "clamp", "copy", "copy_p", "multiple_of"})
_REDUCTIONS = frozenset({"reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or"})


class Place(NamedTuple):
    """Where a block is evaluated: the program's indices with what was prefetched, and scalars that are known."""

    indices: tuple
    scalar: Callable[[Any, tuple], Any]


class Rule(NamedTuple):
    """How blocks go through one kind of operation.

    `pull(eqn, out)` gives the specs of the operands, for the spec of the result; `push(eqn, *ins)`
    gives that of the result; `run(eqn, place, ins, out, *blocks)` computes a block of the result.
    """

    pull: Callable
    run: Callable
    push: Callable


def is_squeezed(dim) -> bool:
    """Whether the kernel does not see a dimension."""
    return dim is None or isinstance(dim, Squeezed)


def size_of(dim) -> int:
    """The elements that a block has along a dimension."""
    if is_squeezed(dim):
        return 1
    return dim.block_size if isinstance(dim, (Blocked, Element, BoundedSlice)) else dim


def dims_of(spec: BlockSpec) -> tuple:
    """The entries of a spec that has one for each dimension."""
    return tuple(spec.block_shape or ())


def index_of(spec: BlockSpec, indices: Sequence) -> tuple:
    """The index of the block that a program gets."""
    found: Any = spec.index_map(*indices) if spec.index_map is not None else (0,) * len(dims_of(spec))
    return found if isinstance(found, tuple) else (found,)


def shape_of(spec: BlockSpec) -> tuple[int, ...]:
    """The shape of a block as the kernel sees it."""
    return tuple([size_of(d) for d in dims_of(spec) if not is_squeezed(d)])


def whole(shape: Sequence[int], spec: BlockSpec) -> BlockSpec:
    """A spec with an entry for each dimension of an array."""
    dims = tuple(shape) if spec.block_shape is None else dims_of(spec)
    if spec.index_map is not None and spec.block_shape is not None:
        return spec
    return spec.replace(block_shape=dims, index_map=lambda *_: (0,) * len(dims))


def cut_of(x, spec: BlockSpec, indices: tuple):
    """The block of an array that a program gets."""
    starts = []
    for dim, i in zip(dims_of(spec), index_of(spec, indices)):
        starts.append(i if is_squeezed(dim) or isinstance(dim, Element) else i * size_of(dim))
    sizes = [size_of(d) for d in dims_of(spec)]
    if any(n % size for n, size in zip(x.shape, sizes)) or any(isinstance(d, BoundedSlice) for d in dims_of(spec)):
        raise _refused(
            f"a captured array of shape {x.shape}", f"blocks of {dims_of(spec)} reach beyond its end, or are slices."
        )
    return lax.reshape(lax.dynamic_slice(x, [jnp.asarray(s, "int32") for s in starts], sizes), shape_of(spec))


def _entries(spec: BlockSpec, picks: Sequence[tuple[Any, Callable]]) -> BlockSpec:
    """The spec with a dimension for each pick: its size, and its index by those before and the program."""

    def index_map(*indices):
        found = index_of(spec, indices)
        return tuple([pick(found, indices) for _, pick in picks])

    return spec.replace(block_shape=tuple([dim for dim, _ in picks]), index_map=index_map)


def _at(axis: int) -> Callable:
    return lambda found, _: found[axis]


def _first(found, _) -> int:
    return 0


def _seen(spec: BlockSpec, axes) -> list[int]:
    """The numbers that axes of the array have in a block, without those that the kernel does not see."""
    places, n = {}, 0
    for axis, dim in enumerate(dims_of(spec)):
        if not is_squeezed(dim):
            places[axis] = n
            n += 1
    return [places[a] for a in axes if a in places]


def _refused(what: str, why: str) -> NotImplementedError:
    return NotImplementedError(f"{what}: {why} Compute it outside of the fused function.")


# -- elementwise -----------------------------------------------------------------------------------


def _pull_elementwise(eqn: JaxprEqn, out: BlockSpec) -> list:
    shape = eqn.outvars[0].aval.shape
    return [_stretched(v.aval.shape, shape, out) for v in eqn.invars]


def _stretched(own, shape, out: BlockSpec) -> BlockSpec:
    """The block of an operand whose axes of one element are stretched."""
    if tuple(own) == tuple(shape):
        return out
    if not own:
        return BlockSpec((), lambda *_: ())
    picks = []
    for axis, (n, m) in enumerate(zip(own, shape)):
        dim = dims_of(out)[axis]
        stretched = n == 1 and m != 1
        picks.append((None if is_squeezed(dim) else 1, _first) if stretched else (dim, _at(axis)))
    return _entries(out, picks)


def _run_plainly(eqn: JaxprEqn, place: Place, ins, out, *blocks):
    return bind(eqn.primitive, [jnp.asarray(b) for b in blocks], eqn.params)


def _push_elementwise(eqn: JaxprEqn, *ins):
    shape = eqn.outvars[0].aval.shape
    given = [(v.aval.shape, s) for v, s in zip(eqn.invars, ins) if s is not no_block_spec and v.aval.shape]
    same = [s for own, s in given if own == shape]
    if not same and given:
        raise ValueError(
            f"push_block_spec: {eqn.primitive.name} stretches an array of shape {given[0][0]} to {shape}, of which its "
            "spec does not tell the blocks. Give the spec of the larger operand."
        )
    return same


# -- moving elements -------------------------------------------------------------------------------


def _pull_broadcast(eqn: JaxprEqn, out: BlockSpec) -> list:
    x, shape = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    picks = []
    for n, axis in zip(x, eqn.params["broadcast_dimensions"]):
        dim = dims_of(out)[axis]
        stretched = n == 1 and shape[axis] != 1
        picks.append((None if is_squeezed(dim) else 1, _first) if stretched else (dim, _at(axis)))
    return [_entries(out, picks)]


def _run_broadcast(eqn: JaxprEqn, place: Place, ins, out, x):
    axes = [a for a, d in zip(eqn.params["broadcast_dimensions"], dims_of(ins[0])) if not is_squeezed(d)]
    return lax.broadcast_in_dim(jnp.asarray(x), shape_of(out), _seen(out, axes))


def _push_broadcast(eqn: JaxprEqn, spec):
    x, shape = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    at = {axis: i for i, axis in enumerate(eqn.params["broadcast_dimensions"])}
    picks = [
        (dims_of(spec)[at[a]], _at(at[a])) if a in at and x[at[a]] == n else (n, _first) for a, n in enumerate(shape)
    ]
    return _entries(spec, picks)


def _pull_transpose(eqn: JaxprEqn, out: BlockSpec) -> list:
    permutation = eqn.params["permutation"]
    places = [permutation.index(a) for a in range(len(permutation))]
    return [_entries(out, [(dims_of(out)[p], _at(p)) for p in places])]


def _run_transpose(eqn: JaxprEqn, place: Place, ins, out, x):
    kept = [a for a in eqn.params["permutation"] if not is_squeezed(dims_of(ins[0])[a])]
    return lax.transpose(jnp.asarray(x), _seen(ins[0], kept))


def _push_transpose(eqn: JaxprEqn, spec):
    return _entries(spec, [(dims_of(spec)[a], _at(a)) for a in eqn.params["permutation"]])


def _pull_squeeze(eqn: JaxprEqn, out: BlockSpec) -> list:
    rest = iter(range(len(dims_of(out))))
    dropped, picks = eqn.params["dimensions"], []
    for axis in range(eqn.invars[0].aval.ndim):
        place = None if axis in dropped else next(rest)
        picks.append((None, _first) if place is None else (dims_of(out)[place], _at(place)))
    return [_entries(out, picks)]


def _run_nothing(eqn: JaxprEqn, place: Place, ins, out, x, *_):
    return lax.reshape(jnp.asarray(x), shape_of(out))


def _push_squeeze(eqn: JaxprEqn, spec):
    kept = [a for a in range(len(dims_of(spec))) if a not in eqn.params["dimensions"]]
    return _entries(spec, [(dims_of(spec)[a], _at(a)) for a in kept])


def _pull_reshape(eqn: JaxprEqn, out: BlockSpec) -> list:
    return [reshaped(out, eqn.outvars[0].aval.shape, eqn.invars[0].aval.shape)]


def _push_reshape(eqn: JaxprEqn, spec):
    return reshaped(spec, eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape)


def reshaped(spec: BlockSpec, old: Sequence[int], new: Sequence[int]) -> BlockSpec:
    """The spec of an array in another shape, whose blocks have the same elements."""
    picks: list = []
    for one, other in _matched(old, new):
        picks += _rejoined(spec, one, other, old, new)
    return _entries(spec, picks)


def _matched(old, new) -> list[tuple[list[int], list[int]]]:
    """The axes of both shapes in groups of equally many elements."""
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        one, other = [i] if i < len(old) else [], [j] if j < len(new) else []
        i, j = i + len(one), j + len(other)
        while prod([old[a] for a in one]) != prod([new[a] for a in other]):
            if prod([old[a] for a in one]) < prod([new[a] for a in other]):
                one, i = [*one, i], i + 1
            else:
                other, j = [*other, j], j + 1
        groups.append((one, other))
    return groups


def _rejoined(spec: BlockSpec, one, other, old, new) -> list:
    """The dimensions of a group of axes in the new shape."""
    dims = [dims_of(spec)[a] for a in one]
    if len(one) == len(other) == 1:
        dim = 1 if is_squeezed(dims[0]) else dims[0]
        return [(dim, _at(one[0]))]
    sizes = [size_of(d) for d in dims]
    full = [s == old[a] for s, a in zip(sizes, one)]
    last = max([k for k, s in enumerate(sizes) if s > 1], default=0)
    partial = next((k for k, s in enumerate(sizes) if s > 1), last)
    if (
        any(isinstance(d, (Element, BoundedSlice)) for d in dims)
        or not all(full[partial + 1 :])
        or any(old[a] % s for a, s in zip(one, sizes))
    ):
        raise _refused(
            f"a reshape of {tuple(old)} to {tuple(new)}", f"blocks of {dims_of(spec)} are no blocks of the other shape."
        )
    left, blocks = prod(sizes), []
    for a in reversed(other):
        size = min(left, new[a])
        if new[a] % size or left % size:
            raise _refused(
                f"a reshape of {tuple(old)} to {tuple(new)}",
                f"blocks of {dims_of(spec)} are no blocks of the other shape.",
            )
        blocks.insert(0, size)
        left //= size
    counts = [old[a] // s for a, s in zip(one, sizes)]
    found_counts = [new[a] // s for a, s in zip(other, blocks)]

    def pick(k: int) -> Callable:
        below = prod(found_counts[k + 1 :])

        def index(found, _):
            flat = 0
            for a, count in zip(one, counts):
                flat = flat * count + found[a]
            return flat // below % found_counts[k]

        return index

    return [(size, pick(k)) for k, size in enumerate(blocks)]


# -- parts and sums --------------------------------------------------------------------------------


def _shifted(dim, start, axis: int, what: str) -> tuple:
    """The dimension of the whole of which a part begins at `start`, a number or a function of the program."""
    if isinstance(dim, BoundedSlice):
        raise _refused(what, "a bounded slice of a part is not supported.")
    begins = start if callable(start) else lambda _: start
    if is_squeezed(dim) or isinstance(dim, Element) or size_of(dim) == 1:
        return dim, lambda found, indices: found[axis] + begins(indices)
    n = size_of(dim)
    if not callable(start) and start % n == 0:
        return dim, lambda found, _: found[axis] + start // n
    return Element(n), lambda found, indices: found[axis] * n + begins(indices)


def _pull_slice(eqn: JaxprEqn, out: BlockSpec) -> list:
    strides = eqn.params["strides"]
    if strides is not None and any(s != 1 for s in strides):
        raise _refused("a slice with strides", "its blocks are no blocks of the whole.")
    starts = eqn.params["start_indices"]
    return [_entries(out, [_shifted(d, s, a, "a slice") for a, (d, s) in enumerate(zip(dims_of(out), starts))])]


def _pull_dynamic_slice(eqn: JaxprEqn, out: BlockSpec, scalar) -> list:
    whole_shape, sizes = eqn.invars[0].aval.shape, eqn.params["slice_sizes"]
    picks = []
    for axis, (dim, v) in enumerate(zip(dims_of(out), eqn.invars[1:])):
        most = whole_shape[axis] - sizes[axis]
        if most == 0:
            start: Any = 0
        elif type(v) is Literal:
            start = min(max(int(v.val), 0), most)
        else:

            def start(indices, v=v, most=most):
                return jnp.clip(scalar(v, indices), 0, most)

        picks.append(_shifted(dim, start, axis, "a dynamic slice"))
    return [_entries(out, picks), *[None] * (len(eqn.invars) - 1)]


def _no_push(eqn: JaxprEqn, *_):
    raise _refused(f"push_block_spec: {eqn.primitive.name}", "blocks of its operands are no blocks of its result.")


def _push_part(eqn: JaxprEqn, spec, *_):
    """A part that is the whole."""
    if eqn.invars[0].aval.shape != eqn.outvars[0].aval.shape:
        _no_push(eqn)
    return spec


def _is_whole(eqn: JaxprEqn, spec: BlockSpec, axis: int) -> bool:
    return size_of(dims_of(spec)[axis]) == eqn.outvars[0].aval.shape[axis]


def _pull_concatenate(eqn: JaxprEqn, out: BlockSpec) -> list:
    axis = eqn.params["dimension"]
    sizes = [v.aval.shape[axis] for v in eqn.invars]
    others = [(d, _at(a)) for a, d in enumerate(dims_of(out))]

    def with_axis(pick):
        return _entries(out, [*others[:axis], pick, *others[axis + 1 :]])

    dim = dims_of(out)[axis]
    if _is_whole(eqn, out, axis):
        return [with_axis((n, _first)) for n in sizes]
    n = size_of(dim)
    if isinstance(dim, (Element, BoundedSlice)) or any(size % n for size in sizes):
        raise _refused(f"a concatenation of {sizes} elements", f"a block of {n} may hold parts of two operands.")
    specs, before = [], 0
    for size in sizes:

        def index(found, _, before=before, last=size // n - 1):
            return jnp.clip(found[axis] - before, 0, last)

        specs.append(with_axis((dim, index)))
        before += size // n
    return specs


def _run_concatenate(eqn: JaxprEqn, place: Place, ins, out, *blocks):
    axis = eqn.params["dimension"]
    if _is_whole(eqn, out, axis):
        return lax.concatenate([jnp.asarray(b) for b in blocks], _seen(out, [axis])[0])
    number = index_of(out, place.indices)[axis]
    found, before = blocks[0], eqn.invars[0].aval.shape[axis]
    for v, block in zip(eqn.invars[1:], blocks[1:]):
        found = jnp.where(number * size_of(dims_of(out)[axis]) >= before, block, found)
        before += v.aval.shape[axis]
    return found


def _push_concatenate(eqn: JaxprEqn, *ins):
    axis, spec = eqn.params["dimension"], next(s for s in ins if s is not no_block_spec)
    for v, s in zip(eqn.invars, ins):
        if s is no_block_spec or size_of(dims_of(s)[axis]) != v.aval.shape[axis]:
            _no_push(eqn)
    picks = [(d, _at(a)) for a, d in enumerate(dims_of(spec))]
    picks[axis] = eqn.outvars[0].aval.shape[axis], _first
    return _entries(spec, picks)


def _run_iota(eqn: JaxprEqn, place: Place, ins, out):
    axis, dtype = eqn.params["dimension"], eqn.params["dtype"]
    dim, number = dims_of(out)[axis], index_of(out, place.indices)[axis]
    start = number if is_squeezed(dim) or isinstance(dim, Element) else number * size_of(dim)
    start = jnp.asarray(start).astype(dtype)
    if is_squeezed(dim):
        return jnp.full(shape_of(out), start, dtype)
    return lax.broadcasted_iota(dtype, shape_of(out), _seen(out, [axis])[0]) + start


def _pull_reduction(eqn: JaxprEqn, out: BlockSpec) -> list:
    rest, picks = iter(range(len(dims_of(out)))), []
    for axis, n in enumerate(eqn.invars[0].aval.shape):
        place = None if axis in eqn.params["axes"] else next(rest)
        picks.append((n, _first) if place is None else (dims_of(out)[place], _at(place)))
    return [_entries(out, picks)]


def _run_reduction(eqn: JaxprEqn, place: Place, ins, out, x):
    axes = tuple(_seen(ins[0], eqn.params["axes"]))
    return bind(eqn.primitive, [jnp.asarray(x)], {**eqn.params, "axes": axes})


def _push_reduction(eqn: JaxprEqn, spec):
    axes, shape = eqn.params["axes"], eqn.invars[0].aval.shape
    if any(size_of(dims_of(spec)[a]) != shape[a] for a in axes):
        raise _refused(f"push_block_spec: {eqn.primitive.name} over {axes}", f"a block {dims_of(spec)} has a part.")
    kept = [a for a in range(len(shape)) if a not in axes]
    return _entries(spec, [(dims_of(spec)[a], _at(a)) for a in kept])


def _pull_product(eqn: JaxprEqn, out: BlockSpec) -> list:
    contracted, batch = eqn.params["dimension_numbers"]
    specs, free = [], len(batch[0])
    for v, own, stacked in zip(eqn.invars, contracted, batch):
        picks = []
        for axis, n in enumerate(v.aval.shape):
            if axis in own:
                picks.append((n, _first))
                continue
            place = stacked.index(axis) if axis in stacked else free
            free += axis not in stacked
            picks.append((dims_of(out)[place], _at(place)))
        specs.append(_entries(out, picks))
    return specs


def _run_product(eqn: JaxprEqn, place: Place, ins, out, *blocks):
    numbers = [tuple([tuple(_seen(s, axes)) for s, axes in zip(ins, pair)]) for pair in eqn.params["dimension_numbers"]]
    params = {**eqn.params, "dimension_numbers": tuple(numbers)}
    return bind(eqn.primitive, [jnp.asarray(b) for b in blocks], params)


def _pull_tile(eqn: JaxprEqn, out: BlockSpec) -> list:
    picks = []
    for axis, (n, times) in enumerate(zip(eqn.invars[0].aval.shape, eqn.params["reps"])):
        dim = dims_of(out)[axis]
        size = size_of(dim)
        if times == 1:
            picks.append((dim, _at(axis)))
        elif isinstance(dim, (Element, BoundedSlice)) or (n % size and size % n):
            raise _refused(f"{times} copies of {n} elements", f"a block of {size} may begin anywhere in a copy.")
        elif size <= n:
            picks.append((dim, lambda found, _, axis=axis, count=n // size: found[axis] % count))
        else:
            picks.append((n, _first))
    return [_entries(out, picks)]


def _run_tile(eqn: JaxprEqn, place: Place, ins, out, x):
    pairs = [(i, o) for i, o in zip(dims_of(ins[0]), dims_of(out)) if not is_squeezed(o)]
    x = lax.reshape(jnp.asarray(x), [size_of(i) for i, _ in pairs])
    return jnp.tile(x, [size_of(o) // size_of(i) for i, o in pairs])


_ELEMENTWISE = Rule(_pull_elementwise, _run_plainly, _push_elementwise)
_RULES = {
    **{name: Rule(_pull_reduction, _run_reduction, _push_reduction) for name in _REDUCTIONS},
    "broadcast_in_dim": Rule(_pull_broadcast, _run_broadcast, _push_broadcast),
    "transpose": Rule(_pull_transpose, _run_transpose, _push_transpose),
    "squeeze": Rule(_pull_squeeze, _run_nothing, _push_squeeze),
    "reshape": Rule(_pull_reshape, _run_nothing, _push_reshape),
    "slice": Rule(_pull_slice, _run_nothing, _push_part),
    "dynamic_slice": Rule(_pull_dynamic_slice, _run_nothing, _push_part),
    "concatenate": Rule(_pull_concatenate, _run_concatenate, _push_concatenate),
    "tile": Rule(_pull_tile, _run_tile, _no_push),
    "iota": Rule(lambda eqn, out: [], _run_iota, lambda eqn: no_block_spec),
    "dot_general": Rule(_pull_product, _run_product, _no_push),
}


def is_elementwise(eqn: JaxprEqn) -> bool:
    """Whether an operation is one of single elements."""
    return isinstance(eqn.primitive, Elementwise) or eqn.primitive.name in _LIKE_ELEMENTWISE


def is_of_single_elements(jaxpr: Jaxpr) -> bool:
    """Whether a program computes each element of its results of the same elements of its arguments."""
    shapes = {v.aval.shape for v in (*jaxpr.invars, *jaxpr.outvars)}
    spread = [e for e in jaxpr.eqns if e.primitive.name == "broadcast_in_dim" and not e.invars[0].aval.shape]
    return len(shapes - {()}) <= 1 and all(is_elementwise(e) or e in spread for e in jaxpr.eqns)


def rule_of(eqn: JaxprEqn) -> Rule:
    """The rule of an operation.

    Raises:
        NotImplementedError: there is none.
    """
    found = _ELEMENTWISE if is_elementwise(eqn) else _RULES.get(eqn.primitive.name)
    if found is None or len(eqn.outvars) != 1:
        raise _refused(f"{eqn.primitive.name} in a fusion", "it has no rule for blocks.")
    return found
