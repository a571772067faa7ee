"""Operations between the devices of a mesh: collectives along named axes, and what asks how values are divided."""

from __future__ import annotations

from gradix._stablehlo.single_operations import SingleOperations
from gradix._stablehlo.writer import Value


class Communication(SingleOperations):
    """The part of the emitter that writes them. `names` are mesh axes, `groups` the members that act together."""

    def all_reduce(self, x: Value, names, groups, hlo: str) -> Value:
        """What all members hold, reduced by the operation `hlo`, for each of them."""
        return self.op(
            "all_reduce",
            x.aval,
            x,
            attrs=self._among(names, groups),
            regions=(self.reducer([x.aval.dtype], hlo),),
        )

    def all_gather(self, out, x: Value, axis: int, names, groups) -> Value:
        """What all members hold, one behind the other along an axis, for each of them."""
        return self.op(
            "all_gather",
            out,
            x,
            attrs=f"all_gather_dim = {axis} : i64, {self._among(names, groups)}",
        )

    def reduce_scatter(self, out, x: Value, axis: int, names, groups) -> Value:
        """The sum of what all members hold, of which each gets its part along an axis."""
        return self.op(
            "reduce_scatter",
            out,
            x,
            attrs=f"scatter_dimension = {axis} : i64, {self._among(names, groups)}",
            regions=(self.reducer([out.dtype], "add"),),
        )

    def all_to_all(self, x: Value, axis: int, count: int, names, groups) -> Value:
        """The parts along an axis, one for each of `count` members, in exchange for theirs."""
        return self.op(
            "all_to_all",
            x.aval,
            x,
            attrs=f"split_dimension = {axis} : i64, concat_dimension = {axis} : i64, "
            f"split_count = {count} : i64, {self.groups_along(names, groups)}",
        )

    def collective_permute(self, x: Value, names, pairs) -> Value:
        """What each source of the pairs holds, for its target."""
        return self.op("collective_permute", x.aval, x, attrs=self.pairs_along(names, pairs))

    def sharding_constraint(self, x: Value, text: str) -> Value:
        """`x`, divided as the text of a Shardy sharding says."""
        return self.op(
            "sdy.sharding_constraint", x.aval, x, attrs=f"sharding = #sdy.sharding{text}"
        )

    def sharding_group(self, x: Value, number: int) -> None:
        """Ask that `x` is divided like all others of a group."""
        self.ops("sdy.sharding_group", [], x, attrs=f"group_id = {number} : i64")

    def _among(self, names, groups) -> str:
        return self.groups_along(names, groups) + ", use_global_device_ids"
