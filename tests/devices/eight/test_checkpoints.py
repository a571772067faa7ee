"""Checkpoints of arrays over eight devices: whole after a kill, on another mesh, in part, in the background, in TensorStore's files."""

import asyncio
import os
import pathlib
import random
import subprocess
import sys
import time

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental.array_serialization import pytree_serialization as ps, serialization as ts
from gradix.sharding import SingleDeviceSharding
from tests.devices.eight.common import mesh, on

SAVES = pathlib.Path(__file__).parents[1] / "programs" / "saves.py"
X = np.arange(32.0, dtype=np.float32).reshape(8, 4)


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_kill_in_mid_write_leaves_the_last_whole_one_for_another_mesh(times, tmp_path):
    chance, m = random.Random(7), mesh((4, 2))
    for _ in range(times):
        writer = subprocess.Popen(
            [sys.executable, str(SAVES), str(tmp_path)], env={**os.environ}, text=True, stdout=subprocess.PIPE
        )
        last = int(writer.stdout.readline())
        time.sleep(chance.random() * 0.05)
        writer.kill()
        last = max([last, *map(int, writer.communicate()[0].split())])
        back = ps.load(tmp_path, {"w": on(m, "y", "x"), "step": None})
        assert back["w"].sharding == on(m, "y", "x") and back["w"].addressable_shards[0].data.shape == (32, 256)
        assert int(back["step"]) >= last and np.all(np.asarray(back["w"]) == int(back["step"]))


def test_parts_types_and_the_background(tmp_path):
    m = mesh((4, 2))
    tree = {"w": gradix.device_put(X, on(m, "x", "y")), "b": [jnp.ones(2), (jnp.float32(3),)]}
    saved = ps.nonblocking_save(tree, tmp_path)
    tree["w"].delete()  # as a donating step would
    saved.result()
    assert (
        saved.done() and saved.exception() is None and saved.pytree["w"] == gradix.ShapeDtypeStruct((8, 4), np.float32)
    )
    assert ps.load_pytreedef(tmp_path) == saved.pytree
    part = ps.load(tmp_path, {"w": on(m, "y"), "b": None}, mask={"w": True, "b": False})
    assert part["b"] == [None, (None,)] and part["w"].sharding == on(m, "y")
    np.testing.assert_array_equal(part["w"], X)
    loaded = ps.nonblocking_load(tmp_path)
    assert loaded.pytree["b"][1][0].shape == () and float(loaded.result()["b"][1][0]) == 3
    with pytest.raises(ValueError, match="overwrite=True"):
        ps.save({"w": X}, tmp_path, overwrite=False)
    with pytest.raises(NotImplementedError, match="run_serialization"):
        ps.load(tmp_path, ts_specs={})
    with pytest.raises(ValueError, match="mask"):
        ps.load(tmp_path, mask={"c": True})


def test_specifications_of_tensorstore():
    file = {"driver": "zarr", "kvstore": {"driver": "file", "path": "/a/b"}}
    assert ts.get_tensorstore_spec("/a/b") == file
    shared = ts.get_tensorstore_spec("/a/b", ocdbt=True, process_idx=3)["kvstore"]
    assert shared == {"driver": "ocdbt", "base": {"driver": "file", "path": "/a/process_3"}, "path": "b"}
    assert ts.get_tensorstore_spec("gs://k/a/b")["kvstore"] == {"driver": "gcs", "bucket": "k", "path": "a/b"}
    a = gradix.device_put(X, on(mesh((4, 2)), "x", "y"))
    assert ts.get_tensorstore_spec("/a/b", arr=a)["metadata"] == {
        "compressor": {"id": "zstd"},
        "shape": (8, 4),
        "chunks": [2, 2],
    }
    third = ts.get_tensorstore_spec("/a/b", arr=a, driver="zarr3")["metadata"]
    assert third["data_type"] == "float32" and third["chunk_grid"]["configuration"]["chunk_shape"] == [2, 2]
    for spec, remote in [
        ("s3://b", True),
        ("/tmp", False),
        ({"kvstore": {"base": {"driver": "gcs"}}}, True),
        (file, False),
    ]:
        assert ts.is_remote_storage(spec) is remote
    with pytest.raises(ValueError, match="absolute"):
        ts.get_tensorstore_spec("a/b", ocdbt=True)
    with pytest.raises(ValueError, match="driver must be"):
        ts.get_tensorstore_spec("a/b", driver="n5")


@pytest.mark.parametrize("ocdbt", [False, True])
def test_files_of_tensorstore(ocdbt, tmp_path):
    pytest.importorskip("tensorstore")
    m = mesh((4, 2))
    a = gradix.device_put(X, on(m, "x", "y"))
    specs = [ts.get_tensorstore_spec(str(tmp_path / n), ocdbt=ocdbt) for n in ("w", "h")]
    ts.run_serialization([a, jnp.ones(3, jnp.bfloat16)], specs)
    for sharding, shape, dtype, want in [
        (on(m, "y"), None, None, X),
        (SingleDeviceSharding(gradix.devices()[2]), (8, 4), None, X),
        (on(m, "x"), (12, 4), None, np.pad(X, ((0, 4), (0, 0)))),
        (on(m, "x"), (4, 2), "int32", X[:4, :2]),
    ]:
        back, half = ts.run_deserialization([sharding, on(m)], specs, [shape, None], [dtype, None], concurrent_gb=1)
        assert back.sharding == sharding and back.dtype == np.dtype(dtype or "float32") and half.dtype == jnp.bfloat16
        np.testing.assert_array_equal(back, want)
    typed = gradix.ShapeDtypeStruct((8, 4), np.float32, sharding=on(m, None, "x"))
    np.testing.assert_array_equal(asyncio.run(ts.async_deserialize(typed, specs[0])), X)
    with pytest.raises(ValueError, match="NOT_FOUND"):
        ts.run_deserialization([on(m)], [ts.get_tensorstore_spec(str(tmp_path / "none"))])
    with pytest.raises(TypeError, match="sharding passed to deserialization"):
        ts.run_deserialization([None], specs[:1])
    with pytest.raises(TypeError, match="key_data"):
        ts.run_serialization([gradix.random.key(0)], specs[:1])


def test_writing_while_the_program_goes_on(tmp_path):
    pytest.importorskip("tensorstore")
    a, manager, told = gradix.device_put(X, on(mesh((4, 2)), "x", "y")), ts.GlobalAsyncCheckpointManager(), []
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    manager.serialize_with_paths([a, a * 2], paths, on_commit_callback=lambda: told.append(1))
    a.delete()
    manager.wait_until_finished()
    assert told == [1] and manager.check_for_errors() is None
    back = manager.deserialize_with_paths([on(mesh((8,), ("d",)), "d")] * 2, paths)
    np.testing.assert_array_equal(back[1], 2 * X)

    def fails():
        raise ValueError("in the callback")

    with pytest.raises(ValueError, match="chunks"):  # of another division
        manager.serialize_with_paths(back, paths)
    manager.serialize_with_paths(back, [p + "2" for p in paths], on_commit_callback=fails)
    with pytest.raises(ValueError, match="in the callback"):
        manager.wait_until_finished()


def test_without_tensorstore(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    monkeypatch.setattr(ts._files, "_ts", type(ts._files._ts)("tensorstore"))
    with pytest.raises(ModuleNotFoundError, match="pip install tensorstore"):
        ts.run_serialization([jnp.ones(2)], [ts.get_tensorstore_spec("/tmp/never")])
