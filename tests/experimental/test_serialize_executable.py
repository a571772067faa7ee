"""Compiled programs as bytes: here, and in another process."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental import serialize_executable
from gradix.experimental.serialize_executable import deserialize_and_load, serialize

TABLE = jnp.arange(400, dtype="float32")


def looked_up(tree, i, *, scale):
    rows = gradix.vmap(lambda k: TABLE[k])(i)
    return {"y": jnp.sort(tree["w"] @ rows[:3]) * scale, "key": gradix.random.split(tree["key"])}


def given():
    return ({"w": jnp.arange(9.0).reshape(3, 3), "key": gradix.random.key(3)}, jnp.arange(5) * 50), {"scale": 2.0}


@pytest.mark.x32
def test_a_loaded_program_does_what_the_first_does(monkeypatch):
    args, kwargs = given()
    compiled = gradix.jit(looked_up).lower(*args, **kwargs).compile()
    expected = compiled(*args, **kwargs)
    blob, in_tree, out_tree = serialize(compiled)  # after it has run, too
    assert type(blob) is bytes and in_tree == compiled.in_tree and out_tree == compiled.out_tree
    monkeypatch.setattr("gradix._runtime.xla_compiler.compile_module", lambda *a: pytest.fail("compiled"))
    again = deserialize_and_load(blob, in_tree, out_tree)
    got = again(*args, **kwargs)
    np.testing.assert_array_equal(got["y"], expected["y"])
    assert got["key"].dtype == expected["key"].dtype and (got["key"] == expected["key"]).all()
    assert again.out_info["y"].shape == (3,) and again.in_avals == compiled.in_avals and "HloModule" in again.as_text()
    with pytest.raises(TypeError, match=r"Argument 'i' compiled with int32\[5\] and called with int32\[6\]"):
        again(args[0], jnp.arange(6), **kwargs)
    with pytest.raises(TypeError, match="does not match"):
        again(args[0], args[1])
    with pytest.raises(ValueError, match="in_tree has 1 leaves, but the program takes 4 arrays"):
        deserialize_and_load(blob, gradix.tree.structure(1), out_tree)


def test_another_process_loads_it(tmp_path):
    args, kwargs = given()
    compiled = gradix.jit(looked_up).lower(*args, **kwargs).compile()
    blob, in_tree, out_tree = serialize(compiled)
    (tmp_path / "program").write_bytes(blob)
    code = f"""if True:
        import gradix, gradix.numpy as jnp
        from gradix._runtime import xla_compiler
        from gradix.experimental.serialize_executable import deserialize_and_load
        def refused(*args, **kwargs): raise AssertionError("compiled")
        xla_compiler.compile_module = refused
        args = ({{"w": jnp.arange(9.0).reshape(3, 3), "key": gradix.random.key(3)}}, jnp.arange(5) * 50), {{"scale": 2.0}}
        in_tree, out_tree = gradix.tree.structure(args), gradix.tree.structure({{"y": 0, "key": 0}})
        f = deserialize_and_load(open({str(tmp_path / "program")!r}, "rb").read(), in_tree, out_tree)
        print(f(*args[0], **args[1])["y"])"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::ResourceWarning", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(gradix.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(compiled(*args, **kwargs)["y"])


def test_donated_arguments_are_donated_again():
    f = gradix.jit(lambda x: x + 1, donate_argnums=0).lower(jnp.ones(1000)).compile()
    again = deserialize_and_load(*serialize(f))
    x = jnp.ones(1000) * 2
    assert again(x)[0] == 3 and x.is_deleted()


def test_a_program_of_several_devices():
    mesh = gradix.make_mesh((len(gradix.devices()),), ("x",))
    rows = gradix.NamedSharding(mesh, gradix.P("x"))
    x = gradix.device_put(jnp.arange(16.0).reshape(8, 2), rows)
    f = gradix.jit(lambda x: x * x.sum(), out_shardings=rows).lower(x).compile()
    again = deserialize_and_load(*serialize(f))
    y = again(x)
    np.testing.assert_array_equal(y, f(x))
    assert y.sharding == rows and again.output_shardings == rows


def test_what_cannot_be_kept_is_refused():
    printing = gradix.jit(lambda x: gradix.debug.print("{}", x)).lower(1.0).compile()
    with pytest.raises(ValueError, match="calls functions of this Python process"):
        serialize(printing)
    with pytest.raises(TypeError, match="must be the result of jit"):
        serialize(gradix.jit(jnp.sin))
    blob, *trees = serialize(gradix.jit(jnp.sin).lower(1.0).compile())
    with pytest.raises(ValueError, match="with jaxlib 0.0.1"):
        deserialize_and_load(signed(pickle.dumps({"format": 2, "jaxlib": "0.0.1"})), *trees)
    with pytest.raises(ValueError, match="not a compiled program of this version of gradix"):
        deserialize_and_load(pickle.dumps({"format": 1, "jaxlib": "0.0.1"}), *trees)
    with pytest.raises(TypeError, match="serialized must be bytes, got a tuple"):
        deserialize_and_load((blob, *trees), *trees)
    with pytest.raises(ValueError, match="backend='tpu'"):
        deserialize_and_load(blob, *trees, backend="tpu")


def signed(content: bytes) -> bytes:
    """Bytes with the digest that `serialize` gives them, as one who forges would."""
    return serialize_executable._MAGIC + serialize_executable._digest(content) + content


class Runs:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


CALLED: list = []


@pytest.mark.parametrize(
    "what",
    [
        Runs(os.system, "exit 1"),
        Runs(eval, "1"),
        Runs(CALLED.append, 1),
        Runs(getattr, "a", "upper"),
        Runs(gradix.config.update, "jax_enable_x64", True),
        Runs(gradix.distributed.initialize),
        os.system,
        subprocess.Popen,
        gradix.jit,
        np.load,
        Path("x"),
        object(),
    ],
)
def test_forged_pickles_run_nothing(what):
    trees = gradix.tree.structure(((1.0,), {})), gradix.tree.structure(1)
    for content in (what, {"format": 2, "jaxlib": "x", "code": what}):
        for protocol in (0, 2, 5):
            with pytest.raises(ValueError, match="forged|not a compiled program"):
                deserialize_and_load(signed(pickle.dumps(content, protocol)), *trees)
    assert not CALLED


@pytest.mark.parametrize(
    "content",
    [b"", b"abc", b"\x80\x05.", b"N.", b"(lp0\n.", b"\x80\x05]\x94" + b"a" * 50, pickle.dumps({}), pickle.dumps([1])],
)
def test_other_content_with_a_digest_is_refused(content):
    with pytest.raises(ValueError, match="not a compiled program"):
        deserialize_and_load(signed(content), gradix.tree.structure(1), gradix.tree.structure(1))


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_bytes_are_refused(count):
    rng = np.random.default_rng(count)
    blob, *trees = serialize(gradix.jit(jnp.sin).lower(1.0).compile())
    for i in range(count):
        b = bytearray(blob)
        if i % 4 == 0:
            del b[rng.integers(len(b)) :]
        else:
            at = rng.integers(200 if i % 2 else len(b))
            b[at] ^= int(rng.integers(1, 256))
        with pytest.raises(ValueError, match="damaged|not a compiled program"):
            deserialize_and_load(bytes(b), *trees)


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "int4",
        "uint8",
        "int64",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ],
)
def test_every_kind_of_array_may_be_captured(dtype):
    with gradix.enable_x64(True):
        table = jnp.ones(500, dtype)
        f = gradix.jit(lambda i: table[i]).lower(3).compile()
        got = deserialize_and_load(*serialize(f))(3)
        assert got.dtype == table.dtype and got == table[3]


PROGRAM = """if True:
    import sys, gradix, gradix.numpy as jnp
    from gradix.experimental.serialize_executable import deserialize_and_load, serialize
    gradix.config.update("jax_num_cpu_devices", {devices})
    gradix.config.update("jax_compilation_cache_dir", sys.argv[1])
    gradix.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    places = {{}}
    if {devices} > 1:
        mesh = gradix.make_mesh(({devices},), ("d",))
        places["out_shardings"] = gradix.NamedSharding(mesh, gradix.P("d"))
    double = gradix.jit(lambda x: 2 * jnp.sin(x) + x[::-1], **places).lower(jnp.arange(8.0)).compile()
    print("loaded" if double._program.executable.is_from_bytes else "compiled")
    once = serialize(double)
    twice = serialize(deserialize_and_load(*once))                   # bytes of a program that came from bytes
    for given in once, twice:
        assert deserialize_and_load(*given)(jnp.arange(8.0)).tolist() == double(jnp.arange(8.0)).tolist()
"""


@pytest.mark.parametrize("devices", [1, 4])
def test_a_program_from_the_disk_cache_is_kept_whole(tmp_path, devices):
    for expected in "compiled", "loaded":
        command = [sys.executable, "-c", PROGRAM.format(devices=devices), str(tmp_path)]
        environment = {**os.environ, "GRADIX_CACHE": "on"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.stdout == f"{expected}\n", done.stderr
