"""How every function of `gradix.numpy` that computes with arrays is called: by name, with operands of one dtype.

A call takes the operands `x` and `y` of one shape, a vector, and the matrix `m` of three columns. Functions whose
results have as many elements as there are answers take the number, as they must under `jit`.
"""

import numpy as np

ONE = """abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh bitwise_count
bitwise_invert bitwise_not cbrt ceil conj conjugate cos cosh deg2rad degrees exp exp2 expm1 fabs floor frexp i0 imag
invert iscomplex isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not modf negative nan_to_num
positive rad2deg radians real reciprocal rint round around sign signbit sin sinc sinh spacing sqrt square tan tanh trunc
sort argsort sort_complex diff ediff1d flip ravel trim_zeros unwrap diag diagflat flipud atleast_2d copy array asarray
ones_like zeros_like vander tri_like cumsum cumprod nancumsum nancumprod cumulative_sum cumulative_prod
array_str_like""".split()

TWO = """add arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide
divmod equal float_power floor_divide fmax fmin fmod gcd greater greater_equal heaviside hypot lcm ldexp_like left_shift
less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum mod multiply nextafter not_equal
pow power remainder right_shift subtract true_divide isclose polyadd polysub polymul convolve correlate inner dot kron
outer vdot vecdot allclose array_equal array_equiv append trapezoid column_stack_like stack_like hstack_like
lexsort_like""".split()

FOLDS = """all any amax amin argmax argmin average max mean median min nanargmax nanargmin nanmax nanmean nanmedian
nanmin nanprod nanstd nansum nanvar prod ptp std sum var count_nonzero""".split()

SPECIAL = {
    "tri_like": lambda np_, x: np_.triu(np_.outer(x, x)),
    "column_stack_like": lambda np_, x, y: np_.column_stack([x, y]),
    "hstack_like": lambda np_, x, y: (np_.hstack([x, y]), np_.vstack([x, y]), np_.dstack([x, y])),
    "stack_like": lambda np_, x, y: np_.stack([x, y], -1),
    "lexsort_like": lambda np_, x, y: np_.lexsort((x, y)),
    "ldexp_like": lambda np_, x, y: np_.ldexp(x, np_.arange(x.size) - 3),
    "trim_zeros": None,
    "array_str_like": None,  # of sizes that depend on values
}

# Functions with arguments of their own: `f(np, x, y, m)`.
OTHERS = {
    "percentile": lambda np_, x, y, m: np_.percentile(x, 30.0),
    "quantile": lambda np_, x, y, m: np_.quantile(m, 0.3, axis=0, method="lower"),
    "nanpercentile": lambda np_, x, y, m: np_.nanpercentile(x, 30.0),
    "nanquantile": lambda np_, x, y, m: np_.nanquantile(m, 0.6, axis=1),
    "unique": lambda np_, x, y, m: np_.unique(x, size=len(x) + 2, fill_value=0),
    "unique_all": lambda np_, x, y, m: np_.unique(
        x, return_index=True, return_inverse=True, return_counts=True, size=len(x), fill_value=1
    ),
    "union1d": lambda np_, x, y, m: np_.union1d(x, y, size=2 * len(x), fill_value=0),
    "intersect1d": lambda np_, x, y, m: np_.intersect1d(x, y, size=len(x), fill_value=0),
    "setdiff1d": lambda np_, x, y, m: np_.setdiff1d(x, y[:3], size=len(x), fill_value=0),
    "setxor1d": lambda np_, x, y, m: np_.setxor1d(x, y[:3], size=2 * len(x), fill_value=0),
    "isin": lambda np_, x, y, m: np_.isin(x, y[:3]),
    "nonzero": lambda np_, x, y, m: np_.nonzero(m, size=m.size, fill_value=9),
    "flatnonzero": lambda np_, x, y, m: np_.flatnonzero(x, size=x.size, fill_value=9),
    "argwhere": lambda np_, x, y, m: np_.argwhere(m, size=m.size, fill_value=9),
    "searchsorted": lambda np_, x, y, m: np_.searchsorted(np_.sort(x), y, side="right"),
    "digitize": lambda np_, x, y, m: np_.digitize(y, np.array([-1, 0, 1, 3])),
    "histogram": lambda np_, x, y, m: np_.histogram(np_.nan_to_num(x), bins=np.array([-1, 0, 1, 3])),
    "interp": lambda np_, x, y, m: np_.interp(y, np_.sort(x), x),
    "gradient": lambda np_, x, y, m: np_.gradient(x),
    "cov": lambda np_, x, y, m: np_.cov(m),
    "corrcoef": lambda np_, x, y, m: np_.corrcoef(m),
    "clip": lambda np_, x, y, m: np_.clip(x, y, y[:1]),
    "where": lambda np_, x, y, m: np_.where(x > y, x, y),
    "select": lambda np_, x, y, m: np_.select([x > y, x == y], [x, y], 1),
    "choose": lambda np_, x, y, m: np_.choose(np_.arange(len(x)) % 2, [x, y], mode="clip"),
    "piecewise": lambda np_, x, y, m: np_.piecewise(x, [x > y], [lambda v: v, lambda v: v * 0]),
    "compress": lambda np_, x, y, m: np_.compress(x == x, x, size=len(x), fill_value=0),
    "extract": lambda np_, x, y, m: np_.extract(y == y, x, size=len(x), fill_value=0),
    "take": lambda np_, x, y, m: np_.take(x, np.array([0, -1, 3]), mode="fill"),
    "take_along_axis": lambda np_, x, y, m: np_.take_along_axis(m, np_.argsort(m, axis=1), axis=1),
    "put_along_axis": lambda np_, x, y, m: np_.put_along_axis(
        m, np.zeros((len(m), 1), int), m[:, 1:2], 1, inplace=False
    ),
    "put": lambda np_, x, y, m: np_.put(x, np.array([0, 2]), y[:2], inplace=False),
    "place": lambda np_, x, y, m: np_.place(x, x == y, y[:2], inplace=False),
    "insert": lambda np_, x, y, m: np_.insert(x, 1, y[0]),
    "delete": lambda np_, x, y, m: np_.delete(x, 0),
    "partition": lambda np_, x, y, m: np_.partition(x, 0)[0],
    "argpartition": lambda np_, x, y, m: np_.argpartition(x, 0)[0],
    "roll": lambda np_, x, y, m: np_.roll(x, 2),
    "tile": lambda np_, x, y, m: np_.tile(m, (2, 1)),
    "repeat": lambda np_, x, y, m: np_.repeat(x, 2),
    "pad": lambda np_, x, y, m: np_.pad(x, 2, mode="reflect"),
    "pad_linear": lambda np_, x, y, m: np_.pad(x, 2, mode="linear_ramp"),
    "pad_mean": lambda np_, x, y, m: np_.pad(x, 1, mode="mean"),
    "trace": lambda np_, x, y, m: np_.trace(m[:3]),
    "diagonal": lambda np_, x, y, m: np_.diagonal(m),
    "tril": lambda np_, x, y, m: np_.tril(m),
    "fill_diagonal": lambda np_, x, y, m: np_.fill_diagonal(m, y[0], inplace=False),
    "einsum": lambda np_, x, y, m: np_.einsum("ij,kj->ik", m, m),
    "matmul": lambda np_, x, y, m: np_.matmul(m, m.T),
    "matvec": lambda np_, x, y, m: np_.matvec(m, m[0]),
    "tensordot": lambda np_, x, y, m: np_.tensordot(m, m, ((0,), (0,))),
    "cross": lambda np_, x, y, m: np_.cross(m, m[::-1]),
    "polyval": lambda np_, x, y, m: np_.polyval(x[:3], y),
    "polyder": lambda np_, x, y, m: np_.polyder(x),
    "polyint": lambda np_, x, y, m: np_.polyint(x),
    "apply_along_axis": lambda np_, x, y, m: np_.apply_along_axis(np_.max, 1, m),
    "rot90": lambda np_, x, y, m: np_.rot90(m),
    "linspace": lambda np_, x, y, m: np_.linspace(x, y, 4),
    "full_like": lambda np_, x, y, m: np_.full_like(m, y[0]),
    "astype_float": lambda np_, x, y, m: np_.astype(x, "float32"),
    "astype_int": lambda np_, x, y, m: np_.astype(np_.nan_to_num(np_.real(x), posinf=5, neginf=-5), "int32"),
    "astype_half": lambda np_, x, y, m: np_.astype(x, "bfloat16"),
    "max_by_rows": lambda np_, x, y, m: np_.max(m, axis=1),
    "min_where": lambda np_, x, y, m: np_.min(m, axis=0, where=m == m, initial=1),
    "median_by_rows": lambda np_, x, y, m: np_.median(m, axis=1),
    "nanmedian_by_rows": lambda np_, x, y, m: np_.nanmedian(m, axis=1),
    "sort_by_columns": lambda np_, x, y, m: np_.sort(m, axis=0),
    "argmax_by_rows": lambda np_, x, y, m: np_.argmax(m, axis=1),
    "sum_where": lambda np_, x, y, m: np_.sum(m, axis=0, where=m == m),
    "add_reduce": lambda np_, x, y, m: np_.add.reduce(m, axis=1),
    "maximum_accumulate": lambda np_, x, y, m: np_.maximum.accumulate(x),
    "multiply_outer": lambda np_, x, y, m: np_.multiply.outer(x, y),
    "add_at": lambda np_, x, y, m: np_.add.at(x, np.array([0, 0, 2]), y[:3], inplace=False),
    "set_at": lambda np_, x, y, m: x.at[::2].set(y[::2]),
    "max_at": lambda np_, x, y, m: x.at[np.array([0, 0, 1])].max(y[:3]),
    "index": lambda np_, x, y, m: m[::-1, np.array([0, 2])],
}


def calls():
    """Every call by its name, as a function of the module and the operands x, y, m."""
    found = dict(OTHERS)
    for name in ONE:
        special = SPECIAL.get(name, name)
        if special is not None:
            found[name] = (
                (lambda np_, x, y, m, f=special: f(np_, x))
                if callable(special)
                else lambda np_, x, y, m, name=name: getattr(np_, name)(x)
            )
    for name in TWO:
        special = SPECIAL.get(name, name)
        found[name] = (
            (lambda np_, x, y, m, f=special: f(np_, x, y))
            if callable(special)
            else lambda np_, x, y, m, name=name: getattr(np_, name)(x, y)
        )
    for name in FOLDS:
        found[name] = lambda np_, x, y, m, name=name: getattr(np_, name)(x)
    return found


# What makes arrays of numbers that are given, tells of types and shapes, has a form that is called above, or whose
# results' sizes depend on values.
CONSTRUCTORS = set(
    """apply_over_axes arange array_repr array_str array_split astype atleast_1d atleast_3d bartlett blackman
block broadcast_arrays broadcast_shapes broadcast_to can_cast concat concatenate diag_indices diag_indices_from dsplit
dstack einsum_path empty empty_like expand_dims eye fliplr from_dlpack frombuffer fromfile fromfunction fromiter
frompyfunc fromstring full geomspace get_printoptions hamming hanning histogram2d histogram_bin_edges histogramdd hsplit
identity indices iscomplexobj isdtype isrealobj isscalar issubdtype iterable ix_ kaiser load logspace mask_indices
matrix_transpose meshgrid moveaxis ndim ones packbits permute_dims poly polydiv polyfit printoptions promote_types
ravel_multi_index reshape resize result_type rollaxis roots save savez set_printoptions shape size split squeeze
swapaxes transpose tri tril_indices tril_indices_from trim_zeros triu triu_indices triu_indices_from unique_counts
unique_inverse unique_values unpackbits unravel_index unstack vecmat vectorize vsplit vstack zeros bincount""".split()
)
