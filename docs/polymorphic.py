"""Which public functions take arrays of symbolic sizes, asked of each: writes docs/polymorphic.md.

A function is called with the first of `CALLS` (or its own in `OWN`) that it takes with sizes that are numbers; then the
same call is traced and lowered with a size that is a variable. Run it as `python -m docs.polymorphic`; `--check` tells
whether the page is as it was.
"""

import argparse
import importlib
import re
import sys
import textwrap
import warnings
from pathlib import Path

import gradix
import gradix.numpy as jnp
from gradix import export, lax, random

PAGE = Path(__file__).with_name("polymorphic.md")
MODULES = (
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "lax",
    "lax.linalg",
    "nn",
    "random",
    "scipy.special",
    "scipy.linalg",
    "scipy.stats",
    "scipy.signal",
    "scipy.ndimage",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.fft",
    "scipy.cluster.vq",
)

# x: float32[n, 3], v: float32[n], i: int32[n], j: int32[n, 3], b: bool[n], z: complex64[n, 3], m: float32[n, n], c:
# float32[n, 4, 4], k: a random key, n: the size.
CALLS = (
    "f(x)",
    "f(x, x)",
    "f(v)",
    "f(v, v)",
    "f(m)",
    "f(m, x)",
    "f(i)",
    "f(i, i)",
    "f(j)",
    "f(b)",
    "f(b, b)",
    "f(z)",
    "f(z, z)",
    "f(x, 2)",
    "f(x, 0)",
    "f(v, 2)",
    "f(x, i)",
    "f(v, i)",
    "f(i, v)",
    "f(i, x)",
    "f(x, j)",
    "f(j, x)",
    "f(x, v)",
    "f(v, x)",
    "f(x, x, x)",
    "f(v, v, v)",
    "f(m, m, m)",
    "f(c)",
    "f(c, c)",
    "f([x, x])",
    "f([v, v])",
    "f([m, m])",
    "f((n,))",
    "f(n)",
    "f((n, 3))",
    "f(x, (n, 3))",
    "f(x, axis=0)",
    "f(x, 0, 1)",
    "f(x, 2, 0)",
    "f(x, 1, 0)",
    "f(x, x, 0)",
    "f(k, (n,))",
    "f(k, shape=(n,))",
    "f(k, n)",
    "f(k, x)",
    "f(k, v)",
    "f(k, x, x)",
    "f(k, x, x, x)",
    "f(k, v, v)",
    "f(k, m)",
    "f(k, v, m)",
    "f(k, v, m, (n,))",
    "f(k, 0.5, (n,))",
    "f(k, 2., shape=(n,))",
    "f(k, 2., 2., shape=(n,))",
    "f(k, 1., 2., (n,))",
    "f(k, 0, 5, (n,))",
    "f(k, 5, 2, 3, (n,))",
    "f(k, 5, 0.5, (n,))",
    "f(k, 2., 3., 4., (n,))",
    "f(k, 2., (n,), 'float32')",
    "f(0., 1., n)",
    "f(x, lambda t: t, 0)",
    "f(lambda t: t, x)",
    "f(v, v, i)",
    "f(v, v, v, v)",
    "f(b, x[:, 0], x[:, 0])",
    "f(x, jnp.float32)",
    "f(x, x.shape)",
    "f(x, 3, 1)",
    "f(i, 4)",
    "f(x, [0])",
    "f(x, (0, 1))",
    "f(x, (1, 0))",
    "f(n, n)",
    "f(n, 4)",
    "f(3, n)",
    "f(x, n)",
    "f(v, n)",
)

# A call of a function that none of CALLS is one of.
OWN = {
    "lax.DotDimensionNumbers": None,
    "lax.approx_max_k": "f(v, 1)",
    "lax.approx_min_k": "f(v, 1)",
    "lax.argmax": "f(x, 0, jnp.int32)",
    "lax.argmin": "f(x, 0, jnp.int32)",
    "lax.associative_scan": "f(jnp.add, x)",
    "lax.batch_matmul": "f(c, c)",
    "lax.bitcast_convert_type": "f(x, jnp.int32)",
    "lax.broadcast": "f(v, (2,))",
    "lax.broadcast_in_dim": "f(v, (2, n), (1,))",
    "lax.broadcasted_iota": "f(jnp.int32, (n, 2), 0)",
    "lax.clamp": "f(0., v, 1.)",
    "lax.collapse": "f(x, 0, 2)",
    "lax.concatenate": "f([x, x], 0)",
    "lax.cond": "f(True, lambda t: t, lambda t: -t, x)",
    "lax.conv": "f(x[None, None], jnp.ones((1, 1, 2, 2)), (1, 1), 'SAME')",
    "lax.conv_general_dilated": "f(x[None, None], jnp.ones((1, 1, 2, 2)), (1, 1), 'SAME')",
    "lax.conv_general_dilated_local": "f(x[None, None], jnp.ones((1, 4, 2, 2)), (1, 1), 'SAME', (2, 2))",
    "lax.conv_general_dilated_patches": "f(x[None, None], (2, 2), (1, 1), 'SAME')",
    "lax.conv_transpose": "f(x[None, :, :], jnp.ones((2, 3, 1)), (1,), 'SAME', dimension_numbers=('NWC', 'WIO', "
    "'NWC'))",
    "lax.conv_with_general_padding": "f(x[None, None], jnp.ones((1, 1, 2, 2)), (1, 1), 'SAME', None, None)",
    "lax.convert_element_type": "f(x, jnp.int32)",
    "lax.custom_linear_solve": "f(lambda t: t, x, lambda g, y: y, symmetric=True)",
    "lax.custom_root": "f(lambda t: t - x, x, lambda g, t: t, lambda g, y: y)",
    "lax.dot": "f(x.T, x)",
    "lax.dot_general": "f(x, x, (((0,), (0,)), ((), ())))",
    "lax.dynamic_index_in_dim": "f(x, 0)",
    "lax.dynamic_slice": "f(x, (0, 0), (1, 3))",
    "lax.dynamic_slice_in_dim": "f(x, 0, 1)",
    "lax.dynamic_update_index_in_dim": "f(x, x[0], 0, 0)",
    "lax.dynamic_update_slice": "f(x, x[:1], (0, 0))",
    "lax.dynamic_update_slice_in_dim": "f(x, x[:1], 0, 0)",
    "lax.expand_dims": "f(x, (0,))",
    "lax.fft": "f(z, 'FFT', (3,))",
    "lax.fori_loop": "f(0, 3, lambda i, t: t + 1, x)",
    "lax.full": "f((n,), 1.)",
    "lax.full_like": "f(x, 1.)",
    "lax.gather": "f(x, i[:, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 3))",
    "lax.index_in_dim": "f(x, 0)",
    "lax.index_take": "f(x, (i,), (0,))",
    "lax.iota": "f(jnp.int32, n)",
    "lax.linalg.tridiagonal_solve": "f(v, v, v, v[:, None])",
    "lax.map": "f(jnp.sum, x)",
    "lax.pad": "f(v, 0., [(1, 1, 0)])",
    "lax.platform_dependent": "f(x, default=lambda t: t)",
    "lax.ragged_dot": "f(x, jnp.ones((2, 3, 4)), jnp.array([1, 2]))",
    "lax.reduce": "f(x, 0., lax.add, (0,))",
    "lax.reduce_and": "f(b, (0,))",
    "lax.reduce_max": "f(x, (0,))",
    "lax.reduce_min": "f(x, (0,))",
    "lax.reduce_or": "f(b, (0,))",
    "lax.reduce_precision": "f(x, 5, 10)",
    "lax.reduce_prod": "f(x, (0,))",
    "lax.reduce_sum": "f(x, (0,))",
    "lax.reduce_window": "f(x, 0., lax.add, (2, 1), (1, 1), 'SAME')",
    "lax.reduce_xor": "f(i, (0,))",
    "lax.reshape": "f(x, (3, n))",
    "lax.rng_bit_generator": "f(jnp.zeros(4, 'uint32'), (n,))",
    "lax.rng_uniform": "f(0., 1., (n,))",
    "lax.scan": "f(lambda s, t: (s + t, s), x[0], x)",
    "lax.scatter": "f(v, i[:, None], v, lax.ScatterDimensionNumbers((), (0,), (0,)))",
    "lax.scatter_add": "f(v, i[:, None], v, lax.ScatterDimensionNumbers((), (0,), (0,)))",
    "lax.scatter_apply": "f(v, i[:, None], jnp.sin, lax.ScatterDimensionNumbers((), (0,), (0,)), update_shape=(n,))",
    "lax.scatter_max": "f(v, i[:, None], v, lax.ScatterDimensionNumbers((), (0,), (0,)))",
    "lax.scatter_min": "f(v, i[:, None], v, lax.ScatterDimensionNumbers((), (0,), (0,)))",
    "lax.scatter_mul": "f(v, i[:, None], v, lax.ScatterDimensionNumbers((), (0,), (0,)))",
    "lax.scatter_sub": "f(v, i[:, None], v, lax.ScatterDimensionNumbers((), (0,), (0,)))",
    "lax.select": "f(b, v, v)",
    "lax.select_n": "f(b, v, v)",
    "lax.slice": "f(x, (0, 0), (1, 3))",
    "lax.slice_in_dim": "f(x, 0, 1)",
    "lax.sort_key_val": "f(v, v)",
    "lax.split": "f(x, (1, 2), 1)",
    "lax.squeeze": "f(x[None], (0,))",
    "lax.stack": "f([x, x])",
    "lax.stop_gradient": "f(x)",
    "lax.switch": "f(0, [lambda t: t, lambda t: -t], x)",
    "lax.top_k": "f(v, 1)",
    "lax.transpose": "f(x, (1, 0))",
    "lax.unstack": "f(x, 1)",
    "lax.while_loop": "f(lambda t: t.sum() < 9, lambda t: t + 1, x)",
    "nn.dot_product_attention": "f(x[None, :, None], x[None, :, None], x[None, :, None])",
    "nn.one_hot": "f(i, 4)",
    "nn.standardize": "f(x)",
    "numpy.apply_along_axis": "f(jnp.sum, 0, x)",
    "numpy.apply_over_axes": "f(jnp.sum, x, [0])",
    "numpy.arange": "f(n)",
    "numpy.argpartition": "f(v, 1)",
    "numpy.argwhere": "f(v, size=4)",
    "numpy.array_split": "f(x, 3, axis=1)",
    "numpy.asarray": "f(x)",
    "numpy.bincount": "f(i, length=5)",
    "numpy.block": "f([[x, x]])",
    "numpy.broadcast_to": "f(v, (3, n))",
    "numpy.choose": "f(i % 2, [v, v])",
    "numpy.clip": "f(x, 0, 1)",
    "numpy.column_stack": "f([x, x])",
    "numpy.compress": "f(b, x, axis=0, size=2)",
    "numpy.concat": "f([x, x])",
    "numpy.concatenate": "f([x, x])",
    "numpy.convolve": "f(v, v)",
    "numpy.correlate": "f(v, v)",
    "numpy.cross": "f(x, x)",
    "numpy.delete": "f(v, 0)",
    "numpy.diag_indices": "f(n)",
    "numpy.digitize": "f(v, jnp.arange(3.))",
    "numpy.dot": "f(x.T, x)",
    "numpy.dstack": "f([x, x])",
    "numpy.einsum": "f('ij,ik->jk', x, x)",
    "numpy.einsum_path": "f('ij,ik->jk', x, x)",
    "numpy.extract": "f(b, v, size=3)",
    "numpy.eye": "f(n)",
    "numpy.fill_diagonal": "f(m, 0., inplace=False)",
    "numpy.flatnonzero": "f(v, size=4)",
    "numpy.from_dlpack": None,
    "numpy.frombuffer": None,
    "numpy.fromfile": None,
    "numpy.fromfunction": "f(lambda i: i, (n,))",
    "numpy.fromiter": None,
    "numpy.fromstring": None,
    "numpy.full": "f((n,), 1.)",
    "numpy.full_like": "f(x, 1.)",
    "numpy.geomspace": "f(1., 2., n)",
    "numpy.histogram": "f(v)",
    "numpy.histogram2d": "f(v, v)",
    "numpy.histogram_bin_edges": "f(v)",
    "numpy.histogramdd": "f(x)",
    "numpy.hstack": "f([x, x])",
    "numpy.indices": "f((n, 3))",
    "numpy.inner": "f(x, x)",
    "numpy.insert": "f(v, 0, 1.)",
    "numpy.interp": "f(v, v, v)",
    "numpy.intersect1d": "f(v, v, size=4)",
    "numpy.ix_": "f(i, i)",
    "numpy.kron": "f(x, x)",
    "numpy.lexsort": "f((v, v))",
    "numpy.linalg.lstsq": "f(x, v)",
    "numpy.linalg.matrix_power": "f(m, 3)",
    "numpy.linalg.multi_dot": "f([x.T, x])",
    "numpy.linalg.solve": "f(m, x)",
    "numpy.linalg.tensorsolve": "f(m, v)",
    "numpy.linspace": "f(0., 1., n)",
    "numpy.load": None,
    "numpy.logspace": "f(0., 1., n)",
    "numpy.mask_indices": "f(n, jnp.triu)",
    "numpy.matmul": "f(x.T, x)",
    "numpy.matvec": "f(m, v)",
    "numpy.moveaxis": "f(x, 0, 1)",
    "numpy.nanpercentile": "f(v, 50.)",
    "numpy.nanquantile": "f(v, 0.5)",
    "numpy.nonzero": "f(v, size=4)",
    "numpy.packbits": "f(b)",
    "numpy.pad": "f(x, 1)",
    "numpy.partition": "f(v, 1)",
    "numpy.percentile": "f(v, 50.)",
    "numpy.piecewise": "f(v, [v > 0], [1., 0.])",
    "numpy.place": "f(v, b, v, inplace=False)",
    "numpy.polyfit": "f(v, v, 1)",
    "numpy.put": "f(v, jnp.array([0]), 1., inplace=False)",
    "numpy.put_along_axis": "f(x, j % 3, 1., 1, inplace=False)",
    "numpy.quantile": "f(v, 0.5)",
    "numpy.ravel_multi_index": "f((i, i), (n, n), mode='clip')",
    "numpy.repeat": "f(x, 2, axis=0)",
    "numpy.reshape": "f(x, (3, n))",
    "numpy.resize": "f(x, (n,))",
    "numpy.roll": "f(x, 1, axis=0)",
    "numpy.rollaxis": "f(x, 1)",
    "numpy.save": None,
    "numpy.savez": None,
    "numpy.select": "f([b], [v])",
    "numpy.set_printoptions": None,
    "numpy.setdiff1d": "f(v, v, size=4)",
    "numpy.setxor1d": "f(v, v, size=4)",
    "numpy.split": "f(x, 3, axis=1)",
    "numpy.hsplit": "f(x, 3)",
    "numpy.vsplit": "f(x.T, 3)",
    "numpy.trim_zeros": "f(v)",
    "numpy.stack": "f([x, x])",
    "numpy.swapaxes": "f(x, 0, 1)",
    "numpy.take": "f(x, jnp.array([0, 1]), axis=0)",
    "numpy.take_along_axis": "f(x, j % 3, 1)",
    "numpy.tensordot": "f(x, x, [[0], [0]])",
    "numpy.tile": "f(x, (2, 1))",
    "numpy.tri": "f(n)",
    "numpy.tril_indices": "f(n)",
    "numpy.triu_indices": "f(n)",
    "numpy.union1d": "f(v, v, size=4)",
    "numpy.unique": "f(v, size=4)",
    "numpy.unique_all": "f(v, size=4)",
    "numpy.unique_counts": "f(v, size=4)",
    "numpy.unique_inverse": "f(v, size=4)",
    "numpy.unique_values": "f(v, size=4)",
    "numpy.unpackbits": "f(i.astype('uint8'))",
    "numpy.unravel_index": "f(i, (n, n))",
    "numpy.unstack": "f(x, axis=1)",
    "numpy.vander": "f(v, 3)",
    "numpy.vecdot": "f(x, x)",
    "numpy.vecmat": "f(v, m)",
    "numpy.vectorize": "f(lambda t: t + 1)(x)",
    "numpy.vstack": "f([x, x])",
    "numpy.where": "f(b, v, v)",
    "numpy.window": None,
    "random.PRNGKey": "f(0)",
    "random.ball": "f(k, 3, shape=(n,))",
    "random.bernoulli": "f(k, 0.5, (n,))",
    "random.choice": "f(k, v)",
    "random.dirichlet": "f(k, x)",
    "random.fold_in": "f(k, n)",
    "random.generalized_normal": "f(k, 2., (n,))",
    "random.key": "f(0)",
    "random.multinomial": "f(k, 5., x[0], shape=(n, 3))",
    "random.multivariate_normal": "f(k, x[0], jnp.eye(3), (n,))",
    "random.orthogonal": "f(k, n)",
    "random.permutation": "f(k, n)",
    "random.randint": "f(k, (n,), 0, 5)",
    "random.split": "f(k, n)",
    "random.wald": "f(k, 2., (n,))",
    "random.wrap_key_data": "f(random.key_data(k))",
    "scipy.integrate.trapezoid": "f(x, axis=0)",
    "scipy.interpolate.RegularGridInterpolator": None,
    "scipy.linalg.block_diag": "f(x, x)",
    "scipy.linalg.dft": "f(n)",
    "scipy.linalg.eigh_tridiagonal": "f(v, v[1:], eigvals_only=True)",
    "scipy.linalg.hadamard": "f(8)",
    "scipy.linalg.hilbert": "f(n)",
    "scipy.linalg.pascal": "f(n)",
    "scipy.linalg.solve": "f(m, x)",
    "scipy.ndimage.map_coordinates": "f(x, [v, v], order=1)",
    "scipy.signal.convolve": "f(v, v)",
    "scipy.signal.detrend": "f(x)",
    "scipy.signal.fftconvolve": "f(v, v)",
    "scipy.special.bernoulli": None,
    "scipy.special.logsumexp": "f(x)",
    "scipy.special.lpmn_values": "f(3, 3, v, False)",
    "scipy.special.multigammaln": "f(v + 9, 2)",
    "scipy.special.polygamma": "f(i, v)",
    "scipy.special.sph_harm_y": "f(i, i, v, v, n_max=4)",
    "scipy.stats.gaussian_kde": "f(v).evaluate(v)",
}
# Why a function has no row of its own: it takes no arrays, or runs outside of programs.
OUTSIDE = "takes or gives no arrays of a program"


def arrays(n):
    """The operands for a size."""
    scope = getattr(n, "scope", None)
    kinds = {
        "x": ((n, 3), "float32"),
        "v": ((n,), "float32"),
        "i": ((n,), "int32"),
        "j": ((n, 3), "int32"),
        "b": ((n,), "bool"),
        "z": ((n, 3), "complex64"),
        "m": ((n, n), "float32"),
        "c": ((n, 4, 4), "float32"),
    }
    assert scope is None or scope is n.scope
    return {name: gradix.ShapeDtypeStruct(shape, kind) for name, (shape, kind) in kinds.items()}


def called(function, text, n):
    """A program of the operands that calls a function as a text says."""
    code = compile(text, text, "eval")

    def program(operands, k):
        return eval(code, {"f": function, "k": k, "n": n, "jnp": jnp, "lax": lax, "random": random, **operands})

    return program


def is_taken(function, text) -> bool:
    try:
        gradix.eval_shape(called(function, text, 5), arrays(5), random.key(0))
    except Exception:
        return False
    return True


def row(name, function):
    """The call of a function, and why it does not take open sizes; None for the latter where it does."""
    own = OWN.get(name, "")
    if own is None:
        return None, OUTSIDE
    text = own or next((t for t in CALLS if is_taken(function, t)), None)
    if text is None:
        return None, OUTSIDE
    (n,) = export.symbolic_shape("n", constraints=["n >= 4"])
    try:
        export.export(gradix.jit(called(function, text, n), keep_unused=True))(arrays(n), random.key(0))
    except Exception as e:
        return text, f"{type(e).__name__}: {str(e).splitlines()[0]}"
    return text, None


def rows():
    """The row of each public function, by module and name."""
    out = {}
    for module in MODULES:
        face = importlib.import_module(f"gradix.{module}")
        for name in sorted(n for n in dir(face) if not n.startswith("_")):
            found = getattr(face, name)
            if callable(found) and not isinstance(found, type):
                out[f"{module}.{name}"] = row(f"{module}.{name}", found)
    return out


def _without_places(why: str) -> str:
    """An error's message without the lines of this file, which nobody who reads the page has written."""
    return re.sub(r" at \S*polymorphic\.py:\d+", "", why)


def page(found) -> str:
    yes = [n for n, (text, why) in found.items() if text and not why]
    no = {n: row for n, row in found.items() if row[0] and row[1]}
    lines = [
        "# Functions of arrays of open sizes",
        "",
        *_wrapped(
            "Each public function is called with the arrays below, and the call traced and lowered for a "
            "size `n` that is a variable, as `export` and `jit(f, symbolic=...)` do. The page is made by "
            "`python -m docs.polymorphic`."
        ),
        "",
        *_wrapped(
            "Arrays: x float32[n, 3], v float32[n], i int32[n], j int32[n, 3], b bool[n], z "
            "complex64[n, 3], m float32[n, n], c float32[n, 4, 4]; k is a random key."
        ),
        "",
        f"{len(yes)} functions take them; {len(no)} do not.",
        "",
        "## Not for open sizes, and why",
        "",
        "| function | call | why |",
        "|---|---|---|",
    ]
    lines += [
        f"| `{n}` | `{text}` | {_without_places(why)[:150].replace('|', chr(92) + '|')} |"
        for n, (text, why) in no.items()
    ]
    for module in MODULES:
        names = [n for n in yes if n.rpartition(".")[0] == module]
        if names:
            lines += [
                "",
                f"## gradix.{module}",
                "",
                *_wrapped(", ".join([f"`{n.rpartition('.')[2]}`" for n in names]) + "."),
            ]
    outside = [n for n, (text, _) in found.items() if text is None]
    return (
        "\n".join(
            [
                *lines,
                "",
                "## Not asked",
                "",
                *_wrapped(
                    f"What {OUTSIDE}, or takes functions and objects: " + ", ".join([f"`{n}`" for n in outside]) + "."
                ),
            ]
        )
        + "\n"
    )


def _wrapped(text):
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of short arrays
        text = page(rows())
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE.name} is not what the functions say; run python -m docs.polymorphic")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
