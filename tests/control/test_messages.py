"""What wrong programs with loops, branches, vmap and collectives are told: each place by name, and what to write."""

import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

x = jnp.ones(3, "float32")


def over(f, v=x):
    return gradix.vmap(f, axis_name="i")(v)


WRONG = {
    "scan, types of the carry": (
        lambda: lax.scan(lambda c, v: ({"a": c["a"].astype(int), "b": c["b"][None]}, v), {"a": jnp.ones(2), "b": x}, x),
        TypeError,
        [
            "c['a'] has type float32[2]",
            "type int32[2]",
            "c['b'] has type float32[3]",
            "type float32[1,3]",
            "return c['a'].astype(float32), or start the carry with dtype int32",
            "keep c['b'] of shape (3,)",
        ],
    ),
    "scan, tree of the carry": (
        lambda: lax.scan(lambda c, v: ({"a": c["a"]}, v), {"a": 1.0, "b": (2.0, 3)}, x),
        TypeError,
        ["a dict with 2 children", "a dict with 1 child", "their keys differ"],
    ),
    "while_loop, types": (
        lambda: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 1.5), (0, jnp.arange(3))),
        TypeError,
        ["while_loop body", "c[1] has type int32[3]", "type float32[3]", "c[1].astype(int32)"],
    ),
    "fori_loop, types by the user's names": (
        lambda: lax.fori_loop(0, 3, lambda i, s: {"w": s["w"].sum(), "n": s["n"] * 2.5}, {"w": x, "n": jnp.int32(1)}),
        TypeError,
        ["fori_loop body", "s['n'] has type int32[]", "s['w'] has type float32[3]", "keep s['w'] of shape (3,)"],
    ),
    "fori_loop to a traced end, tree": (
        lambda: gradix.jit(lambda n: lax.fori_loop(0, n, lambda i, val: (val, val), x))(3),
        TypeError,
        ["fori_loop body", "input carry val is an array", "a tuple with 2 children"],
    ),
    "fori_loop, arguments": (
        lambda: lax.fori_loop(0, 3, lambda c: c, x),
        TypeError,
        ["fori_loop calls <lambda> at", "test_messages.py", "with (i, val), but its arguments are (c)"],
    ),
    "scan, arguments": (
        lambda: lax.scan(lambda c: c, 0.0, x),
        TypeError,
        ["with (carry, x)", "Write it with 2 positional"],
    ),
    "cond, arguments": (lambda: lax.cond(True, lambda: x, lambda v: v, x), TypeError, ["cond calls", "(operand 0)"]),
    "while_loop, arguments": (lambda: lax.while_loop(lambda: True, lambda c: c, x), TypeError, ["with (carry)"]),
    "a TypeError of the body's own": (
        lambda: lax.scan(lambda c, v: (c, len(3)), 0.0, x),
        TypeError,
        ["object of type 'int'"],
    ),
    "scan, sizes": (
        lambda: lax.scan(lambda c, v: (c, v), 0, {"p": x, "q": jnp.ones((4, 2))}),
        ValueError,
        ["sizes: 3, 4", "xs['p']  float32[3]: leading size 3", "xs['q']  float32[4,2]: leading size 4"],
    ),
    "scan, length": (lambda: lax.scan(lambda c, v: (c, v), 0, x, length=5), ValueError, ["length", "xs  float32[3]"]),
    "scan, a scalar": (
        lambda: lax.scan(lambda c, v: (c, v), 0, (x, 2.0)),
        ValueError,
        ["2.0 (at xs[1])", "close over"],
    ),
    "map, sizes": (lambda: lax.map(lambda v: v, (x, jnp.ones(2))), ValueError, ["xs[1]  float32[2]: leading size 2"]),
    "vmap, sizes": (
        lambda: gradix.vmap(lambda a, b: a)({"p": jnp.ones((3, 2)), "q": [jnp.ones(4)]}, jnp.ones((2, 3))),
        ValueError,
        [
            "a['p']     float32[3,2]  axis 0: size 3",
            "a['q'][0]  float32[4]  axis 0: size 4",
            "b          float32[2,3]  axis 0: size 2",
            "in_axes=None",
        ],
    ),
    "all_gather, axis": (lambda: over(lambda v: lax.all_gather(v, "i", axis=5)), ValueError, ["all_gather axis 5"]),
    "psum_scatter, dimension": (
        lambda: over(lambda v: lax.psum_scatter(v, "i", scatter_dimension=2), jnp.ones((3, 3))),
        ValueError,
        ["scatter_dimension 2"],
    ),
    "all_to_all, axes": (
        lambda: over(lambda v: lax.all_to_all(v, "i", 0, 4), jnp.ones((3, 3))),
        ValueError,
        ["concat_axis 4"],
    ),
    "an axis nobody binds": (lambda: lax.psum(x, "i"), NameError, ["unbound axis name: i", "vmap(..., axis_name='i')"]),
    "dot_general": (lambda: lax.dot_general(x, x, 3), TypeError, ["got 3", "(((1,), (0,)), ((), ()))", "jnp.matmul"]),
    "a key as a dict key": (lambda: {gradix.random.key(0): 1}, TypeError, ["unhashable type"]),
}


@pytest.mark.x32
@pytest.mark.parametrize("name", WRONG)
def test_message(name):
    call, kind, parts = WRONG[name]
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    for part in parts:
        assert part in text, f"{part!r} is not in:\n{text}"
    assert "jax" not in text
