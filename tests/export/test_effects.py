"""Exported programs with effects: seen as they happen, by a function of this process that the runtime calls."""

import ctypes
import importlib.util

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export, lax
from gradix._core.effects import Effect, SinkEffect, io_effect, ordered_io_effect
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._stablehlo.types import TOKEN

S = gradix.ShapeDtypeStruct
TARGET = "gradix_test_note"
ALLOWED = [export.DisabledSafetyCheck.custom_call(TARGET)]
SEEN: list[float] = []


@ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_void_p))
def native(out, operands):
    """Keep the number that is the second operand, and give it as second result."""
    SEEN.append(ctypes.cast(operands[1], ctypes.POINTER(ctypes.c_float))[0])
    ctypes.cast(out[1], ctypes.POINTER(ctypes.c_float))[0] = SEEN[-1]


class Note(Primitive):
    """A number seen by `native`."""

    effectful = True

    def abstract(self, x, *, effect):
        return x

    def effects(self, params):
        return frozenset([params["effect"]])

    def lower(self, em, out, x, *, effect):
        is_ordered = effect == ordered_io_effect
        before = em.ordering_token() if is_ordered else em.op("create_token", TOKEN)
        after, result = em.custom_call(TARGET, [TOKEN, out], before, x, api_version=1, has_side_effect=True)
        if is_ordered:
            em.token = after
        return result


note_p = Note("note")


@pytest.fixture(autouse=True, scope="module")
def target():
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = make(ctypes.cast(native, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None)
    gradix.ffi.register_ffi_target(TARGET, capsule, api_version=0)


def note(x, effect=io_effect):
    return bind(note_p, [x], {"effect": effect})


def exported_of(f, *specs, **options):
    return export.export(gradix.jit(f), disabled_checks=ALLOWED, **options)(*specs)


def read(e):
    return export.deserialize(e.serialize())


def seen(f, *args) -> list[float]:
    SEEN.clear()
    gradix.block_until_ready(f(*args))
    return list(SEEN)


SCALAR = S((), np.float32)


def in_order(x):
    note(x + 1, ordered_io_effect)
    note(x + 2, ordered_io_effect)
    return x * 2


def in_no_order(x):
    note(x)
    return x * 2


def test_mains_take_and_give_tokens():
    e = exported_of(in_order, SCALAR)
    assert e.ordered_effects == (ordered_io_effect,) and e.unordered_effects == ()
    assert (
        "(%arg0: !stablehlo.token {jax.token = true}, %arg1: tensor<f32>) -> (!stablehlo.token {jax.token = true}, tensor<f32>)"
        in e.mlir_module()
    )
    again = read(e)
    assert again.ordered_effects == e.ordered_effects
    for f in (e.call, again.call, gradix.jit(again.call)):
        assert seen(f, np.float32(3)) == [4.0, 5.0] and f(np.float32(3)) == 6.0


def test_the_order_holds_through_calls_of_calls():
    first = read(exported_of(in_order, SCALAR))
    second = read(exported_of(lambda x: first.call(first.call(x)) + note(x * 100, ordered_io_effect), SCALAR))
    assert second.ordered_effects == first.ordered_effects and second.mlir_module().count("create_token") == 0

    def program(x):
        y = lax.scan(lambda c, _: (second.call(c) * 0 + c + 1, None), x, None, length=2)[0]
        return lax.cond(y > 0, first.call, lambda t: t, y)

    once = lambda x: [x + 1, x + 2, 2 * x + 1, 2 * x + 2, 100 * x]
    assert seen(gradix.jit(program), np.float32(1)) == [*once(1), *once(2), 4.0, 5.0]


def test_tokens_come_after_platform_and_dimensions():
    k, n = export.symbolic_shape("k, n")
    f = lambda k, x, t: (jnp.zeros(k) + x.sum() + t, note(t, ordered_io_effect))
    e = export.export(gradix.jit(f, static_argnums=0), disabled_checks=ALLOWED, platforms=("tpu", "cpu"))(
        k, S((n,), np.float32), SCALAR
    )
    main = e.mlir_module()[e.mlir_module().index("@main") :].splitlines()[0]
    assert main.index("_platform_index") < main.index('"k"') < main.index("jax.token") < main.index("tensor<?xf32>")
    for loaded in (e, read(e)):
        got = loaded.bind_dims(k=2).call(np.ones(3, "f4"), np.float32(5))
        assert (
            got[0].tolist() == [8.0, 8.0]
            and seen(loaded.bind_dims(k=2).call, np.ones(3, "f4"), np.float32(5))[-1] == 5.0
        )


def test_a_call_with_effects_is_never_dead_code():
    once = read(exported_of(in_no_order, SCALAR))
    assert once.unordered_effects == (io_effect,)
    twice = read(exported_of(lambda x: (once.call(x), x + 1)[1], SCALAR))
    assert twice.unordered_effects == (io_effect,) and twice.ordered_effects == ()
    unused = lambda f: lambda x: (f(x), x - 1)[1]
    for f in (once.call, twice.call):
        for program in (
            unused(f),
            unused(unused(f)),
            unused(gradix.jit(f)),
            unused(lambda x: (f(x), f(x))[0] * 0),
            lambda x: lax.scan(lambda c, _: (unused(f)(c), None), x + 1, None, length=1)[0],
            lambda x: lax.cond(x > 0, unused(f), lambda t: t, x),
            unused(lambda x: lax.fori_loop(0, 1, lambda i, c: f(c), x)),
            unused(gradix.checkpoint(f)),
            lambda x: gradix.grad(unused(f))(x),
        ):
            numbers = seen(gradix.jit(program), np.float32(2))
            assert numbers and set(numbers) <= {2.0, 3.0}
    assert seen(gradix.jit(lambda x: (once.call(x), once.call(x))), np.float32(2)) == [2.0, 2.0]
    assert seen(gradix.jit(unused(gradix.vmap(once.call))), np.arange(3, dtype="f4")) == [0.0, 1.0, 2.0]


def test_gradients_of_calls_with_effects():
    once = export.deserialize(exported_of(lambda x: x * x + note(lax.stop_gradient(x)), SCALAR).serialize(vjp_order=1))
    assert gradix.grad(once.call)(np.float32(3)) == 6.0 and once.vjp().unordered_effects == (io_effect,)
    with pytest.raises(NotImplementedError, match="ordered effects"):
        gradix.grad(read(exported_of(in_order, SCALAR)).call)(np.float32(3))
    with pytest.raises(NotImplementedError, match="in the backward pass"):
        gradix.grad(gradix.checkpoint(once.call))(np.float32(3))


class Own(Effect):
    """An effect of a library."""


def test_effects_of_others_keep_their_names():
    e = exported_of(lambda x: note(x, Own()) + 0, SCALAR)
    again = read(read(e))
    assert again.unordered_effects == read(e).unordered_effects and str(again.unordered_effects[0]) == str(Own)
    assert again.unordered_effects[0] in gradix.make_jaxpr(again.call)(np.float32(1)).effects
    assert read(export.export(gradix.jit(lambda x: (lax.dce_sink(x), x)[1]))(SCALAR)).unordered_effects == (
        SinkEffect(),
    )


@pytest.mark.parametrize(
    "effectful",
    [
        lambda x: gradix.debug.print("{}", x),
        lambda x: gradix.debug.print("{}", x, ordered=True),
        lambda x: gradix.pure_callback(np.sin, x, x),
        lambda x: gradix.experimental.io_callback(np.sin, x, x),
        lambda x: gradix.experimental.io_callback(np.sin, x, x, ordered=True),
        lambda x: gradix.debug.callback(print, x),
    ],
)
def test_callbacks_stay_in_their_process(effectful):
    with pytest.raises(NotImplementedError, match="host_callbacks.*Remove these calls"):
        export.export(gradix.jit(lambda x: (effectful(x), x)[1] if effectful(x) is None else effectful(x)))(SCALAR)


@pytest.mark.parity
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_files_with_effects_go_to_the_reference_implementation():
    import jax
    from jax import export as peer

    for f, order in ((in_order, [4.0, 5.0]), (in_no_order, [3.0])):
        e = exported_of(f, SCALAR)
        theirs = peer.deserialize(e.serialize())
        assert seen(theirs.call, np.float32(3)) == order
        assert (len(theirs.ordered_effects), len(theirs.unordered_effects)) == (
            len(e.ordered_effects),
            len(e.unordered_effects),
        )
        assert seen(jax.jit(lambda x, t=theirs: (t.call(x), t.call(x + 1))[1]), np.float32(3)) == [
            *order,
            *[n + 1 for n in order],
        ]
    sink = export.export(gradix.jit(lambda x: (lax.dce_sink(x), x)[1]))(SCALAR)
    assert [type(x).__name__ for x in peer.deserialize(sink.serialize()).unordered_effects] == ["NoDCEEffect"]
    side = peer.export(
        jax.jit(lambda x: (jax.ffi.ffi_call("other", x, has_side_effect=True)(x), x)[1]),
        disabled_checks=[peer.DisabledSafetyCheck.custom_call("other")],
    )(np.float32(0))
    ours = export.deserialize(side.serialize())
    assert (
        "FfiEffect" in str(ours.unordered_effects)
        and peer.deserialize(ours.serialize()).unordered_effects == side.unordered_effects
    )
