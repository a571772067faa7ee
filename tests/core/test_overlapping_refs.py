"""Two refs to the same elements: both writes count, or the second ref is refused; none is lost."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax


def add(a, b):
    a[...] = a[...] + 1
    b[...] = b[...] + 10


def step(_, refs):
    add(*refs)
    return None, None


def called(wrapped):
    """The ways to call with two refs, made of a function that takes two."""
    return {
        "twice": lambda r: wrapped(add)(r, r),
        "two views": lambda r: wrapped(add)(r.at[:2], r.at[:2]),
        "with a view": lambda r: wrapped(add)(r, r.at[...]),
        "views of views": lambda r: wrapped(add)(r.at[1:].at[:1], r.at[:2].at[1:]),
        "captured": lambda r: wrapped(lambda a: add(a, r))(r),
        "a view of what is captured": lambda r: wrapped(lambda a: add(a, r))(r.at[:2]),
        "captured view": lambda r: (lambda view: wrapped(lambda a: add(a, view))(r))(r.at[0]),
    }


def scanned(f):
    return lambda *refs: lax.scan(lambda _, xs: (None, f(*xs)), None, refs)


BOUNDARIES = {
    "jit": gradix.jit,
    "vmap": gradix.vmap,
    "scan": scanned,
    "map": lambda f: lambda *refs: lax.map(lambda xs: f(*xs), refs),
    "vmap in chunks": lambda f: gradix.vmap(f, chunk_size=1),
    "jit of vmap": lambda f: gradix.jit(gradix.vmap(f)),
    "jit of scan": lambda f: gradix.jit(scanned(f)),
    "checkpoint": gradix.checkpoint,
    "cond": lambda f: lambda *refs: lax.cond(True, f, lambda *_: None, *refs),
    "switch": lambda f: lambda *refs: lax.switch(0, [f], *refs),
    "grad": lambda f: lambda *refs: gradix.grad(lambda x, *refs: (f(*refs), x)[1])(1.0, *refs),
    "plain": lambda f: f,
}


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("way", called(lambda f: f))
def test_no_write_is_lost(boundary, way):
    call = called(BOUNDARIES[boundary])[way]
    want = gradix.new_ref(jnp.zeros(3))
    called(lambda f: f)[way](want) if boundary not in ("scan", "map") else None
    ref = gradix.new_ref(jnp.zeros(3))
    try:
        call(ref)
    except (ValueError, TypeError) as refusal:
        assert "twice" in str(refusal) or "outside of the transformation" in str(refusal) or "shape" in str(refusal), (
            refusal
        )
        return
    if boundary not in ("scan", "map"):
        np.testing.assert_array_equal(ref[...], want[...])


@pytest.mark.parametrize("boundary", ["jit", "vmap", "scan", "map", "jit of vmap"])
@pytest.mark.parametrize("way", ["twice", "two views", "with a view", "captured"])
def test_boundaries_that_hand_copies_on_refuse(boundary, way):
    ref = gradix.new_ref(jnp.zeros(3))
    with pytest.raises(ValueError, match=r"only one reference to a mutable array .* twice"):
        called(BOUNDARIES[boundary])[way](ref)
    np.testing.assert_array_equal(ref[...], 0)


def test_parts_that_do_not_overlap_are_two_arrays():
    for wrapped in (gradix.jit, gradix.vmap, scanned):
        for parts in ((slice(0, 2), slice(2, 4)), (slice(0, 4, 2), slice(1, 4, 2))):
            ref = gradix.new_ref(jnp.zeros(4))
            wrapped(add)(*[ref.at[p] for p in parts])
            want = np.zeros(4)
            want[parts[0]], want[parts[1]] = 1, 10
            np.testing.assert_array_equal(ref[...], want)
    rows = gradix.new_ref(jnp.zeros((2, 3)))
    gradix.jit(add)(rows.at[0], rows.at[1])
    np.testing.assert_array_equal(rows[...], [[1] * 3, [10] * 3])


def test_a_traced_index_may_overlap():
    ref = gradix.new_ref(jnp.zeros(3))
    with pytest.raises(ValueError, match="only one reference"):
        gradix.jit(lambda r, i: gradix.jit(add)(r.at[i], r.at[0]))(ref, 1)
