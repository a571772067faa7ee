"""Functions of `scipy.special`: over dtypes, weak types, broadcasting and special values, and their derivatives."""

import dataclasses

import numpy as np

from tests.parity.case import Case, Weak, call, sample, to_target

# name: the domain of each argument
FUNCTIONS = {
    "beta": ((0.5, 4), (0.5, 4)),
    "betainc": ((0.5, 4), (0.5, 4), (0.05, 0.95)),
    "betaln": ((0.5, 4), (0.5, 4)),
    "boxcox": ((0.5, 4), (-1, 2)),
    "boxcox1p": ((0.1, 4), (-1, 2)),
    "dawsn": ((-3, 3),),
    "digamma": ((0.5, 5),),
    "entr": ((0.1, 3),),
    "erf": ((-2, 2),),
    "erfc": ((-2, 2),),
    "erfcx": ((-2, 3),),
    "erfinv": ((-0.9, 0.9),),
    "exp1": ((0.2, 4),),
    "expi": ((0.2, 4),),
    "expit": ((-3, 3),),
    "gamma": ((0.5, 4),),
    "gammainc": ((0.5, 4), (0.2, 4)),
    "gammaincc": ((0.5, 4), (0.2, 4)),
    "gammaln": ((0.5, 5),),
    "gammasgn": ((-3, 3),),
    "hyp1f1": ((0.5, 2), (0.5, 2), (-1, 1)),
    "hyp2f1": ((0.5, 2), (0.5, 2), (2.5, 4), (-0.5, 0.5)),
    "i0": ((-3, 3),),
    "i0e": ((-3, 3),),
    "i1": ((-3, 3),),
    "i1e": ((-3, 3),),
    "kl_div": ((0.1, 2), (0.1, 2)),
    "log_ndtr": ((-3, 3),),
    "logit": ((0.1, 0.9),),
    "ndtr": ((-2, 2),),
    "ndtri": ((0.1, 0.9),),
    "owens_t": ((-1, 2), (-1, 2)),
    "poch": ((0.5, 3), (0.5, 3)),
    "polygamma": None,
    "rel_entr": ((0.1, 2), (0.1, 2)),
    "sici": ((0.2, 4),),
    "fresnel": ((-2, 2),),
    "spence": ((0.2, 3),),
    "xlog1py": ((0.1, 2), (0.1, 2)),
    "xlogy": ((0.1, 2), (0.1, 2)),
    "zeta": ((1.5, 4), (0.5, 3)),
    "factorial": ((0.5, 5),),
    "comb": ((3, 6), (0.5, 3)),
    "logsumexp": ((-2, 2),),
    "softmax": ((-2, 2),),
    "log_softmax": ((-2, 2),),
}
NOT_SMOOTH = {"gammasgn", "fresnel", "sici", "comb", "factorial", "softmax", "log_softmax", "logsumexp", "owens_t",
              "hyp1f1", "hyp2f1", "zeta", "poch", "dawsn", "erfcx"}  # fmt: skip
DTYPES = "float32", "float16", "bfloat16", "int32", "uint8", "bool"
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan], np.float32)
AT_EDGES = ("digamma entr erf erfc erfinv expit gammaln i0 i0e i1 i1e logit ndtr ndtri log_ndtr xlogy xlog1py rel_entr "
            "kl_div spence").split()  # fmt: skip
RTOL = 1e-3
# Where JAX has NaN for numbers, another strength of type or a wider dtype, takes complex numbers for functions of real
# ones, or both have a value where the function has none; what SciPy has is in tests/scipy/test_special_functions.py.
LEFT_OUT = (
    "beta(i32[4],i32[4])",
    "beta(b[4],b[4])",
    "betaln(i32[4],i32[4])",
    "betaln(b[4],b[4])",
    "digamma(b[4])",
    "digamma(f32[9])",
    "poch(i32[4],i32[4])",
    "zeta(i32[4],i32[4])",
    "zeta(u8[4],u8[4])",
    "zeta(b[4],b[4])",
    "erfcx(c64[2])",
    "expi(f16[4])",
    "expi(b[4])",
    "hyp1f1(i32[4],i32[4],i32[4])",
    "hyp1f1(b[4],b[4],b[4])",
    "hyp2f1(u8[4],u8[4],u8[4],u8[4])",
    "kl_div(weak:1.05[2],weak:1.05[2])",
    "logit(weak:0.5[2])",
    "owens_t(f16[4],f16[4])",
    "owens_t(bf16[4],bf16[4])",
    "owens_t(c64[2],c64[2])",
    "rel_entr(weak:1.05[2],weak:1.05[2])",
    "spence(f32[9])",
    "softmax(u8[4])",
    "grad special.spence",
)


def cases():
    for case in _cases():
        if case.id.removeprefix("special.") not in LEFT_OUT:
            yield dataclasses.replace(case, may_work=True)


def _cases():
    for name, domains in FUNCTIONS.items():
        if domains is not None:
            yield from of_function(f"special.{name}", domains, name not in NOT_SMOOTH)
    for name in AT_EDGES:
        n = len(FUNCTIONS[name])
        yield call(f"special.{name}", *([EDGES] if n == 1 else [EDGES[:, None], EDGES]), rtol=RTOL)
    for n in (0, 1, 2, 3):
        yield call("special.polygamma", n, sample("float32", (4,), 1, 0.5, 4), rtol=RTOL)
        yield call("special.multigammaln", sample("float32", (4,), 1, 3, 6), n + 1, rtol=RTOL)
        yield call("special.expn", n + 1, sample("float32", (4,), 1, 0.5, 4), rtol=RTOL)


def of_function(path, domains, is_smooth):
    many = RTOL if is_smooth else 5e-3
    for dtype in DTYPES:
        arrays = [sample(dtype, (4,), i, *d) for i, d in enumerate(domains)]
        yield call(path, *arrays, rtol=many if dtype in ("float32", "int32", "uint8", "bool") else 6e-2)
    wide = [sample("float32", (3, 1) if i % 2 else (2,), i, *d) for i, d in enumerate(domains)]
    yield call(path, *wide, rtol=many)
    yield call(path, *[round((d[0] + d[1]) / 2, 2) for d in domains], rtol=many)
    yield call(path, *[Weak(round((d[0] + d[1]) / 2, 2), (2,)) for d in domains], rtol=many)
    yield call(path, *[np.zeros((0, 3), np.float32) for _ in domains], rtol=many)
    yield call(path, rtol=many)
    yield call(path, *[sample("complex64", (2,), i, *d) for i, d in enumerate(domains)], rtol=many)
    if is_smooth:
        yield gradient(path, [sample("float32", (3,), 9 + i, *d) for i, d in enumerate(domains)])


def gradient(path, arrays):
    """Its derivatives in every argument in which it has one."""

    def run(ns):
        f = ns.resolve(path)
        last = len(arrays) - 1
        return ns.jax.grad(lambda *xs: f(*xs).sum(), argnums=last)(*to_target(ns, tuple(arrays)))

    return Case(f"grad {path}", run, 3e-3)
