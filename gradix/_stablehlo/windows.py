"""reduce_window and top_k; symbolic sizes become operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import is_symbolic_shape
from gradix._stablehlo.attributes import i64_array
from gradix._stablehlo.dimensions import SIZE
from gradix._stablehlo.movement import Movement
from gradix._stablehlo.writer import Value


class Windows(Movement):
    """Adds reductions over windows, and top_k, to the writer."""

    def reduce_window(
        self,
        xs: Sequence[Value],
        inits: Sequence[Value],
        sizes: Sequence,
        padding: Sequence,
        outs: list,
        body,
        *,
        strides: Sequence | None = None,
        base_dilation: Sequence | None = None,
        window_dilation: Sequence | None = None,
    ) -> list[Value]:
        """Reduce the windows of `xs` together.

        Args:
            inits: scalar values, one per operand.
            sizes: the window size along each axis.
            padding: a pair of widths for each axis; the elements added are `inits`.
            body: as for `reduce`.
        """
        if is_symbolic_shape([*sizes, *[n for pair in padding for n in pair]]):
            return self._reduce_open_window(
                xs,
                inits,
                sizes,
                padding,
                outs,
                body,
                strides=strides,
                base_dilation=base_dilation,
                window_dilation=window_dilation,
            )
        named = (
            ("window_dimensions", sizes),
            ("window_strides", strides),
            ("base_dilations", base_dilation),
            ("window_dilations", window_dilation),
        )
        attrs = [
            f"{name} = {i64_array(values)}"
            for name, values in named
            if values is not None and len(sizes)
        ]
        pairs = [list(p) for p in padding]
        attrs.append(f"padding = dense<{pairs or ''}> : tensor<{len(pairs)}x2xi64>")
        region = self.reducer([x.aval.dtype for x in xs], body, [x.aval for x in xs])
        return self.ops(
            "reduce_window", outs, *xs, *inits, attrs=", ".join(attrs), regions=(region,)
        )

    def _reduce_open_window(
        self, xs, inits, sizes, padding, outs, body, *, strides, base_dilation, window_dilation
    ) -> list[Value]:
        """As `reduce_window` with symbolic sizes: a call that XLA's shape refinement replaces."""
        scalars = [make_aval((), x.aval.dtype, False) for x in xs]
        reducer = self._closed_function(
            "window_reducer",
            [*scalars, *scalars],
            (lambda x, y: [self.op(body, scalars[0], x, y)]) if isinstance(body, str) else body,
        )
        ones = (1,) * len(sizes)
        vectors = [
            self.sizes(v if v is not None else ones)
            for v in (sizes, strides, base_dilation, window_dilation)
        ]
        widths = self.op(
            "reshape",
            make_aval((len(padding), 2), SIZE.dtype, False),
            self.sizes([n for pair in padding for n in pair]),
        )
        return self.custom_call(
            "stablehlo.dynamic_reduce_window",
            outs,
            *xs,
            *inits,
            *vectors,
            widths,
            api_version=2,
            attrs=f"called_computations = [@{reducer}]",
            is_refined=True,
        )

    def _closed_function(self, name: str, avals, fn: Callable) -> str:
        """A private function that does not take the dimension variables."""
        variables, self.variables = self.variables, {}
        try:
            return self.define(name, avals, fn)
        finally:
            self.variables = variables

    def top_k(self, x: Value, k, outs: list) -> list[Value]:
        """The `k` largest elements of the last axis, largest first, and their places."""
        if is_symbolic_shape((k,)):
            return self.custom_call(
                "stablehlo.dynamic_top_k",
                outs,
                x,
                self.dimension(k),
                api_version=2,
                is_refined=True,
            )
        return self.ops("chlo.top_k", outs, x, attrs=f"k = {k} : i64")

    def define(self, name: str, in_avals, fn: Callable, ordered: bool = False) -> str:
        raise NotImplementedError
