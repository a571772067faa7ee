"""What drawn calls showed to differ: odd keywords, empty arrays, ties, NaN and infinities, and their derivatives."""

import numpy as np

from tests.parity.case import Case, sample

# Each is an expression of J (the library), N (its numpy) and A (asarray).
CALLS = """
N.nanvar(A([1.5, 2, 8]), dtype='int32')
N.nanvar(A([1.5, np.nan, 9.0]), dtype='int32')
N.nanvar(A([[1.5, 2, 8], [2, 7, 3]]), axis=1, dtype='uint8', ddof=1)
N.var(A([1, 2, 8]), dtype='int32')
N.var(A([1.5, 2.7, 9.0]), dtype='int32', where=A([True, False, True]))
N.nanmean(A([[1.5, 2, 8], [2, 7, 3]]), axis=1, dtype='int32')
N.fft.hfft(N.ones((1, 2)), axis=0)
N.fft.irfft(N.ones((0, 2)), axis=0)
N.fft.rfft(N.ones((0, 2)), axis=0)
N.fft.rfftn(N.ones((0, 2)), axes=(0, 1))
N.fft.irfftn(N.ones((0, 2)), axes=(0, 1))
N.fft.fft2(N.ones((0, 3)))
N.fft.ifft(A([], bool))
N.fft.fft(N.ones((0, 2)), n=2, axis=0)
N.fft.fft(N.ones((1, 2)), n=0)
N.fft.fft(N.ones((0, 2), dtype='float16'), axis=0)
N.fft.fftshift(A(1.0))
N.fft.fftshift(A([1.0, 2]), axes=())
N.roll(A([1.0, 2]), (), ())
N.roll(A([1.0, 2]), [], [])
N.reshape(A([1, 2]), (2, 1), copy=False)
N.polyval(A([True, True]), A([True, False]))
N.polyval(A([True, True]), 2)
N.logspace(1 + 2j, 2, 3, dtype='float32')
N.logspace(0.1, 2, 4, dtype=int)
N.logspace(0.34, 0.37, 3, dtype='float16')
N.compress(A([1, 0, 1]), A([1, 2, 3]), size=0)
N.extract(A([1, 0, 1]), A([1, 2, 3]), size=0)
N.flatnonzero(A([1, 0, 2]), size=4, fill_value=2.5)
N.nonzero(A([1, 0, 2]), size=4, fill_value=(2.5,))
N.nonzero(A([1, 0, 2]), size=4, fill_value=A(7, 'uint8'))
N.nonzero(N.ones((2,)), size=0, fill_value=1.5)
N.argwhere(A([1, 0, 2]), size=4, fill_value=2.5)
N.dot(A([N.inf, 1.0]), 0)
N.inner(A([N.nan, 1.0]), 0)
N.tensordot(A([N.inf, 1.0]), A([0.0]), 0)
N.einsum('i,j->ij', A([N.inf, 1.0]), A([0.0]))
N.matmul(A([[N.inf], [1.0]]), A([[0.0]]))
N.matmul(A([0.0]), A([[N.inf, 1.0]]))
N.matmul(A([[N.inf], [1.0]], 'complex64'), A([[0.0]], 'complex64'))
N.vecdot(A([[N.inf], [1.0]]), A([[0.0]]))
A([[N.inf], [1.0]]) @ A([[0.0]])
N.dot(1, 0, preferred_element_type='float32')
N.dot(A(1.0), 0, preferred_element_type='float16')
J.ops.segment_min(A([1 + 1j, 2, 3]), A([0, 0, 1]))
J.ops.segment_max(A([1 + 1j, 2, 3]), A([0, 0, 2]))
J.ops.segment_min(A([1 + 1j, 2, 3]), A([3, 3, 3]))
J.grad(lambda x: x * N.arange(x)[-1])(2.0)
J.grad(lambda x: N.arange(2.0, step=x).sum())(0.7)
J.jvp(lambda x: N.arange(x), (2.0,), (1.0,))
J.jit(lambda x: N.arange(x))(2)
J.vmap(lambda x: N.arange(x))(A([2]))
J.jvp(N.unique, (A([2.0, 1, 2]),), (A([1.0, 2, 3]),))
J.jvp(N.trim_zeros, (A([0.0, 1, 2]),), (A([1.0, 2, 3]),))
J.grad(lambda x: N.trim_zeros(x).sum())(A([0.0, 1, 2]))
J.grad(lambda x: N.roots(x).real.sum())(A([0.0, 1, 2]))
J.grad(lambda x: N.polymul(x, x, trim_leading_zeros=True).sum())(A([0.0, 1, 2]))
J.grad(lambda x: N.union1d(x, x).sum())(A([0.0, 1, 2]))
J.jit(N.unique)(A([2.0, 1, 2]))
J.jvp(J.nn.softplus, (1 + 1j,), (1 + 0j,))
J.jvp(J.nn.mish, (1 + 1j,), (1 + 0j,))
J.jvp(N.logaddexp, (1 + 1j, 2j), (1 + 0j, 1j))
J.jvp(N.logaddexp2, (1 + 1j, 2j), (1 + 0j, 1j))
J.grad(N.hypot, (0, 1))(-0.0, 0.0)
J.grad(N.hypot)(1.0, N.nan)
J.grad(N.hypot)(N.nan, 1.0)
J.grad(N.hypot, (0, 1))(-2.0, 2.0)
J.hessian(N.logaddexp, (0, 1))(2.0, 2.0)
J.hessian(N.hypot, (0, 1))(0.0, 2.0)
""".strip().splitlines()
REDUCTIONS = "sum prod mean max min all any std var nansum nanprod nanmean nanmax nanmin nanstd nanvar".split()
SLOPES = "softplus relu gelu silu elu selu celu mish log_sigmoid soft_sign hard_tanh leaky_relu squareplus relu6 sigmoid".split()
PAIRS = (
    "logaddexp logaddexp2 maximum minimum hypot arctan2 fmax fmin multiply subtract float_power copysign fmod".split()
)
POINTS = {"zero": 0.0, "minus zero": -0.0, "one": 1.0, "minus one": -1.0, "nan": np.nan, "half": 0.5, "three": 3.0}


def cases():
    for source in CALLS:
        code = compile(source, "<case>", "eval")
        yield Case(source, lambda ns, code=code: eval(code, {"J": ns.jax, "N": ns.jnp, "A": ns.jnp.asarray, "np": np}))
    for name in REDUCTIONS:
        for mask in (1, 0.0, np.array([1, 0, 1]), np.array([True, False, True])):
            kwargs = {"initial": 0} if name.endswith(("max", "min")) else {}
            yield Case(
                f"jnp.{name} where={mask!r}",
                lambda ns, name=name, mask=mask, kwargs=kwargs: getattr(ns.jnp, name)(
                    ns.jnp.array([1.0, 2, 4]), where=mask, **kwargs
                ),
            )
    yield from slopes()


def slopes():
    """First and second derivatives at kinks, ties, zeros of both signs and NaN, and of nothing."""
    for name in SLOPES:
        for place, x in POINTS.items():
            yield Case(f"slope of {name} at {place}", lambda ns, name=name, x=x: ns.jax.grad(getattr(ns.nn, name))(x))
        for place in ("half", "minus one", "three"):
            x = POINTS[place]
            yield Case(
                f"curvature of {name} at {place}",
                lambda ns, name=name, x=x: ns.jax.grad(ns.jax.grad(getattr(ns.nn, name)))(x),
                1e-3,
            )
        yield Case(
            f"slope of {name} of nothing",
            lambda ns, name=name: ns.jax.grad(lambda x: getattr(ns.nn, name)(x).sum())(ns.jnp.zeros((0, 2))),
        )
    for name in PAIRS:
        for x in (0.0, 1.0, -0.5, np.nan):
            for y in (0.0, 1.0, -0.5):
                yield Case(
                    f"slopes of {name} at {x}, {y}",
                    lambda ns, name=name, x=x, y=y: ns.jax.grad(getattr(ns.jnp, name), (0, 1))(x, y),
                )
        rows = sample("float32", (3, 2), 901, 0.2, 2), sample("float32", (2, 3), 902, 0.2, 2)
        yield Case(
            f"slopes of {name} over other axes",
            lambda ns, name=name, rows=rows: ns.jax.vmap(
                ns.jax.vmap(ns.jax.grad(getattr(ns.jnp, name), (0, 1))), in_axes=(1, 0), out_axes=1
            )(*rows),
        )
