"""Orders of axes in memory: arrays lie so, programs take and give them so, and NumPy sees the bytes where they are."""

import pickle
import warnings

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix._runtime import xla_layouts
from gradix._runtime.program import to_device
from gradix.experimental import array_serialization, serialize_executable
from gradix.experimental.layout import Format, Layout, with_layout_constraint
from gradix.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding

from .common import mesh

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6)


def one():
    return SingleDeviceSharding(gradix.devices()[0])


def four():
    return NamedSharding(mesh((2, 2)), P("x", "y"))


def column(sharding=None):
    return Format(Layout((1, 0)), sharding or one())


def order(x) -> tuple:
    """The order of axes that an array tells, which must be the one in which its bytes lie."""
    told = x.format.layout.major_to_minor
    buffer = to_device(x)
    for part in buffer._arrays:
        native = part._pjrt_layout._xla_layout()
        assert tuple(native.minor_to_major())[::-1] == told, (native, told)
    return told


@pytest.mark.parametrize("sharding", [one, four])
def test_arrays_are_put_in_an_order(sharding):
    for given in (VALUES, jnp.asarray(VALUES), gradix.device_put(VALUES, sharding())):
        x = gradix.device_put(given, column(sharding()))
        assert order(x) == (1, 0) and x.format.sharding == sharding() and x.committed
        assert np.array_equal(x, VALUES) and repr(x) == repr(jnp.asarray(VALUES))
    assert order(gradix.device_put(x, Format(Layout((0, 1)), sharding()))) == (0, 1)
    assert order(gradix.device_put(x, sharding())) == (1, 0), "a sharding says nothing of the order"
    assert gradix.device_put(x, sharding()) is x
    for shard in x.addressable_shards:
        assert order(shard.data) == (1, 0) and np.array_equal(shard.data, VALUES[shard.index])


def test_numpy_sees_the_bytes_where_they_are():
    values = np.arange(120 * 100, dtype=np.float32).reshape(4, 30, 100)
    x = gradix.device_put(values, Format(Layout((2, 0, 1)), one()))
    seen = np.asarray(x)
    assert seen.strides == (4 * 30, 4, 4 * 4 * 30) and np.array_equal(seen, values)
    assert seen.__array_interface__["data"][0] == x.unsafe_buffer_pointer(), "it is no copy"
    assert np.from_dlpack(x).strides == seen.strides
    assert memoryview(seen).strides == seen.strides and x.tobytes() == values.tobytes()
    assert np.array_equal(pickle.loads(pickle.dumps(x)), values)
    assert seen.flags.writeable is False and np.asarray(x[1]).shape == (30, 100)
    del x
    assert np.array_equal(seen, values), "the view keeps the bytes alive"


@pytest.mark.parametrize(
    "name", ["bool", "int4", "uint2", "float8_e4m3fn", "bfloat16", "complex64", "int8", "float4_e2m1fn"]
)
def test_every_dtype_is_put_in_an_order(name):
    values = jnp.asarray(np.arange(6).reshape(2, 3) % 2).astype(name)
    x = gradix.device_put(values, column())
    assert order(x) == (1, 0) and np.array_equal(np.asarray(x), np.asarray(values))
    assert np.array_equal(np.asarray(gradix.jit(lambda v: v)(x)), np.asarray(values))


def test_values_of_odd_shapes_and_keys():
    for shape in ((0, 3), (1, 5), (5, 1), (1, 1)):
        x = gradix.device_put(np.ones(shape, np.float32), column())
        assert x.format.layout.major_to_minor == (1, 0) and np.array_equal(x, np.ones(shape))
    assert gradix.device_put(2.0, Format(Layout(()), one())).format.layout == Layout((), ())
    keys = gradix.random.split(gradix.random.key(0), (2, 3))
    put = gradix.device_put(keys, column())
    assert order(put) == (1, 0) and (gradix.random.key_data(put) == gradix.random.key_data(keys)).all()


def test_operations_take_any_order_and_give_row_major():
    x, plain = gradix.device_put(VALUES, column()), jnp.asarray(VALUES)
    parts = gradix.device_put(VALUES, column(four()))
    for f in (
        lambda v: v + 1,
        lambda v: v.T,
        lambda v: v @ v.T,
        lambda v: v[1:, ::2],
        lambda v: v[1],
        lambda v: jnp.sort(v, 0),
        lambda v: v.reshape(-1),
        lambda v: jnp.stack([v, v * 2]),
        lambda v: v.astype(jnp.int32),
        lambda v: jnp.cumsum(v, 1),
        lambda v: jnp.where(v > 3, v, 0),
        lambda v: next(iter(v)),
        gradix.grad(lambda v: (v * v).sum()),
        gradix.vmap(lambda v: v * 2, in_axes=1),
        gradix.jit(lambda v: v),
        gradix.jit(lambda v: lax.fori_loop(0, 3, lambda i, a: a * 2, v)),
    ):
        for given in (x, parts):
            out = f(given)
            assert np.array_equal(out, f(plain)) and order(out) == tuple(range(out.ndim))
    assert order(x.copy()) == (1, 0) and order(jnp.asarray(x)) == order(x.astype(x.dtype)) == (1, 0)
    with pytest.raises(RuntimeError, match="deleted"):
        y = gradix.device_put(VALUES, column())
        y.delete()
        y + 1


@pytest.mark.parametrize("sharding", [one, four])
def test_programs_give_results_in_the_order_asked_for(sharding):
    f = gradix.jit(lambda v: v * 2, out_shardings=column(sharding()))
    out = f(VALUES)
    assert (
        order(out) == (1, 0) and np.array_equal(out, VALUES * 2) and np.asarray(out.addressable_data(0)).strides[0] == 4
    )
    compiled = f.lower(VALUES).compile()
    assert compiled.output_formats == out.format and order(compiled(VALUES)) == (1, 0)
    assert f.eval_shape(VALUES).format == column(sharding()) == gradix.eval_shape(f, VALUES).format
    assert "mhlo.layout_mode" in f.lower(VALUES).as_text()
    with gradix.disable_jit():
        assert np.array_equal(f(VALUES), VALUES * 2)


@pytest.mark.parametrize("sharding", [one, four])
def test_programs_take_arguments_in_their_order(sharding):
    x, plain = gradix.device_put(VALUES, column(sharding())), gradix.device_put(VALUES, sharding())
    f = gradix.jit(lambda v: v * 2)
    compiled = f.lower(x).compile()
    assert compiled.input_formats[0][0] == x.format and np.array_equal(compiled(x), VALUES * 2)
    struct = gradix.ShapeDtypeStruct(VALUES.shape, VALUES.dtype, sharding=x.format)
    assert f.lower(struct).compile().input_formats[0][0] == x.format
    for other, program in ((plain, compiled), (x, f.lower(plain).compile())):
        with pytest.raises(
            ValueError, match=r"(?s)layouts that disagree.*Argument v with shape float32\[4,6\].*Required"
        ):
            program(other)
    # NumPy's values lie nowhere yet
    assert np.array_equal(compiled(VALUES), VALUES * 2)
    asking = gradix.jit(lambda v: v * 2, in_shardings=column(sharding()))
    assert np.array_equal(asking(x), VALUES * 2) and np.array_equal(asking(VALUES), VALUES * 2)
    assert asking.lower(VALUES).compile().input_formats[0][0] == x.format
    with pytest.raises(ValueError, match=r"(?s)Layout passed to jit does not match.*\(1, 0\).*arg layout: .*\(0, 1\)"):
        asking(plain)
    blob = serialize_executable.serialize(compiled)
    again = serialize_executable.deserialize_and_load(*blob)
    assert np.array_equal(again(x), VALUES * 2) and again.input_formats == compiled.input_formats


@pytest.mark.parametrize("sharding", [one, four])
def test_xla_chooses_orders(sharding):
    auto, struct = Format(Layout.AUTO), gradix.ShapeDtypeStruct(VALUES.shape, VALUES.dtype, sharding=sharding())
    compiled = gradix.jit(lambda v: v.T, in_shardings=auto, out_shardings=auto).lower(struct).compile()
    (taken,), _ = compiled.input_formats
    given = compiled.output_formats
    assert taken.layout.major_to_minor == given.layout.major_to_minor[::-1], "a transposition moves no byte"
    out = compiled(gradix.device_put(VALUES, taken))
    assert out.format == given and order(out) == given.layout.major_to_minor and np.array_equal(out, VALUES.T)
    out = gradix.jit(lambda v: v.T, out_shardings=auto)(VALUES)
    assert order(out) == (1, 0) and not out.committed and np.array_equal(out + 1, VALUES.T + 1)
    with pytest.raises(ValueError, match=r"(?s)Got jit layout: AUTO.*input_formats"):
        gradix.jit(lambda v: v.T, in_shardings=auto)(gradix.device_put(VALUES, sharding()))


def test_memory_is_given_away_in_its_order():
    def double(**options):
        return gradix.jit(lambda v: v * 2, donate_argnums=0, **options)

    for sharding in (one(), four()):
        x = gradix.device_put(VALUES, column(sharding))
        out = double(out_shardings=column(sharding))(x)
        assert x.is_deleted() and order(out) == (1, 0) and np.array_equal(out, VALUES * 2)
        x = gradix.device_put(VALUES, column(sharding))
        seen = np.asarray(x.addressable_data(0))
        kept = seen.copy()
        double(out_shardings=column(sharding))(x)
        assert np.array_equal(seen, kept), "a view keeps its values"
        x = gradix.device_put(VALUES, column(sharding))
        assert order(double()(x)) == (0, 1) and x.is_deleted(), "a result of as many bytes takes its memory"
    auto = Format(Layout.AUTO)
    for options, what in (({"in_shardings": auto}, "output layout"), ({"out_shardings": auto}, "input layout")):
        with pytest.raises(ValueError, match=rf"Did you mean to set the \*\*{what}\*\* to \*\*Layout.AUTO"):
            double(**options)(VALUES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(double(in_shardings=auto, out_shardings=auto)(VALUES), VALUES * 2)


def test_constraints_lay_values_out():
    wanted = Layout((1, 0))
    x = with_layout_constraint(jnp.asarray(VALUES), wanted)
    assert order(x) == (1, 0) and not x.committed and np.array_equal(x, VALUES)
    assert order(with_layout_constraint(x, Layout((0, 1)))) == (0, 1)
    assert with_layout_constraint(x, wanted) is x
    for f in (
        lambda v: with_layout_constraint(v + 1, wanted),
        lambda v: lax.with_sharding_constraint(v + 1, column()),
        lambda v: gradix.device_put(v + 1, column()),
        lambda v: gradix.jit(lambda a: a + 1, out_shardings=column())(v),
    ):
        out = gradix.jit(f)(VALUES)
        assert order(out) == (1, 0) and np.array_equal(out, VALUES + 1)
        assert "LayoutConstraint" in gradix.jit(lambda v, f=f: f(v) * 2).lower(VALUES).as_text()
        assert np.array_equal(gradix.jit(lambda v, f=f: f(v) * 2)(VALUES), (VALUES + 1) * 2)
    inner = gradix.jit(lambda v: gradix.jit(lambda a: a + 1, in_shardings=column())(v))
    assert "LayoutConstraint" in inner.lower(VALUES).as_text() and np.array_equal(inner(VALUES), VALUES + 1)
    f = gradix.jit(lambda v: with_layout_constraint(v * 3, wanted))
    batch = np.stack([VALUES, VALUES + 1])
    out = gradix.jit(gradix.vmap(lambda v: with_layout_constraint(v * 3, wanted)))(batch)
    assert order(out) == (0, 2, 1) and np.array_equal(out, batch * 3)
    assert np.array_equal(gradix.grad(lambda v: f(v).sum())(VALUES), np.full_like(VALUES, 3))
    ones, tangent = gradix.jit(lambda v: gradix.jvp(lambda a: with_layout_constraint(a * 3, wanted), (v,), (v,)))(
        VALUES
    )
    assert order(ones) == order(tangent) == (1, 0) and np.array_equal(tangent, VALUES * 3)
    with gradix.disable_jit():
        assert order(f(VALUES)) == (1, 0)
    parts = gradix.jit(lambda v: with_layout_constraint(v * 3, wanted))(gradix.device_put(VALUES, four()))
    assert order(parts) == (1, 0) and parts.sharding == four() and np.array_equal(parts, VALUES * 3)


def test_arrays_made_of_parts():
    whole = gradix.device_put(VALUES, column(four()))
    parts = [s.data for s in whole.addressable_shards]
    assert order(gradix.make_array_from_single_device_arrays((4, 6), four(), parts)) == (1, 0)
    made = gradix.make_array_from_callback((4, 6), column(four()), lambda i: VALUES[i])
    assert order(made) == (1, 0) and np.array_equal(made, VALUES)
    mixed = [gradix.device_put(parts[0], Format(Layout((0, 1)), parts[0].sharding)), *parts[1:]]
    made = gradix.make_array_from_single_device_arrays((4, 6), four(), mixed)
    assert order(made) == (0, 1) and np.array_equal(made, VALUES)


def test_arrays_move_between_devices():
    x = gradix.device_put(VALUES, column())
    for where, expected in (
        (gradix.devices()[3], (1, 0)),
        (four(), (0, 1)),
        (NamedSharding(mesh((2, 2)), P()), (0, 1)),
    ):
        moved = gradix.device_put(x, where)
        assert order(moved) == expected and np.array_equal(moved, VALUES)
    assert order(gradix.device_put(x, column(NamedSharding(mesh((2, 2)), P())))) == (1, 0)
    out = gradix.shard_map(lambda v: v * 2, mesh=mesh((2, 2)), in_specs=P("x"), out_specs=P("x"))(
        gradix.device_put(VALUES, column(four()))
    )
    assert np.array_equal(out, VALUES * 2)


def test_what_cannot_lie_so():
    tiled = Layout((1, 0), ((8, 128),))
    for layout, error, match in (
        (Layout((1, 1)), ValueError, r"each of the 2 axes.*once, from 0 on; got \(1, 1\)"),
        (Layout((-1, 0)), ValueError, "from 0 on"),
        (Layout((0, 2)), ValueError, "from 0 on"),
        (tiled, NotImplementedError, "Leave tiling out"),
    ):
        where = Format(layout, one())
        for call in (
            lambda where=where: gradix.device_put(VALUES, where),
            lambda where=where: gradix.jit(lambda v: v, out_shardings=where)(VALUES),
            lambda where=where: gradix.jit(lambda v: v, in_shardings=where)(VALUES),
            lambda layout=layout: with_layout_constraint(jnp.asarray(VALUES), layout),
            lambda where=where: gradix.ShapeDtypeStruct((4, 6), np.float32, sharding=where),
            lambda where=where: gradix.make_array_from_callback((4, 6), where, lambda i: VALUES[i]),
        ):
            with pytest.raises(error, match=match):
                call()


def test_copies_are_compiled_once_for_all_devices():
    before = len(xla_layouts._copiers)
    for _ in range(3):
        gradix.device_put(np.ones((16, 24), np.float32), column(four()))
    assert len(xla_layouts._copiers) == before + 1


def test_checkpoints_and_exports_hold_values(tmp_path):
    for i, sharding in enumerate((one(), four())):
        x = gradix.device_put(VALUES, column(sharding))
        array_serialization.save({"x": x}, str(tmp_path / str(i)))
        found = array_serialization.load(str(tmp_path / str(i)))["x"]
        assert np.array_equal(found, VALUES)
        exported = gradix.export.export(gradix.jit(lambda v: v * 2))(x)
        assert np.array_equal(exported.call(x), VALUES * 2)
        if sharding.num_devices == 1:
            assert np.array_equal(gradix.export.deserialize(exported.serialize()).call(x), VALUES * 2)
