"""Random programs: straight-line compositions of functions of small arrays, on any library with JAX's interface."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
from hypothesis import strategies as st

import gradix

LARGEST = 24  # elements of a value
ROWS = np.array([1, 0, 1])


@dataclass(frozen=True)
class Op:
    """A function of one or two arrays; `fits` tells the shapes it takes."""

    name: str
    apply: Callable
    fits: Callable[..., bool]
    arity: int = 1
    smooth: bool = True


def _any(*shapes) -> bool:
    return True


def _ranked(shape) -> bool:
    return len(shape) > 0 and shape[0] > 0


def _may_grow(shape) -> bool:
    return _ranked(shape) and 2 * prod(shape) <= LARGEST


def _same(a, b) -> bool:
    return a == b


def _outer(a, b) -> bool:
    return len(a) == len(b) == 1 and prod(a) * prod(b) <= LARGEST


def _matrix_product(a, b) -> bool:
    return len(a) == 2 and len(b) in (1, 2) and a[-1] == b[0] and prod(a[:1]) * prod(b[1:]) <= LARGEST


def _square_matrix(shape) -> bool:
    return len(shape) == 2 and shape[0] == shape[1] > 0


def _square_gram(shape) -> bool:
    return len(shape) == 2 and 0 < shape[0] <= 4


def elementwise(api) -> dict[str, Callable]:
    """Functions that keep the shape; smooth everywhere."""
    jnp, lax, nn = api.numpy, api.lax, api.nn
    return {
        "sin": jnp.sin,
        "cos": jnp.cos,
        "tanh": jnp.tanh,
        "arctan": jnp.arctan,
        "arcsinh": jnp.arcsinh,
        "sigmoid": nn.sigmoid,
        "softplus": nn.softplus,
        "erf": lax.erf,
        "square": jnp.square,
        "cube_of_sin": lambda x: jnp.sin(x) ** 3,
        "neg": jnp.negative,
        "expm1_of_tanh": lambda x: jnp.expm1(jnp.tanh(x)),
        "log1p_of_square": lambda x: jnp.log1p(x * x),
        "sqrt_of_1_plus_square": lambda x: jnp.sqrt(1 + x * x),
        "rsqrt_of_1_plus_square": lambda x: lax.rsqrt(1 + x * x),
        "gauss": lambda x: jnp.exp(-x * x),
        "abs_of_complex": lambda x: jnp.abs(x + 2j),
        "real_of_complex": lambda x: jnp.real(jnp.exp(1j * x) * (1 - 0.5j)),
        "log_of_2_plus_square": lambda x: jnp.log(2 + x * x),
        "half_steps": lambda x: jnp.where(jnp.arange(x.size).reshape(x.shape) % 2 == 0, x, 0.5 * x),
        "lgamma": lambda x: lax.lgamma(1.5 + x * x),
        "digamma": lambda x: lax.digamma(1.5 + x * x),
        "erf_inv_of_half_tanh": lambda x: lax.erf_inv(0.5 * jnp.tanh(x)),
        "integer_power": lambda x: lax.integer_pow(jnp.sin(x), 4),
        "reciprocal": lambda x: jnp.reciprocal(1.5 + x * x),
        "acosh_of_2_plus_square": lambda x: jnp.arccosh(2 + x * x),
        "arcsin_of_half_sin": lambda x: jnp.arcsin(0.5 * jnp.sin(x)),
        "cbrt_of_1_plus_square": lambda x: jnp.cbrt(1 + x * x),
        "complex_power": lambda x: jnp.real((1 + 1j * x) ** 2),
        "rounded_away": lambda x: x + lax.stop_gradient(jnp.sin(x)) * 0,
        "nested_jit": lambda x: api.jit(lambda y: y * jnp.cos(y))(x),
        "checkpointed": lambda x: api.checkpoint(lambda y: jnp.sin(y) * y)(x),
        "cond_of_sum": lambda x: lax.cond(x.sum() > 0.3, jnp.sin, lambda y: 0.5 * y, x),
        "switch": lambda x: lax.switch(x.size % 3, [jnp.sin, jnp.cos, jnp.tanh], x),
        "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + 0.1 * i * x, x),
    }


def kinked(api) -> dict[str, tuple]:
    """Functions with a derivative at all but a few points."""
    jnp, lax, nn = api.numpy, api.lax, api.nn
    return {
        "sort": (lambda x: jnp.sort(x, 0), _ranked),
        "sorted_last": (lambda x: jnp.sort(x), _ranked),
        "max": (jnp.max, _ranked),
        "min_0": (lambda x: x.min(0), _ranked),
        "cummax": (lambda x: lax.cummax(x), _ranked),
        "relu": (nn.relu, _any),
        "leaky_relu": (nn.leaky_relu, _any),
        "abs": (jnp.abs, _any),
        "clip": (lambda x: jnp.clip(x, -0.7, 0.9), _any),
        "median": (lambda x: jnp.median(x, 0), _ranked),
        "top_k": (lambda x: lax.top_k(x, 1)[0], _ranked),
        "by_argsort": (lambda x: jnp.take_along_axis(x, jnp.argsort(-x, 0), 0), _ranked),
        "where_positive": (lambda x: jnp.where(x > 0, x * x, jnp.sin(x)), _any),
        "max_pool": (
            lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, *[1] * (x.ndim - 1)), (1,) * x.ndim, "SAME"),
            _ranked,
        ),
        "mod": (lambda x: jnp.mod(x, 0.7), _any),
    }


def reshaping(api) -> dict[str, tuple]:
    """Functions of one array, with the shapes they take."""
    jnp, lax, nn = api.numpy, api.lax, api.nn
    return {
        "sum": (jnp.sum, _any),
        "mean_0": (lambda x: x.mean(0), _ranked),
        "sum_last": (lambda x: x.sum(-1), _ranked),
        "var": (jnp.var, _ranked),
        "prod_of_tanh": (lambda x: jnp.prod(jnp.tanh(x)), _any),
        "logsumexp": (nn.logsumexp, _ranked),
        "softmax": (nn.softmax, _ranked),
        "norm": (lambda x: jnp.sqrt((x * x).sum(0) + 1), _ranked),
        "cumsum": (lambda x: jnp.cumsum(x, 0), _ranked),
        "cumprod_of_tanh": (lambda x: jnp.cumprod(jnp.tanh(x), -1), _ranked),
        "ravel": (jnp.ravel, _any),
        "transpose": (jnp.transpose, _any),
        "flip": (lambda x: jnp.flip(x, 0), _ranked),
        "roll": (lambda x: jnp.roll(x, 1), _ranked),
        "tail": (lambda x: x[1:] if x.shape[0] > 1 else x, _ranked),
        "every_other": (lambda x: x[::-2], _ranked),
        "new_axis": (lambda x: x[None], lambda s: len(s) < 3),
        "broadcast": (lambda x: jnp.broadcast_to(x, (2, *x.shape)), lambda s: len(s) < 3 and 2 * prod(s) <= LARGEST),
        "pad": (lambda x: jnp.pad(x, [(1, 0)] + [(0, 0)] * (x.ndim - 1)), _may_grow),
        "concatenate": (lambda x: jnp.concatenate([x, x * x]), _may_grow),
        "stack": (lambda x: jnp.stack([x, jnp.sin(x)], -1), lambda s: _may_grow(s) and len(s) < 3),
        "gather": (lambda x: jnp.take(x, ROWS % x.shape[0], 0), lambda s: _ranked(s) and 3 * prod(s) <= LARGEST * s[0]),
        "scatter_add": (lambda x: x.at[ROWS % x.shape[0]].add(0.5), _ranked),
        "scatter_mul": (lambda x: x.at[0].multiply(x[-1]), _ranked),
        "dynamic_slice": (lambda x: lax.dynamic_slice_in_dim(x, jnp.argmax(x.ravel() * 0), 1), _ranked),
        "scan": (lambda x: lax.scan(lambda c, t: (jnp.sin(c + t), c * t), x[0], x)[1], _ranked),
        "associative_scan": (lambda x: lax.associative_scan(lambda a, b: a + jnp.sin(b), x), _ranked),
        "scan_reversed": (
            lambda x: lax.scan(lambda c, t: (0.5 * c + t, jnp.tanh(c)), x.sum(0), x, reverse=True)[1],
            _ranked,
        ),
        "map": (lambda x: lax.map(lambda r: jnp.sin(r).sum(), x), _ranked),
        "cumlogsumexp": (lambda x: lax.cumlogsumexp(x), _ranked),
        "average_pool": (
            lambda x: lax.reduce_window(x, 0.0, lax.add, (2, *[1] * (x.ndim - 1)), (1,) * x.ndim, "SAME"),
            _ranked,
        ),
        "convolve": (lambda x: jnp.convolve(x.ravel(), jnp.array([0.5, 1.0, -0.25], x.dtype), "same"), _ranked),
        "dynamic_update": (lambda x: lax.dynamic_update_slice_in_dim(x, 2 * x[:1], x.shape[0] - 1, 0), _ranked),
        "segments": (
            lambda x: api.ops.segment_sum(
                x, ROWS[: x.shape[0] % 4] if x.shape[0] < 4 else np.arange(x.shape[0]) % 2, 2
            ),
            _ranked,
        ),
        "squeeze_ones": (lambda x: x.reshape([n for n in x.shape if n != 1]), _any),
        "tile": (lambda x: jnp.tile(x, 2), _may_grow),
        "repeat": (lambda x: jnp.repeat(x, 2, 0), _may_grow),
        "triangle": (lambda x: jnp.tril(x), lambda s: len(s) >= 2),
        "diagonal": (jnp.diagonal, lambda s: len(s) == 2),
        "fft_power": (lambda x: jnp.abs(jnp.fft.fft(x, axis=0)) ** 2, _ranked),
        "rfft_round_trip": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x, axis=0), x.shape[0], axis=0), _ranked),
        "vmap_inside": (lambda x: api.vmap(lambda r: r * r.sum())(x), _ranked),
        "grad_inside": (lambda x: api.grad(lambda y: (jnp.sin(y) * y).sum())(x), _any),
        "jvp_inside": (lambda x: api.jvp(lambda y: jnp.cos(y) * y, (x,), (jnp.ones_like(x),))[1], _any),
        "solve": (lambda x: jnp.linalg.solve(jnp.eye(x.shape[0]) * 3 + jnp.tanh(x), x), _square_matrix),
        "inv": (lambda x: jnp.linalg.inv(jnp.eye(x.shape[0]) * 3 + jnp.tanh(x)), _square_matrix),
        "slogdet": (lambda x: jnp.linalg.slogdet(jnp.eye(x.shape[0]) * 3 + jnp.tanh(x))[1], _square_matrix),
        "cholesky": (lambda x: jnp.linalg.cholesky(jnp.tanh(x @ x.T) + 4 * jnp.eye(x.shape[0])), _square_gram),
        "eigvalsh": (
            lambda x: jnp.linalg.eigvalsh(jnp.tanh(x @ x.T) + jnp.diag(jnp.arange(x.shape[0]) * 5.0)),
            _square_gram,
        ),
        "gram": (lambda x: x @ x.T, _square_gram),
        "triangular_solve": (
            lambda x: lax.linalg.triangular_solve(
                2 * jnp.eye(x.shape[0]) + jnp.tril(jnp.tanh(x @ x.T)), x, left_side=True, lower=True
            ),
            _square_gram,
        ),
    }


def binary(api) -> dict[str, tuple]:
    """Functions of two arrays, with the shapes they take."""
    jnp, lax = api.numpy, api.lax
    return {
        "add": (jnp.add, _same),
        "sub": (jnp.subtract, _same),
        "mul": (jnp.multiply, _same),
        "div": (lambda a, b: a / (2 + b * b), _same),
        "arctan2": (lambda a, b: jnp.arctan2(a, 2 + b * b), _same),
        "power": (lambda a, b: (1 + a * a) ** jnp.tanh(b), _same),
        "where": (lambda a, b: jnp.where(jnp.arange(a.size).reshape(a.shape) % 3 == 0, a, b), _same),
        "dot": (lambda a, b: jnp.vdot(a, b), _same),
        "scale": (lambda a, b: a * jnp.mean(b), lambda a, b: prod(b) > 0),
        "outer": (jnp.outer, _outer),
        "matmul": (jnp.matmul, _matrix_product),
        "einsum": (lambda a, b: jnp.einsum("ij,ij->j", a, b), lambda a, b: a == b and len(a) == 2),
        "logaddexp": (jnp.logaddexp, _same),
        "hypot_like": (lambda a, b: jnp.sqrt(1 + a * a + b * b), _same),
        "select_by_index": (lambda a, b: lax.select_n(np.arange(a.size).reshape(a.shape) % 2, a, b), _same),
        "complex_product": (lambda a, b: jnp.imag(lax.complex(a, b) * lax.complex(b, -a)), _same),
        "tensordot": (lambda a, b: jnp.tensordot(a, b, a.ndim), _same),
        "kron": (jnp.kron, _outer),
        "scan_carry": (
            lambda a, b: lax.scan(lambda c, t: (jnp.sin(c + t), c), a[0], b)[0],
            lambda a, b: a == b and _ranked(a),
        ),
    }


@functools.lru_cache(None)
def operations(api) -> dict[str, Op]:
    """The vocabulary, in the words of a library with JAX's interface."""
    ops = {n: Op(n, f, _any) for n, f in elementwise(api).items()}
    ops |= {n: Op(n, f, fits) for n, (f, fits) in reshaping(api).items()}
    ops |= {n: Op(n, f, fits, smooth=False) for n, (f, fits) in kinked(api).items()}
    return ops | {n: Op(n, f, fits, 2) for n, (f, fits) in binary(api).items()}


OPS = operations(gradix)
ELEMENTWISE = tuple(elementwise(gradix))


@functools.lru_cache(None)
def shape_of(name: str, *shapes) -> tuple:
    return gradix.eval_shape(OPS[name].apply, *[gradix.ShapeDtypeStruct(s, "float32") for s in shapes]).shape


@dataclass(frozen=True)
class Program:
    """A program: shapes of its inputs, and steps (operation, operands by number); the last value is the result."""

    shapes: tuple
    steps: tuple

    def __call__(self, *inputs):
        return self.on(gradix)(*inputs)

    def on(self, api) -> Callable:
        """The program as a function of a library's arrays."""
        ops = operations(api)

        def run(*inputs):
            values = [api.numpy.asarray(x) for x in inputs]
            for name, operands in self.steps:
                values.append(ops[name].apply(*[values[i] for i in operands]))
            return values[-1]

        return run

    @property
    def is_smooth(self) -> bool:
        return all(OPS[name].smooth for name, _ in self.steps)

    def inputs(self):
        """Generic values, the same each time."""
        return tuple([1.3 * np.sin(1.7 * np.arange(prod(s)) + k + 0.4).reshape(s) for k, s in enumerate(self.shapes)])

    def __repr__(self):
        n = len(self.shapes)
        lines = [f"v{i}: {s}" for i, s in enumerate(self.shapes)]
        lines += [f"v{n + k} = {name}({', '.join(f'v{i}' for i in at)})" for k, (name, at) in enumerate(self.steps)]
        return "Program[" + "; ".join(lines) + "]"


def build(pick: Callable, most: int) -> Program:
    """A program of at most `most` steps, each decision made by `pick(options)`."""
    shapes = tuple([pick(((), (3,), (2, 3))) for _ in range(pick((1, 2, 3)))])
    known, steps = list(shapes), []
    for _ in range(pick(range(1, most + 1))):
        # Mostly on from the latest value, so that few steps are in vain.
        first = len(known) - 1 if pick((True, True, False)) else pick(range(len(known)))
        operands = (first,) if pick((True, False)) else (first, pick(range(len(known))))
        given = [known[i] for i in operands]
        fitting = [n for n, op in OPS.items() if op.arity == len(operands) and op.fits(*given)]
        name = pick(fitting or ELEMENTWISE)
        operands = operands[: OPS[name].arity]
        known.append(shape_of(name, *[known[i] for i in operands]))
        steps.append((name, operands))
    return Program(shapes, tuple(steps))


@st.composite
def programs(draw, most: int = 7) -> Program:
    return build(lambda options: draw(st.sampled_from(options)), most)
