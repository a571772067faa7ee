"""Operations between the devices of a mesh: collectives along named axes, sharding constraints."""

from __future__ import annotations

from gradix._stablehlo.single_operations import SingleOperations
from gradix._stablehlo.writer import Value


class Communication(SingleOperations):
    """Adds collectives to the emitter.

    `names` are mesh axes; `groups` lists the members of each group of devices that communicate.
    """

    def all_reduce(self, x: Value, names, groups, hlo: str) -> Value:
        """Reduce `x` over the members of a group by the operation `hlo`.

        Each member gets the result.
        """
        return self.op(
            "all_reduce",
            x.aval,
            x,
            attrs=self._among(names, groups),
            regions=(self.reducer([x.aval.dtype], hlo),),
        )

    def all_gather(self, out, x: Value, axis: int, names, groups) -> Value:
        """Concatenate `x` of all members along an axis; each member gets the result."""
        return self.op(
            "all_gather",
            out,
            x,
            attrs=f"all_gather_dim = {axis} : i64, {self._among(names, groups)}",
        )

    def reduce_scatter(self, out, x: Value, axis: int, names, groups) -> Value:
        """Sum `x` over the members; each member gets its slice of the sum along an axis."""
        return self.op(
            "reduce_scatter",
            out,
            x,
            attrs=f"scatter_dimension = {axis} : i64, {self._among(names, groups)}",
            regions=(self.reducer([out.dtype], "add"),),
        )

    def all_to_all(self, x: Value, axis: int, count: int, names, groups) -> Value:
        """Split `x` into `count` parts along an axis and send one of them to each member."""
        return self.op(
            "all_to_all",
            x.aval,
            x,
            attrs=f"split_dimension = {axis} : i64, concat_dimension = {axis} : i64, "
            f"split_count = {count} : i64, {self.groups_along(names, groups)}",
        )

    def collective_permute(self, x: Value, names, pairs) -> Value:
        """Send `x` from the source to the target of each pair."""
        return self.op("collective_permute", x.aval, x, attrs=self.pairs_along(names, pairs))

    def sharding_constraint(self, x: Value, text: str) -> Value:
        """`x`, constrained to a Shardy sharding given as text."""
        found = self.op(
            "sdy.sharding_constraint", x.aval, x, attrs=f"sharding = #sdy.sharding{text}"
        )
        found.definition = "constraint", x, ()
        return found

    def sharding_group(self, x: Value, number: int) -> None:
        """Ask that `x` is divided like all other values of its group."""
        self.ops("sdy.sharding_group", [], x, attrs=f"group_id = {number} : i64")

    def _among(self, names, groups) -> str:
        return self.groups_along(names, groups) + ", use_global_device_ids"
