"""Loops: their types, prints, errors, and how little they do."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._control import program_interning
from gradix._transforms.dce import dce_jaxpr

f32 = np.float32
X = np.arange(4, dtype=f32)


def printed(f, *args):
    return " ".join(str(gradix.make_jaxpr(f)(*args)).split())


def test_scan_of_pytrees():
    carry, ys = lax.scan(lambda c, x: ({"n": c["n"] + x[0]}, (x[1], c["n"])), {"n": f32(1)}, (X, jnp.ones((4, 2))))
    assert carry["n"] == 7 and ys[0].shape == (4, 2)
    np.testing.assert_array_equal(ys[1], [1, 1, 2, 4])


def test_a_weak_carry_takes_the_bodys_dtype():
    total, _ = lax.scan(lambda c, x: (c + x, None), 1, jnp.ones(3, jnp.float16))
    assert total.dtype == jnp.float16 and not total.weak_type
    assert lax.while_loop(lambda c: c < 10, lambda c: c * f32(2), 1).dtype == f32
    assert lax.scan(lambda c, x: (c * 2, c), 1.0, None, length=2)[0].weak_type


@pytest.mark.parametrize("jit", [False, True])
def test_no_steps(jit):
    f = (gradix.jit if jit else lambda f: f)(lambda c, xs: lax.scan(lambda c, x: (c + x, (c, x)), c, xs))
    carry, (a, b) = f(f32(3), np.zeros((0,), f32))
    assert carry == 3 and a.shape == b.shape == (0,)
    assert lax.fori_loop(5, 2, lambda i, c: c + 1, 0) == 0


def test_unroll_writes_steps_out():
    def text(unroll):
        f = gradix.jit(lambda xs: lax.scan(lambda c, x: (jnp.sin(c) + x, c), f32(0), xs, unroll=unroll))
        return f.lower(np.arange(7, dtype=f32)).as_text()

    assert "stablehlo.while" in text(1) and text(1).count("stablehlo.sine") == 1
    assert "stablehlo.while" in text(3) and text(3).count("stablehlo.sine") == 4  # 3 a turn, and 1 left over
    assert "stablehlo.while" not in text(True) and text(True).count("stablehlo.sine") == 7


@pytest.mark.x32
def test_prints():
    assert printed(lambda xs: lax.scan(lambda c, x: (c * 0.5 + x, c), 0.0, xs), X) == (
        "{ lambda ; a:f32[4]. let b:f32[] c:f32[4] = scan[ jaxpr={ lambda ; d:f32[] e:f32[]. let f:f32[] = mul "
        "d 0.5:f32[] "
        "g:f32[] = convert_element_type[new_dtype=float32 weak_type=False] f h:f32[] = add g e in (h, d) } length=4 "
        "num_carry=1 num_consts=0 reverse=False unroll=1 ] 0.0:f32[] a in (b, c) }"
    )
    assert printed(lambda n, x: lax.fori_loop(0, n, lambda i, v: v * 2.0, x), 3, X) == (
        "{ lambda ; a:i32[] b:f32[4]. let _:i32[] _:i32[] c:f32[4] = while[ body_jaxpr={ lambda ; d:i32[] "
        "e:i32[] f:f32[4]. "
        "let g:i32[] = add d 1:i32[] h:f32[4] = mul f 2.0:f32[] in (g, e, h) } body_nconsts=0 cond_jaxpr={ "
        "lambda ; i:i32[] "
        "j:i32[] k:f32[4]. let l:bool[] = lt i j in (l,) } cond_nconsts=0 ] 0:i32[] a b in (c,) }"
    )


def test_known_bounds_make_a_scan():
    assert " scan[" in printed(lambda x: lax.fori_loop(0, 3, lambda i, v: v * x, x), f32(2))
    assert gradix.grad(lambda x: lax.fori_loop(0, jnp.int32(4), lambda i, v: v * x, f32(1)))(f32(2)) == 32


@pytest.mark.x32
def test_residuals_no_step_changes_are_not_stacked():
    def f(w):
        def step(h, x):
            return jnp.tanh((jnp.cos(w) * h).sum(1) + x), None

        return lax.scan(step, jnp.ones(3), jnp.ones((5, 3)))[0].sum()

    text = printed(gradix.grad(f), np.eye(3, dtype=f32))
    assert "f32[5,3,3]" not in text and "f32[5,3]" in text
    assert text.index("cos") < text.index("scan[")


def test_carries_that_stay_are_constants_and_rows_passed_on_are_not_copied():
    f = gradix.make_jaxpr(lambda a, xs: lax.scan(lambda c, x: ((c[0], c[1] + c[0]), x), (a, a), xs))
    (eqn,) = f(f32(1), X).eqns
    assert eqn.params["num_carry"] == 1 and len(eqn.outvars) == 1


def test_dead_results_are_dropped():
    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: (c[0] * 2, jnp.sin(c[1])), (x, x))[0]

    def g(x):
        return lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, jnp.sin(c[1])), (x, x))[0]

    for h in (f, g):
        assert "sin" not in str(dce_jaxpr(gradix.make_jaxpr(h)(f32(1)).jaxpr)[0])


def test_small_eager_loops_compile_nothing(monkeypatch):
    monkeypatch.setattr("gradix._runtime.xla.compile", lambda *a, **k: pytest.fail("compiled"))
    program_interning.clear()
    assert lax.fori_loop(0, 10, lambda i, c: c + i, 0) == 45
    assert lax.while_loop(lambda c: c < 100, lambda c: c * 3, 1) == 243
    assert gradix.grad(lambda x: lax.scan(lambda c, _: (c * x, None), x, None, length=3)[0])(2.0) == 32
    assert lax.cond(True, lambda x: x + 1, lambda x: x - 1, 1) == 2


def test_long_eager_loops_are_compiled_on_the_way():
    assert lax.while_loop(lambda c: c[0] < 50_000, lambda c: (c[0] + 1, c[1] + 2), (0, 5))[1] == 100_005
    assert lax.fori_loop(0, 50_000, lambda i, c: c + 1, 0) == 50_000


def test_equal_programs_are_traced_anew_but_kept_once():
    def run(k):
        return lax.scan(lambda c, x: (c * 2 + x, None), f32(0), X * k)[0]

    first = gradix.make_jaxpr(run)(f32(1)).eqns[-1].params["jaxpr"]
    assert gradix.make_jaxpr(run)(f32(1)).eqns[-1].params["jaxpr"] is first


def test_finished_examples_keep_their_value():
    f = gradix.vmap(lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (0, 1))[1])
    np.testing.assert_array_equal(f(np.array([3, 0, 5])), [8, 1, 32])
    np.testing.assert_array_equal(gradix.jit(gradix.vmap(f))(np.array([[3, 0], [1, 5]])), [[8, 1], [2, 32]])


def test_named_axes_inside():
    def f(a):
        return lax.scan(lambda c, x: (lax.psum(c * x, "i") + 1, lax.axis_index("i")), a, jnp.ones(2))

    carry, index = gradix.vmap(f, axis_name="i")(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(carry, [9, 9])
    np.testing.assert_array_equal(index, [[0, 0], [1, 1]])


@pytest.mark.x32
def test_linear_transpose_with_a_counter():
    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: c * (i + 1), x)

    assert gradix.linear_transpose(f, 2.0)(1.0)[0] == 6

    def g(x):
        return lax.scan(lambda c, w: (c + w * x, None), 0.0, X)[0]

    assert gradix.linear_transpose(g, 2.0)(1.0)[0] == 6


def test_linearize_while_goes_forward():
    out, linear = gradix.linearize(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * x, x), 2.0)
    assert out == 16 and linear(1.0) == 32


def test_map_batches():
    for n in (5, 4, 1, 0):
        got = lax.map(lambda v: {"a": v[0] * v[1]}, (jnp.arange(n), jnp.arange(n)), batch_size=2)["a"]
        np.testing.assert_array_equal(got, np.arange(n) ** 2)


def test_associative_scan_axis_and_bool():
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    np.testing.assert_array_equal(lax.associative_scan(lax.add, x, axis=-1), np.cumsum(x, 1))
    from_end = np.cumsum(x[:, ::-1], 1)[:, ::-1]
    np.testing.assert_array_equal(lax.associative_scan(lax.add, x, axis=1, reverse=True), from_end)
    b = np.array([False, True, False])
    np.testing.assert_array_equal(lax.associative_scan(jnp.logical_or, b), [False, True, True])
    assert lax.associative_scan(lax.add, jnp.ones(0)).shape == (0,)


@pytest.mark.x32
def test_disable_jit_runs_python():
    seen = []
    with gradix.disable_jit():
        carry, ys = lax.scan(lambda c, x: (seen.append(float(x)) or c + x, c), 0.0, X)
        assert lax.while_loop(lambda c: c < 3, lambda c: seen.append(c) or c + 1, 0) == 3
        assert lax.cond(True, lambda: 1, lambda: seen.append("no")) == 1
    assert carry == 6 and seen == [0, 1, 2, 3, 0, 1, 2]


def test_reduce():
    np.testing.assert_array_equal(lax.reduce(X.reshape(2, 2), 0.0, lax.add, (0,)), [2, 4])
    pair = lax.reduce((X, X), (f32(1), f32(-1)), lambda a, b: (a[0] * b[0], lax.max(a[1], b[1])), (0,))
    assert pair[0] == 0 and pair[1] == 3
    assert "reduce_max" in printed(lambda x: lax.reduce(x, -np.inf, lax.max, (0,)), X)

    def product(x):
        return lax.reduce(x, f32(2), lambda a, b: a * b * 1, (0,))

    np.testing.assert_allclose(gradix.grad(product)(X + 1), 48 / (X + 1), rtol=1e-6)
    np.testing.assert_allclose(gradix.vmap(product)(np.stack([X + 1, X + 2])), [48, 240])
    np.testing.assert_allclose(gradix.vmap(lambda i: lax.reduce(X + 1, i, lambda a, b: a * b * 1, (0,)))(X), 24 * X)


def raises(error, match, f):
    with pytest.raises(error) as e:
        f()
    for part in match if isinstance(match, tuple) else (match,):
        assert part in str(e.value), str(e.value)


@pytest.mark.x32
def test_errors_of_scan():
    parts = (
        "input carry component c['a'] has type float32[4]",
        "int32[4], so the dtypes",
        "c['b']",
        "float32[1], so the shapes",
        "c['a'].astype(float32)",
    )
    raises(
        TypeError,
        parts,
        lambda: lax.scan(lambda c, x: ({"a": c["a"].astype(int), "b": c["b"][:1]}, x), {"a": X, "b": X}, X),
    )
    raises(
        TypeError,
        ("same pytree structure", "The input carry c is a tuple with 2 children", "a tuple with 1 child"),
        lambda: lax.scan(lambda c, x: ((c[0],), x), (X, X), X),
    )
    raises(TypeError, "scan body output must be a pair", lambda: lax.scan(lambda c, x: c, 0, X))
    raises(ValueError, "different leading axis sizes: 4, 3", lambda: lax.scan(lambda c, x: (c, x), 0, (X, X[:3])))
    raises(ValueError, "`length` argument of 5 which disagrees", lambda: lax.scan(lambda c, x: (c, x), 0, X, length=5))
    raises(ValueError, "no leading axis to scan over: 1.0", lambda: lax.scan(lambda c, x: (c, x), 0, 1.0))
    raises(ValueError, "`length` not provided", lambda: lax.scan(lambda c, x: (c, x), 0))
    raises(ValueError, "`unroll` must be", lambda: lax.scan(lambda c, x: (c, x), 0, X, unroll=-1))
    raises(TypeError, "should be a callable", lambda: lax.scan(3, 0, X))
    raises(TypeError, "init is not an array", lambda: lax.scan(lambda c, x: (c, x), "a", X))
    raises(
        gradix.errors.ConcretizationTypeError,
        "`length` argument to `scan`",
        lambda: gradix.jit(lambda n: lax.scan(lambda c, x: (c, x), 0, None, length=n))(3),
    )


@pytest.mark.x32
def test_errors_of_while_and_fori():
    raises(
        TypeError,
        "cond_fun must return a boolean scalar, but got output type(s) [ShapedArray(int32[], weak_type=True)]",
        lambda: lax.while_loop(lambda c: 1, lambda c: c, 0),
    )
    raises(
        TypeError,
        "cond_fun must return a boolean scalar, but got pytree",
        lambda: lax.while_loop(lambda c: (True,), lambda c: c, 0),
    )
    raises(
        TypeError,
        "while_loop body function carry input and carry output must have equal types",
        lambda: lax.while_loop(lambda c: True, lambda c: c.astype(int), X),
    )
    raises(
        TypeError,
        "lower and upper arguments to fori_loop must have equal types, got int32 and float32",
        lambda: lax.fori_loop(0, 3.5, lambda i, c: c, 0),
    )
    raises(
        ValueError,
        "Can only use `unroll`",
        lambda: gradix.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 0, unroll=2))(3),
    )
    assert gradix.grad(lambda x: x * lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0))(2.0) == 3


@pytest.mark.parametrize("bounds", [(0, jnp.int32(4)), (jnp.int16(0), 4), (np.int32(0), 4), (0, np.int64(4))])
def test_a_python_number_takes_the_type_of_the_other_bound(x64, bounds):
    body = lambda i, v: v + i.astype(v.dtype)
    slope = gradix.grad(lambda x: lax.fori_loop(*bounds, lambda i, v: v * x, f32(1)))(f32(2))
    assert lax.fori_loop(*bounds, body, f32(0)) == 6 and slope == 32
    traced = gradix.jit(lambda a, b: lax.fori_loop(a, b, body, f32(0)))
    assert traced(*bounds) == 6
    for number in (0, 4):
        assert gradix.jit(lambda n: lax.fori_loop(number, n, body, f32(0)))(jnp.int32(6)) == {0: 15, 4: 9}[number]


def test_known_bounds_are_not_narrowed(x64):
    assert lax.fori_loop(jnp.int16(0), 70000, lambda i, n: n + 1, 0) == 70000
    with pytest.raises(TypeError, match="int16 and int32"):
        gradix.jit(lambda a, b: lax.fori_loop(a, b, lambda i, v: v, 0))(jnp.int16(0), jnp.int32(4))
