"""`shard_map` of values of libraries' types above arrays: specs of a library say how their arrays are divided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradix._api.hi_values import is_above, is_value, made_of, opened, tangent_lo_types, tangent_type
from gradix._base.tree import flatten_axes, tree_flatten
from gradix._core.dtypes import float0
from gradix._core.sharding import PartitionSpec


def call(mapped: Callable, f: Callable, specs: tuple, types: tuple[Callable, ...], leaves: Sequence, *, tree) -> Any:
    """The result of a function of values above arrays, of which each device gets its parts.

    Args:
        mapped: `mapped(function, in_specs, out_specs)` is `shard_map` of a function of arrays; `out_specs` is
            a function without arguments.
        f: the function of the parts.
        specs: the `in_specs` and `out_specs` of `f`.
        types: functions `(aval, spec)`: the type of a part of a value, and of the whole of such parts; and
            `(array, spec)`: the array, divided so.
        leaves, tree: the arguments of `f`, in which values above arrays are leaves.
    """
    given = [_Leaf("in_specs", x, s) for x, s in zip(leaves, flatten_axes("shard_map in_specs", tree, specs[0]))]
    for g in given:  # the arrays that carry derivatives are not the user's, to be divided already
        g.arrays[g.n :] = map(types[2], g.arrays[g.n :], g.specs[g.n :])
    outs: list[_Leaf] = []
    held: dict = {}

    def function(*arrays):
        rest = iter(arrays)
        found, held["tree"] = tree_flatten(f(*tree.unflatten([g.made_of(rest, types[0]) for g in given])), is_value)
        wanted = flatten_axes("shard_map out_specs", held["tree"], specs[1])
        outs[:] = [_Leaf("out_specs", x, s) for x, s in zip(found, wanted)]
        return [a for g in outs for a in g.arrays]

    in_specs = tuple([s for g in given for s in g.specs])
    results = mapped(function, in_specs, lambda: [s for g in outs for s in g.specs])(
        tuple([a for g in given for a in g.arrays])
    )
    rest = iter(results)
    return held["tree"].unflatten([g.made_of(rest, types[1]) for g in outs])


class _Leaf:
    """A leaf of arguments or results as arrays, with a PartitionSpec for each."""

    def __init__(self, which: str, x: Any, spec: Any):
        self.spec, self.aval = spec, None
        self.arrays, self.specs, self.n = [x], [spec], 1
        if is_value(x):
            node = opened(x)
            self.aval, self.n = node.aval, len(node.arrays)
            if isinstance(spec, PartitionSpec) or not hasattr(spec, "to_lo"):
                raise TypeError(
                    f"shard_map {which}: a value of type {self.aval} is divided by a HiPspec of its library, whose "
                    f"method to_lo() lists the PartitionSpecs of the value's arrays; got {spec!r}."
                )
            self.arrays = [*node.arrays, *node.carriers]
            self.specs = [*spec.to_lo(), *_specs_of_carriers(self.aval, spec)][: len(self.arrays)]
            if len(self.specs) != len(self.arrays):
                raise ValueError(
                    f"shard_map {which}: {spec!r} lists {len(list(spec.to_lo()))} PartitionSpecs, but a value of type "
                    f"{self.aval} is made of {self.n} arrays. Return one from to_lo() for each of them."
                )

    def made_of(self, arrays: Iterator, typed: Callable) -> Any:
        """The leaf of the arrays that follow; a value gets the type `typed(aval, spec)`."""
        own = [next(arrays) for _ in self.arrays]
        return own[0] if self.aval is None else made_of(typed(self.aval, self.spec), own, self.n)


def _specs_of_carriers(aval: Any, spec: Any) -> list:
    """The PartitionSpecs of the arrays of a tangent that have derivatives."""
    tangent = spec.to_tangent_spec() if hasattr(spec, "to_tangent_spec") else spec
    found = [tangent] if isinstance(tangent, PartitionSpec) else tangent.to_lo()
    types = tangent_lo_types(aval) if is_above(tangent_type(aval)) else [tangent_type(aval)]
    return [s for s, a in zip(found, types) if a.dtype != float0]
