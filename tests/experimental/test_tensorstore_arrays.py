"""Checkpoints in TensorStore's formats: where they lie, what is read back, and writing while the program goes on."""

import json

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental.array_serialization import serialization as s


def test_where_an_array_is_kept():
    assert s.get_tensorstore_spec("/a/b/w")["kvstore"] == {"driver": "file", "path": "/a/b/w"}
    assert s.get_tensorstore_spec("gs://bucket/b/w")["kvstore"] == {"driver": "gcs", "bucket": "bucket", "path": "b/w"}
    kept = s.get_tensorstore_spec("/a/b/w", ocdbt=True, process_idx=2, driver="zarr3")
    assert kept == {
        "driver": "zarr3",
        "kvstore": {"driver": "ocdbt", "path": "w", "base": {"driver": "file", "path": "/a/b/process_2"}},
    }
    described = s.get_tensorstore_spec("/w", arr=jnp.ones((2, 0), "int8"))
    assert described["metadata"]["chunks"] == [2, 1]
    with pytest.raises(ValueError, match="should be absolute. Got b"):
        s.get_tensorstore_spec("b/w", ocdbt=True)
    assert s.is_remote_storage("s3://x") and not s.is_remote_storage(kept)
    assert s.is_remote_storage(s.get_tensorstore_spec("gs://x/y/w", ocdbt=True))


@pytest.fixture
def arrays():
    pytest.importorskip("tensorstore")
    return [jnp.arange(6.0).reshape(2, 3), jnp.arange(4), jnp.array([1.5, -2], "bfloat16"), jnp.float32(7)]


def shardings(arrays):
    return [x.sharding for x in arrays]


@pytest.mark.parametrize("options", [{}, {"ocdbt": True}, {"driver": "zarr3"}], ids=str)
def test_what_is_written_is_read(arrays, options, tmp_path):
    specs = [s.get_tensorstore_spec(tmp_path / str(i), **options) for i in range(len(arrays))]
    s.run_serialization(arrays, specs)
    found = s.run_deserialization(shardings(arrays), specs)
    for x, y in zip(arrays, found, strict=True):
        assert x.dtype == y.dtype and np.array_equal(x, y)
    one_at_a_time = s.run_deserialization(shardings(arrays), specs, concurrent_gb=0)
    assert [y.tolist() for y in one_at_a_time] == [x.tolist() for x in arrays]


def test_other_shapes_and_dtypes_may_be_asked_for(arrays, tmp_path):
    spec = s.get_tensorstore_spec(tmp_path / "x")
    s.run_serialization(arrays[:1], [spec])
    (found,) = s.run_deserialization(shardings(arrays)[:1], [spec], [(3, 2)], ["int16"])
    assert found.dtype == "int16" and found.tolist() == [[0, 1], [3, 4], [0, 0]]
    assert json.loads((tmp_path / "x" / ".zarray").read_text())["compressor"] == {"id": "zstd", "level": 1}


def test_the_program_goes_on_while_arrays_are_written(arrays, tmp_path):
    manager, events = s.GlobalAsyncCheckpointManager(), []
    paths = [tmp_path / str(i) for i in range(len(arrays))]
    give_away = gradix.jit(lambda xs: [x + 1 for x in xs], donate_argnums=0)
    want = [x.tolist() for x in arrays]
    where = shardings(arrays)
    manager.serialize_with_paths(arrays, paths, on_commit_callback=lambda: events.append("committed"))
    give_away(arrays)
    manager.wait_until_finished()
    manager.check_for_errors()
    assert events == ["committed"]
    assert [x.tolist() for x in manager.deserialize_with_paths(where, paths)] == want


def test_what_goes_wrong_is_raised_where_the_program_waits(arrays, tmp_path):
    manager = s.GlobalAsyncCheckpointManager()

    def fails():
        raise RuntimeError("no room")

    manager.serialize_with_paths(arrays[:1], [tmp_path / "x"], on_commit_callback=fails)
    with pytest.raises(RuntimeError, match="no room"):
        manager.wait_until_finished()
    manager.wait_until_finished()
    with pytest.raises(ValueError, match="does not exist"):
        manager.deserialize_with_paths(shardings(arrays)[:1], [tmp_path / "none"])
    with pytest.raises(TypeError, match="key_data"):
        manager.serialize_with_paths([gradix.random.key(0)], [tmp_path / "key"])
