"""The boundary of transformations: functions of pytrees as functions of lists of arrays.

A transformation works on lists of arrays, its operands. `opened` takes the leaves out of the
arguments. `Flat` calls the user's function with other arrays in their places, and takes the leaves
out of its result, whose structure puts the final results together again.

Arrays, numbers and NumPy arrays pass as arrays. Other leaves are of kinds that stand in two tables,
where files register a row for each class: `values` for what is made of further leaves, and
`holders` for what holds arrays that a function may replace. Leaves that a transformation does not
open, such as static arguments, stay in `Arguments`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradix._api.structs import ShapeDtypeStruct, typed
from gradix._base.config import state as _options
from gradix._base.errors import class_of
from gradix._base.lazy import lazy_module
from gradix._base.tree import keystr, tree_flatten, tree_flatten_with_path, tree_map, tree_structure, treedef_tuple
from gradix._control.program_interning import interned, key_of
from gradix._core.array import ArrayImpl, as_array, check_number, without_value
from gradix._core.aval import seen
from gradix._core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, no_debug
from gradix._core.operators import Array
from gradix._core.refs import AbstractRef, ForkedKind, LocalRef, Ref, View
from gradix._core.trace import Tracer, state
from gradix._transforms.staging import stage, stage_open, stage_with_refs

if TYPE_CHECKING:
    from gradix._api.hi_boxes import Restructured

_boxes = lazy_module("gradix._api.hi_boxes")

# -- kinds of leaves -------------------------------------------------------------------------------


class Share(NamedTuple):
    """The part of a leaf that a derivative is taken in.

    Attributes:
        operands: a pytree of arrays.
        inside: `inside(operands)` is the leaf that the function gets.
        gradient: `gradient(cotangents)`, of a tree like the operands, is the leaf of the gradient.
    """

    operands: Any
    inside: Callable[[Any], Any]
    gradient: Callable[[Any], Any]


class Value(NamedTuple):
    """A kind of leaf that is made of further leaves.

    Attributes:
        node: `node(x)` is a pytree node of these leaves. Joined from traced arrays it is what
            functions get, and joined from arrays it is what callers get.
        share: `share(x)` is the part of it that a derivative is taken in.
        is_tree: whether it is a pytree node itself; only functions that ask for shares see it whole.
        is_above: whether its type is above arrays, and says what its parts and its rows are.
        cotangent: `cotangent(node, ct)` lists the cotangents of the leaves of a result; None stands for zeros.
        row: `row(x, size)` is the value with the type of a row along its first axis, which has that size.
        stack: `stack(x, size)` is the value with the type of that many, stacked along a first axis.
    """

    node: Callable[[Any], Any]
    share: Callable[[Any], Share]
    is_tree: bool = False
    is_above: bool = False
    cotangent: Callable[[Any, Any], list] | None = None
    row: Callable[[Any, Any], Any] | None = None
    stack: Callable[[Any, Any], Any] | None = None


class Holder(NamedTuple):
    """A kind of leaf that holds arrays, which the function may replace by others.

    Attributes:
        holds: the number of arrays that it holds.
        open: `open(x)` lists these arrays; they pass as operands.
        inside: `inside(x, arrays)` is what the function gets in its place.
        last: `last(y)` lists the arrays that the function left in what it got.
        close: `close(x, arrays)` puts them into the leaf.
    """

    holds: int
    open: Callable[[Any], list]
    inside: Callable[[Any, Sequence], Any]
    last: Callable[[Any], list]
    close: Callable[[Any, Sequence], None]


def _inside(ref: Ref, arrays) -> Ref:
    kind = ref.aval.kind if isinstance(ref.aval.kind, ForkedKind) else None
    return ref.stand_in(AbstractRef(arrays[0].aval, kind=kind), arrays[0])


REF = Holder(
    holds=1,
    open=lambda ref: [ref.read()],
    inside=_inside,
    last=lambda ref: [ref.read()],
    close=lambda ref, arrays: ref.write(arrays[0]),
)

values: dict[type, Value] = {}
holders: dict[type, Holder] = {Ref: REF, View: REF}


def opened(tree: Any) -> tuple[list, Any]:
    """As `tree_flatten`, but values that are made of further leaves are flattened into these."""
    leaves, treedef = tree_flatten(tree)
    if values and has_values(leaves):
        leaves, treedef = tree_flatten(treedef.unflatten(map(_node, leaves)))
    return leaves, treedef


def with_nodes(tree: Any) -> Any:
    """The tree with a pytree node for each value that is made of further leaves."""
    leaves, treedef = tree_flatten(tree)
    return treedef.unflatten(map(_node, leaves)) if has_values(leaves) else tree


_BLANK = object()  # stands for any leaf


def with_rows(tree: Any, size: Any, change: str) -> Any:
    """The structure of a tree whose values have the types of rows, or of stacks of them.

    Args:
        tree: the structure of a tree in which values are nodes.
        change: "row" or "stack", the attribute of `Value` that changes a type.
    """
    if not any(getattr(kind, change) for kind in values.values()):
        return tree

    def changed(x):
        kind = values.get(type(x))
        return x if kind is None or getattr(kind, change) is None else getattr(kind, change)(x, size)

    nodes, outer = tree_flatten(tree.unflatten([_BLANK] * tree.num_leaves), is_leaf=lambda x: type(x) in values)
    return tree_flatten(outer.unflatten(map(changed, nodes)))[1]


def with_values_above(tree: Any) -> tuple[list, Any] | None:
    """As `tree_flatten`, with values of types above arrays as leaves; None if there is no such value."""
    above = {cls for cls, kind in values.items() if kind.is_above}
    if not above:
        return None
    leaves, treedef = tree_flatten(tree, is_leaf=lambda x: type(x) in above)
    return None if above.isdisjoint(map(type, leaves)) else (leaves, treedef)


def cotangents_above(cts: Any, tree: Any) -> list | None:
    """The cotangents of the leaves of results, of which some are of types above arrays.

    Args:
        cts: a tree like the results, in which cotangents of such values are values, too.
        tree: the structure of the results, in which values are nodes.

    Returns:
        a list in which None stands for zeros; None if the trees do not match.
    """
    above = {cls for cls, kind in values.items() if kind.cotangent is not None}
    nodes, outer = tree_flatten(tree.unflatten([_BLANK] * tree.num_leaves), is_leaf=lambda x: type(x) in above)
    given = with_values_above(cts)
    if given is None or given[1] != outer:
        return None
    found: list = []
    for node, ct in zip(nodes, given[0]):
        found += [ct] if node is _BLANK else values[type(node)].cotangent(node, ct)  # type: ignore[misc]
    return found


def tangents_above(tree: Any, tangents: list) -> Any:
    """The tree of tangents of results, in which those of values of types above arrays are values, too.

    Args:
        tree: the structure of the results, in which values are nodes.
        tangents: the tangent of each leaf.
    """
    above = {cls for cls, kind in values.items() if kind.cotangent is not None}
    nodes, outer = tree_flatten(tree.unflatten([_BLANK] * tree.num_leaves), is_leaf=lambda x: type(x) in above)
    given, found = iter(tangents), []
    for node in nodes:
        if node is _BLANK:
            found.append(next(given))
            continue
        own = [next(given) for _ in tree_flatten(node)[0]]
        share = values[type(node)].share(node)
        found.append(share.gradient(own[len(own) - len(share.operands) :]))
    return outer.unflatten(found)


def has_values(leaves) -> bool:
    """Whether any leaf is made of further leaves."""
    return not values.keys().isdisjoint(map(type, leaves))


def _node(x: Any) -> Any:
    kind = values.get(type(x))
    return x if kind is None else kind.node(x)


def has_holders(leaves) -> bool:
    """Whether any leaf holds arrays that a function may replace."""
    return not holders.keys().isdisjoint(map(type, leaves))


# -- leaves as arrays ------------------------------------------------------------------------------

_NUMBERS = (np.ndarray, np.generic, int, float, complex)
_GIVEN = ("argument", "primals", "init", "initial_guess", "operand ")


def arrays(name: str, leaves, tree, what: str, others: Container[int] = ()) -> list:
    """The leaves as arrays; those whose numbers are in `others` stay as they are.

    Raises:
        TypeError: a leaf is not an array; the message names its path.
        OverflowError: a leaf is an int that does not fit into its dtype.
    """
    out = []
    for i, x in enumerate(leaves):
        if isinstance(x, Array) or i in others:
            out.append(x)
            continue
        if _options.jax_transfer_guard_host_to_device is not None and what.startswith(_GIVEN):
            check_number(x)
        try:
            out.append(as_array(x))
        except (TypeError, OverflowError) as e:
            path = keystr(tree_flatten_with_path(tree.unflatten(leaves))[0][i][0])
            wrong = "is not an array" if isinstance(e, TypeError) else "does not fit"
            raise type(e)(f"{name}: {what}{path} {wrong}. {e}") from None
    return out


def results(names: DebugInfo, leaves, tree) -> list[Array]:
    """The leaves of the result of a traced function as arrays; types stand for arrays.

    Args:
        names: the names of the function, for errors.

    Raises:
        TypeError: a leaf is not an array; the message names its path.
        OverflowError: a leaf is an int that does not fit into its dtype.
    """
    return [x if isinstance(x, Array) else _result(names, i, leaves, tree) for i, x in enumerate(leaves)]


def _result(names: DebugInfo, index: int, leaves, tree) -> Array:
    x = leaves[index]
    known = stand_in_of(x)
    if known is not None:
        return known
    try:
        return as_array(x)
    except (TypeError, OverflowError) as e:
        path = keystr(tree_flatten_with_path(tree.unflatten(leaves))[0][index][0])
        where = f" at {names.place}" if names.place else ""
        why = str(e)
        if "not a valid array type" in why:
            why = (
                "Return arrays and numbers only, in trees; a class of yours is one if you register it, with "
                "gradix.tree_util.register_dataclass."
            )
        raise type(e)(
            f"function {names.name}{where} to be transformed must return arrays, but at output path "
            f"result{path} it returned {x!r} of type {class_of(x)}, not a valid JAX type. {why}"
        ) from None


def stand_in_of(x) -> ArrayImpl | None:
    """An array without a value if `x` is a `ShapeDtypeStruct`; else None."""
    return without_value(typed(x).aval) if type(x) is ShapeDtypeStruct and not x.is_ref else None


def with_arrays(tree):
    """A pytree in which numbers and NumPy arrays are made arrays, which no one can change in place."""
    return tree_map(lambda x: as_array(x) if isinstance(x, _NUMBERS) else x, tree)


def kind_of(x) -> str:
    """The type of `x`, and the length of a tuple or list, for an error."""
    if isinstance(x, Array):
        return f"an array of type {x.aval.str_short()}"
    kind = f"a {type(x).__name__}"
    return f"{kind} of length {len(x)}" if isinstance(x, (tuple, list)) else kind


# -- functions of lists ----------------------------------------------------------------------------


class Arguments:
    """The arguments of a call without the leaves at `places`, which are passed as operands."""

    __slots__ = ("leaves", "tree", "places")

    def __init__(self, leaves: list, tree, places: list[int]):
        self.leaves, self.tree, self.places = leaves, tree, places
        for i in places:
            leaves[i] = None

    def filled(self, operands, other: Callable | None = None) -> Any:
        """The arguments with the operands at `places`; `other(leaf)` replaces other leaves."""
        leaves = list(self.leaves) if other is None else [other(x) for x in self.leaves]
        for i, x in zip(self.places, operands):
            leaves[i] = x
        return self.tree.unflatten(leaves)

    def interning_key(self) -> tuple:
        """What is equal for arguments that mean the same, by which programs are recognised."""
        return self.tree, tuple(self.places), key_of(self.leaves)


def stand_ins(leaves) -> dict[int, Ref]:
    """The refs that a traced function gets in place of those among the leaves, by number."""
    if not has_holders(leaves):
        return {}
    return {i: x.stand_in(x.aval, None) for i, x in enumerate(leaves) if isinstance(x, Ref)}


def around(others: dict[int, Any], count: int, tree) -> Callable[[Sequence], Any]:
    """Puts operands into a tree of `count` leaves, of which `others` are given by number."""
    if not others:
        return tree.unflatten
    leaves = [others.get(i) for i in range(count)]
    return Arguments(leaves, tree, [i for i in range(count) if i not in others]).filled


class Flat:
    """A function of pytrees as one of a list of operands, which keeps the structure of its results.

    Args:
        function: the user's function.
        name: its name in errors about its results.
        given: makes the pair of positional and named arguments from the operands; where all leaves
            are operands, `unflatten` of the pair's structure.
        has_aux: the function returns the pair of its result and auxiliary data.
        close: `close(leaves, tree)` makes arrays of the leaves of the result; by default `arrays`.
        lent: the leaves that are holders; the list begins with the arrays left in them.
        is_program: whether the function is traced as a program of its own, out of which sizes that
            values decide inside of it do not reach.
        names: the names of the function and its arguments, for programs and messages.
    """

    __slots__ = (
        "function",
        "name",
        "given",
        "has_aux",
        "close",
        "lent",
        "is_program",
        "names",
        "out_tree",
        "aux",
        "changes",
    )

    def __init__(
        self,
        function: Callable,
        name: str,
        given: Callable[[Sequence], tuple],
        has_aux: bool = False,
        *,
        close: Callable[[list, Any], list] | None = None,
        lent: Any = None,
        is_program: bool = False,
        names: DebugInfo = no_debug,
    ):
        self.function, self.name, self.given, self.has_aux = function, name, given, has_aux
        self.close, self.lent, self.names = close, lent, names
        self.is_program = is_program
        self.out_tree: Any = None
        self.aux: Any = None
        # while a whole call is staged, the states of values that may get others
        self.changes: dict | None = None

    def __call__(self, *operands) -> list:
        lent = self.lent
        if self.changes is not None:
            state.stage.restructured = self.changes  # type: ignore[union-attr]
        args, kwargs = self.given(operands if lent is None else lent.inside(operands))
        out = self.function(*args, **kwargs)
        aux = []
        if self.has_aux:
            out, aux = self._without_aux(out)
        leaves, self.out_tree = opened(out)
        if self.close is not None:
            outs = self.close(leaves, self.out_tree)
        else:
            outs = arrays(self.name, leaves, self.out_tree, "output")
        if self.is_program and seen.counts is not None:
            outs, self.out_tree = seen.counts.close(outs, self.out_tree)
        return outs + aux if lent is None else [*lent.last(), *outs, *aux]

    def _without_aux(self, out: Any) -> tuple[Any, list]:
        """The result of the function, and the traced leaves of its auxiliary data."""
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(
                f"{self.name}: with has_aux=True the function must return a pair (output, auxiliary "
                f"data), got {kind_of(out)}."
            )
        leaves, tree = opened(out[1])
        are_traced = [isinstance(x, Tracer) for x in leaves]
        self.aux = tree, leaves, are_traced
        return out[0], [x for x, is_traced in zip(leaves, are_traced) if is_traced]

    def split_aux(self, outs):
        """Split what a transformation of this function returned into results and the auxiliary tree.

        Auxiliary leaves that are not traced are returned as they are.
        """
        n = self.out_tree.num_leaves
        tree, leaves, are_traced = self.aux
        rest = iter(outs[n:])
        return outs[:n], tree.unflatten([next(rest) if t else x for x, t in zip(leaves, are_traced)])

    def stage(self, avals) -> tuple[Jaxpr, list]:
        """The program for operands of these types, and the values of its constants."""
        return stage(self, avals, self.names)

    def stage_open(self, avals) -> tuple[ClosedJaxpr, list]:
        """As `stage`; the constants are leading inputs of the program, which is interned."""
        closed, consts = stage_open(self, avals, self.names)
        return interned(closed), consts

    def stage_with_refs(self, avals) -> tuple[Jaxpr, list, list[LocalRef]]:
        """As `stage`, for a function that may use mutable arrays from outside."""
        return stage_with_refs(self, avals, self.names)

    def stage_call(
        self, avals, inside: dict[int, Ref], is_shown: bool = False
    ) -> tuple[Jaxpr, list, list[LocalRef], list[Restructured]]:
        """As `stage_with_refs`, for a whole call; also returns what it does to values of libraries.

        Args:
            avals: the types of the operands.
            inside: the refs that the function gets as leaves of its arguments, by number.
            is_shown: the user gets the program, as `stage_with_refs` says.
        """
        self.changes = {}
        try:
            jaxpr, consts, refs = stage_with_refs(self, avals, self.names, is_shown)
            return jaxpr, consts, refs, _boxes.told(self.changes, inside) if self.changes else []
        finally:
            if self.changes:
                _boxes.undo(self.changes)


_NO_NAMES = tree_structure({})


def positional(tree) -> Any:
    """The structure of a call with positional arguments in `tree`, and no named ones."""
    return treedef_tuple((tree, _NO_NAMES))
