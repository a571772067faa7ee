"""Exported programs called, differentiated, mapped; dimensions solved and bound; what is refused."""

import collections

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import export, lax
from gradix.errors import InconclusiveDimensionOperation
from tests.export.common import assert_same

S = gradix.ShapeDtypeStruct


def exported_of(f, *specs, **options):
    return export.export(gradix.jit(f), **options)(
        *[S(export.symbolic_shape(s), np.float32) if isinstance(s, str) else s for s in specs]
    )


@pytest.mark.x32
def test_trees_names_and_types():
    e = exported_of(lambda p, x: {"y": x @ p["w"], "n": x.shape[0]}, {"w": S((3, 2), "float32")}, "n, 3")
    assert (
        e.fun_name == "<lambda>"
        and e.platforms == ("cpu",)
        and e.uses_global_constants
        and str(e) == "Exported(fun_name=<lambda>, ...)"
    )
    assert [str(a) for a in e.in_avals] == ["float32[3,2]", "float32[n,3]"] and [str(a) for a in e.out_avals] == [
        "int32[]",
        "float32[n,2]",
    ]
    out = e.call({"w": jnp.ones((3, 2))}, jnp.ones((4, 3)))
    assert out["y"].tolist() == [[3.0, 3.0]] * 4 and out["n"] == 4


def test_unused_arguments_give_dimensions():
    e = exported_of(
        lambda d, x: x[:1] * d.shape[1], S((0, *export.symbolic_shape("k")), np.float32), S((3,), np.float32)
    )
    assert e.module_kept_var_idx == (0, 1) and e.call(np.zeros((0, 7), "f4"), np.ones(3, "f4")).tolist() == [7.0]


def test_transformations_of_calls():
    f = lambda x, w: jnp.tanh(x @ w).sum() / x.shape[0]
    scope = export.SymbolicScope()
    e = export.export(gradix.jit(f))(*[S(export.symbolic_shape(s, scope=scope), np.float32) for s in ("n, d", "d")])
    x, w = np.linspace(-1, 1, 6, dtype="f4").reshape(2, 3), np.ones(3, "f4")
    assert_same(gradix.jit(e.call)(x, w), f(x, w))
    assert_same(gradix.grad(e.call, (0, 1))(x, w), gradix.grad(f, (0, 1))(x, w))
    assert_same(gradix.jacrev(gradix.grad(e.call, 1), 1)(x, w), gradix.jacrev(gradix.grad(f, 1), 1)(x, w))
    assert_same(
        gradix.vmap(e.call, (None, 0))(x, np.eye(3, dtype="f4")), gradix.vmap(f, (None, 0))(x, np.eye(3, dtype="f4"))
    )
    assert_same(lax.scan(lambda c, r: (c + e.call(r, w), c), 0.0, np.stack([x, x]))[0], 2 * f(x, w))


def test_an_exported_function_inside_an_exported_one():
    inner = exported_of(lambda x: x * 2 + x.shape[0], "n")
    outer = export.export(gradix.jit(lambda x: inner.call(x).sum()))(S((4,), np.float32))
    assert export.deserialize(outer.serialize()).call(np.ones(4, "f4")) == 24.0


def test_exported_functions_with_symbolic_shapes_are_called_inside_of_others():
    inner = exported_of(lambda x: (x * 2 + x.shape[0], jnp.cumsum(x)[::2]), "n")
    outer = exported_of(lambda x: (inner.call(x)[0].sum(), inner.call(jnp.concatenate([x, x]))[1]), "m")
    assert [str(a) for a in outer.out_avals] == ["float32[]", "float32[m]"]
    read = export.deserialize(outer.serialize(vjp_order=1))
    for e in (outer, read):
        for n in (3, 4):
            total, sums = e.call(np.ones(n, "f4"))
            assert total == n * (n + 2) and sums.tolist() == list(range(1, 2 * n + 1, 2))
    assert gradix.grad(lambda x: read.call(x)[0])(np.ones(3, "f4")).tolist() == [2.0] * 3
    squares = exported_of(lambda x: x + 1, "n^2")
    with pytest.raises(NotImplementedError, match="root of 'n\\^2' = m"):
        exported_of(squares.call, "m")


def test_undecided_questions_become_checks_of_calls():
    (n,) = export.symbolic_shape("n", assume={"n": 16})
    e = exported_of(lambda x: (x if x.shape[0] > 3 else -x).reshape(2, -1), S((n,), np.float32))
    assert [text for text, _ in e.assumptions] == ["n >= 4", "mod(n, 2) == 0"] and all(
        __file__ in place for _, place in e.assumptions
    )
    assert "2*floordiv(n, 2)" not in str(e.out_avals) and export.deserialize(e.serialize()).constraints == (
        "n >= 4",
        "mod(n, 2) == 0",
    )
    for exported in (e, export.deserialize(e.serialize())):
        assert exported.call(np.ones(6, "f4")).shape == (2, 3)
        for size, broken in ((2, "n >= 4"), (7, r"mod\(n, 2\) == 0")):
            with pytest.raises(ValueError, match=f"n = {size} do not satisfy the constraint {broken}"):
                exported.call(np.ones(size, "f4"))
    with pytest.raises(ValueError, match="assumed when it was traced, at .*test_calls"):
        e.call(np.ones(7, "f4"))


def test_assumptions_follow_the_example_and_stay_with_their_program():
    a, b, c = export.symbolic_shape("a, b, c", constraints=["c <= 9"], assume={"a": 2, "b": 5})
    first = exported_of(lambda x: x if x.shape[0] < x.shape[1] else -x, S((a, b), np.float32))
    assert (
        b > a
        and not a >= b
        and c > 8
        and max(a, b) is b
        and [t for t, _ in a.scope.assumptions] == ["b - a >= 1", "c >= 9"]
    )
    assert first.constraints == ("c <= 9", "b - a >= 1") and export.symbolic_shape("n", assume={})[0] > 100
    for assume in ({"a": 0}, {"a": 12}):
        with pytest.raises(ValueError, match="positive integer|do not satisfy the constraint a <= 9"):
            export.symbolic_shape("a", constraints=["a <= 9"], assume=assume)


def test_gradients_of_integers_have_no_elements():
    e = exported_of(lambda x, i: x * i, "n", S((), np.int32))
    gradient = e.vjp()
    assert [str(a) for a in gradient.in_avals] == ["float32[n]", "int32[]", "float32[n]"] and str(
        gradient.out_avals[1]
    ) == "float0[]"
    assert gradient.call(np.ones(2, "f4"), np.int32(3), np.ones(2, "f4"))[0].tolist() == [3.0, 3.0]
    assert (
        e.has_vjp()
        and not export.deserialize(e.serialize()).has_vjp()
        and export.deserialize(e.serialize(vjp_order=1)).has_vjp()
    )
    with pytest.raises(ValueError, match="No VJP is available.*vjp_order"):
        export.deserialize(e.serialize()).vjp()


@pytest.mark.parametrize(
    ("spec", "shape", "value"), [("2*n + 1", 7, 3), ("n^2", 49, 7), ("n^2 + n", 12, 3), ("n^3", 27, 3), ("7 - n", 4, 3)]
)
def test_dimensions_are_solved(spec, shape, value):
    e = exported_of(lambda x: x.sum() + jnp.asarray(_variable(x)), spec)
    assert e.call(np.zeros(shape, "f4")) == value
    assert export.deserialize(e.serialize()).call(np.zeros(shape, "f4")) == value


def _variable(x):
    return x.shape[0].scope.variable("n")


def test_products_are_solved_one_factor_at_a_time():
    scope = export.SymbolicScope()
    e = export.export(gradix.jit(lambda x, y: x.reshape(y.shape[0], -1) + y[:, None]))(
        *[S(export.symbolic_shape(s, scope=scope), np.float32) for s in ("a*b", "a")]
    )
    assert e.call(np.zeros(6, "f4"), np.ones(2, "f4")).shape == (2, 3)
    with pytest.raises(ValueError, match="remainder 1 when computing the value of 'b'"):
        e.call(np.zeros(7, "f4"), np.ones(2, "f4"))


def test_dimensions_without_an_argument_are_bound():
    (k,) = export.symbolic_shape("k", constraints=["k <= 10"])
    x = np.arange(20, dtype=np.int32).reshape(2, 10)
    e = export.export(gradix.jit(lambda k, x: lax.top_k(x, k)[0], static_argnums=0))(k, x)
    for exported in (e, export.deserialize(e.serialize())):
        assert exported.bind_dims(k=2).call(x).tolist() == [[9, 8], [19, 18]]
        with pytest.raises(ValueError, match="bind_dims"):
            exported.call(x)
        with pytest.raises(ValueError, match="k <= 10"):
            exported.bind_dims(k=11).call(x)
        with pytest.raises(ValueError, match="'z' is not a dimension variable"):
            exported.bind_dims(z=1)
        with pytest.raises(ValueError, match="positive integer"):
            exported.bind_dims(k=0)
    with pytest.raises(ValueError, match="bind_dims after reading"):
        e.bind_dims(k=2).serialize()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.ones((3, 4), "f4"), np.ones(5, "f4")), r"args\[1\].shape\[0\] \(= 5\) and the specification 'm' \(= 4\)"),
        ((np.ones((0, 4), "f4"), np.ones(4, "f4")), "Expected value >= 1 for dimension variable 'n'"),
        ((np.ones(4, "f4"), np.ones(4, "f4")), r"Rank mismatch for args\[0\]"),
        ((np.ones((3, 4), "i4"), np.ones(4, "f4")), r"Dtype mismatch for args\[0\].*astype"),
        ((np.ones((60, 4), "f4"), np.ones(4, "f4")), "n = 60 do not satisfy the constraint n <= 50"),
        ((np.ones((3, 4), "f4"),), "same pytree structure"),
    ],
)
def test_arguments_that_do_not_fit_are_named(args, message):
    scope = export.SymbolicScope(["n <= 50"])
    e = export.export(gradix.jit(lambda x, y: x @ y))(
        *[S(export.symbolic_shape(s, scope=scope), np.float32) for s in ("n, m", "m")]
    )
    with pytest.raises(ValueError, match=message):
        e.call(*args)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: export.export(lambda x: x), ValueError, "must be the result of `jit`"),
        (lambda: export.export(gradix.jit(jnp.sin), platforms=("cpu", 3)), ValueError, "must be one or more names"),
        (lambda: export.export(gradix.jit(jnp.sin), platforms="cpu"), TypeError, r"\('cpu',\)"),
        (
            lambda: exported_of(lambda x: gradix.pure_callback(lambda v: v, x, x), S((2,), "float32")),
            NotImplementedError,
            "host_callbacks",
        ),
        (lambda: exported_of(lambda x: x.reshape(2, -1), "n"), InconclusiveDimensionOperation, "divide evenly"),
        (
            lambda: exported_of(lambda x: x if x.shape[0] > 3 else -x, "n"),
            InconclusiveDimensionOperation,
            "'n' > '3' is inconclusive",
        ),
        (
            lambda: exported_of(lambda x: x.sum(), "a*b"),
            ValueError,
            "Cannot solve for values of dimension variables {'a', 'b'}",
        ),
        (lambda: exported_of(lambda x: x.sum(), "mod(n, 3)"), ValueError, "Cannot solve"),
        (lambda: exported_of(lambda x: x + jnp.ones(3), "n"), TypeError, "incompatible shapes"),
        (
            lambda: export.export(gradix.jit(jnp.sin), platforms=("tpu",))(1.0).call(1.0),
            ValueError,
            r"exported for platforms '\('tpu',\)'",
        ),
    ],
)
def test_what_cannot_be_exported_is_said(make, error, message):
    with pytest.raises(error, match=message):
        make()


def increase(ref):
    ref[...] += 1


@pytest.mark.x32
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: gradix.jvp(exported_of(lambda x: x.sum(), "n").call, [np.ones(2, "f4")], [np.ones(2, "f4")]),
            TypeError,
            "reverse mode only",
        ),
        (
            lambda: exported_of(lambda x, y: x.sum() + y.sum(), "a", "b"),
            ValueError,
            r"mixing of symbolic scopes when exporting <lambda>: the sizes 'a' of args\[0\] and 'b' of args\[1\] .*scope \d+ created at .*test_calls",
        ),
        (
            lambda: export.export(gradix.jit(increase))(gradix.new_ref(jnp.ones(2))),
            NotImplementedError,
            r"mutable array \(Ref\)",
        ),
        (
            lambda: exported_of(lambda x: x, S((), "float32")).call(3),
            ValueError,
            r"float32 and called with int32. Convert it with .astype",
        ),
    ],
)
def test_what_exported_functions_do_not_do_is_said(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.x32
def test_wide_files_ask_for_wide_arrays():
    with gradix.enable_x64(True):
        e = exported_of(lambda x: x * 2, S((2,), "float64"))
    with pytest.raises(ValueError, match="jax_enable_x64"):
        e.call(np.ones(2))


def test_the_check_of_the_platform_is_left_out_on_request():
    disabled = [export.DisabledSafetyCheck.platform()]
    e = export.export(gradix.jit(lambda x: x + 1), platforms=("cuda", "tpu"), disabled_checks=disabled)(
        S((2,), "float32")
    )
    for exported in (e, export.deserialize(e.serialize())):
        assert exported.call(np.ones(2, "f4")).tolist() == [2.0, 2.0]


def test_several_platforms_are_one_file():
    e = export.export(
        gradix.jit(lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x + 2)),
        platforms=("tpu", "cpu"),
    )(S(export.symbolic_shape("n"), np.float32))
    assert e.call(np.zeros(2, "f4")).tolist() == [1.0, 1.0] and "_platform_index" in e.mlir_module()
    assert export.deserialize(e.serialize()).platforms == ("tpu", "cpu")


def test_files_have_portable_operations_only():
    e = exported_of(
        lambda x: (jnp.sort(x), jnp.cumsum(x), jnp.exp(jnp.sin(x)), x.max(), jnp.linalg.inv(jnp.outer(x, x))), "n"
    )
    text = e.mlir_module()
    assert "gradix" not in text and "small_call" not in text and "frontend_attributes" not in text


def test_random_keys_cross_as_words():
    e = export.export(gradix.jit(lambda k, x: (gradix.random.split(k)[0], gradix.random.normal(k, x.shape))))(
        gradix.random.key(0), S(export.symbolic_shape("n"), np.float32)
    )
    k, x = gradix.random.key(7), np.zeros(3, "f4")
    split, draws = export.deserialize(e.serialize()).call(k, x)
    assert_same((split, draws), (gradix.random.split(k)[0], gradix.random.normal(k, (3,))))


def test_functions_of_the_package_are_exported_as_they_are():
    assert float(export.export(jnp.sin)(1.0).call(0.5)) == float(jnp.sin(0.5))
    with pytest.raises(ValueError, match="result of `jit`"):
        export.export(lambda x: x)


def test_what_export_refuses_by_name():
    with pytest.raises(TypeError, match="string keys"):
        export.export(gradix.jit(lambda d: d[1]))({1: np.float32(2)}).serialize()
    row = collections.namedtuple("row", "a b")
    with pytest.raises(ValueError, match="register_namedtuple_serialization"):
        export.register_pytree_node_serialization(
            row, serialized_name="row", serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: None
        )
    for version in (8, 11):
        gradix.config.update("jax_export_calling_convention_version", version)
        with pytest.raises(ValueError, match=f"from 9 to 10, got {version}"):
            export.export(jnp.sin)


def test_derivatives_beside_integers_of_open_sizes():
    args = export.symbolic_args_specs([np.ones((2, 3), np.int32), np.ones((3, 4), np.float32)], ["2, a", "a, 4"])
    exported = export.export(gradix.jit(lambda i, x: (2 * i.T, x.T * x.T)))(*args)
    read = export.deserialize(exported.serialize(vjp_order=2))
    assert [str(a.shape) for a in read.vjp().out_avals] == ["(2, a)", "(a, 4)"]
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    (_, squares), pull = gradix.vjp(read.call, np.ones((2, 5), np.int32), x)
    zeros, slope = pull((np.zeros((5, 2), gradix.dtypes.float0), np.ones(squares.shape, np.float32)))
    assert zeros.shape == (2, 5) and zeros.dtype == gradix.dtypes.float0
    np.testing.assert_array_equal(slope, 2 * x)
