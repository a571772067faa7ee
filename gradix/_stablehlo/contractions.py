"""Products and convolutions.

The emitter records facts about them for the choice of compile options.
"""

from __future__ import annotations

from math import prod

from gradix._stablehlo.attributes import i64_array
from gradix._stablehlo.communication import Communication
from gradix._stablehlo.facts import Convolution, Product
from gradix._stablehlo.writer import Value


class Contractions(Communication):
    """Adds products and convolutions to the emitter."""

    def dot_general(
        self, out, x: Value, y: Value, contracted, batched=((), ()), precision=None
    ) -> Value:
        """Contract `x` with `y`.

        Args:
            contracted: the axes of `x` and of `y` that are summed over.
            batched: the batch axes of `x` and of `y`.
            precision: names of one for each operand, or the fields of an algorithm; see
                `_ops/precision.py`.
        """
        (left, right), (x_batch, y_batch) = contracted, batched
        attrs = (
            f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = {[*x_batch]}, "
            f"rhs_batching_dimensions = {[*y_batch]}, lhs_contracting_dimensions = {[*left]}, "
            f"rhs_contracting_dimensions = {[*right]}>{self._asking(precision)}"
        )
        if all(type(n) is int for n in (*x.aval.shape, *out.shape)):
            terms = prod([x.aval.shape[i] for i in left])
            self.note_product(
                Product(
                    "dot_general",
                    out.dtype,
                    (x.aval, y.aval, out),
                    attrs,
                    terms,
                    prod(out.shape) * terms,
                )
            )
        return self.op("dot_general", out, x, y, attrs=attrs)

    def convolution(
        self,
        out,
        x: Value,
        kernel: Value,
        *,
        strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_groups: int = 1,
        batch_groups: int = 1,
        precision=None,
    ) -> Value:
        """Slide `kernel` over `x`.

        Args:
            numbers: three sequences of axes: (batch, features, space ...) of `x`, (output features,
                input features, space ...) of the kernel, (batch, features, space ...) of the
                result.
            precision: as of `dot_general`.
        """
        # Where space is divided over some mesh axes and repeated over others, XLA counts results twice.
        x, kernel = self.gathered(x, numbers[0][2:]), self.gathered(kernel, numbers[1][2:])
        attrs = (
            f"window_strides = {i64_array(strides)}, lhs_dilation = {i64_array(lhs_dilation)}, "
            f"padding = {_pads(padding)}, rhs_dilation = {i64_array(rhs_dilation)}, "
            f"dimension_numbers = #stablehlo.conv<{_layouts(numbers)}>, feature_group_count = {feature_groups} : "
            f"i64, batch_group_count = {batch_groups} : i64{self._asking(precision)}"
        )
        if all(type(n) is int for v in (x.aval, kernel.aval, out) for n in v.shape):
            self._note_convolution(
                out,
                x,
                kernel,
                numbers,
                feature_groups,
                batch_groups,
                lhs_dilation=tuple(lhs_dilation),
                attrs=attrs,
            )
        return self.gathered(self.op("convolution", out, x, kernel, attrs=attrs), numbers[2][2:])

    def _asking(self, precision) -> str:
        """The attributes for a precision, after a comma.

        Algorithms are omitted on the CPU, which has none.
        """
        if isinstance(precision, tuple):
            return (
                ", precision_config = ["
                + ", ".join([f"#stablehlo<precision {name}>" for name in precision])
                + "]"
            )
        if precision is None or self.platform == "cpu":
            return ""
        return f", algorithm = #stablehlo.dot_algorithm<{', '.join([f'{k} = {v}' for k, v in precision.items()])}>"

    def note_product(self, product: Product, count: int = 1) -> None:
        """Add a product to the facts, marked as inside a loop where a loop is being written."""
        self.facts.add(product._replace(is_in_loop=True) if self.loops else product, count)

    def _note_convolution(
        self, out, x, kernel, numbers, feature_groups, batch_groups, *, lhs_dilation, attrs
    ) -> None:
        outputs, inputs, *places = [kernel.aval.shape[i] for i in numbers[1]]
        result = tuple([out.shape[i] for i in numbers[2][2:]])
        terms = inputs * prod(places)
        work = prod(out.shape) * terms
        self.facts.convolutions.append(
            Convolution(
                out.dtype,
                tuple(places),
                result,
                inputs,
                outputs,
                feature_groups,
                batch_groups,
                lhs_dilation,
                work,
            )
        )
        self.note_product(
            Product("convolution", out.dtype, (x.aval, kernel.aval, out), attrs, terms, work)
        )


def _pads(padding) -> str:
    return f"dense<{[list(p) for p in padding] or ''}> : tensor<{len(padding)}x2xi64>"


def _layouts(numbers) -> str:
    """`[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`"""
    texts = []
    for spec, names in zip(numbers, ("bf", "oi", "bf")):
        order = [*names, *map(str, range(len(spec) - 2))]
        texts.append(f"[{', '.join([order[spec.index(i)] for i in range(len(spec))])}]")
    return f"{texts[0]}x{texts[1]}->{texts[2]}"
