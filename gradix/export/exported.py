"""`Exported`: a lowered program that can be called, differentiated, and written to a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from gradix._base.lazy import lazy_module
from gradix._base.tree import PyTreeDef
from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.dimensions.solving import Solver
from gradix._runtime import xla_artifact
from gradix._stablehlo.open_dimensions import OpenDimensions
from gradix.export import calling, serialization, shardings

_showing = lazy_module("gradix._api.showing")


@dataclasses.dataclass(frozen=True, eq=False)
class Exported:
    """A function lowered for given types, made by `export` or `deserialize`.

    Attributes:
        fun_name: the function's name.
        in_tree: the tree of `(args, kwargs)`.
        in_avals: the types of the leaves, whose shapes may be symbolic.
        out_tree: the tree of the results.
        out_avals: the types of the results. Where values decide a size, the program returns a buffer
            of the greatest size, and after its results the sizes, as `out_tree` and `out_avals` say.
            `call` returns the results alone, in their true sizes.
        in_shardings_hlo, out_shardings_hlo: XLA's `HloSharding` of each argument and result; None where
            none was asked for. `in_shardings_jax` and `out_shardings_jax` return the shardings.
        nr_devices: the number of devices for which the program was lowered.
        platforms: the platforms on which it can be called.
        ordered_effects, unordered_effects: the effects of the program.
        disabled_safety_checks: the checks that `export` omitted.
        mlir_module_serialized: the module, as a portable StableHLO artifact.
        calling_convention_version: how arguments are passed to the module.
        module_kept_var_idx: the arguments that the module takes.
        uses_global_constants: whether the module takes dimension variables or the platform.
        bound_dims: the values, by name, of dimension variables that no argument has.
        constraints: the constraints on the sizes in a call, as strings.
        assumptions: the constraints that decided a comparison while the function was traced, each
            with the place of the comparison.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix import export
        >>> b, = export.symbolic_shape("b")
        >>> exported = export.export(gradix.jit(jnp.cumsum))(gradix.ShapeDtypeStruct((b,), jnp.float32))
        >>> exported.out_avals
        (ShapedArray(float32[b]),)
        >>> exported.call(jnp.ones(3))
        Array([1., 2., 3.], dtype=float32)
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple
    out_tree: PyTreeDef
    out_avals: tuple
    _has_named_shardings: bool
    _in_named_shardings: tuple
    _out_named_shardings: tuple
    in_shardings_hlo: tuple
    out_shardings_hlo: tuple
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple
    unordered_effects: tuple
    disabled_safety_checks: Sequence
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None
    bound_dims: tuple[tuple[str, int], ...] = ()
    constraints: tuple[str, ...] = ()
    assumptions: tuple[tuple[str, str], ...] = ()
    # the true shapes of the results, where values decide some; else None
    _counted: Any = None
    # The functions of the runtime that the reader of a file allows; None if it was not read.
    _allowed_calls: frozenset[str] | None = None
    # functions and programs that call it, and go with it
    memo: dict[Any, Any] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    # -- dimensions --------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        return _showing.exported(self)

    @property
    def scope(self):
        """The scope of the dimension variables; None if all shapes are fixed."""
        return next(
            (d.scope for a in (*self.in_avals, *self.out_avals) for d in a.shape if type(d) is SymbolicDim), None
        )

    @property
    def dimension_variables(self) -> tuple[str, ...]:
        """The names of the dimension variables in the types of arguments and results."""
        found: set[str] = set()
        for a in (*self.in_avals, *self.out_avals):
            for d in a.shape:
                if type(d) is SymbolicDim:
                    found |= d.variables()
        return tuple(sorted(found))

    @property
    def explicit_dimensions(self) -> tuple[str, ...]:
        """The dimension variables that the module takes, because no size determines them."""
        names = calling.argument_names(self)
        return OpenDimensions(self.in_avals, Solver(self.in_avals, names), self.dimension_variables).given

    def bind_dims(self, **values: int) -> Exported:
        """The function with values for dimension variables that no argument has.

        Args:
            **values: positive integers, by the names of the variables.

        Raises:
            ValueError: there is no such variable, its value follows from the arguments, or the
                given value is not a positive integer.
        """
        free = set(self.dimension_variables) - {
            n for a in self.in_avals for d in a.shape if type(d) is SymbolicDim for n in d.variables()
        }
        for name, value in values.items():
            if name not in free:
                raise ValueError(
                    f"bind_dims: '{name}' is not a dimension variable of the function '{self.fun_name}' that "
                    f"no argument has; these variables are {sorted(free) or 'none'}."
                )
            if type(value) is not int or value < 1:
                raise ValueError(
                    f"bind_dims: the dimension variable '{name}' must be a positive integer, got {value!r}."
                )
        return dataclasses.replace(self, bound_dims=tuple(sorted({**dict(self.bound_dims), **values}.items())))

    # -- use ---------------------------------------------------------------------------------------

    def call(self, *args, **kwargs):
        """Call the program with arguments of the tree and types for which it was exported.

        The call can be jitted and mapped by `vmap`. It can be differentiated in reverse mode as
        often as there is a `vjp`.

        Raises:
            ValueError: the tree, a rank, a dtype or a size does not fit, or the program was exported
                for other platforms.
        """
        return calling.call(self, args, kwargs)

    def mlir_module(self, serialized: bool = True) -> Any:
        """The module as StableHLO text.

        Args:
            serialized: whether to return text; otherwise the result is a module object of MLIR's
                Python bindings.
        """
        if serialized:
            return xla_artifact.module_text(self.mlir_module_serialized)
        return xla_artifact.module(self.mlir_module_serialized)

    def has_vjp(self) -> bool:
        """Whether the function has an exported gradient."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The exported gradient.

        It takes the flat arguments and the cotangents of the flat results, and returns the
        cotangents of the arguments.

        Raises:
            ValueError: the function was read from a file that has no gradient.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"No VJP is available for the exported function '{self.fun_name}', because its file has "
                "none. Serialize it with vjp_order=1, or more for higher derivatives."
            )
        return self._get_vjp(self)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The program as bytes, which `deserialize` and JAX can read.

        Args:
            vjp_order: the number of reverse-mode derivatives that are written to the file.

        Raises:
            ValueError: a tree has nodes of a type that is not registered for serialization, or
                dimension variables are bound.
        """
        return serialization.serialize(self, vjp_order)

    def in_shardings_jax(self, mesh=None) -> tuple:
        """The shardings of the arguments, on `mesh` if it is given; None for unspecified ones."""
        return shardings.on_mesh(self._in_named_shardings, mesh)

    def out_shardings_jax(self, mesh=None) -> tuple:
        """The shardings of the results, on `mesh` if it is given; None for unspecified ones."""
        return shardings.on_mesh(self._out_named_shardings, mesh)
