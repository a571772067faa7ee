"""Operations that only one primitive uses: sorts, transforms, random words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gradix._core.aval import make_aval
from gradix._stablehlo.attributes import axes_by_name, i64_array
from gradix._stablehlo.dimensions import is_open
from gradix._stablehlo.windows import Windows
from gradix._stablehlo.writer import Value


class SingleOperations(Windows):
    """Adds these operations to the emitter."""

    def sort(
        self, xs: Sequence[Value], axis: int, is_stable: bool, before: Callable
    ) -> list[Value]:
        """Sort `xs` together.

        `before(a0, b0, a1, b1, ...)` says whether the `a`s come before the `b`s.
        """
        scalars = [make_aval((), x.aval.dtype) for x in xs for _ in (0, 1)]
        return self.ops(
            "sort",
            [x.aval for x in xs],
            *xs,
            regions=(self.region(scalars, before),),
            attrs=f"dimension = {axis} : i64, is_stable = {_truth(is_stable)}",
        )

    def scatter(
        self,
        out,
        x: Value,
        indices: Value,
        updates: Value,
        numbers: Mapping[str, Sequence[int]],
        body: Callable,
        *,
        is_sorted: bool,
        is_unique: bool,
    ) -> Value:
        """Scatter `updates` into `x` at the index vectors, combined by `body(old, new)` of scalars.

        Args:
            numbers: axes by the names of StableHLO's attribute; index vectors lie along the last
                axis of `indices`.
        """
        scalar, axes = make_aval((), out.dtype), axes_by_name(numbers, indices.aval.ndim - 1)
        indices = self.index(indices, x.aval.shape)  # type: ignore[attr-defined]
        return self.op(
            "scatter",
            out,
            x,
            indices,
            updates,
            regions=(self.region([scalar, scalar], body),),
            attrs=(
                f"scatter_dimension_numbers = #stablehlo.scatter<{axes}>, indices_are_sorted = {_truth(is_sorted)}, "
                f"unique_indices = {_truth(is_unique)}"
            ),
        )

    def select_and_scatter(
        self, out, x: Value, source: Value, sizes, strides, direction: str
    ) -> Value:
        """Add each element of `source` at the extremum of its window of `x`, by `direction`."""
        scalar = make_aval((), x.aval.dtype)
        select = self.region([scalar, scalar], lambda a, b: self.compare(a, b, direction))  # type: ignore[attr-defined]
        zero = self.constant(0, make_aval((), out.dtype))
        return self.op(
            "select_and_scatter",
            out,
            x,
            source,
            zero,
            regions=(select, self.reducer([out.dtype], "add")),
            attrs=(
                f"window_dimensions = {i64_array(sizes)}, window_strides = {i64_array(strides)}, "
                f"padding = dense<0> : tensor<{out.ndim}x2xi64>"
            ),
        )

    def cholesky(self, x: Value) -> Value:
        """The lower factor of Hermitian matrices; the elements above its diagonal are undefined."""
        return self.op("cholesky", x.aval, x, attrs="lower = true")

    def triangular_solve(
        self,
        a: Value,
        b: Value,
        *,
        left_side: bool,
        lower: bool,
        unit_diagonal: bool,
        transpose: str,
    ) -> Value:
        """X of `op(a) X = b` or `X op(a) = b`; `transpose`: NO_TRANSPOSE, TRANSPOSE or ADJOINT."""
        return self.op(
            "triangular_solve",
            b.aval,
            a,
            b,
            attrs=(
                f"left_side = {_truth(left_side)}, lower = {_truth(lower)}, unit_diagonal = {_truth(unit_diagonal)}, "
                f"transpose_a = #stablehlo<transpose {transpose}>"
            ),
        )

    def fft(self, out, x: Value, kind: str, lengths: Sequence[int]) -> Value:
        """The Fourier transform over the last axes; `kind` is FFT, IFFT, RFFT or IRFFT."""
        return self.op(
            "fft",
            out,
            x,
            attrs=f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {i64_array(lengths)}",
        )

    def reduce_precision(self, x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
        """Floats rounded to fewer bits, in their own type."""
        return self.op(
            "reduce_precision",
            x.aval,
            x,
            attrs=(f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32"),
        )

    def rng_bit_generator(self, state: Value, out, algorithm: str) -> list[Value]:
        """The new state, and random words; `algorithm` is DEFAULT, THREE_FRY or PHILOX."""
        attrs = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
        outs = [state.aval, out]
        if is_open(out):
            return self.custom_call(
                "stablehlo.dynamic_rng_bit_generator",
                outs,
                state,
                self.sizes(out.shape),
                api_version=2,
                attrs=attrs,
                is_refined=True,
            )
        return self.ops("rng_bit_generator", outs, state, attrs=attrs)

    def rng_uniform(self, out, low: Value, high: Value, shape: Value) -> Value:
        """Random numbers between two bounds, by the generator of the device."""
        return self.op(
            "rng",
            out,
            low,
            high,
            shape,
            attrs="rng_distribution = #stablehlo<rng_distribution UNIFORM>",
        )


def _truth(value: bool) -> str:
    return str(value).lower()
