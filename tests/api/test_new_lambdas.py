"""Functions that take functions, called again with new lambdas of the same code, compile nothing again."""
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._runtime import program
from gradix.scipy.sparse.linalg import cg

X, ROWS = jnp.linspace(0, 3, 50001), jnp.ones((100, 1000))       # large enough that eager work is compiled
CALLS = {
    "piecewise": lambda: jnp.piecewise(X, [X < 1, X > 2], [lambda v: v + 1, lambda v: v * 2, 0.0]),
    "fori_loop": lambda: lax.fori_loop(0, 10, lambda i, v: v * 1.5 + i, X),
    "while_loop": lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, X)),
    "scan": lambda: lax.scan(lambda c, v: (c + v, c * v), ROWS[0], ROWS),
    "cond": lambda: lax.cond(X[0] > 1, lambda v: v + 1, lambda v: v - 1, X),
    "switch": lambda: lax.switch(1, [lambda v: v, lambda v: v + 2], X),
    "map": lambda: lax.map(lambda v: jnp.sin(v), ROWS),
    "associative_scan": lambda: lax.associative_scan(lambda a, b: a * b, X),
    "vectorize": lambda: jnp.vectorize(lambda a, b: a * b, signature="(n),(n)->(n)")(ROWS, ROWS),
    "apply_along_axis": lambda: jnp.apply_along_axis(lambda v: v * 2, 0, ROWS),
    "cg": lambda: cg(lambda v: 2 * v, X)[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_compiled_again(name, monkeypatch):
    compiled, obtain = [], program._compilation.obtain
    monkeypatch.setattr(program._compilation, "obtain", lambda module, of, *rest, **kw: compiled.append(of) or obtain(module, of, *rest, **kw))
    for _ in range(2):
        gradix.block_until_ready(CALLS[name]())
    first = len(compiled)
    for _ in range(3):
        gradix.block_until_ready(CALLS[name]())
    assert len(compiled) == first, compiled[first:]
    gradix.jit(lambda x: x - 0.123)(X)
    assert len(compiled) == first + 1       # what counts, counts
