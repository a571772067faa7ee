"""Products of matrices on the CPU that XLA does slowly, for their dtypes, sizes or transposes."""

from __future__ import annotations

from math import prod

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dtypes import real_dtype
from gradix._ops.basis import free_axes
from gradix._ops.dot import dot_general_p
from gradix._ops.dot_types import compute_dtype, rounded_to
from gradix._platforms.cpu.kernel_loops import apart
from gradix._platforms.records import Rewrite

_REAL = (np.dtype("float32"), np.dtype("float64"))
_INT = np.dtype("int32")
_BYTES = (np.dtype("int8"),)
# XLA does not vectorize products of these.
_NARROW = (np.dtype("uint8"), np.dtype("int16"), np.dtype("uint16"))


# -- operands of other dtypes ----------------------------------------------------------------------


def _working_dtype(x, y, out):
    """The dtypes of operands and result for a quick product; None keeps those of the operands."""
    work = compute_dtype(x, y, out)
    if x == y and x in _BYTES and work in (x, _INT):
        # XLA has products of bytes that are summed in 32 bits.
        return None, _INT
    if not x == y == out or x in _NARROW:
        wide = _INT if work in _NARROW else work
        return wide, wide
    return None, out


def _has_other_dtypes(site) -> bool:
    x, y = [v.aval.dtype for v in site.values]
    if x is y is site.out.dtype and x in _REAL:
        return False
    if x != y:
        x = y = site.out.dtype
    return _working_dtype(x, y, site.out.dtype) != (None, site.out.dtype)


def _by_working_dtypes(em, site, x, y):
    out = site.out
    if x.aval.dtype != y.aval.dtype:
        x, y = em.convert(x, out.dtype), em.convert(y, out.dtype)
    first = rounded_to(x.aval.dtype, out.dtype)
    operands, result = _working_dtype(x.aval.dtype, y.aval.dtype, out.dtype)
    if operands is not None:
        x, y = em.convert(x, operands), em.convert(y, operands)
    z = em.lower(dot_general_p, make_aval(out.shape, result), x, y, **site.params)
    return em.convert(z if first is None else em.convert(z, first), out.dtype)


# -- stacks of products of very small matrices -----------------------------------------------------

_FEWEST, _SIZE = 64, 7  # products, and rows, columns and terms of one
# XLA itself makes sums of products with vectors, and they follow what computes the operands in one
# loop; terms written out would compute the operands once for each, so only many products gain.
_FEWEST_OF_VECTORS = 1 << 12


def _is_stack_of_small_products(site) -> bool:
    """Whether there are many tiny products, for each of which XLA:CPU would call a library."""
    (left, _), (batch, _) = site.params["dimension_numbers"]
    if not batch or len(left) != 1 or site.out.dtype not in _REAL:
        return False
    if not site.is_static() or not site.out.size:
        return False
    count, rows, columns, terms = _sizes(site.values, site.params["dimension_numbers"])
    fewest = _FEWEST if min(rows, columns) > 1 else _FEWEST_OF_VECTORS
    return count >= fewest and 0 < terms <= _SIZE and max(rows, columns) <= _SIZE


def _sizes(values, dimension_numbers) -> tuple[int, ...]:
    """How many products, and the rows, columns and terms of each."""
    (left, right), (x_batch, y_batch) = dimension_numbers
    x, y = values
    parts = (
        (x, x_batch),
        (x, free_axes(x.aval.ndim, left, x_batch)),
        (y, free_axes(y.aval.ndim, right, y_batch)),
        (x, left),
    )
    return tuple([prod([v.aval.shape[i] for i in axes]) for v, axes in parts])


def _by_sums_of_terms(em, site, x, y):
    """The products as sums over the contracted axis, of elementwise products."""
    out, ((left, right), (x_batch, y_batch)) = site.out, site.params["dimension_numbers"]
    count, m, n, terms = _sizes((x, y), site.params["dimension_numbers"])
    rows, columns = free_axes(x.aval.ndim, left, x_batch), free_axes(y.aval.ndim, right, y_batch)
    x = em.reshape(em.transpose(x, (*left, *x_batch, *rows)), (terms, count, m))
    y = em.reshape(em.transpose(y, (*right, *y_batch, *columns)), (terms, count, n))
    whole, total = make_aval((count, m, n), out.dtype), None
    for i in range(terms):
        factors = [em.broadcast_in_dim(_row(em, v, i), whole, dims) for v, dims in ((x, (0, 1)), (y, (0, 2)))]
        term = em.op("multiply", whole, *factors)
        total = term if total is None else em.op("add", whole, total, term)
    return em.reshape(total, out.shape)


def _row(em, x, i: int):
    """`x[i]`."""
    shape = x.aval.shape[1:]
    part = em.op(
        "slice",
        make_aval((1, *shape), x.aval.dtype),
        x,
        attrs=(
            f"start_indices = array<i64: {i}, 0, 0>, limit_indices = array<i64: {i + 1}, {shape[0]}, {shape[1]}>, "
            "strides = array<i64: 1, 1, 1>"
        ),
    )
    return em.reshape(part, shape)


# -- large products of complex matrices ------------------------------------------------------------

_LEAST_COMPLEX = 128  # rows, columns and terms of one product
# With fewer multiplications, the passes over the parts cost more than the library saves.
_WORK = 1 << 26


def _is_large_and_complex(site) -> bool:
    """Whether a product is complex and large: XLA:CPU's quick library is for real matrices only."""
    x, y = site.values
    if site.out.dtype.kind != "c" or not x.aval.dtype == y.aval.dtype == site.out.dtype or not site.is_static():
        return False
    _, *sizes = _sizes(site.values, site.params["dimension_numbers"])
    return min(sizes) >= _LEAST_COMPLEX and prod(sizes) >= _WORK


def _by_real_parts(em, site, x, y):
    """Four products of parts: (a + bi)(c + di) = (ac - bd) + (ad + bc)i."""
    out = site.out
    part = make_aval(out.shape, real_dtype(out.dtype))
    (a, b), (c, d) = [[_part(em, name, v) for name in ("real", "imag")] for v in (x, y)]

    def product(x, y):
        return em.lower(dot_general_p, part, x, y, **site.params)

    real = em.op("subtract", part, product(a, c), product(b, d))
    return em.op("complex", out, real, em.op("add", part, product(a, d), product(b, c)))


def _part(em, name: str, x):
    """The real or imaginary part of `x`; for a transpose, the transpose of its source's part."""
    source, permutation = x.transposed or (x, range(x.aval.ndim))
    return em.transpose(em.op(name, make_aval(source.aval.shape, real_dtype(x.aval.dtype)), source), permutation)


# -- transposed matrices ---------------------------------------------------------------------------

# With so many rows, columns and terms, a pass over an operand or the result pays.
_LEAST = 256


def _is_of_transposes(site) -> bool:
    """Whether a product is of matrices or vectors, and an operand is a transpose or read as one."""
    (left, _), (batch, _) = site.params["dimension_numbers"]
    x, y = site.values
    if batch or len(left) != 1 or x.aval.ndim > 2 or y.aval.ndim > 2:
        return False
    is_first_transposed = left[0] == 0 and site.out.ndim == 2
    return is_first_transposed or x.transposed is not None or y.transposed is not None


def _untransposed(em, site, x, y):
    """A product with explicit transposes: the quick library takes no transposed first operand."""
    out, ((left, right), batched) = site.out, site.params["dimension_numbers"]

    def product(out, x, y, contracted):
        return site.plain(em, x, y, out=out, dimension_numbers=(contracted, batched))

    x, left = _source(x, left)
    y, right = _source(y, right)
    if (
        out.ndim == 2
        and left == (0,)
        and out.dtype in _REAL
        and all(type(n) is int for n in (*x.aval.shape, *y.aval.shape))
    ):
        (terms, rows), columns = x.aval.shape, out.shape[1]
        if min(terms, rows, columns) >= _LEAST and right == (0,):
            # Kept apart, as XLA would otherwise merge them into the product that it does slowly.
            x = apart(em, "transposed", make_aval((rows, terms), x.aval.dtype), lambda x: em.transpose(x, (1, 0)), x)
            return apart(em, "product", out, lambda x, y: product(out, x, y, ((1,), right)), x, y)
        if terms >= _LEAST and right == (1,) and terms * (rows + columns) >= 2 * rows * columns:
            other = make_aval(out.shape[::-1], out.dtype)
            z = apart(em, "product", other, lambda y, x: product(other, y, x, (right, left)), y, x)
            return em.transpose(z, (1, 0))
    return product(out, x, y, (left, right))


_LEAST_OF_STACKS = 32  # rows, columns and terms of each product of a stack


def _is_stack_of_transposes(site) -> bool:
    """Whether the first operands of a stack of products lie transposed: their contracted axis before the rows."""
    (left, _), (batch, _) = site.params["dimension_numbers"]
    x, n = site.values[0], len(batch)
    if not n or len(left) != 1 or site.out.ndim != n + 2 or not site.is_static() or not _have_quick_dtype(site):
        return False
    source, (contracted, *stacked) = _source(x, (*left, *batch))
    if contracted != n or stacked != list(range(n)):
        return False
    _, *sizes = _sizes(site.values, site.params["dimension_numbers"])
    return min(sizes) >= _LEAST_OF_STACKS


def _with_transposed_stack(em, site, x, y):
    """The products of explicit transposes: the quick library takes no transposed first operands."""
    (_, right), (batch, y_batch) = site.params["dimension_numbers"]
    n = len(batch)
    x, _ = _source(x, ())
    *stack, terms, rows = x.aval.shape
    aval = make_aval((*stack, rows, terms), x.aval.dtype)
    # Kept apart, as XLA would otherwise merge them into the products that it does slowly.
    x = apart(em, "transposed", aval, lambda x: em.transpose(x, (*range(n), n + 1, n)), x)
    numbers = (((n + 1,), right), (tuple(range(n)), y_batch))
    return apart(em, "product", site.out, lambda x, y: site.plain(em, x, y, dimension_numbers=numbers), x, y)


def _source(x, axes) -> tuple:
    """The source of a transpose, and `axes` there, as XLA would copy the whole matrix."""
    found = x.transposed
    if found is None:
        return x, tuple(axes)
    source, permutation = found
    return source, tuple([permutation[i] for i in axes])


# -- products over several axes --------------------------------------------------------------------


def _is_over_adjoining_axes(site) -> bool:
    """Whether several axes are contracted that lie side by side, in the same order, in both operands.

    In the first they are the last ones, or follow those of a stack, whose transposes are then made
    apart; otherwise XLA's own transposed copy is as quick.
    """
    (left, right), (batch, _) = site.params["dimension_numbers"]
    if len(left) < 2 or any(v.transposed is not None for v in site.values) or not site.is_static():
        return False
    pairs = sorted(zip(left, right))
    (i, j), n = pairs[0], len(pairs)
    if pairs != list(zip(range(i, i + n), range(j, j + n))):
        return False
    if i + n == site.values[0].aval.ndim:
        return True
    is_stack = 0 < i == len(batch) and sorted(batch) == list(range(i)) and _have_quick_dtype(site)
    return is_stack and min(_sizes(site.values, site.params["dimension_numbers"])[1:]) >= _LEAST_OF_STACKS


def _have_quick_dtype(site) -> bool:
    """Whether a product is of the dtype of XLA:CPU's quick library."""
    x, y = site.values
    return x.aval.dtype == y.aval.dtype == site.out.dtype == _REAL[0]


def _over_one_axis(em, site, x, y):
    """The product over one axis in place of several, for which XLA:CPU would copy the second operand transposed."""
    (left, right), (x_batch, y_batch) = site.params["dimension_numbers"]
    n = len(left)

    def joined(v, axes, batch):
        i, shape = min(axes), v.aval.shape
        whole = (*shape[:i], prod(shape[i : i + n]), *shape[i + n :])
        return em.reshape(v, whole), (i,), tuple([b if b < i else b - n + 1 for b in batch])

    x, left, x_batch = joined(x, left, x_batch)
    y, right, y_batch = joined(y, right, y_batch)
    params = {**site.params, "dimension_numbers": ((left, right), (x_batch, y_batch))}
    return em.lower(dot_general_p, site.out, x, y, **params)


REWRITES = (
    Rewrite("products_over_one_axis", (dot_general_p,), _over_one_axis, _is_over_adjoining_axes, alone=True),
    Rewrite("products_by_wider_dtypes", (dot_general_p,), _by_working_dtypes, _has_other_dtypes),
    Rewrite("small_products_as_sums", (dot_general_p,), _by_sums_of_terms, _is_stack_of_small_products, alone=True),
    Rewrite("complex_products_by_parts", (dot_general_p,), _by_real_parts, _is_large_and_complex),
    Rewrite("products_without_transposes", (dot_general_p,), _untransposed, _is_of_transposes, alone=True),
    Rewrite("stacks_without_transposes", (dot_general_p,), _with_transposed_stack, _is_stack_of_transposes, alone=True),
)
