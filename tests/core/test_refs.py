"""Mutable arrays: eager, in jit, loops, branches and derivatives, against the same program without mutation."""

import copy
import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from tests.same import assert_same

X = np.array([0.5, -1.0, 2.0], "f4")
WRAPS = {"eager": lambda f: f, "jit": gradix.jit, "twice": lambda f: gradix.jit(gradix.jit(f))}


# programs (x -> array) that mutate, beside the same without
def straight(x):
    ref = gradix.new_ref(x)
    ref[0] = jnp.sin(ref[1])
    ref[1:] *= 2.0
    gradix.ref.addupdate(ref, 2, ref[0])
    return gradix.freeze(ref) * x


def straight_pure(x):
    s = jnp.sin(x[1])
    return jnp.array([s, 2 * x[1], 2 * x[2] + s]) * x


def in_scan(x):
    ref = gradix.new_ref(x)
    seen = gradix.new_ref(jnp.zeros((4,), x.dtype))

    def body(c, i):
        ref[...] = jnp.sin(ref[...]) + c
        seen[i] = ref[0]
        return c + 0.1, ref[1]

    _, ys = lax.scan(body, jnp.zeros((), x.dtype), jnp.arange(4))
    return jnp.concatenate([ref[...], seen[...], ys])


def in_scan_pure(x):
    c, seen, ys = 0.0, [], []
    for _ in range(4):
        x = jnp.sin(x) + c
        c = c + 0.1
        seen.append(x[0])
        ys.append(x[1])
    return jnp.concatenate([x, jnp.stack(seen), jnp.stack(ys)])


def in_while(x):
    ref = gradix.new_ref(x)
    count = gradix.new_ref(0)

    def body(_):
        ref[...] *= 1.5
        count[...] += 1
        return 0

    lax.while_loop(lambda _: (count[...] < 5) & (ref[2] < 9.0), body, 0)
    return ref[...] * count[...].astype(x.dtype)


def in_while_pure(x):
    n = 0
    while n < 5 and x[2] < 9.0:
        x, n = x * 1.5, n + 1
    return x * n


def in_cond(x):
    ref = gradix.new_ref(x)

    def double():
        ref[...] = ref[...] * 2

    def shift():
        ref[0] = 7.0

    lax.cond(x[0] > 0, double, shift)
    lax.switch(1, [shift, double])
    lax.cond(x[0] > 100, lambda r: r.addupdate(1.0), lambda r: None, ref)
    return ref[...]


def in_cond_pure(x):
    return x * 4 if x[0] > 0 else jnp.array([7.0, x[1], x[2]]) * 2


def in_fori(x):
    ref = gradix.new_ref(x)
    lax.fori_loop(0, 3, lambda i, c: (ref.addupdate(jnp.cos(ref[i]), i), c)[1], 0)
    return ref[...]


def in_jit(x):
    ref = gradix.new_ref(x)

    @gradix.jit
    def step(other, y):
        ref[...] = ref[...] * y
        other[0] = ref[1]
        return ref[0]

    other = gradix.new_ref(jnp.ones(1))
    return jnp.stack([step(other, 2.0), step(other, 3.0), other[0], ref[2]])


def in_checkpoint(x):
    ref = gradix.new_ref(jnp.zeros(()))

    def f(y):
        ref[...] += jnp.sin(y).sum()
        return y * y

    y = gradix.checkpoint(f)(x)
    return y * ref[...]


def rows_of_scan(x):
    ref = gradix.new_ref(jnp.stack([x, 2 * x]))

    def body(c, row):
        row[0] = c
        return c + row[1], None

    lax.scan(body, x[2], ref)
    return ref[...].ravel()


PROGRAMS = {
    "straight": (straight, straight_pure),
    "scan": (in_scan, in_scan_pure),
    "while": (in_while, in_while_pure),
    "cond": (in_cond, in_cond_pure),
    "fori": (in_fori, lambda x: x + jnp.cos(x)),
    "jit": (in_jit, lambda x: jnp.stack([2 * x[0], 6 * x[0], 6 * x[1], 6 * x[2]])),
    "checkpoint": (in_checkpoint, lambda x: x * x * jnp.sin(x).sum()),
    "rows": (rows_of_scan, lambda x: jnp.stack([x[2], x[1], x[2], x[2] + x[1], 2 * x[1], 2 * x[2]])),
}


@pytest.mark.x32
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("wrap", WRAPS)
def test_value(name, wrap):
    mutating, pure = PROGRAMS[name]
    assert_same(WRAPS[wrap](mutating)(X), pure(X))


@pytest.mark.x32
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("wrap", ["eager", "jit"])
def test_derivatives(name, wrap):
    mutating, pure = PROGRAMS[name]
    t = np.array([1.0, 0.3, -2.0], "f4")
    x = jnp.asarray(X)
    for got, want in zip(WRAPS[wrap](lambda x: gradix.jvp(mutating, (x,), (t,)))(x), gradix.jvp(pure, (x,), (t,))):
        assert_same(got, want)
    assert_same(WRAPS[wrap](gradix.jacrev(mutating))(x), gradix.jacrev(pure)(x))


@pytest.mark.parametrize("name", ["straight", "scan", "fori", "checkpoint", "rows"])
def test_second_derivative(name):
    mutating, pure = PROGRAMS[name]
    f, g = (gradix.grad(lambda x, p=p: (p(x) ** 2).sum()) for p in (mutating, pure))
    assert_same(gradix.jacfwd(f)(jnp.asarray(X)), gradix.jacfwd(g)(jnp.asarray(X)))


@pytest.mark.x32
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("wrap", ["eager", "jit"])
def test_vmap(name, wrap):
    mutating, pure = PROGRAMS[name]
    xs = np.stack([X, -X, 3 * X])
    assert_same(WRAPS[wrap](gradix.vmap(mutating))(xs), np.stack([np.asarray(pure(jnp.asarray(x))) for x in xs]))


def test_reads_are_snapshots():
    ref = gradix.new_ref(jnp.arange(3.0))
    before = ref[...]
    ref[0] = 9.0
    assert_same(before, [0, 1, 2])
    assert_same(ref[...], [9, 1, 2])


def test_arguments_of_jit_are_changed_at_every_call():
    traces = []

    @gradix.jit
    def step(ref, x):
        traces.append(1)
        ref[...] += x
        return ref[0]

    first, second = gradix.new_ref(jnp.zeros(2)), gradix.new_ref(jnp.ones(2))
    for _ in range(3):
        step(first, 1.0)
    assert_same(step(second, 5.0), 6.0)
    assert_same(first[...], [3, 3])
    assert_same(second[...], [6, 6])
    assert len(traces) == 1


@pytest.mark.x32
def test_refs_are_known_to_the_first_function_of_a_process():
    code = "import gradix, gradix.numpy as jnp; r = gradix.new_ref(jnp.ones(2)); f = gradix.jit(lambda r: r.__setitem__(0, 5.0)); f(r); print(r)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Ref([5., 1.], dtype=float32)\n"


@pytest.mark.x32
def test_prints_show_what_refs_of_a_traced_program_hold(capsys):
    ref = gradix.new_ref(jnp.arange(2.0))

    @gradix.jit
    def step(ref):
        gradix.debug.print("before {}", ref, ordered=True)
        ref[0] = 7.0
        gradix.debug.print("after {}, {}", ref, ref.at[1], ordered=True)

    step(ref)
    gradix.effects_barrier()
    gradix.debug.print("outside {}", ref)
    assert capsys.readouterr().out == "before [0. 1.]\nafter [7. 1.], 1.0\noutside Ref([7., 1.], dtype=float32)\n"


def test_captured_refs_are_read_anew_at_every_call():
    ref = gradix.new_ref(1.0)
    double = gradix.jit(lambda: ref[...] * 2)
    assert_same(double(), 2.0)
    ref[...] = 5.0
    assert_same(double(), 10.0)


def test_keywords_and_trees_of_refs():
    state = {"a": gradix.new_ref(jnp.zeros(2)), "b": [gradix.new_ref(1)]}

    @gradix.jit
    def step(*, state, x):
        state["a"][...] += x
        state["b"][0][...] += 1
        return x * 2

    assert_same(step(state=state, x=3.0), 6.0)
    assert_same(state["a"][...], [3, 3])
    assert int(state["b"][0][...]) == 2


@pytest.mark.x32
def test_stages_and_structs():
    def step(ref, x):
        ref[...] = ref[...] + x
        return x * 2

    ref = gradix.new_ref(jnp.zeros(2))
    compiled = gradix.jit(step).lower(ref, 1.0).compile()
    assert_same(compiled(ref, 4.0), 8.0)
    assert_same(ref[...], [4, 4])
    assert gradix.eval_shape(step, ref, 1.0).shape == ()
    closed = gradix.make_jaxpr(step)(ref, 1.0)
    assert [v.aval.str_short() for v in closed.jaxpr.invars] == ["float32[2]", "float32[]"]
    assert_same(ref[...], [4, 4])  # tracing changes nothing


def test_other_ways_to_run():
    ref = gradix.new_ref(jnp.zeros(2))
    add = lambda r, x: (r.addupdate(x), r[0])[1]
    with gradix.disable_jit():
        assert_same(gradix.jit(add)(ref, 1.0), 1.0)
        lax.scan(lambda c, row: (row.addupdate(1.0), (c, c))[1], 0.0, ref)
    assert_same(gradix.jit(lambda x: gradix.jit(add, inline=True)(ref, x))(1.0), 3.0)
    assert_same(gradix.jit(lambda r, i, x: add(r.at[i:], x), static_argnums=1)(ref, 1, 5.0), 8.0)
    assert_same(ref[...], [3, 8])
    rows = gradix.new_ref(jnp.zeros((5, 2)))
    gradix.vmap(lambda r, x: add(r, x), chunk_size=2)(rows, jnp.arange(5.0))
    assert_same(rows[...], np.repeat(np.arange(5.0)[:, None], 2, 1))
    key = gradix.new_ref(gradix.random.key(0))

    @gradix.jit
    def draw():
        key[...], sub = gradix.random.split(key[...])
        return gradix.random.uniform(sub)

    assert draw() != draw()


def test_an_error_while_tracing_changes_nothing():
    ref = gradix.new_ref(jnp.zeros(2))

    @gradix.jit
    def fails():
        ref[...] = ref[...] + 1
        raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert_same(ref[...], [0, 0])


@pytest.mark.parametrize("axis", [0, 1])
def test_vmap_over_refs(axis):
    start = np.arange(6.0, dtype="f4").reshape((2, 3) if axis == 0 else (3, 2))
    ref = gradix.new_ref(start)

    def f(r, x):
        r[...] += x
        return r[0]

    got = gradix.vmap(f, (axis, 0))(ref, np.array([10.0, 20.0], "f4"))
    want = np.moveaxis(np.moveaxis(start, axis, 0) + np.array([[10.0], [20.0]]), 0, axis)
    assert_same(ref[...], want)
    assert_same(got, np.moveaxis(want, axis, 0)[:, 0])


def test_vmap_of_jit_over_refs():
    ref = gradix.new_ref(jnp.zeros((2, 3)))

    @gradix.jit
    def f(r, x):
        r[1] = x
        return x

    gradix.vmap(f)(ref, jnp.arange(2.0))
    assert_same(ref[...], [[0, 0, 0], [0, 1, 0]])


@pytest.mark.x32
def test_plumbing_values_out_of_grad():
    seen = gradix.new_ref(jnp.zeros(3))

    def f(x):
        y = jnp.sin(x)
        seen[...] = lax.stop_gradient(y)
        return y.sum()

    for g in (gradix.grad(f), gradix.jit(gradix.grad(f))):
        seen[...] = 0.0
        assert_same(g(jnp.asarray(X)), np.cos(X))
        assert_same(seen[...], np.sin(X))


@pytest.mark.x32
def test_no_grad_refs_take_values_without_their_derivative():
    seen = gradix.new_ref(jnp.zeros(3), kind="no_grad_no_remat")

    def f(x):
        seen[...] = jnp.sin(x)
        return (x * seen[...]).sum()

    assert_same(gradix.grad(f)(jnp.asarray(X)), np.sin(X))
    assert_same(seen[...], np.sin(X))


def test_a_backward_rule_writes_the_cotangent():
    grads = gradix.new_ref(0.0)

    @gradix.custom_vjp
    def stash(x):
        return x

    stash.defvjp(lambda x: (x, None), lambda _, ct: (grads.__setitem__(..., ct), (ct,))[1])
    for g in (gradix.grad, lambda f: gradix.jit(gradix.grad(f))):
        grads[...] = 0.0
        assert_same(g(lambda x: stash(jnp.sin(x)) ** 2)(1.0), np.sin(2.0))
        assert_same(grads[...], 2 * np.sin(1.0))


def test_refs_among_the_arguments_of_rules():
    @gradix.custom_vjp
    def stash(grads, x, options):
        return x * options["scale"]

    stash.defvjp(
        lambda grads, x, options: (stash(grads, x, options), (grads, options["scale"])),
        lambda res, ct: (res[0].__setitem__(..., ct), (None, ct * res[1], None))[1],
    )
    grads = gradix.new_ref(0.0)
    for g in (gradix.grad, lambda f: gradix.jit(gradix.grad(f)), lambda f: gradix.grad(lambda x: f(x))):
        grads[...] = 0.0
        assert_same(g(lambda x: stash(grads, jnp.sin(x), {"scale": 2.0}) ** 2)(1.0), 4 * np.sin(2.0))
        assert_same(grads[...], 4 * np.sin(1.0))
    as_argument = gradix.jit(gradix.grad(lambda x, ref: stash(ref, jnp.sin(x), {"scale": 2.0}) ** 2))
    grads[...] = 0.0
    assert_same(as_argument(1.0, grads), 4 * np.sin(2.0))
    assert_same(grads[...], 4 * np.sin(1.0))


@pytest.mark.x32
def test_functions_of_the_module():
    ref = gradix.new_ref(jnp.arange(4))
    assert int(gradix.ref.swap(ref, 2, 10)) == 2
    gradix.ref.set(ref, slice(0, 2), jnp.array([7, 8]))
    assert_same(gradix.ref.get(ref), [7, 8, 10, 3])
    ref.at[2:][0] = 5
    assert_same(ref.at[2:][...], [5, 3])
    assert_same(gradix.ref.get(ref, ref[...] > 6), [7, 8])
    ref[-1] = 1
    assert_same(ref[...], [7, 8, 5, 1])
    assert (ref.shape, ref.ndim, ref.size, len(ref), ref.dtype) == ((4,), 1, 4, 4, np.int32)
    assert str(gradix.typeof(ref)) == "Ref{int32[4]}" and repr(ref) == "Ref([7, 8, 5, 1], dtype=int32)"
    other = copy.deepcopy(ref)
    other[0] = 0
    assert int(ref[0]) == 7
    assert gradix.tree.leaves({"a": ref}) == [ref] and not isinstance(ref, gradix.Array)
    assert_same(gradix.empty_ref(gradix.ShapeDtypeStruct((2,), np.float32))[...], [0, 0])


def _write(ref, value):
    ref[...] = value


def wrong_programs():
    outer = gradix.new_ref(jnp.zeros(3))
    dead = gradix.new_ref(1.0)
    gradix.freeze(dead)
    kept = []
    gradix.jit(lambda r: kept.append(r))(outer)

    def both(a):
        a[...] = 1.0
        return outer[...]

    return {
        "differentiated": (
            ValueError,
            "a differentiated value.*made at .*test_refs",
            lambda: gradix.grad(lambda x: (_write(outer, x), x.sum())[1])(jnp.ones(3)),
        ),
        "mapped": (ValueError, "a vmapped value", lambda: gradix.vmap(lambda x: _write(outer, x))(jnp.ones((2, 3)))),
        "mapped by None": (
            ValueError,
            "a vmapped value",
            lambda: gradix.vmap(lambda r, x: _write(r, x), (None, 0))(outer, jnp.ones((2, 3))),
        ),
        "frozen": (ValueError, "given up by freeze at", lambda: dead[...]),
        "twice": (
            ValueError,
            "argument a, and argument b",
            lambda: gradix.jit(lambda a, b: _write(a, b[...]))(outer, outer),
        ),
        "captured and passed": (ValueError, "argument a, and captured", lambda: gradix.jit(both)(outer)),
        "returned": (TypeError, r"read its value with ref\[...\]", lambda: gradix.jit(lambda: gradix.new_ref(1.0))()),
        "an argument kept": (
            ValueError,
            "stands for an argument of a function that has returned",
            lambda: kept[0][...],
        ),
        "out of range": (ValueError, "idx=3, dim=3, on axis 0", lambda: outer[3]),
        "dtype": (ValueError, "Ref dtype: float32. Value dtype: complex64", lambda: _write(outer, 1j)),
        "shape": (ValueError, r"Ref shape: \(3,\). Value shape: \(2,\)", lambda: _write(outer, jnp.ones(2))),
        "as an array": (TypeError, r"read its value with ref\[...\]", lambda: jnp.asarray(outer)),
        "carry": (
            TypeError,
            r"read its value with ref\[...\]",
            lambda: lax.scan(lambda c, x: (c, x), outer, jnp.ones(2)),
        ),
        "condition": (
            ValueError,
            "cond_fun of while_loop writes",
            lambda: lax.while_loop(lambda i: (_write(outer, 1.0), i < 3)[1], lambda i: i + 1, 0),
        ),
        "chunks": (
            ValueError,
            "a vmapped value",
            lambda: gradix.vmap(lambda x: _write(outer, x), chunk_size=2)(jnp.ones((4, 3))),
        ),
        "no ref": (TypeError, "expects a Ref", lambda: gradix.ref.get(jnp.ones(3), 0)),
        "solver": (
            NotImplementedError,
            "Return the value, and write it outside",
            lambda: lax.custom_root(lambda x: (_write(outer, 2.0), x)[1], 1.0, lambda f, x: x, lambda f, x: x),
        ),
    }


def test_written_in_chunks():
    outer = gradix.new_ref(jnp.zeros(3))
    assert gradix.vmap(lambda x: (_write(outer, 2.0), x)[1], chunk_size=2)(jnp.ones(4)).tolist() == [1.0] * 4
    assert outer[...].tolist() == [2.0] * 3


@pytest.mark.x32
@pytest.mark.parametrize("name", wrong_programs())
def test_messages(name):
    kind, pattern, call = wrong_programs()[name]
    with pytest.raises(kind, match=f"(?s){pattern}"):
        call()


@pytest.mark.parity
def test_forward_mode_takes_refs_of_tangents():
    jax = pytest.importorskip("jax")
    seen = []
    for lib in (gradix, jax):
        for around in (lambda f: f, lib.jit):
            ref, tangent = lib.new_ref(lib.numpy.arange(3.0)), lib.new_ref(lib.numpy.ones(3))

            def step(r, x):
                r[...] = r[...] ** 2 * x
                r[0] += x
                return r[...].sum()

            seen.append([*around(lambda r, t: lib.jvp(step, (r, 2.0), (t, 1.0)))(ref, tangent), ref[...], tangent[...]])
    for found in seen[1:]:
        for a, b in zip(found, seen[0]):
            np.testing.assert_allclose(a, b)
    f = lambda r: (r[...], {"aux": r[...] * 2})
    value, t, aux = gradix.jvp(f, (gradix.new_ref(1.0),), (gradix.new_ref(3.0),), has_aux=True)
    assert (value, t, aux["aux"]) == (1.0, 3.0, 2.0)
    with pytest.raises(TypeError, match="the tangent of a mutable array is a mutable array"):
        gradix.jvp(lambda r: r[...], (gradix.new_ref(1.0),), (1.0,))


def test_a_ref_where_an_array_is_needed_is_a_wrong_type_and_a_wrong_value():
    ref = gradix.new_ref(jnp.zeros(3))
    for f in (
        lambda: gradix.jit(lambda: gradix.new_ref(1.0))(),
        lambda: jnp.asarray(ref),
        lambda: lax.scan(lambda c, x: (ref, x), 0, jnp.ones(2)),
        lambda: lax.cond(True, lambda: ref, lambda: ref),
    ):
        for kind in (TypeError, ValueError):
            with pytest.raises(kind, match="read its value with ref"):
                f()


def test_addupdate_takes_the_value_first_and_the_type_of_a_ref_has_its_sharding():
    ref = gradix.new_ref(jnp.zeros(3))
    ref.addupdate(1.0)
    ref.addupdate(2.0, 1)
    assert ref[...].tolist() == [1, 3, 1]
    assert gradix.typeof(ref).sharding == gradix.typeof(ref[...]).sharding
