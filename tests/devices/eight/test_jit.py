"""Jitted functions over eight devices: the shardings of arguments, results and values between."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, monitoring
from gradix._runtime import xla_options
from gradix._runtime.cache_key import key_of
from gradix.experimental.shard_alike import shard_alike
from gradix.sharding import Mesh, NamedSharding, PartitionSpec as P
from tests.devices.eight.common import mesh, on, sharded

X = np.arange(16.0, dtype=np.float32).reshape(8, 2)


def test_shardings_of_arguments_and_results():
    m = mesh()
    f = lambda x: x + 1  # noqa: E731
    assert gradix.jit(f, out_shardings=on(m, "x"))(X).sharding == on(m, "x")
    assert gradix.jit(f, in_shardings=on(m, "y"))(X).sharding.is_equivalent_to(on(m, "y"), 2)
    assert gradix.jit(f)(sharded(X, m, "x")).sharding.is_equivalent_to(on(m, "x"), 2)
    two = gradix.jit(
        lambda a, b: {"s": a["k"] + b, "t": b},
        in_shardings=({"k": on(m, "x")}, None),
        out_shardings={"s": on(m, None, "y"), "t": None},
    )({"k": X}, X)
    assert two["s"].sharding == on(m, None, "y")
    np.testing.assert_array_equal(two["s"], 2 * X)
    with gradix.set_mesh(m):
        assert gradix.jit(f, out_shardings=P("x"))(X).sharding == on(m, "x")
        assert gradix.jit(lambda v: lax.with_sharding_constraint(v, P("y")))(X).sharding.is_equivalent_to(on(m, "y"), 2)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda m: gradix.jit(jnp.sin, in_shardings=on(m, "y"))(sharded(X, m, "x")),
            "does not match the sharding on the respective arg",
        ),
        (lambda m: gradix.jit(lambda x: x, in_shardings=on(m, "x"))(jnp.ones(7)), "should be divisible by 4"),
        (lambda m: gradix.jit(lambda x: x, in_shardings=on(m, "x", "y"))(jnp.ones(8)), "rank at least 2"),
        (lambda m: gradix.jit(lambda x: x, in_shardings=(on(m), on(m)))(jnp.ones(8)), "tuple of length 2"),
        (lambda m: gradix.jit(lambda x: x, in_shardings=on(m))(x=jnp.ones(8)), "does not support kwargs"),
        (lambda m: gradix.jit(lambda x: x, in_shardings=on(m), device=gradix.devices()[0]), "should not be specified"),
        (
            lambda m: gradix.jit(lambda x: lax.with_sharding_constraint(x, on(mesh((2, 2)), "x")))(sharded(X, m, "x")),
            "incompatible devices",
        ),
    ],
)
def test_wrong_shardings(call, match):
    with pytest.raises(ValueError, match=match):
        call(mesh())


def test_text_and_compiled():
    m = mesh()
    f = gradix.jit(lambda x: lax.with_sharding_constraint(x * 2, on(m, None, "y")))
    a = sharded(X, m, "x")
    lowered = f.lower(a)
    for piece in (
        'sdy.mesh @mesh = <["x"=4, "y"=2]>',
        "mhlo.num_partitions = 8",
        '#sdy.sharding<@mesh, [{"x"}, {}]>',
        "sdy.sharding_constraint",
    ):
        assert piece in lowered.as_text()
    compiled = lowered.compile()
    assert compiled.output_shardings.is_equivalent_to(on(m, None, "y"), 2)
    (given,), _ = compiled.input_shardings
    assert given == on(m, "x")
    np.testing.assert_array_equal(compiled(a), 2 * X)
    np.testing.assert_array_equal(
        gradix.jit(f).lower(gradix.ShapeDtypeStruct((8, 2), np.float32, sharding=on(m, "x"))).compile()(a), 2 * X
    )


def test_one_trace_for_all_places():
    m = mesh()
    f = gradix.jit(lambda x: x * 3)
    for x in (X, sharded(X, m, "x"), sharded(X, m, "y"), gradix.device_put(X, gradix.devices()[3]), sharded(X, m, "x")):
        np.testing.assert_array_equal(f(x), 3 * X)
    assert f.stats().traces == 1


def test_gradients_donation_and_inner_functions():
    m = mesh()
    w, x = sharded(np.ones((2, 4), np.float32), m, None, "y"), sharded(X / 16, m, "x")
    loss = lambda w, x: jnp.tanh(x @ w).sum()  # noqa: E731
    got = gradix.jit(gradix.grad(loss))(w, x)
    np.testing.assert_allclose(got, gradix.grad(loss)(np.ones((2, 4), np.float32), X / 16), rtol=1e-5)
    inner = gradix.jit(lambda v: v + 1, out_shardings=on(m, None, "y"))
    assert gradix.jit(lambda v: inner(v) * 1)(x).sharding.is_equivalent_to(on(m, None, "y"), 2)
    np.testing.assert_array_equal(gradix.vmap(inner)(np.stack([X, 2 * X])), np.stack([X, 2 * X]) + 1)
    y = sharded(X, m, "x")
    out = gradix.jit(lambda v: v + 1, donate_argnums=0)(y)
    assert y.is_deleted() and out.sharding.is_equivalent_to(on(m, "x"), 2)


def test_the_same_random_numbers_however_they_are_divided():
    m, key = mesh(), gradix.random.key(3)
    whole, bits = gradix.random.normal(key, (8, 4)), gradix.random.bits(key, (8, 4))
    for spec in (P("x"), P("x", "y"), P(None, "x"), P()):
        draw = gradix.jit(
            lambda k: (gradix.random.bits(k, (8, 4)), gradix.random.normal(k, (8, 4))),
            out_shardings=NamedSharding(m, spec),
        )
        np.testing.assert_array_equal(draw(key)[0], bits)
        np.testing.assert_allclose(draw(key)[1], whole, rtol=1e-5)


def test_loops_factorizations_and_callbacks():
    m = mesh()
    a = sharded(X, m, "x")
    carry, ys = gradix.jit(lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0], x))(a)
    ref, rows = lax.scan(lambda c, y: (c + y, c * y), jnp.asarray(X[0]), jnp.asarray(X))
    np.testing.assert_allclose(carry, ref)
    np.testing.assert_allclose(ys, rows)
    np.testing.assert_allclose(gradix.jit(lambda x: jnp.linalg.svd(x)[1])(a), np.linalg.svd(X)[1], rtol=1e-4)
    np.testing.assert_array_equal(
        gradix.jit(lambda x: gradix.pure_callback(lambda v: np.asarray(v) * 2, x, x))(a), 2 * X
    )
    np.testing.assert_array_equal(gradix.jit(lambda x: jnp.sort(-x, 0))(a), np.sort(-X, 0))


def test_shard_alike_and_abstract_meshes():
    m = mesh()
    f = gradix.jit(lambda x, y: shard_alike(x, y * 2)[1])
    np.testing.assert_array_equal(f(sharded(X, m, "x"), X), 2 * X)
    with gradix.set_mesh(m):
        out = gradix.jit(lambda x: gradix.lax.with_sharding_constraint(x, P("x")))(X)
    np.testing.assert_array_equal(out, X)


def test_results_are_named_as_the_first_argument_or_shortly():
    """Equal shardings compare equal: of a function's argument and result, and with what one writes."""

    def run(f, *arrays):
        return [tuple(o.sharding.spec) for o in gradix.jit(f)(*arrays)]

    m = mesh()
    long, short = sharded(np.ones((8, 8), "f"), m, "x", None), sharded(np.ones((8, 8), "f"), m, "x")
    cube, columns = sharded(np.ones((8, 8, 8), "f"), m, "x", None), sharded(np.ones((8, 8), "f"), m, None, "y")
    assert run(lambda a: [a + 1, a.T, a[:, 0], a.sum(0), a > 0], long) == [
        ("x", None),
        (None, "x"),
        ("x",),
        (),
        ("x", None),
    ]
    assert run(lambda a: [a + 1, a[:, 0]], short) == [("x",), ("x",)]
    assert run(lambda a, b: [a * 1, b * 1, a * b], columns, long) == [(None, "y"), ("x",), ("x", "y")]
    assert run(lambda a, b: [a * 1, b * 1], long, short) == [("x", None)] * 2
    assert run(lambda a, b: [a * 1, a[:, 0], b * 1], cube, long) == [("x", None), ("x",), ("x",)]
    assert gradix.jit(jnp.sin)(long).sharding == long.sharding and jnp.sin(short).sharding == short.sharding
    chosen = gradix.jit(lambda a: a + 1, in_shardings=on(m, "x", None))(np.ones((8, 8), "f"))
    assert chosen.sharding == on(m, "x")


def test_looking_at_shardings_while_a_program_is_compiled(capsys):
    m, seen = mesh(), []

    def f(a):
        product = jnp.sin(a) @ a.T
        gradix.debug.inspect_array_sharding({"p": product, "a": a}, callback=lambda s: seen.append(tuple(s.spec)))
        return product.sum()

    x = sharded(X[:, :2], m, "x", "y")
    lowered = gradix.jit(f).lower(x)
    assert not seen
    lowered.compile()
    assert seen == [("x", "y"), ("x",)] or seen == [("x",), ("x", "y")]
    seen.clear()
    gradix.jit(gradix.grad(f))(x)
    assert len(seen) == 2
    gradix.jit(gradix.vmap(f))(x[None])
    assert len(seen) == 4
    gradix.jit(gradix.shard_map(lambda v: (f(v), v)[1], mesh=m, in_specs=P("x"), out_specs=P("x")))(X)
    assert len(seen) == 4  # a part lies on its device
    kinds = []
    gradix.jit(lambda v: gradix.debug.inspect_array_sharding(v, callback=lambda s: kinds.append(s)) or v * 2)(
        np.ones(3)
    )
    assert kinds[0].is_fully_replicated and len(kinds) == 1
    capsys.readouterr()
    gradix.jit(lambda v: gradix.debug.visualize_array_sharding(v, max_width=41) or v * 2)(sharded(X, m, "x"))
    assert "CPU 0,1" in capsys.readouterr().out

    def fails(s):
        raise KeyError("of the callback")

    with pytest.raises(KeyError, match="of the callback"):
        gradix.jit(lambda v: gradix.debug.inspect_array_sharding(v, callback=fails) or v)(x)


def test_the_compiler_pads_what_a_constraint_does_not_divide_evenly():
    x, m = np.arange(28, dtype=np.float32).reshape(7, 4), mesh()
    f = lambda v: lax.with_sharding_constraint(v * 2, on(m, "x"))  # noqa: E731
    np.testing.assert_array_equal(gradix.jit(f)(x), 2 * x)
    np.testing.assert_array_equal(gradix.jit(gradix.grad(lambda v: (f(v) ** 2).sum()))(x), 8 * x)
    with pytest.raises(ValueError, match="Pad the axis to a multiple of 4"):
        lax.with_sharding_constraint(gradix.numpy.asarray(x), on(m, "x"))


def test_programs_on_disk_are_kept_apart_by_the_devices_they_are_for():
    d = tuple(gradix.devices())
    given = [d[:2], d[1::-1], d[2:4], d, d[::-1]]
    keys = [key_of("module @m {}", xla_options.DEFAULT, several) for several in given]
    assert len(set(keys)) == len(given) and keys == [
        key_of("module @m {}", xla_options.DEFAULT, several) for several in given
    ]


CACHED = """
import sys
import numpy as np
import gradix
gradix.config.update("jax_num_cpu_devices", int(sys.argv[1]))
mesh = gradix.make_mesh((int(sys.argv[1]),), ("x",))
f = gradix.jit(lambda a: (a * 3 + 1, a.sum()))
a = gradix.device_put(np.arange(8.0, dtype=np.float32), gradix.sharding.NamedSharding(mesh, gradix.sharding.PartitionSpec("x")))
y, s = f(a)
assert np.array_equal(y, np.arange(8) * 3 + 1) and float(s) == 28 and len(y.addressable_shards) == int(sys.argv[1])
print(f.stats().compiles, f.stats().loads)
"""


def test_the_cache_on_disk_is_keyed_by_the_topology(tmp_path):
    def run(count: int) -> list[str]:
        env = {**os.environ, "GRADIX_CACHE": str(tmp_path), "XLA_FLAGS": ""}
        done = subprocess.run(
            [sys.executable, "-c", CACHED, str(count)], env=env, capture_output=True, text=True, timeout=100
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.split()

    assert [run(n) for n in (4, 4, 2, 2)] == [["1", "0"], ["0", "1"], ["1", "0"], ["0", "1"]]


def test_types_that_say_where_they_lie_are_compiled_for_it():
    """Before any call with arrays that lie so."""
    where = on(mesh(), "x")
    compiled = gradix.jit(lambda v: v * 2).lower(gradix.ShapeDtypeStruct((8, 8), "float32", sharding=where)).compile()
    assert compiled.input_shardings[0][0].spec == P("x") and compiled.output_shardings.spec == P("x")
    np.testing.assert_allclose(compiled(sharded(np.ones((8, 8), np.float32), mesh(), "x")), np.full((8, 8), 2.0))


@pytest.mark.parametrize("options", [{"backend": "cpu"}, {"device": 0}, {"device": 2}])
def test_a_device_or_platform_of_jit(options):
    """Arguments and captured arrays are moved there, and results stay there."""
    options = {k: gradix.devices()[v] if k == "device" else v for k, v in options.items()}
    wanted = options.get("device", gradix.devices()[0])
    captured = [jnp.ones((8, 2)) * 2, gradix.device_put(2 * np.ones_like(X), gradix.devices()[3])]
    for x in (X, jnp.asarray(X), gradix.device_put(X, gradix.devices()[1]), sharded(X, mesh(), "x")):
        for c in captured:
            f = gradix.jit(lambda v, c=c: v * c, **options)
            for _ in range(3):  # also on the quick ways that later calls take
                out = f(x)
                assert out.devices() == {wanted} and out.committed
                np.testing.assert_array_equal(out, 2 * X)
    assert gradix.jit(lambda: jnp.zeros(3), **options)().devices() == {wanted}
    with pytest.raises(ValueError, match="backend or device"):
        gradix.jit(lambda v: v, in_shardings=on(mesh(), "x"), **options)


def test_a_platform_that_is_not_there():
    with pytest.raises(RuntimeError, match="Unknown backend"):
        gradix.jit(lambda v: v, backend="tpu")(X)


def test_texts_with_the_places_of_operations_on_several_devices():
    mesh = gradix.make_mesh((8,), ("i",), axis_types=(gradix.sharding.AxisType.Auto,))
    part = gradix.shard_map(jnp.cos, mesh=mesh, in_specs=gradix.P("i"), out_specs=gradix.P("i"))
    lowered = gradix.jit(lambda x: part(jnp.sin(x))).lower(jnp.arange(8.0))
    text = lowered.as_text(debug_info=True)
    assert text.count("manual_computation") == 1 and "test_jit.py" in text
    assert "op_name" in lowered.as_text("hlo", debug_info=True)


def test_a_budget_of_memory_is_one_for_each_device():
    def loss(x, ws):
        return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)[0].sum()

    def temporary(f, *args):
        return f.lower(*args).compile().memory_analysis().temp_size_in_bytes

    ws = np.random.default_rng(0).random((8, 32, 32), "f") / 4
    plain = np.random.default_rng(1).random((512, 32), "f")
    x = gradix.device_put(plain, NamedSharding(gradix.make_mesh((8,), ("d",)), P("d")))
    gradient = gradix.grad(loss, 1)
    whole, needed = gradix.jit(gradient), temporary(gradix.jit(gradient), x, ws)
    assert needed < temporary(whole, plain, ws) / 4  # the budgets below are for the part of one device
    for budget in (needed, needed * 3 // 4):
        tight = gradix.jit(gradient, memory=budget)
        assert temporary(tight, x, ws) <= budget
        for given in (x, plain):  # the second has all on one device, where the budget is out of reach
            with warnings.catch_warnings():
                warnings.simplefilter("error" if given is x else "ignore")
                np.testing.assert_allclose(tight(given, ws), whole(plain, ws), rtol=1e-4, atol=1e-5)


def lowerings(run) -> int:
    """How often programs are lowered in a call."""
    found = []

    def listen(event, duration, **_):
        found.append(event)

    monitoring.register_event_duration_secs_listener(listen)
    try:
        run()
    finally:
        monitoring.unregister_event_duration_listener(listen)
    return found.count("/jax/core/compile/jaxpr_to_mlir_module_duration")


def test_other_devices_of_a_mesh_of_the_same_shape_take_the_same_text():
    devices = gradix.devices()
    meshes = [Mesh(np.array(d), "x") for d in (devices[:2], devices[2:4], devices[1::-1])]
    constrained = gradix.jit(
        lambda x: lax.with_sharding_constraint(x, NamedSharding(meshes[0].abstract_mesh, P("x"))) * 2
    )
    for f in (gradix.jit(lambda x: x * 2), constrained):
        values = np.arange(8.0, dtype="float32")

        def everywhere(meshes=meshes, f=f, values=values):
            for m in meshes:
                out = f(gradix.device_put(values, NamedSharding(m, P("x"))))
                assert out.sharding.mesh == m
                np.testing.assert_array_equal(out, values * 2)

        assert lowerings(everywhere) == 1
        assert lowerings(lambda f=f, v=values: f(gradix.device_put(v, NamedSharding(meshes[0], P())))) == 1
    wider = gradix.device_put(np.arange(8.0, dtype="float32"), NamedSharding(Mesh(devices[:4], "x"), P("x")))
    on_one = gradix.jit(lambda x: x * 3)
    assert lowerings(lambda: on_one(wider)) == 1
    assert lowerings(lambda: [on_one(gradix.device_put(np.ones(2), d)) for d in devices[1:4]]) == 1


def test_types_of_a_lowered_program_are_divided_as_asked():
    mesh = gradix.make_mesh((2,), ("x",))
    where = NamedSharding(mesh, P("x"))
    traced = gradix.jit(lambda x, y: x * 2, in_shardings=(where, None)).trace(np.arange(8), 1.0)
    lowered = traced.lower()
    for stage in (lowered, lowered.compile()):
        (x, y), _ = stage.in_avals
        assert x.sharding.spec == P("x") and y.shape == ()
    assert traced.in_avals[0][0].sharding.spec == P(None)
