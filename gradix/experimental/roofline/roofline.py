"""`roofline`: adds up the costs of the operations of a program."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradix._api.arguments import name_of
from gradix._api.derivatives.autodiff import vjp as _vjp
from gradix._api.inspect import make_jaxpr
from gradix._api.mapping.shard_map import shard_map
from gradix._api.structs import ShapeDtypeStruct
from gradix._base.listing import own_names as _own_names
from gradix._base.tracebacks import boundary
from gradix._base.tree import broadcast_prefix, tree_flatten, tree_map
from gradix._control.shard_map import shard_map_p
from gradix._core.jaxpr import Jaxpr, JaxprEqn, Literal
from gradix._core.named_sharding import NamedSharding
from gradix._core.primitive import Primitive
from gradix._core.sharding import PartitionSpec
from gradix._transforms.dce import dce_jaxpr

_log = logging.getLogger("gradix.experimental.roofline")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RooflineShape:
    """The shape and dtype of an operand or result.

    Example:
        >>> import numpy as np
        >>> from gradix.experimental.roofline import RooflineShape
        >>> x = RooflineShape(shape=(2, 3), dtype=np.dtype("float32"))
        >>> x.size, x.bytes
        (6, 24)
    """

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: Any) -> RooflineShape:
        """The shape and dtype of an array's type."""
        return cls(shape=tuple(aval.shape), dtype=aval.dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def bytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize

    @classmethod
    def total_bytes(cls, avals: Sequence[Any]) -> int:
        """The bytes of several arrays, given by their types."""
        return sum([cls.from_aval(a).bytes for a in avals])


def _sums(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {k: a.get(k, 0) + b.get(k, 0) for k in (*a, *b)}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RooflineResult:
    """What a program costs on each device. Results can be added; the peak is then the greater one.

    - `flops`: the operations of matrix products; `unfused_flops`: those of all operations.
    - `ici_bytes`, `ici_latency`: for each mesh axis, the bytes that a link between neighbours
      carries, and the number of steps that follow each other.
    - `hbm_bytes`: the bytes that matrix products read and write; `unfused_hbm_bytes`: those of all
      operations, if each reads its operands and writes its results.
    - `peak_hbm_bytes`: the most bytes of values that are needed at one time.

    Example:
        >>> from gradix.experimental.roofline import RooflineResult
        >>> RooflineResult(flops=10, peak_hbm_bytes=64) + RooflineResult(flops=5, peak_hbm_bytes=16)
        RooflineResult(flops=15, ..., peak_hbm_bytes=64, ...)
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
    ici_latency: dict[str, int] = dataclasses.field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """The cost of nothing."""
        return cls()

    def __add__(self, other: RooflineResult) -> RooflineResult:
        return RooflineResult(
            flops=self.flops + other.flops,
            unfused_flops=self.unfused_flops + other.unfused_flops,
            ici_bytes=_sums(self.ici_bytes, other.ici_bytes),
            ici_latency=_sums(self.ici_latency, other.ici_latency),
            hbm_bytes=self.hbm_bytes + other.hbm_bytes,
            peak_hbm_bytes=max(self.peak_hbm_bytes, other.peak_hbm_bytes),
            unfused_hbm_bytes=self.unfused_hbm_bytes + other.unfused_hbm_bytes,
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRuleContext:
    """What a rule is told of an operation besides its operands and parameters.

    `avals_in` and `avals_out` are the types of operands and results, `mesh` the mesh around it or
    None; a pinned operand of a matrix product is in fast memory already.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.extend.core import Primitive
        >>> from gradix.experimental import roofline
        >>> halve_p = Primitive("halve")
        >>> _ = halve_p.def_abstract_eval(lambda x: x)
        >>> @roofline.register_roofline(halve_p)
        ... def cost(context: roofline.RooflineRuleContext, x):
        ...     print(context.primitive, context.avals_in[0], context.mesh)
        ...     return roofline.RooflineResult(unfused_flops=x.size)
        >>> _ = roofline.roofline(halve_p.bind)(jnp.ones(3))
        halve float32[3] None
    """

    name_stack: str
    primitive: Primitive
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


Rule = Callable[..., RooflineResult]
_rules: dict[Any, Rule] = {}


def register_roofline(prim: Any) -> Callable[[Rule], Rule]:
    """A decorator for the function that tells what a primitive costs.

    Args:
        prim: the primitive, or a class of primitives that have no rule of their own.

    Returns:
        A decorator for a function from a `RooflineRuleContext`, a `RooflineShape` for each operand,
        and the parameters of the primitive by name, to a `RooflineResult`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.extend.core import Primitive
        >>> from gradix.experimental import roofline
        >>> cube_p = Primitive("cube")
        >>> _ = cube_p.def_abstract_eval(lambda x: x)
        >>> @roofline.register_roofline(cube_p)
        ... def cost(context, x):
        ...     return roofline.RooflineResult(unfused_flops=2 * x.size)
        >>> _, found = roofline.roofline(cube_p.bind)(jnp.ones(3))
        >>> found.unfused_flops
        6
    """

    def register(rule: Rule) -> Rule:
        _rules[prim] = rule
        return rule

    return register


def _rule_of(prim: Primitive) -> Rule | None:
    """The rule of a primitive, or else that of its class."""
    found = _rules.get(prim)
    return found or next((_rules[c] for c in type(prim).__mro__ if c in _rules), None)


def register_standard_roofline(prim: Any) -> None:
    """State that a primitive costs nothing, as operations that only rearrange do.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.extend.core import Primitive
        >>> from gradix.experimental import roofline
        >>> move_p = Primitive("move")
        >>> _ = move_p.def_abstract_eval(lambda x: x)
        >>> roofline.register_standard_roofline(move_p)
        >>> _, found = roofline.roofline(move_p.bind)(jnp.ones(3))
        >>> found.unfused_flops
        0
    """
    _rules[prim] = lambda context, *args, **params: RooflineResult.zeros()


@boundary
def roofline(
    f: Callable[..., Any],
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    vjp: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult]]:
    """The function that tells what a call of `f` costs, without running it.

    The bodies of loops count once, and branches not at all. An operation without a rule costs
    nothing, which is logged as a warning.

    Args:
        f: a function of arrays.
        mesh: a mesh over which `f` is mapped, as by `shard_map`; an `AbstractMesh` suffices. The
            cost is then that of each device. Without all of `mesh`, `in_specs` and `out_specs`, one
            device runs the whole.
        in_specs, out_specs: how arguments and results are divided, as for `shard_map`.
        pin_lhs_in_vmem, pin_rhs_in_vmem: whether the left or right operands of matrix products are
            in fast memory, so that reading them costs nothing; with the left ones, neither does
            writing the product.
        vjp: whether to count the derivative in place of `f`: cotangents like the results of `f` go
            back to cotangents of the arguments, in bfloat16. With a mesh, the backward pass alone
            counts.
        print_jaxpr: whether to print the program.

    Returns:
        A function of the arguments of `f`, or of types such as `ShapeDtypeStruct`, which returns
        the types of the results and a `RooflineResult`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.roofline import roofline
        >>> from gradix.sharding import AbstractMesh, PartitionSpec as P
        >>> f = lambda x: gradix.lax.psum(x, "i")
        >>> mesh = AbstractMesh((4,), ("i",))
        >>> _, cost = roofline(f, mesh, P("i"), P())(gradix.ShapeDtypeStruct((8, 4), jnp.float32))
        >>> cost.ici_bytes, cost.ici_latency
        ({'i': 48}, {'i': 8})
    """
    is_divided = not (mesh is None or in_specs is None or out_specs is None)

    @boundary
    def cost_of(*args: Any) -> tuple[Any, RooflineResult]:
        function = f
        if is_divided:
            function = shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
        called = _backward(function) if vjp else function
        closed, out = make_jaxpr(called, return_shape=True)(*tree_map(_struct, args))
        jaxpr = dce_jaxpr(closed.jaxpr)[0]
        if is_divided:
            mapped = [e for e in jaxpr.eqns if e.primitive is shard_map_p]
            jaxpr = dce_jaxpr(mapped[-1].params["jaxpr"].jaxpr)[0] if mapped else jaxpr
        if print_jaxpr:
            print(jaxpr)
        counter = Counter(f"roofline({name_of(f)})", mesh if is_divided else None, pin_lhs_in_vmem, pin_rhs_in_vmem)
        if is_divided and not vjp:
            out = _divided(out, mesh, out_specs)
        return out, counter.cost(jaxpr)

    cost_of.__name__ = cost_of.__qualname__ = f"roofline({name_of(f)})"
    return cost_of


def _divided(out: Any, mesh: Any, specs: Any) -> Any:
    """The types of results, which say how they are divided."""
    leaves = broadcast_prefix(specs, out, lambda s: s is None or isinstance(s, PartitionSpec))
    found, tree = tree_flatten(out)
    return tree.unflatten(
        [
            ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, s or PartitionSpec()))
            for x, s in zip(found, leaves)
        ]
    )


def _struct(x: Any) -> Any:
    if isinstance(x, ShapeDtypeStruct):
        return x
    return ShapeDtypeStruct(np.shape(x), x.dtype) if hasattr(x, "dtype") else x


def _backward(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function from arguments to what the pullback makes of the results."""

    @functools.wraps(f)
    def backward(*args: Any) -> Any:
        out, pullback = _vjp(f, *args)
        return pullback(out)

    return backward


@boundary
def roofline_and_grad(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """The function that tells what a call of `f` costs, and what its backward pass does.

    Args:
        f, mesh, in_specs, out_specs, pin_lhs_in_vmem, pin_rhs_in_vmem, print_jaxpr: as for
            `roofline`.

    Returns:
        A function of the arguments of `f`, which returns the types of the results, the cost of `f`,
        and that of the backward pass with arguments in bfloat16.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.roofline import roofline_and_grad
        >>> from gradix.sharding import AbstractMesh, PartitionSpec as P
        >>> costs = roofline_and_grad(lambda x, w: x @ w, AbstractMesh((4,), ("i",)), (P("i"), P()), P("i"))
        >>> out, forward, backward = costs(jnp.ones((8, 2)), jnp.ones((2, 3)))
        >>> out.shape, forward.flops, backward.flops
        ((8, 3), 24, 48)
    """

    def costs_of(*args: Any) -> tuple[Any, RooflineResult, RooflineResult]:
        def cost(vjp: bool, given):
            return roofline(
                f,
                mesh,
                in_specs,
                out_specs,
                pin_lhs_in_vmem=pin_lhs_in_vmem,
                pin_rhs_in_vmem=pin_rhs_in_vmem,
                vjp=vjp,
                print_jaxpr=print_jaxpr,
            )(*given)

        out, forward = cost(False, args)
        halves = tree_map(lambda x: ShapeDtypeStruct(np.shape(x), "bfloat16"), args)
        _, backward = cost(True, halves)
        return out, forward, backward

    costs_of.__name__ = costs_of.__qualname__ = f"roofline_and_grad({name_of(f)})"
    return costs_of


# -- programs --------------------------------------------------------------------------------------


class Counter:
    """Adds up the costs of programs of one function.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.roofline.roofline import Counter
        >>> program = gradix.make_jaxpr(lambda x: x @ x)(jnp.ones((2, 2))).jaxpr
        >>> Counter("product", None, False, False).cost(program).flops
        16
    """

    def __init__(self, name: str, mesh: Any, pin_lhs: bool, pin_rhs: bool):
        self.name, self.mesh, self.pin_lhs, self.pin_rhs = name, mesh, pin_lhs, pin_rhs

    def cost(self, jaxpr: Jaxpr) -> RooflineResult:
        """What a program costs."""
        total = RooflineResult(peak_hbm_bytes=peak_bytes(jaxpr))
        for eqn in jaxpr.eqns:
            total += self._of(eqn)
        return total

    def _of(self, eqn: JaxprEqn) -> RooflineResult:
        prim, params = eqn.primitive, eqn.params
        rule = _rule_of(prim)
        if rule is None:
            inner = params.get("jaxpr") or params.get("call_jaxpr")
            if inner is not None:
                return self.cost(inner.jaxpr if hasattr(inner, "jaxpr") else inner)
            if not prim.rearranges:
                _log.warning("No roofline rule for %s, skipping...", prim)
            return RooflineResult.zeros()
        ins = [v.aval for v in eqn.invars]
        context = RooflineRuleContext(
            name_stack=self.name,
            primitive=prim,
            avals_in=ins,
            avals_out=[v.aval for v in eqn.outvars],
            jaxpr_eqn_ctx=getattr(eqn, "ctx", None),
            mesh=self.mesh,
            pin_lhs_in_vmem=self.pin_lhs,
            pin_rhs_in_vmem=self.pin_rhs,
        )
        return rule(context, *map(RooflineShape.from_aval, ins), **params)


def peak_bytes(jaxpr: Jaxpr) -> int:
    """The most bytes of values that are needed at one time, before or after an equation.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental.roofline.roofline import peak_bytes
        >>> peak_bytes(gradix.make_jaxpr(lambda x: jnp.sin(x) + 1)(jnp.ones(8)).jaxpr)
        32
    """
    last: dict = {}
    for i, eqn in enumerate(jaxpr.eqns):
        last.update({v: i for v in eqn.invars if type(v) is not Literal})
    last.update({v: len(jaxpr.eqns) for v in jaxpr.outvars if type(v) is not Literal})

    def size(v) -> int:
        return RooflineShape.from_aval(v.aval).bytes if hasattr(v.aval, "shape") else 0

    live = {v for v in (*jaxpr.constvars, *jaxpr.invars) if v in last}
    now = peak = sum(map(size, live))
    for i, eqn in enumerate(jaxpr.eqns):
        ended = [v for v in {v for v in eqn.invars if type(v) is not Literal} if last[v] == i]
        now += sum(map(size, eqn.outvars)) - sum(map(size, ended))
        peak = max(peak, now)
        now -= sum([size(v) for v in eqn.outvars if v not in last])
    return peak


__dir__ = _own_names(__name__)
