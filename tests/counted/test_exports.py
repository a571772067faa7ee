"""Exported functions whose results have sizes that values decide: these are true in calls, and travel in files."""

import importlib.util

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export
from gradix.export import serialization

X = np.array([3.0, -1.0, 4.0, -2.0, 5.0, 0.5], np.float32)
INPUTS = [X, -X, 0 * X, 1 + X * X]  # some, others, none and all are positive


def several(x):
    some, others = x[x > 0], x[x < 0]
    return {"tail": some[1:], "more": [x.sum(), jnp.outer(some, others), None], "both": jnp.concatenate([some, others])}


FUNCTIONS = {
    "elements": lambda x: x[x > 0],
    "a tree": several,
    "a square": lambda x: jnp.outer(x[x > 0], x[x > 0]),
    "rows": lambda x: jnp.stack([x, 2 * x], 1)[x > 0],
    "integers": lambda x: jnp.nonzero(x > 0),
    "distinct": lambda x: jnp.unique(jnp.floor(jnp.abs(x)), return_counts=True),
    "two axes": lambda x: jnp.trim_zeros(jnp.outer(jnp.maximum(x, 0), jnp.maximum(-x, 0))),
    "sums of elements": lambda x: (jnp.cumsum(x[x > 0]), jnp.log(x[x > 0]).sum()),
    "selected twice": lambda x: x[x > 0][x[x > 0] > 1],
    "by a branch": lambda x: gradix.lax.cond(x[0] > 0, lambda x: x[x > 1], lambda x: x[1:], x),
}


def check_same(want, have):
    assert gradix.tree.structure(want) == gradix.tree.structure(have)
    for w, h in zip(gradix.tree.leaves(want), gradix.tree.leaves(have), strict=True):
        assert w.shape == h.shape and w.dtype == h.dtype
        np.testing.assert_allclose(h, w, rtol=2e-6)


def total(f):
    return lambda x: sum((v * v).sum() for v in gradix.tree.leaves(f(x)) if v.dtype.kind == "f")


def exported(f, size=6):
    return export.export(gradix.jit(f))(gradix.ShapeDtypeStruct((size,), "float32"))


@pytest.mark.parametrize("size", ["known", "open"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_have_their_sizes(name, size):
    f = FUNCTIONS[name]
    first = exported(f, 6 if size == "known" else export.symbolic_shape("n")[0])
    again = export.deserialize(first.serialize())
    for x in INPUTS if size == "known" else [*INPUTS, X[:4], X[2:3]]:
        want = f(jnp.asarray(x))
        for e in (first, again):
            check_same(want, e.call(x))
        if x is X:
            check_same(want, gradix.jit(again.call)(x))


@pytest.mark.parametrize("name", ["elements", "a tree", "sums of elements", "rows"])
def test_within_programs(name):
    f = FUNCTIONS[name]
    e = export.deserialize(exported(f).serialize(vjp_order=1))
    once = gradix.jit(lambda x: gradix.tree.map(lambda v: 2 * v[:2] / v.shape[0] if v.ndim else v, e.call(x)))
    for x in INPUTS[:3]:
        check_same(once(x), gradix.tree.map(lambda v: 2 * v[:2] / v.shape[0] if v.ndim else v, f(jnp.asarray(x))))
    x = jnp.asarray(X)
    want = gradix.grad(total(f))(x)
    for g in (
        gradix.grad(total(e.call)),
        gradix.jit(gradix.grad(total(e.call))),
        gradix.grad(gradix.jit(total(e.call))),
    ):
        np.testing.assert_allclose(g(x), want, rtol=1e-5)
    assert str(gradix.eval_shape(e.call, x)) == str(gradix.eval_shape(f, x))


def test_maps_give_rows_of_their_lengths():
    e = exported(FUNCTIONS["elements"])
    rows = gradix.vmap(e.call)(jnp.stack([jnp.asarray(x) for x in INPUTS]))
    assert [r.tolist() for r in rows.to_list()] == [x[x > 0].tolist() for x in INPUTS]


def test_calls_in_exports_of_other_sizes():
    n, k = export.symbolic_shape("n, k")
    inner = export.deserialize(exported(lambda x: (x[x > 0], jnp.append(x, x[x < 2])), n).serialize())
    for size in (6, k):
        outer = exported(lambda x: [v + v.sum() for v in inner.call(x)], size)
        check_same([v + v.sum() for v in (X[X > 0], np.append(X, X[X < 2]))], outer.call(X))
    assert outer.dimension_variables == ("k",)


@pytest.mark.parametrize("f", [lambda x: jnp.cumsum(jnp.sqrt(x[x > 0])).sum(), lambda x: jnp.sqrt(x[x > 0])[::-1]])
def test_gradients_see_nothing_that_was_not_selected(f):
    """Derivatives are taken before masking: elements past a size would meet cotangents of zero, and give NaN."""
    x = jnp.asarray(-X)  # the first element stands past the size
    e = export.deserialize(exported(f).serialize(vjp_order=1))
    want = gradix.grad(lambda x: f(x).sum())(x)
    np.testing.assert_allclose(gradix.grad(lambda x: e.call(x).sum())(x), want, rtol=1e-6)


@pytest.mark.parametrize("f", [lambda r: r[r > 0], lambda r: jnp.outer(r[r > 0], r[r > 0])])
def test_ragged_rows_travel(f):
    x = np.stack([X, -X])
    e = export.deserialize(export.export(gradix.jit(gradix.vmap(f)))(x).serialize())
    have = e.call(x)
    assert type(have) is gradix.Ragged
    for a, b in zip(have.to_list(), x, strict=True):
        np.testing.assert_array_equal(a, f(jnp.asarray(b)))
    taking = export.export(gradix.jit(lambda r: r.map(jnp.sum)))(have)
    np.testing.assert_allclose(export.deserialize(taking.serialize()).call(have), [f(jnp.asarray(b)).sum() for b in x])


@pytest.mark.parity
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_other_readers_get_buffers_and_sizes():
    from jax import export as theirs

    data = exported(FUNCTIONS["elements"]).serialize()
    kept, (count,) = theirs.deserialize(data).call(X)
    assert kept.shape == (6,) and int(count) == 4
    np.testing.assert_array_equal(np.asarray(kept)[:4], X[X > 0])


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c._replace(shapes=(*c.shapes, "")),
        lambda c: c._replace(names=("k", "k1"), bounds=("6", "6")),
        lambda c: c._replace(shapes=("(k, k)",)),
        lambda c: c._replace(shapes=("(k +",)),
        lambda c: c._replace(names=("9",)),
        lambda c: c._replace(bounds=()),
        lambda c: c._replace(bounds=("mod(k, 0)",)),
    ],
)
def test_wrong_files_are_refused(change, monkeypatch):
    e = exported(FUNCTIONS["elements"])
    object.__setattr__(e, "_counted", change(e._counted))
    data = e.serialize()
    with pytest.raises(ValueError, match="damaged"):
        export.deserialize(data)


def test_a_program_that_returns_a_wrong_size_is_refused():
    e = export.export(gradix.jit(lambda x: (x, (x.sum().astype(int),))))(X)
    right = exported(FUNCTIONS["elements"])
    object.__setattr__(e, "_counted", right._counted)
    with pytest.raises(ValueError, match="returned 9 as the size of an axis of at most 6"):
        export.deserialize(e.serialize()).call(X)


def test_the_digest_covers_the_sizes(monkeypatch):
    e = exported(FUNCTIONS["elements"])
    digest = serialization._digest
    monkeypatch.setattr(serialization, "_digest", lambda fields, *a: digest({**fields, "_counted": None}, *a))
    data = e.serialize()
    monkeypatch.undo()
    with pytest.raises(ValueError, match="digest"):
        export.deserialize(data)
