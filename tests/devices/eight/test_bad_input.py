"""Wrong calls, one a row: the error is of the documented type and names what was given, where it does not fit, and the way out."""

import importlib
import importlib.util
import warnings

import numpy as np
import pytest


def calls(name: str) -> dict:
    """For each row the call, the error's type by name, and what its message holds."""
    g = importlib.import_module(name)
    jnp, lax, mhu = [importlib.import_module(name + m) for m in (".numpy", ".lax", ".experimental.mesh_utils")]
    s, d = g.sharding, g.devices()
    P, NS = s.PartitionSpec, s.NamedSharding
    grid = np.array(d).reshape(4, 2)
    m, m2, me = (
        s.Mesh(grid, ("x", "y")),
        s.Mesh(np.array(d[:4]).reshape(2, 2), ("x", "y")),
        g.make_mesh((4, 2), ("x", "y")),
    )
    X, V, put = np.arange(32, dtype=np.float32).reshape(8, 4), np.arange(8, dtype=np.float32), g.device_put

    def ns(*a):
        return NS(m, P(*a))

    def sm(f, i, o, **k):
        return g.shard_map(f, mesh=k.pop("mesh", m), in_specs=i, out_specs=o, **k)

    def with_mesh(f):
        with g.set_mesh(me):
            return f()

    a, b2, c1, c2 = put(X, ns("x", "y")), put(X[:4], NS(m2, P("x"))), put(X, d[1]), put(X, d[2])
    return {
        "mesh ndim": (
            lambda: s.Mesh(d, ("x", "y")),
            "ValueError",
            ["devices.ndim == 1", "len(axis_names) == 2", "reshape"],
        ),
        "mesh names": (lambda: s.Mesh(grid, ("x",)), "ValueError", ["devices.ndim == 2", "len(axis_names) == 1"]),
        "mesh none name": (lambda: s.Mesh(grid, ("x", None)), "ValueError", ["('x', None)", "Give each axis a name"]),
        "mesh types": (
            lambda: s.Mesh(grid, ("x", "y"), axis_types=(s.AxisType.Auto,)),
            "ValueError",
            ["axis_names=('x', 'y')", "axis_types=(Auto,)", "one AxisType for each"],
        ),
        "make_mesh too big": (
            lambda: g.make_mesh((4, 4), ("x", "y")),
            "ValueError",
            ["devices 8", "(4, 4)", "jax_num_cpu_devices"],
        ),
        "make_mesh lengths": (lambda: g.make_mesh((4, 2), ("x",)), "ValueError", ["len(axis_names) == 1"]),
        "make_mesh devices": (lambda: g.make_mesh((4,), ("x",), devices=d[:3]), "ValueError", ["devices 3", "(4,)"]),
        "create_device_mesh": (lambda: mhu.create_device_mesh((3, 2)), "ValueError", ["devices 8", "(3, 2)"]),
        "NS axis": (lambda: NS(m, P("z")), "ValueError", ["z of P('z',)", "mesh: ('x', 'y')", "names axes of"]),
        "NS twice": (lambda: NS(m, P("x", "x")), "DuplicateSpecError", ["P('x', 'x')", "duplicate entries for `x`"]),
        "NS twice nested": (lambda: NS(m, P(("x", "y"), "x")), "DuplicateSpecError", ["duplicate entries for `x`"]),
        "NS mesh": (lambda: NS("m", P("x")), "TypeError", ["mesh='m'"]),
        "NS kind": (lambda: NS(m, P("x"), memory_kind="disk"), "ValueError", ["pinned_host", "disk"]),
        "NS unreduced auto": (lambda: NS(m, P(unreduced={"x"})), "ValueError", ["Explicit", "make_mesh"]),
        "P unreduced type": (lambda: P(unreduced="x"), "TypeError", ["`unreduced`", "set"]),
        "P overlap": (lambda: P("x", unreduced={"x"}), "ValueError", ["partitions: ('x',)", "unreduced axes"]),
        "put rank": (lambda: put(V, ns("x", "y")), "ValueError", ["P('x', 'y')", "rank at least 2", "rank 1"]),
        "put scalar": (lambda: put(1.0, ns("x")), "ValueError", ["rank at least 1", "P()"]),
        "put uneven": (
            lambda: put(X[:7], ns("x")),
            "IndivisibleError",
            ["axis 0", "4 times", "7", "(7, 4)", "Pad the axis to a multiple of 4"],
        ),
        "put uneven nested": (lambda: put(X[:6], ns(("x", "y"))), "IndivisibleError", ["8 times", "(6, 4)"]),
        "put str": (lambda: put(X, "cpu"), "ValueError", ["'cpu'", "Sharding"]),
        "put string": (lambda: put("abc"), "TypeError", ["'abc'", "asarray"]),
        "put tree": (
            lambda: put((X, X), (d[0], d[1], d[2])),
            "ValueError",
            ["tree prefix", "3 in device_put device, 2"],
        ),
        "put P no mesh": (lambda: put(X, P("x")), "ValueError", ["set_mesh", "P('x',)", "NamedSharding(mesh, spec)"]),
        "put abstract": (
            lambda: put(X, NS(m.abstract_mesh, P("x"))),
            "ValueError",
            ["AbstractMesh", "no devices", "make_mesh"],
        ),
        "shard_shape": (lambda: ns("x").shard_shape((7,)), "IndivisibleError", ["(7,)"]),
        "two devices": (
            lambda: c1 + c2,
            "ValueError",
            ["argument x of add", "[1]", "argument y of add", "[2]", "device_put"],
        ),
        "two devices jit": (
            lambda: g.jit(lambda p, q: p + q)(c1, c2),
            "ValueError",
            ["argument p of <lambda>", "float32[8,4]", "[1]", "argument q", "[2]", "device_put"],
        ),
        "two meshes": (
            lambda: g.jit(lambda p, q: p[:4] + q)(a, b2),
            "ValueError",
            ["argument p", "[0, 1, 2, 3, 4, 5, 6, 7]", "argument q", "[0, 1, 2, 3]"],
        ),
        "two meshes eager": (lambda: a[:4] + b2, "ValueError", ["argument x of add", "argument y of add"]),
        "mesh & device": (lambda: g.jit(lambda p, q: p + q)(a, c1), "ValueError", ["argument q", "[1]"]),
        "constraint rank": (
            lambda: g.jit(
                lambda v: lax.with_sharding_constraint(v, ns("x", "y", "x") if False else ns(None, None, "x"))
            )(X),
            "ValueError",
            ["P(None, None, 'x')", "with_sharding_constraint"],
        ),
        "constraint no mesh": (
            lambda: g.jit(lambda v: lax.with_sharding_constraint(v, P("x")))(X),
            "RuntimeError",
            ["P('x',)", "set_mesh"],
        ),
        "constraint str": (
            lambda: g.jit(lambda v: lax.with_sharding_constraint(v, "x"))(X),
            "TypeError",
            ["'x'", "PartitionSpec"],
        ),
        "constraint None": (
            lambda: g.jit(lambda v: lax.with_sharding_constraint(v, None))(X),
            "ValueError",
            ["None", "not allowed"],
        ),
        "constraint other devices": (
            lambda: g.jit(lambda v: lax.with_sharding_constraint(v, NS(m2, P("x"))))(a),
            "ValueError",
            ["argument v", "inside of <lambda>"],
        ),
        "constraint tree": (
            lambda: g.jit(lambda v: lax.with_sharding_constraint((v, v), (ns("x"), ns("x"), ns("x"))))(X),
            "ValueError",
            ["tree prefix", "3 in prefix_tree, 2"],
        ),
        "in_sh rank": (
            lambda: g.jit(lambda v: v, in_shardings=ns("x", "y"))(V),
            "ValueError",
            ["key path v", "rank at least 2", "rank 1"],
        ),
        "in_sh uneven": (
            lambda: g.jit(lambda v: v, in_shardings=ns("x"))(X[:7]),
            "IndivisibleError",
            ["key path v", "divisible by 4", "7", "(7, 4)", "Pad the axis"],
        ),
        "in_sh count": (
            lambda: g.jit(lambda v: v, in_shardings=(ns("x"), ns("y")))(X),
            "ValueError",
            ["in_shardings", "length 2", "1 positional"],
        ),
        "in_sh kwargs": (
            lambda: g.jit(lambda v: v, in_shardings=(ns("x"),))(v=X),
            "ValueError",
            ["v by keyword", "by position"],
        ),
        "in_sh mismatch": (
            lambda: g.jit(lambda v: v * 2, in_shardings=ns("y"))(a),
            "ValueError",
            ["P('y',)", "P('x', 'y')"],
        ),
        "in_sh str": (lambda: g.jit(lambda v: v, in_shardings="x")(X), "TypeError", ["in_shardings", "'x'"]),
        "in_sh P no mesh": (
            lambda: g.jit(lambda v: v, in_shardings=P("x"))(X),
            "RuntimeError",
            ["in_shardings", "P('x',)", "set_mesh"],
        ),
        "in_sh other devices": (
            lambda: g.jit(lambda v: v, in_shardings=NS(m2, P("x")))(a),
            "ValueError",
            ["argument v", "in_shardings of <lambda>"],
        ),
        "out_sh rank": (
            lambda: g.jit(lambda v: v.sum(), out_shardings=ns("x"))(X),
            "ValueError",
            ["result[0]", "rank at least 1", "rank 0"],
        ),
        "out_sh uneven": (
            lambda: g.jit(lambda v: v[:7], out_shardings=ns("x"))(X),
            "IndivisibleError",
            ["result[0]", "divisible by 4", "(7, 4)", "Pad the axis"],
        ),
        "out_sh tree": (
            lambda: g.jit(lambda v: (v, v), out_shardings=(ns("x"),) * 3)(X),
            "ValueError",
            ["out_shardings", "3 in jit out_shardings, 2"],
        ),
        "out_sh devices": (
            lambda: g.jit(lambda v: v, in_shardings=ns("x"), out_shardings=NS(m2, P("x")))(X),
            "ValueError",
            ["in_shardings of <lambda>", "out_shardings of <lambda>"],
        ),
        "device & in_sh": (
            lambda: g.jit(lambda v: v, in_shardings=ns("x"), device=d[1])(X),
            "ValueError",
            ["device", "in_shardings"],
        ),
        "sm claim": (
            lambda: sm(lambda v: v, P("x"), P())(V),
            "ValueError",
            ["out_specs is P()", "{}", "{x}", "check_vma=False"],
        ),
        "sm claim y": (
            lambda: sm(lambda v: v, P(("x", "y")), P("x"))(V),
            "ValueError",
            ["out_specs is P('x',)", "{y}"],
        ),
        "sm out long": (
            lambda: sm(lambda v: v.sum(), P("x"), P("x"))(V),
            "ValueError",
            ["P('x',)", "length 1", "rank 0", "shorter"],
        ),
        "sm in long": (
            lambda: sm(lambda v: v, P("x", "y"), P("x"))(V),
            "ValueError",
            ["P('x', 'y')", "args[0]", "float32[8]", "rank 1"],
        ),
        "sm uneven": (
            lambda: sm(lambda v: v, P("x"), P("x"))(V[:7]),
            "ValueError",
            ["args[0]", "float32[7]", "axis 0 (of size 7)", "4 does not evenly divide 7", "Pad the argument"],
        ),
        "sm axis": (lambda: sm(lambda v: v, P("z"), P("x"))(V), "ValueError", ["in_specs refers to 'z'"]),
        "sm out axis": (lambda: sm(lambda v: v, P("x"), P("z"))(V), "ValueError", ["out_specs refers to 'z'"]),
        "sm specs count": (
            lambda: sm(lambda v: v, (P("x"), P("x")), P("x"))(V),
            "ValueError",
            ["length 2", "1 positional", "one PartitionSpec for all"],
        ),
        "sm specs type": (lambda: sm(lambda v: v, "x", P("x"))(V), "TypeError", ["in_specs", "'x'", "PartitionSpec"]),
        "sm out type": (lambda: sm(lambda v: v, P("x"), "x")(V), "TypeError", ["out_specs", "'x'"]),
        "sm mesh type": (lambda: sm(lambda v: v, P("x"), P("x"), mesh="m")(V), "TypeError", ["Mesh", "m of type"]),
        "sm no mesh": (
            lambda: g.shard_map(lambda v: v, in_specs=P("x"), out_specs=P("x"))(V),
            "ValueError",
            ["set_mesh", "`mesh` keyword"],
        ),
        "sm names": (
            lambda: sm(lambda v: v, P("x"), P("x"), axis_names={"q"})(V),
            "ValueError",
            ["{'q'}", "('x', 'y')"],
        ),
        "sm not manual": (
            lambda: sm(lambda v: v, P("y"), P("y"), axis_names={"x"})(V),
            "ValueError",
            ["refers to 'y'", "manual"],
        ),
        "sm out tree": (
            lambda: sm(lambda v: (v, v), P("x"), (P("x"),) * 3)(V),
            "ValueError",
            ["out_specs", "3 in shard_map out_specs, 2"],
        ),
        "sm noncallable": (
            lambda: g.shard_map(3, mesh=m, in_specs=P(), out_specs=P()),
            "TypeError",
            ["function", "shard_map(f)"],
        ),
        "sm nested mesh": (
            lambda: sm(lambda v: g.shard_map(lambda w: w, mesh=m2, in_specs=P(), out_specs=P())(v), P("x"), P("x"))(V),
            "ValueError",
            ["context mesh", "should match"],
        ),
        "sm cond types": (
            lambda: sm(lambda v: lax.cond(v.sum() > 1, lambda: v, lambda: jnp.zeros(2, v.dtype)), P("x"), P("x"))(V),
            "TypeError",
            ["manual axis types do not match", "pcast"],
        ),
        "sm two args": (lambda: sm(lambda v, w: v, (P("x"), P("x")), P("x"))(V), "ValueError", ["length 2"]),
        "sm pcast": (
            lambda: sm(lambda v: lax.pcast(v, "x", to="varying"), P("x"), P("x"))(V),
            "ValueError",
            ["float32[2]{V:x}", "Leave these axes out"],
        ),
        "sm pcast to": (
            lambda: sm(lambda v: lax.pcast(v, "x", to="other"), P("x"), P("x"))(V),
            "ValueError",
            ["'other'", "varying"],
        ),
        "sm devices": (
            lambda: sm(lambda v: v, P("x"), P("x"))(b2),
            "ValueError",
            ["[0, 1, 2, 3]", "[0, 1, 2, 3, 4, 5, 6, 7]", "device_put"],
        ),
        "psum outside": (lambda: lax.psum(V, "x"), "NameError", ["unbound axis name: x", "none", "vmap"]),
        "index outside": (lambda: lax.axis_index("x"), "NameError", ["unbound axis name: x"]),
        "psum name": (
            lambda: sm(lambda v: lax.psum(v, "q"), P("x"), P("x"))(V),
            "NameError",
            ["unbound axis name: q", "'x'"],
        ),
        "psum groups": (
            lambda: sm(lambda v: lax.psum(v, "x", axis_index_groups=[[0, 1]]), P("x"), P("x"), check_vma=False)(V),
            "ValueError",
            ["'x'", "((0, 1),)", "size 4"],
        ),
        "ppermute twice": (
            lambda: sm(lambda v: lax.ppermute(v, "x", [(0, 1), (0, 2)]), P("x"), P("x"))(V),
            "ValueError",
            ["unique", "((0, 1), (0, 2))"],
        ),
        "all_to_all size": (
            lambda: sm(lambda v: lax.all_to_all(v, "x", 0, 0), P("x"), P("x"))(V),
            "ValueError",
            ["axis 0", "4", "got 2", "tiled=True"],
        ),
        "psum_scatter size": (
            lambda: sm(lambda v: lax.psum_scatter(v, "x"), P("x"), P("x"))(V),
            "ValueError",
            ["dimension 0", "4", "got 2", "tiled=True"],
        ),
        "pshuffle": (
            lambda: sm(lambda v: lax.pshuffle(v, "x", [0, 0, 1, 2]), P("x"), P("x"))(V),
            "ValueError",
            ["range(4)", "[0, 0, 1, 2]"],
        ),
        "pmap size": (lambda: g.pmap(lambda v: v)(np.ones((9, 2))), "ValueError", ["9 logical devices", "8", "vmap"]),
        "pmap sizes": (lambda: g.pmap(lambda v, w: v)(X, X[:4]), "ValueError", ["v has 8", "w has 4", "in_axes=None"]),
        "pmap scalar": (lambda: g.pmap(lambda v: v)(1.0), "ValueError", ["argument v", "axis 0", "shape ()"]),
        "pmap none": (lambda: g.pmap(lambda v: v, in_axes=None)(X), "ValueError", ["mapped axis"]),
        "pmap axes count": (
            lambda: g.pmap(lambda v: v, in_axes=(0, 0))(X),
            "ValueError",
            ["in_axes=(0, 0)", "1 positional"],
        ),
        "pmap name": (lambda: g.pmap(lambda v: lax.psum(v, "q"), axis_name="i")(X), "NameError", ["q", "'i'"]),
        "pmap axis_size": (lambda: g.pmap(lambda v: v, axis_size=4)(X), "ValueError", ["v has 8", "axis_size has 4"]),
        "pmap out_axes": (lambda: g.pmap(lambda v: v.sum(), out_axes=1)(X), "ValueError", ["out_axes=1", "<lambda>"]),
        "pmap callable": (lambda: g.pmap(3), "TypeError", ["function", "pmap(f)"]),
        "make_from shape": (
            lambda: g.make_array_from_callback((8,), ns("x"), lambda i: V[:1]),
            "ValueError",
            ["(1,)", "(8,)", "(2,)"],
        ),
        "make_single count": (
            lambda: g.make_array_from_single_device_arrays((8,), ns("x"), [put(V[:2], d[0])]),
            "ValueError",
            ["8 per-device", "got 1"],
        ),
        "make_single shape": (
            lambda: g.make_array_from_single_device_arrays((8,), ns("x"), [put(V[:3], e) for e in d]),
            "ValueError",
            ["(2,)", "(3,)"],
        ),
        "put_sharded": (lambda: g.device_put_sharded([X, X], d[:3]), "ValueError", ["2", "3"]),
        "make_process": (
            lambda: g.make_array_from_process_local_data(ns("x"), V[:7]),
            "IndivisibleError",
            ["(7,)", "Pad the axis"],
        ),
        "set_mesh type": (lambda: g.set_mesh("m"), "ValueError", ["Mesh", "str"]),
        "reshard auto": (lambda: s.reshard(X, "x"), "TypeError", ["'x'", "PartitionSpec"]),
        "explicit ambiguous": (
            lambda: with_mesh(lambda: (lambda q: q @ q.T)(put(np.ones((8, 8), np.float32), P("x", "y")))),
            "ShardingTypeError",
            ["out_sharding", "float32[8@x,8@y]", "('y',)"],
        ),
        "explicit add": (
            lambda: with_mesh(
                lambda: put(np.ones((8, 8), np.float32), P("x", "y")) + put(np.ones((8, 8), np.float32), P("y", "x"))
            ),
            "ShardingTypeError",
            ["('x', 'y'), ('y', 'x')", "reshard"],
        ),
        "explicit reshape": (
            lambda: with_mesh(lambda: put(np.ones((4, 2, 8), np.float32), P("x", None, "y")).reshape(64)),
            "ShardingTypeError",
            ["float32[4@x,2,8@y]", "(64,)", "out_sharding"],
        ),
        "explicit constraint": (
            lambda: with_mesh(
                lambda: lax.with_sharding_constraint(put(np.ones((8, 8), np.float32), P("x", "y")), P("y"))
            ),
            "AssertionError",
            ["P('x', 'y')", "P('y', None)", "reshard"],
        ),
        "explicit out_sharding": (
            lambda: with_mesh(
                lambda: jnp.matmul(np.ones((8, 8), np.float32), np.ones((8, 8), np.float32), out_sharding="x")
            ),
            "TypeError",
            ["`out_sharding` argument of matmul", "str"],
        ),
        "auto_axes missing": (
            lambda: with_mesh(lambda: s.auto_axes(lambda v: v)(put(np.ones((8, 8), np.float32), P("x", "y")))),
            "TypeError",
            ["out_sharding=PartitionSpec"],
        ),
        "sds rank": (
            lambda: g.ShapeDtypeStruct((2,), np.float32, sharding=ns("x", "y")),
            "ValueError",
            ["rank at least 2", "rank 1"],
        ),
        "unreduced wrong": (
            lambda: with_mesh(
                lambda: jnp.matmul(
                    put(np.ones((8, 8), np.float32), P(None, "x")),
                    put(np.ones((8, 8), np.float32), P("x", None)),
                    out_sharding=P(None, None, unreduced={"y"}),
                )
            ),
            "ShardingTypeError",
            ["unreduced"],
        ),
    }


NAMES = list(calls("gradix"))

# Where the peer raises out of its insides, or lets the compiler fail.
TYPES_DIFFER = {"NS mesh", "psum name", "psum groups", "pmap size", "pmap sizes", "put_sharded"}


@pytest.mark.parametrize("case", NAMES)
def test_wrong_calls_say_what_is_wrong(case):
    call, kind, words = calls("gradix")[case]
    with pytest.raises(Exception) as raised:  # noqa: PT011
        call()
    message = str(raised.value)
    assert kind in [t.__name__ for t in type(raised.value).__mro__], (type(raised.value), message)
    assert not [w for w in words if w not in message], message


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="the peer is not installed")
def test_types_are_the_peer_s():
    differing = {}
    for case, (call, kind, _) in calls("jax").items():
        if case in TYPES_DIFFER:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call()
                found = ["nothing"]
            except Exception as e:
                found = [t.__name__ for t in type(e).__mro__]
        if kind not in found:
            differing[case] = found[0]
    assert not differing


def test_one_row_for_each_wrong_use():
    assert len(NAMES) >= 100
