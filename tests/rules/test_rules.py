"""Every record of a primitive through every rule: value, compilation, derivatives, mapping, sizes, errors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._core.primitive import Primitive
from tests.specs import SPECS
from tests.specs.spec import Sample, Spec

pytestmark = pytest.mark.filterwarnings("ignore:.*float64.*:UserWarning")
ALL = list(SPECS.values())
DIFFERENTIABLE = [s for s in ALL if s.derivative == "yes" and any(d in ("float32", "complex64") for d in s.dtypes)]


def operands(sample: Sample, dtype: str, seed: int = 0) -> list:
    rng = np.random.default_rng(seed)
    return [jnp.asarray(o.make(dtype, rng)) for o in sample.operands]


def outputs(spec: Spec, sample: Sample, args) -> list:
    out = spec.call(*args, **sample.params)
    return list(out) if isinstance(out, (tuple, list)) else [out]


def close(got, want, rtol, atol=None):
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind == "V":
        got = got.astype("f4")
    if want.dtype.kind == "V":
        want = want.astype("f4")
    scale = np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)), initial=1.0) if want.dtype.kind in "fc" else 1
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * scale if atol is None else atol)


def tolerance(dtype: str, rtol: float) -> float:
    return {"float16": 3e-3, "bfloat16": 2e-2}.get(dtype, rtol)


@pytest.mark.parametrize("spec", ALL, ids=repr)
def test_types_and_values(spec):
    """What the type rule says is what comes, and the value is the reference's."""
    for sample, dtype in product(spec.samples, spec.dtypes):
        args = operands(sample, dtype)
        got = outputs(spec, sample, args)
        told = gradix.eval_shape(lambda *xs, s=sample: outputs(spec, s, xs), *args)
        for g, t in zip(got, told, strict=True):
            assert (g.shape, g.dtype) == (t.shape, t.dtype), (sample, dtype)
            assert np.asarray(g.host).shape == g.shape
        if spec.reference is not None:
            wide = [_wide(np.asarray(a)) for a in args]
            with np.errstate(all="ignore"):
                want = spec.reference(*wide, **sample.params)
            for g, w in zip(got, want if isinstance(want, (tuple, list)) else [want], strict=True):
                if np.asarray(g).dtype.kind in "iu" and np.asarray(w).dtype.kind in "iu":
                    w = np.asarray(w).astype(np.asarray(g).dtype)
                close(g, w, tolerance(dtype, spec.rtol))


def _wide(x):
    if x.dtype.kind in "fV" and x.dtype != np.float64:
        return x.astype(np.float64)
    return x.astype(np.complex128) if x.dtype.kind == "c" else x


def crossing(samples, dtypes):
    """Each sample with one dtype and each dtype with one sample, where all pairs would take long to compile."""
    return [(samples[i % len(samples)], dtypes[i % len(dtypes)]) for i in range(max(len(samples), len(dtypes)))]


@pytest.mark.parametrize("pairs", [crossing, pytest.param(product, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("spec", ALL, ids=repr)
def test_compiled_equals_host(spec, pairs):
    """XLA and the host agree: bit for bit on integers and booleans, to rounding on floats."""
    cases = list(pairs(spec.samples, spec.dtypes))
    given = [operands(*case) for case in cases]
    compiled = gradix.jit(lambda given: [outputs(spec, s, args) for (s, _), args in zip(cases, given)])(given)
    for (sample, dtype), args, got in zip(cases, given, compiled):
        for g, w in zip(got, outputs(spec, sample, args), strict=True):
            assert (g.shape, g.dtype, g.weak_type) == (w.shape, w.dtype, w.weak_type)
            _same(g, w, dtype, max(spec.rtol, 3e-6))


def _same(g, w, dtype, rtol):
    if np.asarray(w).dtype.kind in "biu":
        np.testing.assert_array_equal(np.asarray(g), np.asarray(w))
    else:
        close(g, w, tolerance(dtype, rtol))


@pytest.mark.parametrize(
    "dtypes", [lambda all: {all[0], all[-1]}, pytest.param(set, marks=pytest.mark.slow)], ids=["some", "all"]
)
@pytest.mark.parametrize("spec", [s for s in ALL if s.edge], ids=repr)
def test_edge_values_compiled_equal_host(spec, dtypes):
    """Zeros, infinities, NaN and numbers at the range's ends go the same way on both."""
    sample = spec.samples[0]
    for dtype in dtypes(spec.dtypes):
        if dtype in ("complex64", "bool"):
            continue
        kind = np.asarray(operands(sample, dtype)[0]).dtype
        with np.errstate(all="ignore"):
            values = np.array(
                [
                    v
                    for v in spec.edge
                    if kind.kind not in "iu"
                    or (np.isfinite(v) and v == int(v) and np.iinfo(kind).min <= v <= np.iinfo(kind).max)
                ]
            ).astype(kind)
        if kind.kind in "iu":
            values = np.unique(np.concatenate([values, [np.iinfo(kind).min, np.iinfo(kind).max]]).astype(kind))
        pairs = np.meshgrid(*[values] * len(sample.operands), indexing="ij")
        args = [jnp.asarray(p.reshape(-1)) for p in pairs]
        got, want = gradix.jit(lambda *xs: outputs(spec, sample, xs))(*args), outputs(spec, sample, args)
        for g, w in zip(got, want):
            _same(g, w, dtype, 1e-5)


def real_pairs(spec, sample, seed=0):
    """Float64 operands, the positions to differentiate in, and the function of those alone."""
    dtype = "float64" if "float32" in spec.dtypes else "complex128"
    args = operands(sample, dtype, seed)
    at = [i for i, (a, o) in enumerate(zip(args, sample.operands)) if o.linear and a.dtype.kind in "fc"]

    def function(*xs):
        full = list(args)
        for i, x in zip(at, xs):
            full[i] = x
        return [o for o in outputs(spec, sample, full) if o.dtype.kind in "fc"]

    return function, [args[i] for i in at]


def direction(xs, seed):
    rng = np.random.default_rng(seed)
    return [
        jnp.asarray(
            (rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else 0)).astype(x.dtype)
        )
        for x in xs
    ]


def difference(function, xs, ts, eps=1e-6):
    up = function(*[x + eps * t for x, t in zip(xs, ts)])
    down = function(*[x - eps * t for x, t in zip(xs, ts)])
    return [(np.asarray(u) - np.asarray(d)) / (2 * eps) for u, d in zip(up, down)]


def pairing(xs, ys):
    return sum(float(np.real(np.sum(np.asarray(x) * np.asarray(y)))) for x, y in zip(xs, ys))


@pytest.mark.parametrize("spec", DIFFERENTIABLE, ids=repr)
def test_forward_derivative_is_the_limit_of_differences(spec):
    with gradix.enable_x64(True):
        for sample in spec.samples:
            function, xs = real_pairs(spec, sample)
            if not xs:
                continue
            ts = direction(xs, 1)
            ys, tangents = gradix.jvp(function, xs, ts)
            for y, t, want in zip(ys, tangents, difference(function, xs, ts)):
                assert (t.shape, t.dtype) == (y.shape, y.dtype)
                known = ~np.isnan(np.asarray(y))
                close(np.asarray(t)[known], want[known], 2e-5)


@pytest.mark.parametrize("compiled", [2, pytest.param(99, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("spec", DIFFERENTIABLE, ids=repr)
def test_reverse_derivative_is_the_adjoint(spec, compiled):
    """Of every sample on the host, and of so many of them compiled."""
    with gradix.enable_x64(True):
        for number, sample in enumerate(spec.samples):
            function, xs = real_pairs(spec, sample)
            if not xs:
                continue
            ts = direction(xs, 2)
            ys, tangents = gradix.jvp(function, xs, ts)
            cts = direction(ys, 3)
            pulls = [gradix.vjp(function, *xs)[1]]
            if number < compiled:
                pulls.append(gradix.jit(lambda c, f=function, x=xs: gradix.vjp(f, *x)[1](c)))
            for pull in pulls:
                back = pull(cts)
                for x, b in zip(xs, back, strict=True):
                    assert (b.shape, b.dtype) == (x.shape, x.dtype)
                np.testing.assert_allclose(pairing(cts, tangents), pairing(back, ts), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spec", [s for s in DIFFERENTIABLE if s.second], ids=repr)
def test_second_derivative(spec):
    """The derivative of the gradient, forward and reverse, is the limit of differences of gradients."""
    with gradix.enable_x64(True):
        for sample in spec.samples[:5]:
            function, xs = real_pairs(spec, sample)
            if not xs or any(x.dtype.kind == "c" for x in xs):
                continue
            cts = direction(function(*xs), 4)
            gradient = lambda *v, f=function, c=cts: list(gradix.vjp(f, *v)[1](c))  # noqa: E731
            ts = direction(xs, 5)
            want = difference(gradient, xs, ts)
            _, got = gradix.jvp(gradient, xs, ts)
            for g, w in zip(got, want):
                close(g, w, 1e-4)
            back = gradix.vjp(gradient, *xs)[1](ts)
            np.testing.assert_allclose(pairing(back, ts), pairing(got, ts), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("spec", [s for s in ALL if s.derivative == "zero"], ids=repr)
def test_declared_zero_derivative(spec):
    for sample in spec.samples[:2]:
        dtype = next((d for d in spec.dtypes if d == "float32"), None)
        if dtype is None:
            continue
        args = operands(sample, dtype)
        at = [i for i, a in enumerate(args) if a.dtype.kind == "f"]
        f = lambda *xs, a=args, s=sample, at=at: sum(  # noqa: E731
            o.astype("float32").sum()
            for o in outputs(spec, s, [xs[at.index(i)] if i in at else v for i, v in enumerate(a)])
        )
        for g in gradix.grad(f, tuple(range(len(at))))(*[args[i] for i in at]):
            assert not np.asarray(g).any()


@pytest.mark.parametrize("source, target", [("float32", "float16"), ("float16", "float32"), ("bfloat16", "float32")])
def test_conversion_converts_tangents(source, target):
    x = jnp.arange(3, dtype=source)
    f = lambda x: lax.convert_element_type(x, target)  # noqa: E731
    y, t = gradix.jvp(f, (x,), (x,))
    assert t.dtype == y.dtype == target
    close(t, np.arange(3), 1e-6)
    (back,) = gradix.vjp(f, x)[1](t)
    assert back.dtype == source
    close(back, np.arange(3), 1e-6)


@pytest.mark.parametrize("spec", [s for s in ALL if s.derivative == "none"], ids=repr)
def test_missing_derivative_is_told(spec):
    sample = spec.samples[1]
    args = operands(sample, "float32")
    with pytest.raises(NotImplementedError, match=rf"\b{spec.name}\b"):
        gradix.jvp(lambda *xs: outputs(spec, sample, xs), args, args)


@pytest.mark.parametrize("spec", [s for s in ALL if s.mapped], ids=repr)
def test_vmap_is_the_loop(spec):
    """Mapped over every subset of the operands, at every axis, the result is the stack of the single results."""
    dtype = spec.dtypes[0]
    for sample in spec.samples:
        seeds = [operands(sample, dtype, seed) for seed in range(2)]
        can = [o.linear or o.values is None for o in sample.operands]
        choices = [(None, *range(a.ndim + 1)) if c else (None,) for a, c in zip(seeds[0], can)]
        cases = [c for c in product(*choices) if any(a is not None for a in c)]
        for axes in cases[:: max(1, len(cases) // 12)]:
            args = [
                a if axis is None else jnp.asarray(np.stack([np.asarray(a), np.asarray(b)], axis))
                for a, b, axis in zip(*seeds, axes)
            ]
            got = gradix.vmap(lambda *xs, s=sample: outputs(spec, s, xs), in_axes=axes)(*args)
            singles = [
                outputs(
                    spec,
                    sample,
                    [a if axis is None else seeds[k][i] for i, (a, axis) in enumerate(zip(seeds[0], axes))],
                )
                for k in range(2)
            ]
            for g, *rows in zip(got, *singles):
                _same(g, np.stack([np.asarray(r) for r in rows]), dtype, 1e-5)


@pytest.mark.parametrize("spec", [s for s in ALL if s.errors], ids=repr)
def test_wrong_use_raises(spec):
    for call, kind, pattern in spec.errors:
        with pytest.raises(kind, match=pattern):
            call()


# Primitives tested elsewhere, with the reason.
ELSEWHERE = {
    "holds a program; tests/control": {
        "jit",
        "cond",
        "while",
        "while_save",
        "while_linear",
        "while_back",
        "while_curved",
        "scan",
        "custom_jvp_call",
        "custom_vjp_call",
        "custom_lin",
        "remat2",
        "custom_linear_solve",
        "reduce",
        "scatter_apply",
        "composite",
    },
    "calls Python; tests/control": {"pure_callback", "io_callback", "debug_callback"},
    "needs a named axis; tests/control": {
        "psum",
        "pmax",
        "pmin",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "ppermute",
        "axis_index",
    },
    "random bits; tests/ops/test_random_bits.py": {
        "threefry2x32",
        "random_bits",
        "random_seed",
        "random_wrap",
        "random_unwrap",
        "random_split",
        "random_fold_in",
    },
    "random bits of XLA's own; tests/random/test_rng.py": {"rng_bit_generator", "rng_uniform"},
    "makes an array of nothing": {"empty"},
    "the same values in other memory; tests/api/test_copies_of_arrays.py": {"copy"},
    "the same values on other devices; tests/devices/eight/test_places.py, test_documented.py": {
        "device_put",
        "sharding_constraint",
    },
    "has no result; tests/ops/test_dce_sink.py": {"dce_sink"},
    "sizes that a trace leaves open; tests/export": {"dim_as_value"},
    "known to compilers alone; tests/control/test_named.py": {"platform_index"},
    "the linear parts of running reductions and of pooling, met in their derivatives": {
        "linear_recurrence",
        "select_and_gather_add",
        "select_and_scatter_add",
    },
}


def test_every_primitive_has_a_record():
    known = {p.name for p in (getattr(lax, name) for name in dir(lax)) if isinstance(p, Primitive)}
    elsewhere = set().union(*ELSEWHERE.values())
    assert not sorted(known - set(SPECS) - elsewhere)
