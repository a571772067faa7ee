"""`jit(f, symbolic=...)`: one trace for all sizes of some axes, one program for each size."""

from __future__ import annotations

from typing import Any

from gradix._api.structs import Typed
from gradix._base.tree import keystr, tree_flatten, tree_flatten_with_path
from gradix._base.tree.prefix import broadcast_prefix
from gradix._core.dimensions import parsing
from gradix._core.dimensions.expression import SymbolicDim, is_symbolic_shape
from gradix._core.dimensions.scope import SymbolicScope
from gradix._core.dimensions.solving import Solver
from gradix._core.refs import Ref

_FORM = (
    'symbolic= takes a text such as "n" or "b, _" with a dimension for each axis of an array (`_` for a size '
    'that stays fixed, `...` for all further axes), constraints after semicolons as in "n; n >= 8", None for '
    "arrays of fixed shapes, or a tree of these that is a prefix of the positional arguments"
)


def check_form(spec: Any) -> None:
    """Check a specification.

    Raises:
        TypeError: a leaf is neither a text nor None.
        ValueError: a constraint is malformed, or contradicts the others.
    """
    for part in _parts(spec):
        if not _is_spec(part):
            raise TypeError(f"{_FORM}; got {part!r} of type {type(part).__name__} in {spec!r}.")
    try:
        SymbolicScope(_constraints(spec))
    except ValueError as e:
        raise ValueError(f"symbolic={spec!r}: {e}") from None


def _parts(spec: Any) -> list:
    return tree_flatten(spec, is_leaf=_is_spec)[0]


def _constraints(spec: Any) -> list[str]:
    """The constraints in all texts of a specification; they follow after semicolons."""
    found = [c.strip() for text in _parts(spec) if text is not None for c in text.split(";")[1:]]
    return [c for c in dict.fromkeys(found) if c]


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, str)


class SymbolicSizes:
    """The axes of a function's arguments whose sizes its trace leaves open.

    Args:
        spec: the argument `symbolic` of `jit`.
        name: the name of the function.
    """

    def __init__(self, spec: Any, name: str):
        self.spec, self.name = spec, name
        self.scope = SymbolicScope(_constraints(spec))
        self._stated = frozenset().union(
            *[
                side.variables()
                for _, (left, _, right) in self.scope.constraints
                for side in (left, right)
                if type(side) is SymbolicDim
            ]
        )

    def open(self, leaves: list, dynamic: tuple, named: dict) -> list[Typed | Ref]:
        """The types of the arguments, with symbolic dimensions for the sizes that are left open.

        A ref stands for a mutable array.
        """
        specs = self._specs(dynamic) + [None] * len(tree_flatten(named)[0])
        out: list[Typed | Ref] = []
        for i, (x, spec) in enumerate(zip(leaves, specs)):
            is_ref = isinstance(x, Ref)
            aval = x.aval.inner_aval if is_ref else x.aval
            if spec is not None:
                shape = spec.split(";")[0]
                try:
                    aval = aval.update(shape=parsing.shape(shape, self.scope, aval.shape))
                except ValueError as e:
                    raise ValueError(
                        f"the symbolic shape {shape!r} of {self._path(i, dynamic)} of {self.name}: {e}"
                    ) from None
            out.append(Ref(x.aval.update(inner_aval=aval), None) if is_ref else Typed(aval))
        if self._stated:
            self._check_stated(out)
        return out

    def _check_stated(self, opened: list) -> None:
        """Raise where a constraint uses a variable that no axis has."""
        dims = [d for x in opened for d in x.aval.shape if type(d) is SymbolicDim]
        missing = sorted(self._stated.difference(*[d.variables() for d in dims]))
        if missing:
            raise ValueError(
                f"symbolic={self.spec!r} of {self.name} constrains {', '.join(map(repr, missing))}, which no "
                "axis of the arguments has: give an axis this name, or leave the constraint out."
            )

    def _specs(self, dynamic: tuple) -> list:
        try:
            return broadcast_prefix(self.spec, dynamic, is_leaf=_is_spec)
        except ValueError as e:
            raise ValueError(
                f"symbolic={self.spec!r} is not a prefix of the {len(dynamic)} positional arguments of "
                f"{self.name}: {e}. {_FORM}."
            ) from None

    def _path(self, i: int, dynamic: tuple) -> str:
        paths = tree_flatten_with_path(dynamic)[0]
        return f"args{keystr(paths[i][0])}" if i < len(paths) else "an argument"

    def sizes(self, traced, leaves: list) -> dict[str, int]:
        """The values of the dimensions for the sizes of the arguments of a call.

        Args:
            traced: the signature for the types that `open` returned.
            leaves: the arguments of a call.

        Raises:
            ValueError: the sizes do not fit the dimensions.
        """
        names = [f"args[{i}]" if n is None else n for i, n in enumerate(self._names(traced))]
        solver = Solver(traced.avals, names)
        solver.require_solvable()
        return solver.solve([x.aval.shape for x in leaves])

    def _names(self, traced) -> list:
        known = traced.debug.arg_names
        return [known[i] if i < len(known) else None for i in range(len(traced.avals))]


def is_open(leaves) -> bool:
    """Whether the type of any leaf leaves a size open."""
    return any(is_symbolic_shape(x.aval.shape) for x in leaves)
