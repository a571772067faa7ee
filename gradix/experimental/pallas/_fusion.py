"""Functions around a kernel that it applies to its own blocks: `fuse`, `fusible`, `Fusion`."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import types
from collections.abc import Callable, Sequence
from typing import Any

from gradix._api.arguments import name_of
from gradix._api.boundary import Flat, arrays
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten, tree_leaves, tree_map
from gradix._core.jaxpr import Jaxpr, Literal, Var
from gradix._core.trace import is_unknown
from gradix._ops.markers import dce_sink_p
from gradix._transforms.dce import dce_jaxpr
from gradix._transforms.staging import StagingTracer, eval_jaxpr, stage_open
from gradix.experimental.pallas._call_marks import fusing, is_fusing, mark_of, marked_call, written_out

_TRANSPOSES = frozenset({"transpose"})


class Fusion:
    """A function around a kernel, with the types of its arguments and results.

    Args:
        func: the function.
        in_type: the types of its arguments, a pair of a tuple and a dict.
        out_type: the types of its results, a pytree.
        strict_mode: whether block specs of one value must agree where they are pushed through it.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.pallas import fuser
        >>> rows = gradix.ShapeDtypeStruct((2, 3), jnp.float32)
        >>> double = fuser.Fusion(lambda x: 2 * x, ((rows,), {}), rows)
        >>> double.shape, double.dtype, double(jnp.ones(3))
        ((2, 3), dtype('float32'), Array([2., 2., 2.], dtype=float32))
    """

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, func: Callable, in_type: Any, out_type: Any, strict_mode: bool = True):
        self.func, self.in_type, self.out_type, self.strict_mode = func, in_type, out_type, strict_mode

    def __call__(self, *args, **kwargs):
        return self.func(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Fusion(in_type={self.in_type}, out_type={self.out_type})"

    def _of_one(self, tree, what: str):
        leaves = tree_leaves(tree)
        if len(leaves) != 1:
            raise ValueError(f"A fusion with {len(leaves)} {what} has no single type; read it of in_type or out_type.")
        return leaves[0]

    type = property(lambda self: self._of_one(self.out_type, "results"))
    shape = property(lambda self: self.type.shape)
    dtype = property(lambda self: self.type.dtype)
    in_shape = property(lambda self: self._of_one(self.in_type, "arguments").shape)
    in_dtype = property(lambda self: self._of_one(self.in_type, "arguments").dtype)


def _struct(x) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(x.shape, x.dtype)


def _constant(x) -> Fusion:
    """The fusion that returns a value."""
    return Fusion(lambda: x, ((), {}), _struct(x))


@dataclasses.dataclass(frozen=True)
class _Fusible:
    """A kernel's function, and how its results are divided among output fusions."""

    function: Callable
    prefix: Any
    kwargs: dict
    in_tree: Any

    def plain(self, *leaves):
        """The results for values, without any fusions."""
        nothing = tree_map(lambda _: None, self.prefix)
        return self.function(*self.in_tree.unflatten(map(_constant, leaves)), nothing, **self.kwargs)


@boundary
def fusible(f: Callable | None = None, *, output_fusion_prefix: Any = True) -> Callable:
    """Let `fuse` hand a function the functions around it.

    Args:
        f: called as `f(*fusions, output_fusions, **kwargs)`: in place of each array of the
            arguments a `Fusion` that computes it, then one for what is made of the results, or None
            where they are returned as they are. It returns what the output fusions return.
        output_fusion_prefix: how the results are divided among output fusions: a prefix of their
            tree, with a leaf for each fusion. True is one fusion of all results.

    Returns:
        A function of arrays. Outside of `fuse`, the fusions return the arguments, and there are no
        output fusions. Keyword arguments are passed on as they are.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.pallas import fuser
        >>> @fuser.fusible
        ... def product(x, y, out):
        ...     z = x() @ y()
        ...     return z if out is None else out(z)
        >>> fused = fuser.fuse(lambda x, y: jnp.exp(product(2 * x, y)))
        >>> fused(jnp.ones((1, 2)), jnp.ones((2, 1)))
        Array([[54.59815]], dtype=float32)
    """
    if f is None:
        return functools.partial(fusible, output_fusion_prefix=output_fusion_prefix)
    if not callable(f):
        raise TypeError(f"fusible takes a function of fusions, got {f!r}.")

    @boundary
    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        leaves, in_tree = tree_flatten(args)
        leaves = arrays("fusible", leaves, in_tree, "args")
        kernel = _Fusible(f, output_fusion_prefix, kwargs, in_tree)
        if not is_fusing() or not all(type(x) is StagingTracer or not is_unknown(x) for x in leaves):
            return kernel.plain(*leaves)  # also inside of derivatives and maps
        return marked_call(kernel, name_of(f), kernel.plain, leaves)

    return wrapped


@boundary
def fuse(
    f: Callable | None = None,
    *,
    resolve_fusion_dtypes: bool = True,
    debug: bool = False,
    strict_mode: bool = True,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable:
    """Hand the functions around the one `fusible` that a function calls to that fusible.

    Results are those of the function itself; the kernel decides where the functions around it are
    computed. A function that calls no fusible, or only inside of a derivative or loop, is run as it is.

    Args:
        f: the function; None for a decorator.
        resolve_fusion_dtypes: accepted; it has no effect.
        debug: whether to print the program that is divided.
        strict_mode: the `strict_mode` of the fusions.
        static_argnums, static_argnames: arguments that are no arrays, as for `jit`.

    Raises:
        ValueError: the function calls several fusibles, or a result depends on several output fusions.
        NotImplementedError: what surrounds the fusible reads or writes mutable arrays.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.pallas import fuser
        >>> @fuser.fusible
        ... def total(x, out):
        ...     return x().sum() if out is None else out(x().sum())
        >>> fuser.fuse(lambda x, a: total(x * x) + a)(jnp.arange(3.0), 1.0)
        Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(
            fuse,
            resolve_fusion_dtypes=resolve_fusion_dtypes,
            debug=debug,
            strict_mode=strict_mode,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    numbers = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums or ())
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames or ())

    @boundary
    @functools.wraps(f)
    def wrapped(*args, **kwargs):
        fixed = {i: a for i, a in enumerate(args) if i in numbers or i - len(args) in numbers}
        fixed_names = {k: v for k, v in kwargs.items() if k in names}
        given = [a for i, a in enumerate(args) if i not in fixed]
        named = {k: v for k, v in kwargs.items() if k not in names}

        def function(*given, **named):
            rest = iter(given)
            return f(*[fixed[i] if i in fixed else next(rest) for i in range(len(args))], **fixed_names, **named)

        return _fused(function, given, named, debug, strict_mode)

    return wrapped


def _fused(function, args, kwargs, debug: bool, strict: bool):
    leaves, in_tree = tree_flatten((tuple(args), kwargs))
    leaves = arrays("fuse", leaves, in_tree, "args")
    flat = Flat(function, "fuse", in_tree.unflatten)
    with fusing():
        closed, consts = stage_open(flat, [x.aval for x in leaves])
    jaxpr, held = written_out(closed)
    if debug:
        print(jaxpr)
    base = [*held, *consts, *leaves]
    found = [eqn for eqn in jaxpr.eqns if _fusible_of(eqn) is not None]
    if len(found) > 1:
        names = ", ".join([str(eqn.params["name"]) for eqn in found])
        raise ValueError(
            f"fuse: the function calls {len(found)} fusibles, {names}; there must be one. Fuse a function around each."
        )
    values = _Division(jaxpr, base, found[0], strict).values(flat.out_tree) if found else eval_jaxpr(jaxpr, (), *base)
    return flat.out_tree.unflatten(values)


def _fusible_of(eqn) -> _Fusible | None:
    """The fusible that an equation calls, if it calls one."""
    mark = mark_of(eqn)
    return mark.what if mark is not None and type(mark.what) is _Fusible else None


class _Division:
    """A program divided into what comes before a call of a fusible, and what is made of its results."""

    def __init__(self, jaxpr: Jaxpr, base: list, call, strict: bool):
        self.jaxpr, self.base, self.call, self.strict = jaxpr, base, call, strict
        self.kernel: Any = _fusible_of(call)
        self.mark: Any = mark_of(call)
        others = [eqn for eqn in jaxpr.eqns if eqn is not call and eqn.primitive is not dce_sink_p]
        self.others = others
        if any(eqn.effects for eqn in others):
            raise NotImplementedError(
                "fuse: what surrounds the fusible reads or writes mutable arrays, or prints. Do so outside of the "
                "fused function, and pass it values."
            )
        self.places = {v: i for i, v in enumerate(call.outvars)}
        self.depends: dict[Var, set] = {v: {i} for v, i in self.places.items()}
        for eqn in others:
            on = set().union(*[self._on(v) for v in eqn.invars])
            self.depends.update((v, on) for v in eqn.outvars)

    def _on(self, v) -> set:
        """The results of the call on which a value depends, by their numbers."""
        return set() if type(v) is Literal else self.depends.get(v, set())

    def _function(self, given: Sequence[Var], outs) -> Callable:
        """The values `outs` as a function of the results `given` of the call."""
        whole = Jaxpr([], [*given, *self.jaxpr.invars], list(outs), self.others)
        small, used = dce_jaxpr(whole)
        n = len(given)
        base = [x for x, u in zip(self.base, used[n:]) if u]
        return lambda *xs: eval_jaxpr(small, (), *[x for x, u in zip(xs, used[:n]) if u], *base)

    def values(self, out_tree) -> list:
        """The results of the program, most of them computed by the fusible."""
        outvars = self.jaxpr.outvars
        values: list = [None] * len(outvars)
        own = [i for i, v in enumerate(outvars) if not self._on(v)]
        for i, x in zip(own, self._function([], [outvars[i] for i in own])()):
            values[i] = x
        if len(own) == len(outvars):
            return values
        captured = len(self.call.invars) - self.kernel.in_tree.num_leaves  # what the kernel itself closes over
        fusions = [self._before(v) for v in self.call.invars[captured:]]
        kinds, prefix = tree_flatten(self.kernel.prefix)
        results = self.mark.out_tree.unflatten(range(len(self.call.outvars)))
        sizes = [len(tree_leaves(part)) for part in prefix.flatten_up_to(results)]
        ends = list(itertools.accumulate(sizes))
        groups = [range(end - size, end) for end, size in zip(ends, sizes)]
        members: list[list[int]] = [[] for _ in kinds]
        for i, v in enumerate(outvars):
            on = [g for g, span in enumerate(groups) if not self._on(v).isdisjoint(span)]
            if len(on) > 1:
                raise ValueError(
                    "Outputs must be disjoint in order to use separate output fusions: result "
                    f"{i} of the fused function depends on {len(on)} of them. Let the fusible have one output fusion."
                )
            if on:
                members[on[0]].append(i)
        after = [self._after(span, own, out_tree) for span, own in zip(groups, members)]
        ins = self.kernel.in_tree.unflatten(fusions)
        outs = self.kernel.function(*ins, prefix.unflatten(after), **self.kernel.kwargs)
        for part, fusion, span, own in zip(prefix.flatten_up_to(outs), after, groups, members):
            found = tree_leaves(part)
            expected = len(span) if fusion is None else len(own)
            if len(found) != expected:
                raise ValueError(
                    f"The fusible {self.call.params['name']} returned {len(found)} arrays in place of the "
                    f"{expected} of its output fusion. Return what the output fusion returns."
                )
            for k, i in enumerate(own):
                values[i] = found[k] if fusion is not None else found[self.places[outvars[i]] - span.start]
        return values

    def _before(self, v) -> Fusion:
        """The fusion that computes an argument of the call."""
        function = self._function([], [v])
        return Fusion(lambda: function()[0], ((), {}), _struct(v.aval), self.strict)

    def _after(self, span: range, own: list[int], out_tree) -> Fusion | None:
        """The fusion of a group of results of the call; None if they are returned as they are."""
        outs = [self.jaxpr.outvars[i] for i in own]
        if all(v in self.places for v in outs):
            return None
        given = [self.call.outvars[i] for i in span]
        function = self._function(given, outs)
        rebuilt = _rebuilding(out_tree, own)

        def fusion(*args, **kwargs):
            return rebuilt(function(*tree_leaves((args, kwargs))))

        ins = tuple([_struct(v.aval) for v in given])
        return Fusion(fusion, (ins, {}), rebuilt([_struct(v.aval) for v in outs]), self.strict)


def _children(tree) -> list:
    """The subtrees right below the root of a tree."""
    return tree_flatten(tree, lambda x: x is not tree)[0]


def _rebuilding(out_tree, own: list[int]) -> Callable:
    """A function from some leaves of a tree to the smallest subtree that holds just these; else a tuple."""

    def one_or_all(leaves):
        return leaves[0] if len(leaves) == 1 else tuple(leaves)

    tree = out_tree.unflatten(range(out_tree.num_leaves))
    while tree_leaves(tree) != own:
        below = _children(tree)
        inside = [part for part in below if not set(own).isdisjoint(tree_leaves(part))]
        if len(inside) != 1 or inside[0] is tree:
            return one_or_all
        (tree,) = inside
    return tree_flatten(tree)[1].unflatten


@boundary
def evaluate(f: Callable, *, allow_transpose: bool = True) -> Callable:
    """A function that runs the operations of a function one by one, with jitted functions written out.

    Args:
        f: the function.
        allow_transpose: whether it may transpose.

    Raises:
        ValueError: the function transposes, and must not.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental.pallas import fuser
        >>> fuser.evaluate(lambda x: x.T + 1)(jnp.ones((1, 2))).shape
        (2, 1)
        >>> fuser.evaluate(lambda x: x.T + 1, allow_transpose=False)(jnp.ones((1, 2)))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: evaluate: the function transposes float32[1,2] by (1, 0), which allow_transpose=False forbids. ...
    """

    @boundary
    def wrapped(*args, **kwargs):
        leaves, in_tree = tree_flatten((args, kwargs))
        leaves = arrays("evaluate", leaves, in_tree, "args")
        flat = Flat(f, "evaluate", in_tree.unflatten)
        closed, consts = stage_open(flat, [x.aval for x in leaves])
        jaxpr, held = written_out(closed)
        for eqn in jaxpr.eqns:
            if not allow_transpose and eqn.primitive.name in _TRANSPOSES:
                raise ValueError(
                    f"evaluate: the function transposes {eqn.invars[0].aval.str_short()} by "
                    f"{eqn.params['permutation']}, which allow_transpose=False forbids."
                )
        return flat.out_tree.unflatten(eval_jaxpr(jaxpr, (), *held, *consts, *leaves))

    return wrapped
