"""Public functions over an axis whose size values decide, each in all forms of a call that it takes.

`python -m tests.counted.sweep [--compiled] [NAME ...]` tries the functions of these modules, or whose names begin so, on the host
or by compiled programs. It prints a line for each form that is refused or wrong, and the totals.
"""

import contextlib
import functools
import importlib
import inspect
import sys
from collections import Counter

import numpy as np

import gradix
import gradix.numpy as jnp
from tests.counted.calls import CALLS, FORMS, ONLY_OWN
from tests.counted.on_host import on_host

_DISTRIBUTIONS = (
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace logistic multinomial "
    "multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy"
).split()
MODULES = {
    n: importlib.import_module(f"gradix.{n}")
    for n in (
        *("numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "nn.initializers", "ops", "random", "image"),
        *("scipy.special", "scipy.linalg", "scipy.signal", "scipy.fft", "scipy.cluster.vq", "scipy.ndimage"),
        *("scipy.integrate", "scipy.sparse.linalg", "scipy.optimize", "scipy.stats"),
        *[f"scipy.stats.{d}" for d in _DISTRIBUTIONS],
    )
}
X = np.array([0.7, -0.4, 0.9, -0.6, 1.2, 0.3], np.float32)
MASKS = {"some": X > 0, "none": X > 9, "one": X > 1, "all but one": X > -0.5, "all": X > -9}
# Functions that take no array of elements: of files, printing, dtypes, options, shapes alone and named axes; and `svd` and `ix_`.
LEFT_OUT = set(
    "numpy.save numpy.savez numpy.load numpy.fromfile numpy.frombuffer numpy.fromiter numpy.fromstring numpy.from_dlpack "
    "numpy.printoptions numpy.set_printoptions numpy.get_printoptions numpy.array_repr numpy.array_str numpy.einsum_path numpy.can_cast "
    "numpy.issubdtype numpy.iinfo numpy.finfo numpy.broadcast_shapes "
    "numpy.ix_ "  # returns integers for no elements of any type
    "numpy.svd numpy.linalg.svd scipy.linalg.svd lax.linalg.svd "  # any vectors beyond the rank are right
    "lax.conv_dimension_numbers lax.conv_general_permutations lax.conv_general_shape_tuple lax.conv_shape_tuple lax.padtype_to_pads "
    "lax.conv_transpose_shape_tuple lax.reduce_window_shape_tuple lax.broadcast_shapes lax.dtype lax.stage lax.composite lax.create_token "
    "lax.after_all lax.precv lax.psend lax.all_gather lax.all_to_all lax.axis_index lax.axis_size lax.pbroadcast lax.pcast lax.pmax "
    "lax.pmean lax.pmin lax.ppermute lax.pshuffle lax.psum lax.psum_scatter lax.pswapaxes lax.pvary lax.ragged_all_to_all "
    "lax.with_sharding_constraint lax.DotDimensionNumbers lax.rng_bit_generator lax.rng_uniform lax.scaled_dot lax.dce_sink "
    "random.clone random.key_dtype random.key_impl random.wrap_key_data random.key_data nn.initializers.delta_orthogonal".split()
)


def functions(beginnings=()) -> list[str]:
    """The names of the public functions, with those of their modules."""
    found: dict = {}
    for m, module in MODULES.items():
        for short in sorted(set(dir(module))):
            name, f = f"{m}.{short}", getattr(module, short)
            is_function = callable(f) and not inspect.isclass(f) and not inspect.ismodule(f)
            if not short.startswith("_") and name not in LEFT_OUT and is_function:
                found.setdefault(f, name)  # under its first name only
    names = list(found.values())
    return [n for n in names if not beginnings or any(n == b or n.startswith(b + ".") for b in beginnings)]


def forms(name: str) -> dict:
    """The ways to call a function, as functions of a vector."""
    module, _, short = name.rpartition(".")
    f = getattr(MODULES[module], short)
    found = {form: made(f) for form, made in FORMS.items() if name not in ONLY_OWN}
    return found if name not in CALLS else {"own": CALLS[name], **found}


def outcome(name: str, masks=MASKS) -> dict[str, str]:
    """For each form of a call that works eagerly: "equal", and with what, "refused: why" or "wrong: what"."""
    return {form: _outcome(g, masks) for form, g in forms(name).items() if _is_called(g)}


def outcome_together(name: str, masks=MASKS) -> dict[str, str]:
    """What `outcome` gives, by three compiled programs in which all forms of a call stand.

    A form that differs there is tried alone.
    """
    called = {form: g for form, g in forms(name).items() if _is_called(g)}
    runs = {what: _Together(made, called) for what, made in _PROGRAMS.items()}
    found = {}
    for form, g in called.items():
        if form in runs["value"].refused:
            found[form] = runs["value"].refused[form]
            continue
        one = {what: functools.partial(run, form) for what, run in runs.items() if form not in run.refused}
        found[form] = _compared(g, masks, one)
        if not found[form].startswith("equal"):
            alone = _outcome(g, masks)
            found[form] = f"wrong: beside other forms, {found[form]}" if alone.startswith("equal") else alone
    return found


def kind_of(found: dict[str, str]) -> str:
    """What is said of a function, of which these are the outcomes of the forms of a call."""
    if not found:
        return "not called"
    kinds = {v.partition(":")[0] for v in found.values()}
    equal = sorted([k for k in kinds if k.startswith("equal")], key=len)
    return "wrong" if "wrong" in kinds else equal[-1] if equal else "refused"


def _leaves(tree) -> list:
    return [np.asarray(x) for x in gradix.tree.leaves(tree)]


def _eager(g, x):
    try:
        return _leaves(g(jnp.asarray(x)))
    except Exception:  # noqa: BLE001  (the function does not take this form or size)
        return None


def _spoiled(mask, value):
    return np.where(mask, X, np.float32(value))


def _is_called(g) -> bool:
    """Whether a form of a call has numbers as results."""
    first = _eager(g, X[MASKS["some"]])
    return bool(first) and all(v.dtype.kind in "biufc" for v in first)


def _total(g):
    return lambda x: sum(jnp.sum(jnp.sin(v.real) + v.imag / 2) for v in gradix.tree.leaves(g(x)))


def _gradient_of(g):
    if any(v.dtype.kind not in "fc" for v in _eager(g, X[MASKS["some"]])):
        raise TypeError("integer results")
    return gradix.grad(lambda x, m: _total(g)(x[m]))


# what is compiled of a form of a call
_PROGRAMS = {
    "value": lambda g: lambda x, m: g(x[m]),
    "gradient": _gradient_of,
    "vmap": lambda g: gradix.vmap(lambda x, m: g(x[m])),
}


class _Together:
    """The functions of forms, as one compiled program."""

    def __init__(self, made, called: dict):
        self.refused, functions, self.kept = {}, {}, {}
        is_mapped = made is _PROGRAMS["vmap"]
        example = (np.stack([X, X]), np.stack([X > 0, X > 0])) if is_mapped else (X, X > 0)
        for form, g in called.items():
            try:
                gradix.jit(made(g)).lower(*example)
                functions[form] = made(g)
            except Exception as e:  # noqa: BLE001
                self.refused[form] = _refusal(e)
        self.compiled = gradix.jit(lambda x, m: {form: f(x, m) for form, f in functions.items()})

    def __call__(self, form: str, x, m):
        key = x.tobytes() + m.tobytes()
        if key not in self.kept:
            self.kept[key] = self.compiled(x, m)
        return self.kept[key][form]


def _refusal(e: Exception) -> str:
    return f"refused: {type(e).__name__} {(str(e).splitlines() or [''])[0][:140]}"


def _outcome(g, masks) -> str:
    runs = {}
    for what, made in _PROGRAMS.items():
        with contextlib.suppress(Exception):  # no derivative
            runs[what] = gradix.jit(made(g))
    return _compared(g, masks, runs)


def _compared(g, masks, runs: dict) -> str:
    """What is found of the programs of one form of a call."""
    for name, mask in masks.items():
        want = _eager(g, X[mask])
        if want is None:
            continue
        for planted in (np.nan, np.inf):
            try:
                have = _leaves(runs["value"](_spoiled(mask, planted), mask))
            except Exception as e:  # noqa: BLE001
                return _refusal(e)
            # beside the host's result that of a compiled program, which may round otherwise
            if not _are_same(want, have) and not _are_same(_leaves(gradix.jit(g)(jnp.asarray(X[mask]))), have):
                return f"wrong: of {name} elements it is {have}, should be {want}"
    found = "equal"
    for what, f in (("gradient", _gradient), ("vmap", _mapped)):
        if what not in runs:
            continue
        try:
            wrong = f(g, masks, runs[what])
        except Exception:  # noqa: BLE001  (no derivative, or one that is refused)
            continue
        if wrong:
            return f"wrong: {wrong}"
        found += f" with {what}"
    return found


def _gradient(g, masks, compiled) -> str | None:
    """What is wrong with the gradient of a sum of the results."""
    total = _total(g)
    for name, mask in masks.items():
        if _eager(g, X[mask]) is None:
            continue
        want = np.zeros_like(X)
        want[mask] = gradix.grad(total)(jnp.asarray(X[mask]))
        have = np.asarray(compiled(_spoiled(mask, np.nan), mask))
        if not _are_same([want], [have]):
            again = np.zeros_like(X)
            again[mask] = gradix.jit(gradix.grad(total))(jnp.asarray(X[mask]))
            if not _are_same([again], [have]) and not _is_rounding(total, mask, [want, again], have):
                return f"of {name} elements the gradient is {have}, should be {want}"
    return None


def _is_rounding(total, mask, found: list, have) -> bool:
    """Whether a gradient is as far from others as these are from each other, and from those of neighbouring numbers."""
    for end in (-9, 9):
        near = np.zeros_like(X)
        near[mask] = gradix.grad(total)(jnp.asarray(np.nextafter(X[mask], np.float32(end))))
        found = [*found, near]
    return bool((np.abs(have - found[0]) <= 2 * np.ptp(found, axis=0)).all())


def _mapped(g, masks, compiled) -> str | None:
    """What is wrong with the results of the mapped function, in which each row has its own mask."""
    rows = [m for m in masks.values() if _eager(g, X[m]) is not None]
    given = np.stack([_spoiled(m, np.nan) for m in rows]), np.stack(rows)
    out = compiled(*given)
    leaves = gradix.tree.leaves(out, is_leaf=lambda x: isinstance(x, gradix.Ragged))
    for i, m in enumerate(rows):
        have, want = [np.asarray(v[i]) for v in leaves], _eager(g, X[m])
        if not _are_same(want, have) and not _are_same(_leaves(gradix.jit(g)(jnp.asarray(X[m]))), have):
            return f"in vmap, of {X[m]} it is {have}, should be {want}"
    return None


def _are_same(want, have) -> bool:
    return len(want) == len(have) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and (
            np.array_equal(a, b)
            if a.dtype.kind not in "fc"
            else np.allclose(a, b, rtol=2e-3, atol=2e-4, equal_nan=True)
        )
        for a, b in zip(want, have)
    )


def main(arguments) -> None:
    """Print what is refused and wrong, and the totals."""
    totals: Counter = Counter()
    is_compiled = "--compiled" in arguments
    with contextlib.nullcontext() if is_compiled else on_host():
        for name in functions([a for a in arguments if not a.startswith("--")]):
            found = outcome_together(name) if is_compiled else outcome(name)
            kind = kind_of(found)
            totals[kind] += 1
            for form, v in found.items():
                if v.startswith(("wrong", "refused")):
                    print(f"{name} ({form}) {v}".replace("\n", " ")[:400], flush=True)
            print(f"{name}: {kind}", flush=True)
    print(dict(totals))


if __name__ == "__main__":
    main(sys.argv[1:])
