"""What functions do to keys, as signatures, and keys with assertions."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, random
from gradix.experimental.key_reuse import _core
from gradix.experimental.key_reuse._core import (
    Forward,
    KeyReuseSignature as Signature,
    Sink,
    Source,
    assert_consumed,
    assert_unconsumed,
    check_key_reuse,
    consume,
    function_type_signature,
)

KEY, KEYS = random.key(0), random.split(random.key(0))
FIRST = np.array([True, False])


@pytest.mark.x32
@pytest.mark.parametrize(
    "f, arg, parts",
    [
        (random.bits, KEY, (Sink(0),)),
        (random.normal, KEY, (Sink(0),)),
        (random.split, KEY, (Sink(0), Source(0))),
        (lambda k: random.fold_in(k, 1), KEY, (Source(0),)),
        (random.clone, KEY, (Source(0),)),
        (lambda k: (k, random.bits(k)), KEY, (Sink(0), Forward(0, 0))),
        (lambda k: random.bits(k[0]), KEYS, (Sink(0, FIRST),)),
        (lambda k: k.reshape(1, 2), KEYS, (Forward(0, 0),)),
        (lambda k: jnp.copy(k), KEY, (Forward(0, 0),)),
        (lambda k: k == k, KEY, ()),
        (random.key_data, KEY, ()),
        (lambda k: lax.cond(True, random.bits, lambda _: jnp.uint32(0), k), KEY, (Sink(0),)),
        (lambda k: gradix.vmap(random.bits)(k), KEYS, (Sink(0),)),
        (lambda k: consume(k), KEY, (Sink(0), Forward(0, 0))),
        (lambda k: random.random_gamma_p.bind(k, jnp.float32(1), log_space=False), KEY, (Sink(0),)),
    ],
)
def test_signatures(f, arg, parts):
    assert function_type_signature(f, arg) == Signature(*parts)


def test_signatures_of_primitives_agree_with_what_is_found():
    for prim, call in (
        (_core.random_bits_p, random.bits),
        (_core.random_split_p, random.split),
        (lax.squeeze_p, lambda k: k[None].squeeze(0)),
    ):
        assert function_type_signature(call, KEY) == _core.key_reuse_signatures[prim]
    closed = gradix.make_jaxpr(lambda k: consume(k))(KEY)
    assert _core.key_reuse_signature_from_eqn(closed.jaxpr.eqns[0]) == Signature(Sink(0), Forward(0, 0))
    assert _core.unknown_signature(closed.jaxpr.eqns[0]) == Signature(Sink(0), Source(0))


def test_assertions_about_keys():
    def good(k):
        assert_unconsumed(k)
        other = consume(k)
        assert_consumed(k)
        assert_consumed(other)
        assert_unconsumed(random.clone(other))

    def partly(ks):
        random.bits(ks[0])
        assert_consumed(ks, FIRST)

    check_key_reuse(good, KEY)
    check_key_reuse(partly, KEYS)
    for bad in (assert_consumed, lambda k: (consume(k), assert_unconsumed(k))):
        with pytest.raises(AssertionError, match="Expected keys"):
            check_key_reuse(bad, KEY)
    with pytest.raises(gradix.errors.KeyReuseError):
        check_key_reuse(lambda k: (consume(k), consume(k)), KEY)


def test_an_unknown_primitive_may_draw():
    prim = gradix.extend.core.Primitive("drawing")
    prim.def_abstract_eval(lambda k: gradix.core.ShapedArray((), np.dtype("float32")))
    check_key_reuse(prim.bind, KEY)
    with pytest.raises(gradix.errors.KeyReuseError, match="drawing"):
        check_key_reuse(lambda k: prim.bind(k) + prim.bind(k), KEY)


def test_parts_are_values():
    assert Sink(0) == Sink(0, np.array([True, True])) != Source(0) and hash(Sink(0, FIRST)) == hash(
        Sink(0, FIRST.copy())
    )
    assert Signature(Source(1), Sink(0)) == Signature(Sink(0), Source(1)) and hash(Signature(Sink(0))) == hash(
        Signature(Sink(0))
    )
    assert (
        repr(Signature(Forward(0, 1), Source(0), Sink(0, FIRST)))
        == "KeyReuseSignature(Sink(0, [ True False]), Source(0), Forward(0, 1))"
    )
    for change in (lambda: setattr(Sink(0), "idx", 1), lambda: Sink(0, FIRST).mask.__setitem__(0, False)):
        with pytest.raises(ValueError):
            change()


def test_gamma_as_a_primitive():
    def draw(k, a):
        return random.random_gamma_p.bind(k, a, log_space=False)

    a = jnp.array([0.5, 2.0, 3.0])
    want = random.gamma(KEY, a)
    np.testing.assert_allclose(draw(KEY, a), want, rtol=1e-5)
    np.testing.assert_allclose(gradix.jit(draw)(KEY, a), want, rtol=1e-5)
    slope = gradix.grad(lambda a: random.gamma(KEY, a).sum())(a)
    np.testing.assert_allclose(gradix.grad(lambda a: draw(KEY, a).sum())(a), slope, rtol=1e-4)
    rows = gradix.vmap(draw)(KEYS, jnp.stack([a, a]))
    np.testing.assert_allclose(rows, [random.gamma(k, a) for k in KEYS], rtol=1e-5)
    with pytest.raises(ValueError, match="shape of the keys"):
        gradix.jit(draw)(KEYS, a)
