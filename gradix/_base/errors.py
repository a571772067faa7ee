"""The exceptions of tracing; each says what happened, where, and what to write instead."""

from . import leaks, source
from .lazy import lazy_module
from .tree.native import JaxRuntimeError

_elsewhere = lazy_module("gradix._base.elsewhere")

# fmt: off
__all__ = [
    "ConcretizationTypeError", "InconclusiveDimensionOperation", "JAXIndexError", "JAXTypeError", "JaxRuntimeError",
    "JaxprTypeError", "KeyReuseError", "NonConcreteBooleanIndexError", "RetraceError", "RetraceWarning",
    "ShardingTypeError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError", "UnexpectedTracerError",
    "CallbackResultError", "NotAValueError", "RefIndexError",
]
# fmt: on


def class_of(x) -> str:
    """The class of a value as Python shows it, where it is one of this package by its public name.

    Example:
        >>> import gradix.numpy as jnp
        >>> class_of(3), class_of(jnp.ones(2))
        ("<class 'int'>", "<class 'gradix.Array'>")
    """
    kind = type(x)
    module = kind.__module__
    if not module.startswith("gradix.") or "._" not in module:
        return repr(kind)
    # tracers and arrays are both an Array to users
    public = next((c for c in kind.__mro__ if c.__module__ == "gradix"), None)
    return repr(public) if public is not None else f"<class '{kind.__qualname__}'>"


def _type_of(tracer) -> str:
    """The tracer's type as `int32[4]`."""
    aval = getattr(tracer, "aval", None)
    short = getattr(aval, "str_short", None)
    return (short() if short is not None else str(aval)).lstrip("~")


def places_of(tracer) -> str:
    """The lines about places: of the use, of the tracer's origin, and of what keeps it."""
    here = str(source.current())
    lines = [f"\n  where:   {here}"]
    for name, method in (("made", "_made"), ("traced", "_origin")):
        describe = getattr(tracer, method, None)
        text = describe() if describe is not None else ""
        if text and not text.startswith(here):
            lines.append(f"\n  {name + ':':<9}{text}")
    if getattr(getattr(tracer, "_trace", None), "was", None) is not None:
        lines += [f"\n  kept in: {place}" for place in leaks.holders(tracer)]
    return "".join(lines)


def _instead(advice: str) -> str:
    return "\n  instead: " + advice.replace("\n", "\n           ")


class JAXTypeError(TypeError):
    """The base class of errors for a traced array or a key that is used where it is not allowed.

    Example:
        >>> import gradix
        >>> issubclass(gradix.errors.TracerBoolConversionError, gradix.errors.JAXTypeError)
        True
    """

    def __init__(self, message: str):
        super().__init__(message)


class JAXIndexError(IndexError):
    """The base class of errors for indexing with a traced array.

    Example:
        >>> import gradix
        >>> issubclass(gradix.errors.NonConcreteBooleanIndexError, gradix.errors.JAXIndexError)
        True
    """

    def __init__(self, message: str):
        super().__init__(message)


class ConcretizationTypeError(JAXTypeError):
    """A traced array was used where its value is needed while the program is being traced.

    Args:
        tracer: the traced array.
        context: a sentence about what needed the value.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.jit(lambda x: float(x))(1.0)
        Traceback (most recent call last):
            ...
        gradix.errors.ConcretizationTypeError: Abstract tracer value encountered where concrete value is expected: ...
    """

    def __init__(self, tracer, context: str = ""):
        super().__init__(
            f"Abstract tracer value encountered where concrete value is expected: traced array with shape "
            f"{_type_of(tracer)}.{' ' if context else ''}{context}{places_of(tracer)}"
            + _instead(
                _elsewhere.of_the_line(source.current())
                or "pass the argument the value depends on as static (static_argnums or static_argnames of jit),\n"
                "or compute with array functions whose result has a shape known beforehand."
            )
        )


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array was used as a truth value: in `if`, `while`, `and`, `or`, `not`, `bool()`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.jit(lambda x: x if x > 0 else -x)(1.0)
        Traceback (most recent call last):
            ...
        gradix.errors.TracerBoolConversionError: Attempted boolean conversion of traced array ...
    """

    def __init__(self, tracer):
        JAXTypeError.__init__(
            self,
            f"Attempted boolean conversion of traced array with shape {_type_of(tracer)}. "
            f"Its value is not known while the program is traced, so Python cannot choose a branch.{places_of(tracer)}"
            + _instead(
                _elsewhere.of_the_choice(source.current())
                + "jnp.where(condition, x, y) to select, lax.cond to run one of two functions, "
                "lax.while_loop to loop;\n"
                "& | ~ for and, or, not; or make the argument static (static_argnums of jit or checkpoint)."
            ),
        )


class TracerArrayConversionError(JAXTypeError):
    """A traced array was handed to NumPy or to other code that needs its numbers.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> import numpy as np
        >>> gradix.jit(lambda x: np.asarray(x))(1.0)
        Traceback (most recent call last):
            ...
        gradix.errors.TracerArrayConversionError: The numpy.ndarray conversion method ...
    """

    def __init__(self, tracer):
        super().__init__(
            f"The numpy.ndarray conversion method __array__() was called on traced array with shape "
            f"{_type_of(tracer)}.{places_of(tracer)}"
            + _instead(
                _elsewhere.of_the_call(source.current()) + "use the function of jnp with the same name as NumPy's; "
                "jnp.asarray(table)[i] to index a NumPy array;\n"
                "gradix.pure_callback to call code that works on numbers only."
            )
        )


class TracerIntegerConversionError(JAXTypeError):
    """A traced array was used as a Python integer: to index a list, as a length, in `range`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.jit(lambda n: [0.0] * n)(3)
        Traceback (most recent call last):
            ...
        gradix.errors.TracerIntegerConversionError: The __index__() method was called on traced array ...
    """

    def __init__(self, tracer):
        super().__init__(
            f"The __index__() method was called on traced array with shape {_type_of(tracer)}. "
            f"Lists, ranges and shapes need a concrete int, known while the program is traced.{places_of(tracer)}"
            + _instead(
                _elsewhere.of_the_call(source.current())
                + "jnp.asarray(sequence)[i] to index; lax.fori_loop for a loop over range(n);\n"
                "or make the argument static (static_argnums of jit or checkpoint)."
            )
        )


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the size of the result is not known.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> try:
        ...     gradix.jit(lambda x: x.at[x > 1].set(jnp.zeros(2)))(jnp.arange(4.0))
        ... except gradix.errors.NonConcreteBooleanIndexError as e:
        ...     print(str(e).split(";")[0])
        Array boolean indices must be concrete
    """

    def __init__(self, tracer):
        super().__init__(
            f"Array boolean indices must be concrete; got ShapedArray({_type_of(tracer)}). "
            f"The size of the result would depend on the mask's values.{places_of(tracer)}"
            + _instead(
                "jnp.where(mask, x, fill) keeps the shape; jnp.sum(x, where=mask) and its like reduce under a mask;\n"
                "x[jnp.nonzero(mask, size=n, fill_value=0)] has a size given beforehand;\n"
                "x.at[mask].set(values[: x[mask].shape[0]]) takes as many values as the mask selects."
            )
        )


class UnexpectedTracerError(JAXTypeError):
    """A traced array was used after the function it was traced in had returned.

    Args:
        msg: the message, or the leaked tracer.
        use: what the tracer was used for, if `msg` is a tracer.

    Example:
        >>> import gradix
        >>> kept = []
        >>> _ = gradix.jit(lambda x: kept.append(x))(1.0)
        >>> try:
        ...     kept[0] + 1
        ... except gradix.errors.UnexpectedTracerError:
        ...     print("it is used after the function returned")
        it is used after the function returned
    """

    def __init__(self, msg, use: str = ""):
        super().__init__(msg if isinstance(msg, str) else _leak_message(msg, use))


def check_leaks() -> None:
    """Raise if traced values outlive functions traced under the option jax_check_tracer_leaks."""
    left = leaks.survivors()
    if left:
        raise UnexpectedTracerError(
            left[0],
            f"after the function had returned it was still alive, as were {len(left) - 1} others"
            if len(left) > 1
            else "it was still alive after the function had returned",
        )


def _leak_message(tracer, use: str) -> str:
    detail = f": {use}" if use else ""
    return (
        f"Encountered an unexpected tracer: an intermediate value of type {_type_of(tracer)} has escaped the function "
        f"it was traced in{detail}.{places_of(tracer)}"
        + _instead(
            "return the value from the function, rather than store it in a global, an attribute or a list;\n"
            "pass values from outside as arguments; hold a value to be changed in place in a gradix.new_ref(...)."
        )
    )


class KeyReuseError(JAXTypeError):
    """A random key was consumed twice; it is raised under the option `jax_debug_key_reuse`.

    Example:
        >>> import gradix
        >>> from gradix import random
        >>> with gradix.debug_key_reuse(True):
        ...     key = random.key(0)
        ...     _ = random.normal(key)
        ...     try:
        ...         _ = random.uniform(key)
        ...     except gradix.errors.KeyReuseError as e:
        ...         print(type(e).__name__)
        KeyReuseError
    """


class ShardingTypeError(Exception):
    """The division of a result does not follow from the operands' types, or these disagree.

    Example:
        >>> import gradix
        >>> from gradix.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P
        >>> mesh = AbstractMesh((2, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
        >>> x = gradix.ShapeDtypeStruct((4, 4), "float32", sharding=NamedSharding(mesh, P("a", "b")))
        >>> try:
        ...     gradix.eval_shape(lambda x: x @ x.T, x)
        ... except gradix.errors.ShardingTypeError as e:
        ...     print("out_sharding" in str(e))
        True
    """


class JaxprTypeError(TypeError):
    """A jaxpr is not well typed.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.extend.core import check_jaxpr
        >>> program = gradix.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0).jaxpr
        >>> try:
        ...     check_jaxpr(program.replace(eqns=program.eqns[1:]))
        ... except gradix.errors.JaxprTypeError as e:
        ...     print("not defined" in str(e))
        True
    """


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic dimensions does not have the same answer for all their values.

    Example:
        >>> import gradix
        >>> from gradix import export
        >>> (n,) = export.symbolic_shape("n")
        >>> try:
        ...     n > 3
        ... except gradix.errors.InconclusiveDimensionOperation as e:
        ...     print(str(e).splitlines()[0])
        Symbolic dimension comparison 'n' > '3' is inconclusive: the answer is not the same for all values of n.
    """


class RetraceError(RuntimeError):
    """A function was traced more than `max_traces` times; the message says what differed.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> f = gradix.jit(lambda x: x + 1, max_traces=1)
        >>> _ = f(jnp.ones(2))
        >>> try:
        ...     f(jnp.ones(3))
        ... except gradix.errors.RetraceError as e:
        ...     print("float32[2] -> float32[3]" in str(e))
        True
    """


class RetraceWarning(UserWarning):
    """A function was traced many times; the message names the arguments that differed.

    Example:
        >>> import warnings
        >>> import gradix, gradix.numpy as jnp
        >>> f = gradix.jit(lambda x: x + 1)
        >>> with warnings.catch_warnings(record=True) as found:
        ...     warnings.simplefilter("always")
        ...     for n in range(1, 7):
        ...         _ = f(jnp.ones(n))
        >>> [w.category.__name__ for w in found]
        ['RetraceWarning']
    """


class NotAValueError(ValueError, TypeError):
    """Raised if a mutable array stands where the value of an array is needed.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> try:
        ...     jnp.asarray(gradix.new_ref(jnp.ones(2)))
        ... except gradix.errors.NotAValueError as e:
        ...     print(str(e).partition(": ")[2])
        read its value with ref[...].
    """


class CallbackResultError(ValueError, TypeError, JaxRuntimeError):
    """Raised if a callback's result has another tree, shape or dtype than was declared for it.

    In a compiled program it is an error of the run as well, as all errors of callbacks are on JAX.

    Example:
        >>> import gradix, numpy as np
        >>> try:
        ...     gradix.pure_callback(lambda: np.zeros(2), gradix.ShapeDtypeStruct((3,), "float32"))
        ... except gradix.errors.CallbackResultError as e:
        ...     print(str(e).partition(". ")[0])
        The callback returned an array of shape (2,) where its result_shape_dtypes say (3,)
    """

    __str__ = ValueError.__str__  # a JaxRuntimeError tells what jaxlib's constructor was given


class RefIndexError(ValueError, IndexError, JaxRuntimeError):
    """Raised if an index that is known is out of bounds of a mutable array.

    Of a kernel in a simulation, on one core or device of several, it is an error of the run on JAX.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> try:
        ...     gradix.new_ref(jnp.ones(2))[5]
        ... except gradix.errors.RefIndexError as e:
        ...     print(str(e).partition(", on")[0])
        Out of bound indexer: idx=5, dim=2
    """

    __str__ = ValueError.__str__


# Tracebacks name the classes as users write them.
for _name in __all__:
    if _name != JaxRuntimeError.__name__:
        globals()[_name].__module__ = "gradix.errors"
