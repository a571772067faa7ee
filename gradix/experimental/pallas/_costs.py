"""Estimates of what a function costs: arithmetic, transcendental functions, and bytes moved."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

from gradix._api.inspect import make_jaxpr
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, jaxprs_in_params


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """The operations and bytes that a kernel takes, for schedulers of accelerators.

    Example:
        >>> from gradix.experimental import pallas as pl
        >>> pl.CostEstimate(flops=2 * 64**3, transcendentals=0, bytes_accessed=3 * 4 * 64**2).to_json()
        b'{"flops": 524288, "transcendentals": 0, "bytes_accessed": 49152, "remote_bytes_transferred": 0}'
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def to_json(self) -> bytes:
        """The estimate as JSON."""
        return json.dumps(dataclasses.asdict(self)).encode("ascii")


_TRANSCENDENTAL = frozenset(
    ["cos", "sin", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan", "atan2", "exp", "exp2", "expm1"]
    + ["log", "log1p", "logistic", "pow", "sqrt", "rsqrt", "cbrt", "erf", "erfc", "erf_inv", "lgamma", "digamma"]
)
_FREE = frozenset(
    ["broadcast_in_dim", "reshape", "transpose", "convert_element_type", "slice", "dynamic_slice", "squeeze", "copy"]
    + ["concatenate", "pad", "rev", "iota", "gather", "scatter", "dynamic_update_slice", "expand_dims", "stop_gradient"]
)


def estimate_cost(fun: Callable, *args: Any, **kwargs: Any) -> CostEstimate:
    """What a function of arrays costs.

    Args:
        fun: the function.
        *args, **kwargs: its arguments, or types of these such as `ShapeDtypeStruct`s.

    Returns:
        A multiplication with an addition counts as two operations, and the bytes are those of
        arguments and results. Turns of loops whose number is unknown count once.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> x = gradix.ShapeDtypeStruct((8, 8), jnp.float32)
        >>> pl.estimate_cost(lambda x, y: jnp.exp(x @ y), x, x)
        CostEstimate(flops=1024, transcendentals=64, bytes_accessed=768, remote_bytes_transferred=0)
    """
    closed = make_jaxpr(lambda *xs: fun(*xs, **kwargs))(*args)
    flops, transcendentals = _operations(closed.jaxpr)
    moved = [v.aval for v in closed.jaxpr.invars] + closed.out_avals
    size = sum([math.prod(a.shape) * a.dtype.itemsize for a in moved])
    return CostEstimate(flops, transcendentals, size)


def _products(power: int) -> int:
    """The products that repeated squaring takes, whose running product begins with one."""
    return power.bit_length() - 1 + power.bit_count() if power > 1 else 0


def _operations(jaxpr: Jaxpr | ClosedJaxpr) -> tuple[int, int]:
    jaxpr = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    flops = transcendentals = 0
    for eqn in jaxpr.eqns:
        name, size = eqn.primitive.name, sum([math.prod(v.aval.shape) for v in eqn.outvars])
        inner = [] if name == "pallas_call" else list(jaxprs_in_params(eqn.params))
        if name == "pallas_call":
            inner = [eqn.params["jaxpr"].jaxpr]
        if inner:
            costs = [_operations(j) for j in inner]
            turns = eqn.params.get("length", 1)
            if name == "cond":
                costs = [max(costs)]
            flops += turns * sum([c[0] for c in costs])
            transcendentals += turns * sum([c[1] for c in costs])
        elif name == "dot_general":
            (contracted, _), _ = eqn.params["dimension_numbers"]
            terms = math.prod([eqn.invars[0].aval.shape[d] for d in contracted])
            flops += 2 * size * terms
        elif name in _TRANSCENDENTAL:
            transcendentals += size
        elif name.startswith(("reduce_", "arg", "cum")):
            flops += math.prod(eqn.invars[0].aval.shape)
        elif name == "integer_pow":
            flops += size * _products(abs(eqn.params["y"]))
        elif name not in _FREE:
            flops += size
    return flops, transcendentals
