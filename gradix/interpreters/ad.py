"""Rules of primitives for derivatives, as libraries register them."""

from __future__ import annotations

from typing import Any

from gradix._base.listing import own_names as _own_names
from gradix._base.tree import register_pytree_node as _register
from gradix._core.array import as_array
from gradix._core.primitive import Linear as UndefinedPrimal
from gradix._core.trace import bind
from gradix._ops.basis import add_any, add_any_p as add_jaxvals_p, zeros
from gradix._transforms.jvp import JVPTrace as JVPTrace, JVPTracer as JVPTracer, jvp as _jvp
from gradix.interpreters import _rules
from gradix.interpreters._rules import Zero as Zero

# Undefined operands are pytrees without leaves, so that rules can pass them to functions like vmap.
_register(UndefinedPrimal, lambda x: ((), x.aval), lambda aval, _: UndefinedPrimal(aval))

primitive_jvps = _rules.Rules("jvp", _rules.jvp_to_ours, _rules.jvp_to_jax)
primitive_transposes = _rules.Rules("transpose", _rules.transpose_to_ours, _rules.transpose_to_jax)


def defjvp(primitive: Any, *jvprules: Any) -> None:
    """Set the jvp rule of a primitive by one function for each operand.

    Args:
        primitive: the primitive.
        *jvprules: for each operand, a function `rule(tangent, *primals, **params)`, or None if the
            derivative is zero. The tangent of the result is the sum of their results.

    Example:
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import ad
        >>> import gradix, gradix.numpy as jnp
        >>> cube_p = Primitive("cube")
        >>> _ = cube_p.def_impl(lambda x: x ** 3)
        >>> _ = cube_p.def_abstract_eval(lambda x: x)
        >>> ad.defjvp(cube_p, lambda t, x: t * 3 * x ** 2)
        >>> gradix.grad(cube_p.bind)(2.0)
        Array(12., dtype=float32, weak_type=True)
    """
    primitive.jvp = _rules.partials_jvp(primitive, jvprules, False)


def defjvp2(primitive: Any, *jvprules: Any) -> None:
    """As `defjvp`, for functions `rule(tangent, result, *primals, **params)`.

    Example:
        >>> import gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import ad
        >>> square_p = Primitive("my_square")
        >>> _ = square_p.def_impl(lambda x: x * x)
        >>> _ = square_p.def_abstract_eval(lambda x: x)
        >>> ad.defjvp2(square_p, lambda tangent, y, x: 2 * x * tangent)
        >>> gradix.jvp(square_p.bind, (3.0,), (1.0,))
        (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    primitive.jvp = _rules.partials_jvp(primitive, jvprules, True)


def deflinear(primitive: Any, transpose_rule: Any) -> None:
    """Declare a primitive linear, by a rule that does not need its operands.

    `transpose_rule(cotangent, **params)` returns a cotangent for each operand.

    Example:
        >>> import gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import ad
        >>> mine_p = Primitive("twice")
        >>> _ = mine_p.def_impl(lambda x: 2 * x)
        >>> _ = mine_p.def_abstract_eval(lambda x: x)
        >>> ad.deflinear(mine_p, lambda ct: [2 * ct])
        >>> gradix.grad(mine_p.bind)(3.0)
        Array(2., dtype=float32, weak_type=True)
    """
    deflinear2(primitive, lambda ct, *args, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Any, transpose_rule: Any) -> None:
    """Declare a primitive linear in all its operands.

    `transpose_rule(cotangent, *operands, **params)` returns a cotangent for each operand.

    Example:
        >>> import gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import ad
        >>> mine_p = Primitive("twice")
        >>> _ = mine_p.def_impl(lambda x: 2 * x)
        >>> _ = mine_p.def_abstract_eval(lambda x: x)
        >>> ad.deflinear2(mine_p, lambda ct, x: [2 * ct])
        >>> gradix.grad(mine_p.bind)(3.0)
        Array(2., dtype=float32, weak_type=True)
    """
    primitive.jvp = _rules.linear_jvp(primitive)
    primitive_transposes[primitive] = transpose_rule


def defbilinear(prim: Any, lhs_rule: Any, rhs_rule: Any) -> None:
    """Declare a primitive linear in each of two operands.

    `lhs_rule(ct, x, y, **params)` returns the cotangent of the first operand, where `x` is an
    `UndefinedPrimal`, and `rhs_rule` returns that of the second operand.

    Example:
        >>> import gradix
        >>> from gradix.extend.core import Primitive
        >>> from gradix.interpreters import ad
        >>> product_p = Primitive("my_product")
        >>> _ = product_p.def_impl(lambda x, y: x * y)
        >>> _ = product_p.def_abstract_eval(lambda x, y: x)
        >>> ad.defbilinear(product_p, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
        >>> gradix.grad(product_p.bind, (0, 1))(3.0, 5.0)
        (Array(5., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """

    def lhs(t, x, y, **params):
        return bind(prim, [t, y], params)

    def rhs(t, x, y, **params):
        return bind(prim, [x, t], params)

    def transpose(ct, x, y, **params):
        if is_undefined_primal(x):
            return [lhs_rule(ct, x, y, **params), None]
        return [None, rhs_rule(ct, x, y, **params)]

    defjvp(prim, lhs, rhs)
    primitive_transposes[prim] = transpose


def get_primitive_transpose(p: Any) -> Any:
    """The transpose rule of a primitive.

    Raises:
        NotImplementedError: the primitive has none.

    Example:
        >>> from gradix import lax
        >>> from gradix.interpreters import ad
        >>> callable(ad.get_primitive_transpose(lax.neg_p))
        True
    """
    try:
        return primitive_transposes[p]
    except KeyError:
        raise NotImplementedError(
            f"Transpose rule (for reverse-mode differentiation) for '{p}' not implemented. "
            "Register one with ad.primitive_transposes or ad.deflinear2."
        ) from None


def is_undefined_primal(x: Any) -> bool:
    """Whether an operand of a transpose rule has no value, because its cotangent is wanted.

    Example:
        >>> import gradix
        >>> from gradix.interpreters import ad
        >>> ad.is_undefined_primal(ad.UndefinedPrimal(gradix.typeof(1.0))), ad.is_undefined_primal(1.0)
        (True, False)
    """
    return type(x) is UndefinedPrimal


def instantiate_zeros(tangent: Any) -> Any:
    """A `Zero` as an array of zeros; other tangents unchanged.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.interpreters import ad
        >>> ad.instantiate_zeros(ad.Zero(gradix.typeof(jnp.ones(2))))
        Array([0., 0.], dtype=float32)
    """
    return zeros(tangent.aval) if type(tangent) is Zero else tangent


def zeros_like_aval(aval: Any) -> Any:
    """An array of zeros of a type.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.interpreters import ad
        >>> ad.zeros_like_aval(gradix.typeof(jnp.ones(2)))
        Array([0., 0.], dtype=float32)
    """
    return zeros(aval)


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two tangents.

    Example:
        >>> from gradix.interpreters import ad
        >>> ad.add_jaxvals(1.0, 2.5)
        Array(3.5, dtype=float32, weak_type=True)
    """
    return add_any(as_array(x), as_array(y))


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, each of which may be a `Zero`.

    Example:
        >>> import gradix
        >>> from gradix.interpreters import ad
        >>> ad.add_tangents(ad.Zero(gradix.typeof(1.0)), 2.5)
        2.5
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_jaxvals(x, y)


def jvp(
    fun: Any, primals: Any, tangents: Any, has_aux: bool = False, instantiate: bool = True, transform_stack: bool = True
) -> Any:
    """The results of a function of arrays, and their tangents, as two lists.

    Args:
        fun: a function of arrays that returns a list of arrays, or a `WrappedFun` of one.
        primals: the arguments.
        tangents: their tangents, each an array or a `Zero`.
        has_aux: whether the function returns a pair of the list and other data, which is then the
            third result.
        instantiate: whether zero tangents of results are given as arrays instead of `Zero`.
        transform_stack: not used.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.interpreters import ad
        >>> ad.jvp(lambda x: [x * x], [jnp.float32(3.0)], [jnp.float32(1.0)])
        ([Array(9., dtype=float32)], [Array(6., dtype=float32)])
    """
    function, aux = getattr(fun, "call_wrapped", fun), []

    def flat(*xs):
        outs = function(*xs)
        if has_aux:
            outs, more = outs
            aux[:] = [more]
        return [as_array(o) for o in outs]

    ys, ts = _jvp(flat, [as_array(x) for x in primals], [_rules.without_zero(t) for t in tangents])
    ts = [_rules.as_zero(t, y) for t, y in zip(ts, ys)]
    if instantiate:
        ts = [instantiate_zeros(t) for t in ts]
    return (ys, ts, aux[0]) if has_aux else (ys, ts)


__all__ = [
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]


__dir__ = _own_names(__name__)
