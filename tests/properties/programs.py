"""Random programs: straight-line compositions of smooth functions on small arrays, and stacks of transformations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
from hypothesis import strategies as st

import gradix
import gradix.numpy as jnp
from gradix import lax, nn

LARGEST = 24  # elements of a value
ROWS = np.array([1, 0, 1])


@dataclass(frozen=True)
class Op:
    """A function of one or two arrays, smooth everywhere; `fits` tells the shapes it takes."""

    name: str
    apply: Callable
    fits: Callable[..., bool]
    arity: int = 1


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


ELEMENTWISE = {
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
}
RESHAPING = {
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
}
BINARY = {
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
}
OPS = {n: Op(n, f, _any) for n, f in ELEMENTWISE.items()}
OPS |= {n: Op(n, f, fits) for n, (f, fits) in RESHAPING.items()}
OPS |= {n: Op(n, f, fits, 2) for n, (f, fits) in BINARY.items()}


@functools.lru_cache(None)
def shape_of(name: str, *shapes) -> tuple:
    return gradix.eval_shape(OPS[name].apply, *[gradix.ShapeDtypeStruct(s, "float32") for s in shapes]).shape


@dataclass(frozen=True)
class Program:
    """A program: shapes of its inputs, and steps (operation, operands by number); the last value is the result."""

    shapes: tuple
    steps: tuple

    def __call__(self, *inputs):
        values = [jnp.asarray(x) for x in inputs]
        for name, operands in self.steps:
            values.append(OPS[name].apply(*[values[i] for i in operands]))
        return values[-1]

    def inputs(self):
        """Generic values, the same each time."""
        return tuple([1.3 * np.sin(1.7 * np.arange(prod(s)) + k + 0.4).reshape(s) for k, s in enumerate(self.shapes)])

    def __repr__(self):
        n = len(self.shapes)
        lines = [f"v{i}: {s}" for i, s in enumerate(self.shapes)]
        lines += [f"v{n + k} = {name}({', '.join(f'v{i}' for i in at)})" for k, (name, at) in enumerate(self.steps)]
        return "Program[" + "; ".join(lines) + "]"


@st.composite
def programs(draw, most: int = 7) -> Program:
    shapes = draw(st.lists(st.sampled_from([(), (3,), (2, 3)]), min_size=1, max_size=3))
    known, steps = list(shapes), []
    for _ in range(draw(st.integers(1, most))):
        operands = tuple(draw(st.lists(st.integers(0, len(known) - 1), min_size=1, max_size=2)))
        given = [known[i] for i in operands]
        fitting = [n for n, op in OPS.items() if op.arity == len(operands) and op.fits(*given)]
        name = draw(st.sampled_from(fitting or list(ELEMENTWISE)))
        operands = operands[: OPS[name].arity]
        known.append(shape_of(name, *[known[i] for i in operands]))
        steps.append((name, operands))
    return Program(tuple(shapes), tuple(steps))
