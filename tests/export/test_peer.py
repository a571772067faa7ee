"""Files read by the reference implementation, and its files read here."""

import importlib.util

import numpy as np
import pytest

import gradix
from gradix import export
from tests.export.common import SIZES, arrays_of, function_of, numbers, specs_of
from tests.export.programs import PROGRAMS
from tests.export.travelling import PROGRAMS as TRAVELLING

pytestmark = [
    pytest.mark.parity,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed"),
]

SKIPPED = ("slogdet",)  # named tuples of either library, which are not registered


@pytest.fixture(scope="module")
def peer():
    import jax
    from jax import export as jax_export, lax, numpy as jnp

    return {"jax": jax, "export": jax_export, "names": {"jax": jax, "jnp": jnp, "lax": lax}}


def both_ways(peer, text, shapes):
    jax, their = peer["jax"], peer["export"]
    args = arrays_of(shapes, SIZES[0])
    ours = export.export(gradix.jit(function_of(text, len(shapes))))(*specs_of(shapes))
    compare(their.deserialize(ours.serialize()).call(*args), ours.call(*args))
    try:
        theirs = their.export(jax.jit(function_of(text, len(shapes), peer["names"])))(*specs_of(shapes, jax, their))
    except Exception:
        return  # what it does not export is no file
    compare(export.deserialize(theirs.serialize()).call(*args), theirs.call(*args))


def compare(have, want):
    have, want = gradix.tree.leaves(have), gradix.tree.leaves(want)
    assert len(have) == len(want)
    for h, w in zip(have, want):
        assert h.shape == w.shape and str(h.dtype) == str(w.dtype)
        if "key" not in str(h.dtype):
            np.testing.assert_allclose(numbers(h), numbers(w), rtol=1e-3, atol=1e-4)


CASES = [p for p in PROGRAMS if not any(s in p[0] for s in SKIPPED)]


@pytest.mark.parametrize(("text", "shapes"), CASES[5::60])
def test_files_go_both_ways(peer, text, shapes):
    both_ways(peer, text, shapes)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "shapes"), CASES)
def test_all_files_go_both_ways(peer, text, shapes):
    both_ways(peer, text, shapes)


def gradients(peer, text, shapes):
    """The gradient of the sum of all real results, through files that hold it, of both libraries' programs in both."""
    jax, their = peer["jax"], peer["export"]
    args = arrays_of(shapes, SIZES[0])
    ours = export.export(gradix.jit(function_of(text, len(shapes))))(*specs_of(shapes)).serialize(vjp_order=1)
    theirs = their.export(jax.jit(function_of(text, len(shapes), peer["names"])))(
        *specs_of(shapes, jax, their)
    ).serialize(vjp_order=1)
    where = tuple(range(len(args)))

    def of(lib, f):
        def total(*xs):
            results = [lib.numpy.asarray(t) for t in lib.tree.leaves(f(*xs))]
            return sum(
                [
                    lib.numpy.abs(t).astype("float32").sum()
                    for t in results
                    if t.dtype in ("float32", "bfloat16", "complex64")
                ],
                lib.numpy.float32(0),
            )

        return lib.grad(total, where)(*args)

    want = of(jax, function_of(text, len(shapes), peer["names"]))
    for lib, read in ((jax, their), (gradix, export)):
        for blob in (ours, theirs):
            compare(of(lib, read.deserialize(blob).call), want)


# Of no gradient in reverse mode, or of one that the reference implementation does not export.
WITHOUT = ("while_loop", "fori_loop(0, x.shape[0]", "lax.cumprod")
CHOSEN = TRAVELLING[3::27]


@pytest.mark.parametrize(("text", "shapes"), CHOSEN)
def test_programs_travel(peer, text, shapes):
    both_ways(peer, text, shapes)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "shapes"), TRAVELLING)
def test_all_programs_travel(peer, text, shapes):
    both_ways(peer, text, shapes)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "shapes"), [p for p in TRAVELLING if not any(e in p[0] for e in WITHOUT)])
def test_gradients_of_all_programs_travel(peer, text, shapes):
    gradients(peer, text, shapes)


def test_gradients_to_third_order_go_both_ways(peer):
    jax, their = peer["jax"], peer["export"]
    text, shapes, x = "(jnp.sin(x) * x.shape[0]).sum()", ("a, 3",), np.ones((2, 3), "f4")
    ours = export.export(gradix.jit(function_of(text, 1)))(*specs_of(shapes))
    theirs = their.export(jax.jit(function_of(text, 1, peer["names"])))(*specs_of(shapes, jax, their))
    for blob in (ours.serialize(vjp_order=3), theirs.serialize(vjp_order=3)):
        for lib, read in ((jax, their), (gradix, export)):
            g, e = read.deserialize(blob).call, read.deserialize(blob)
            for want in (2 * np.cos(x), -2 * np.sin(x), -2 * np.cos(x)):
                g = lib.grad(lambda x, g=g, lib=lib: g(x).sum())
                np.testing.assert_allclose(g(x), want, rtol=1e-5)
                e = e.vjp()
            assert not e.has_vjp()


def test_keys_and_platforms_go_both_ways(peer):
    jax, their = peer["jax"], peer["export"]
    ours = export.export(gradix.jit(lambda k: gradix.random.uniform(k, (3,))), platforms=("cpu", "tpu"))(
        gradix.random.key(0)
    )
    theirs = their.export(jax.jit(lambda k: jax.random.uniform(k, (3,))), platforms=("cpu", "tpu"))(jax.random.key(0))
    want = jax.random.uniform(jax.random.key(5), (3,))
    np.testing.assert_array_equal(their.deserialize(ours.serialize()).call(jax.random.key(5)), want)
    np.testing.assert_array_equal(export.deserialize(theirs.serialize()).call(gradix.random.key(5)), want)


@pytest.fixture(scope="module")
def ordered_files(peer):
    """Files of a sine with an ordered effect, for three numbers and for any number of them."""
    effects = pytest.importorskip("jax._src.effects")
    mlir = importlib.import_module("jax.interpreters.mlir")
    primitive = importlib.import_module("jax.extend.core").Primitive("ordered_identity")
    kind = type(
        "ExportedInOrder", (effects.Effect,), {"__eq__": lambda a, b: type(a) is type(b), "__hash__": lambda a: 1}
    )
    effect = kind()
    for known in (effects.lowerable_effects, effects.ordered_effects, effects.control_flow_allowed_effects):
        known.add_type(kind)
    primitive.def_effectful_abstract_eval(lambda x: (x, {effect}))

    def lower(ctx, x):
        ctx.set_tokens_out(mlir.TokenSet({effect: ctx.tokens_in.get(effect)}))
        return [x]

    mlir.register_lowering(primitive, lower)
    jax, their = peer["jax"], peer["export"]
    exported = their.export(jax.jit(lambda x: jax.numpy.sin(primitive.bind(x))), platforms=("tpu", "cpu"))
    (n,) = their.symbolic_shape("n")
    return [export.deserialize(exported(jax.ShapeDtypeStruct((d,), "float32")).serialize()) for d in (3, n)]


def test_files_with_ordered_effects_are_called_in_their_order(ordered_files):
    fixed, open_ = ordered_files
    assert len(fixed.ordered_effects) == 1 and fixed.unordered_effects == ()
    x = np.arange(3, dtype="f4")
    np.testing.assert_allclose(open_.call(x), np.sin(x), rtol=1e-6)

    def program(x):
        y = gradix.lax.scan(lambda c, _: (fixed.call(c), None), x, None, length=2)[0]
        z = gradix.lax.cond(y[1] > 0, gradix.jit(open_.call), lambda t: t, y)
        return fixed.call(z)

    want = np.sin(np.sin(np.sin(np.sin(x))))
    lowered = gradix.jit(program).lower(x)
    assert lowered.as_text().count("stablehlo.create_token") == 1
    np.testing.assert_allclose(lowered.compile()(x), want, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="ordered effects"):
        gradix.grad(lambda x: fixed.call(x).sum())(x)


def test_callers_of_files_with_ordered_effects_are_exported_again(peer, ordered_files):
    """Their mains take and give the tokens, as those of the reference implementation, which calls and exports them in turn."""
    jax, their = peer["jax"], peer["export"]
    (n,) = export.symbolic_shape("n")
    inner = ordered_files[1]
    again = export.export(gradix.jit(lambda x: inner.call(inner.call(x)) * 2))(gradix.ShapeDtypeStruct((n,), "f4"))
    assert again.ordered_effects == inner.ordered_effects and again.unordered_effects == ()
    theirs = their.deserialize(again.serialize())
    assert [str(type(x)) for x in theirs.ordered_effects] == [str(x) for x in inner.ordered_effects]
    (m,) = their.symbolic_shape("m")
    outer = their.export(jax.jit(lambda x: theirs.call(x) + 1))(jax.ShapeDtypeStruct((m,), "f4"))
    back = export.deserialize(outer.serialize())
    assert back.ordered_effects == inner.ordered_effects
    for size in (2, 5):
        x = np.arange(size, dtype="f4")
        want = 2 * np.sin(np.sin(x))
        for have in (again.call(x), theirs.call(x), back.call(x) - 1, export.deserialize(again.serialize()).call(x)):
            np.testing.assert_allclose(have, want, rtol=1e-5)
