"""Cases where Gradix is known to differ from JAX, by the start of their id, and why.

A listed case that agrees fails the run: take its line out.
"""

import os

from tests.parity.outcome import difference


def _both(reasons):
    """Reasons that hold with 64-bit types as well."""
    return reasons | {"x64: " + start: why for start, why in reasons.items()}


DIFFERENT = {
    "lax_ops": {"lax.cumlogsumexp(i32": "JAX fails by accident, converting an infinity; a TypeError names the dtype"},
    "autodiff": {"where nan": "what is not selected has no derivative here, and NaN is none"},
    "indexing": {
        "jit mask v[mv]": "values may decide a size in a compiled function",
        "jit mask m[mm]": "as above",
        "jit mask m[m3]": "as above",
        "jit mask m[m > 0]": "as above",
        "jit mask jnp.where(mv)": "as above",
    },
    "vmapping": {"boolean mask mapped": "rows of different lengths are a Ragged"},
    "corners": {
        "slopes of float_power at 0.0, 0.0": "0 · 0 ** -1 is NaN in JAX's float_power and 0 in its power, as here",
        "slopes of float_power at nan, 0.0": "as above: a power of 0 is constant",
        "J.jvp(N.unique, (A([2.0, 1, 2]),), (A([1.0, 2, 3]),))": "sorted values have derivatives, as with size= in JAX",
        "J.grad(lambda x: N.union1d(x, x).sum())(A([0.0, 1, 2]))": "as unique",
        "J.jit(N.unique)(A([2.0, 1, 2]))": "values may decide a size in a compiled function",
        "slopes of copysign at nan": "the derivative at NaN is NaN; JAX takes NaN for a negative number",
    },
    "drawn": _both(
        {
            "J.grad(N.arccosh)(-2.0)": "outside its domain arccosh is NaN, and so is its slope",
            "J.grad(N.hypot,(0,1))(N.inf,1.)": "the slope at infinity is 1, 0; JAX divides infinities",
            "J.grad(N.logaddexp,(0,1))(N.inf,1.)": "the slopes are 1, 0; JAX gives 1, e, having cut infinity off",
            "J.grad(N.logaddexp,(0,1))(N.inf,N.inf)": "half each, as at other ties",
            "J.grad(N.logaddexp,(0,1))(-N.inf,-N.inf)": "half each, as at other ties; NaN in JAX",
            "J.grad(N.logaddexp2,(0,1))(N.inf,1.)": "as logaddexp",
            "J.jit(lambda x: N.triu(N.ones((2,2)),x))(3)": "k may be traced here",
            "J.jit(lambda x: N.ones(3)[x>1])(N.ones(3))": "values may decide a size in a compiled function",
            "J.jit(lambda x: N.nonzero(x))(N.ones(4))": "as above",
            "J.jit(lambda x: N.unique(x))(N.ones(2))": "as above",
            "J.jit(lambda x: N.delete(N.ones(3),x))(1)": "a traced index leaves the size known",
            "N.trapezoid(A([]))": "the integral of nothing is 0, as in NumPy; JAX fails by accident",
            "J.vmap(lambda x: N.average(x, axis='a')": "means over named axes work here whatever their name",
            "N.insert(N.arange(6.).reshape(2,3),A([True,False])": "a mask says where, as in NumPy",
            "N.median(A(5.), keepdims=True)": "an array without axes keeps none, as in NumPy",
            "N.nanmedian(A(5.), keepdims=True)": "as median",
            "N.piecewise(A([1.,2]), A([True,False])": "a row of booleans is one condition, as in NumPy",
            "N.linalg.tensorsolve(N.eye(6).reshape(2,3,2,3), N.arange(6.).reshape(2,3), axes=(1,0))": "axes in the order "
            "named, as in NumPy",
            "N.cov(A([[1,2.,3],[4,5,7]]), aweights=A([1.,2,1]), dtype='float16')": "the dtype asked for, whatever the weights",
            "N.cumulative_prod(A([1,2,3],'int8'))": "small integers widen, as NumPy's and the standard's do",
            "N.cumulative_prod(A([1,2,3],'uint8'))": "as int8",
            "N.cumulative_prod(A([1,2,3],'int16'), include_initial=True)": "as int8",
        }
    )
    | {
        "x64: N.digitize(A([1,2]),A([],'int32'))": "positions are default integers, as in NumPy",
        "x64: N.digitize(A([1,2]),A([1]))": "as above",
        "x64: N.searchsorted(A([]),A([1.]))": "as above",
    },
    "wide": {"jnp.searchsorted(jnp.arange(3), 1)": "positions are default integers, as in NumPy"},
    "structured": {
        "L.zeta(A([2.0, 3.0, 2.5]), A([-3.25, 0.0, -1.0]))": "at poles it is infinite, as in SciPy, where XLA has NaN",
        "L.zeta(A(2.0), A(-20.5))": "XLA adds ten terms and gives -0.05, where the sum is 9.82",
        "L.zeta(A(2.0), A(N.inf))": "the limit is 0, where XLA has NaN",
    },
    "inspect": {"complex64 x.argmax()": "JAX refuses complex numbers only once argmax runs, not in eval_shape"},
}


def known(group, case_id):
    """Why a case differs; None when it must agree, as all do with PARITY_TARGET=jax."""
    if os.environ.get("PARITY_TARGET", "gradix") != "gradix":
        return None
    return next((why for start, why in DIFFERENT.get(group, {}).items() if case_id.startswith(start)), None)


def failure(group, case, got, want):
    """What is wrong with the outcome of a case, as the lines of a report; None when nothing is."""
    reason, why = difference(got, want, case), known(group, case.id)
    if why is not None:
        reason = None if reason else f"agrees, though listed in tests/parity/differences.py: {why}"
    return f"{case.id}\n    {reason}" if reason else None
