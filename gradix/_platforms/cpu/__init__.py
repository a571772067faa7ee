"""XLA:CPU, as jaxlib ships it: its rewrites in the order they are tried, and its choices."""

from gradix._platforms.cpu import compiling
from gradix._platforms.records import Table

_MODULES = {
    "products": ("dot_general",),
    "convolutions": ("conv_general_dilated",),
    "sums": ("reduce_sum", "log1p", "erfc", "digamma"),
    "extrema": ("reduce_max", "reduce_min", "max", "min", "pmax", "pmin"),
    "positions": ("argmax", "argmin"),
    "reductions": ("reduce_prod", "reduce_and", "reduce_or"),
    "running_reductions": ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "linear_recurrence"),
    "windows": ("reduce_window_sum", "reduce_window_max", "reduce_window_min", "select_and_scatter_add"),
    "sorting": ("sort", "top_k", "ranked"),
    "counts": ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max", "true_places"),
    "matrix_stacks": ("lu", "cholesky", "triangular_solve"),
    "random_bits": ("random_bits", "random_split", "random_fold_in", "threefry2x32"),
    "elementwise": (
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "atan2",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "logistic",
        "erf",
        "erf_inv",
        "erfc",
        "lgamma",
        "cbrt",
        "sqrt",
        "rsqrt",
        "rem",
        "pow",
    ),
    "narrow_integers": ("population_count", "concatenate", "sort", "gather"),
    "updates": (
        "dynamic_update_slice",
        *("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"),
    ),
    "sparse": ("sparse_product", "sampled_product"),
}
TABLE = Table(
    {
        **{f"{__name__}.{module}": primitives for module, primitives in _MODULES.items()},
        "gradix._platforms.exactness": (
            *("neg", "asin", "acos", "atan", "asinh", "acosh", "atanh", "sqrt", "mul", "cbrt"),
            *("exp", "expm1", "logistic", "logistic_slope", "sinh", "cosh"),
        ),
        "gradix._platforms.inner_products": ("dot_general",),
    },
    compiling.CHOICES,
    compiling.quick_options,
    compiling.factors_on_one_thread,
    compiling.may_take_long,
)
