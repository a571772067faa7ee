"""Functions for use in kernels and around them: prints, checks, products, memory and state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gradix import export, lax, numpy as jnp
from gradix._api.callbacks import debug_callback, debug_print as _debug_print
from gradix._api.jit.jit import jit
from gradix._base import config
from gradix._base.tree import tree_map
from gradix._core.refs import AbstractRef, Ref
from gradix.experimental.pallas._contents import undefined
from gradix.experimental.pallas._memory import as_memory, first_value, new_kernel_ref
from gradix.experimental.pallas._refs import Sliceable
from gradix.experimental.pallas._windows import as_index

T = TypeVar("T")


def debug_print(fmt: str, *args: Any) -> None:
    """Print values in a kernel when it runs, each program in turn.

    Args:
        fmt: a format such as `"x = {}"`; without braces, the values follow the text.
        *args: arrays, or references, whose values are printed.

    Example:
        >>> import gradix
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(o):
        ...     pl.debug_print("program {}", pl.program_id(0))
        >>> _ = pl.pallas_call(kernel, gradix.ShapeDtypeStruct((1,), "float32"), grid=2)()
        program 0
        program 1
    """
    if args and "{" not in fmt:
        fmt += "{} " * len(args)
        fmt = fmt.rstrip()
    values = [a.read() if isinstance(a, Ref) else a for a in args]
    _debug_print(fmt, *values, ordered=True)


def debug_check(condition: Any, message: str) -> None:
    """Raise an error when a kernel runs and a condition is false, if such checks are enabled.

    Args:
        condition: a boolean scalar.
        message: what the error says.

    Raises:
        AssertionError: the condition is false, inside of `enable_debug_checks()`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def kernel(x_ref, out_ref):
        ...     pl.debug_check(x_ref[0] > 0, "The first element must be positive.")
        ...     out_ref[:] = 2 * x_ref[:]
        >>> pl.pallas_call(kernel, out_shape=gradix.ShapeDtypeStruct((2,), "int32"))(jnp.array([3, 5]))
        Array([ 6, 10], dtype=int32)
    """
    if not config.state.jax_pallas_enable_debug_checks:
        return

    def check(holds):
        if not np.all(holds):
            raise AssertionError(f"Check failed: {message}")

    debug_callback(check, condition, ordered=True)


def debug_checks_enabled() -> bool:
    """Whether `debug_check` checks.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.debug_checks_enabled()
        False
    """
    return config.state.jax_pallas_enable_debug_checks


def enable_debug_checks(new_val: bool = True) -> Any:
    """A context in which `debug_check` checks.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> with pl.enable_debug_checks():
        ...     pl.debug_checks_enabled()
        True
    """
    return config.override("jax_pallas_enable_debug_checks", bool(new_val))


def enable_poison_buffers(new_val: bool = True) -> Any:
    """A context that is accepted: memory that is not written always reads NaN here.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> with pl.enable_poison_buffers():
        ...     pass
    """
    return config.override("jax_pallas_poison_buffers", bool(new_val))


def pallas_export_experimental(dynamic_shapes: bool) -> Any:
    """A context that is accepted: kernels can be exported as other functions.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> with pl.pallas_export_experimental(dynamic_shapes=True):
        ...     "stablehlo.sine" in str(pl.lower_as_mlir(jnp.sin, 1.0))
        True
    """
    return config.override("jax_pallas_verbose_errors", config.state.jax_pallas_verbose_errors)


def lower_as_mlir(
    f: Callable,
    *args: Any,
    dynamic_shapes: bool = False,
    device: Any = None,
    static_argnames: Any = (),
    platforms: Any = None,
    **kwargs: Any,
) -> str:
    """The StableHLO text of a function.

    Args:
        f: the function, which may be jitted.
        *args, **kwargs: its arguments, or types of these such as `ShapeDtypeStruct`s.
        dynamic_shapes: whether shapes may be symbolic, as in functions to be exported.
        platforms: those to lower for, if shapes may be symbolic.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> "stablehlo.add" in str(pl.lower_as_mlir(lambda x: x + 1, 1.0))
        True
    """
    compiled = jit(f, static_argnames=static_argnames)
    if dynamic_shapes:
        return export.export(compiled, platforms=platforms)(*args, **kwargs).mlir_module()
    return compiled.lower(*args, **kwargs).as_text()


# -- memory ----------------------------------------------------------------------------------------


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array that holds what memory holds before it is written: NaN, or the smallest integers.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.empty((2,), "float32")
        Array([nan, nan], dtype=float32)
    """
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return undefined(shape, jnp.dtype(dtype))


def empty_like(x: Any) -> Any:
    """A pytree of such arrays, of the shapes and dtypes of another.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> pl.empty_like(jnp.ones(2))
        Array([nan, nan], dtype=float32)
    """
    return tree_map(lambda a: empty(a.shape, a.dtype), x)


def empty_ref_like(x: Any) -> Any:
    """A reference to such an array, of the shape and dtype of another, or a pytree of these.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def reverse(ref):
        ...     room = pl.empty_ref_like(ref)
        ...     room[...] = ref[::-1]
        ...     ref[...] = room[...]
        >>> pl.run_state(reverse)(jnp.arange(3))
        Array([2, 1, 0], dtype=int32)
    """
    return tree_map(
        lambda a: new_kernel_ref(first_value(as_memory(a)), as_memory(a).memory_space),
        x,
        is_leaf=lambda a: hasattr(a, "dtype"),
    )


def run_state(f: Callable[..., None]) -> Callable[[T], T]:
    """The function from first values to last values of references that `f` changes.

    Args:
        f: a function of one pytree of references, which returns None.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> def count(refs):
        ...     refs["n"][...] += 1
        >>> pl.run_state(count)({"n": 2})
        {'n': Array(3, dtype=int32)}
    """

    def run(values):
        refs = tree_map(new_kernel_ref, values)
        f(refs)
        return tree_map(lambda r: r.read(), refs, is_leaf=lambda r: isinstance(r, Ref))

    return run


class _Selected(Sliceable, Ref):
    """The one of several references that a traced number picks."""

    __slots__ = ("refs", "which")

    def __init__(self, which, refs):
        self.refs, self.which = refs, which
        base = refs[0].aval
        aval = AbstractRef(base.inner_aval, base.memory_space, base.kind)
        super().__init__(aval, None, min([r._level for r in refs]))

    def read(self):
        return lax.select_n(self.which, *[r.read() for r in self.refs])

    def write(self, value) -> None:
        for i, ref in enumerate(self.refs):
            ref.write(jnp.where(self.which == i, value, ref.read()))


def select_ref(idx: Any, *refs: Any) -> Any:
    """A reference to the one of `refs`, all of one type, that `idx` picks.

    Raises:
        ValueError: there are no references, or their types differ.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> def count(refs):
        ...     pl.select_ref(refs["n"][...] % 2, refs["even"], refs["odd"])[...] += 1
        >>> pl.run_state(count)({"n": jnp.array(7), "even": jnp.array(0), "odd": jnp.array(0)})
        {'even': Array(0, dtype=int32), 'n': Array(7, dtype=int32), 'odd': Array(1, dtype=int32)}
    """
    if not refs or any((r.shape, r.dtype) != (refs[0].shape, refs[0].dtype) for r in refs):
        raise ValueError(f"select_ref takes references of one shape and dtype, got {[str(r.aval) for r in refs]}.")
    return _Selected(jnp.clip(as_index(jnp.asarray(idx)), 0, len(refs) - 1).astype(np.int32), refs)


# -- arithmetic ------------------------------------------------------------------------------------


def dot(
    a: Any, b: Any, trans_a: bool = False, trans_b: bool = False, allow_tf32: bool | None = None, precision: Any = None
) -> Any:
    """The product of two matrices in float32 (of integers in int32), each transposed first if wanted.

    Raises:
        ValueError: an operand is no matrix, or `allow_tf32` and `precision` are both given.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> pl.dot(jnp.ones((2, 3)), jnp.ones((2, 3)), trans_b=True)
        Array([[3., 3.],
               [3., 3.]], dtype=float32)
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"`a` and `b` must be 2D arrays, got shapes {a.shape} and {b.shape}.")
    if allow_tf32 is not None and precision is not None:
        raise ValueError("Only one of allow_tf32 and precision can be specified.")
    kind = np.int32 if jnp.issubdtype(a.dtype, np.integer) else np.float32
    return lax.dot_general(
        a,
        b,
        (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ())),
        precision=precision,
        preferred_element_type=kind,
    )


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Any:
    """1/x; an approximation is allowed, but not needed here.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.reciprocal(4.0)
        Array(0.25, dtype=float32, weak_type=True)
    """
    return lax.reciprocal(x)


def delay(nanos: Any) -> None:
    """Wait on the device; it has no effect here.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.delay(10)
    """
