"""What a jitted function tells of its traces, and the guard against more of them."""

import re

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.errors import RetraceError


@pytest.mark.x32
def test_counts():
    f = gradix.jit(lambda x: x + 1)
    assert f.stats() == type(f.stats())(0, 0, 0, 0.0, ())
    for n in (3, 3, 4, 3):
        f(jnp.ones(n))
    s = f.stats()
    assert (s.traces, s.calls, s.compiles) == (2, 4, 2) and s.seconds > 0
    f(np.ones(3, "f4"))
    assert f.stats().calls == 5 and f.stats().traces == 2


def test_tracing_alone_compiles_nothing():
    f = gradix.jit(lambda x: x + 1)
    gradix.make_jaxpr(f)(1.0)
    f.lower(jnp.ones(2))
    assert f.stats().traces == 2 and f.stats().compiles == 0


REASONS = [
    (lambda f: (f(jnp.ones(3)), f(jnp.ones(4))), r"argument tree: float32\[3\] -> float32\[4\]"),
    (lambda f: (f(jnp.ones(3)), f(jnp.arange(3))), r"argument tree: float32\[3\] -> int32\[3\]"),
    (lambda f: (f(1.0), f(jnp.float32(1))), r"argument tree: float32\[\] \(weakly typed\) -> float32\[\]"),
    (lambda f: (f({"a": 1.0}), f({"a": 1})), r"argument tree\['a'\]: float32"),
    (lambda f: (f({"a": 1.0}), f({"b": 1.0})), r"argument tree\['b'\] is new.*argument tree\['a'\] is gone"),
    (lambda f: (f(1.0, 2), f(1.0, 3)), "static argument n: 2 of type int -> 3 of type int"),
    (lambda f: (f(1.0, [1]), f(1.0, n=[1, 2])), r"static argument n: \[1\] of type list -> \[1, 2\] of type list"),
    (lambda f: (f(1.0, 1), f(1.0, True)), "static argument n: 1 of type int -> True of type bool"),
    (lambda f: (f(jnp.ones(3), 1), f(jnp.ones(4), 2), f(jnp.ones(4), 1)), r"float32\[3\] -> float32\[4\]$|n: 2 of"),
]


@pytest.mark.x32
@pytest.mark.parametrize("calls, reason", REASONS)
def test_reasons_name_what_differs(calls, reason):
    f = gradix.jit(lambda tree, n=0: tree, static_argnames="n")
    calls(f)
    assert re.search(reason, f.stats().reasons[-1]), f.stats().reasons


def test_max_traces():
    f = gradix.jit(lambda x, n: x * n, static_argnames="n", max_traces=2)
    f(jnp.ones(3), 1), f(jnp.ones(3), 2), f(jnp.ones(3), 1)
    with pytest.raises(RetraceError, match=r"max_traces=2.*static argument n: 2 of type int -> 3 of type int"):
        f(jnp.ones(3), 3)
    assert f(jnp.ones(3), 2)[0] == 2 and f.stats().traces == 2
    with pytest.raises(RetraceError, match="no trace is allowed"):
        gradix.jit(lambda x: x, max_traces=0)(1.0)
    g = gradix.jit(max_traces=1)(lambda x: x)
    g(1.0)
    with pytest.raises(RetraceError):
        g(1)


def test_the_reason_names_the_attributes_of_a_static_object_that_changed():
    class Model:
        def __init__(self):
            self.width, self.key, self.steps = 2.0, gradix.random.key(0), 0

    model, f = Model(), gradix.jit(lambda model, x: x * model.width, static_argnums=0)
    f(model, 1.0)
    model.steps += 1
    f(model, 1.0)
    model.key, model.width = gradix.random.key(1), 3.0
    f(model, 1.0)
    assert f.stats().reasons == (
        "static argument model changed in its attribute steps",
        "static argument model changed in its attributes key, width",
    )
