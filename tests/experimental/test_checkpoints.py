"""Checkpoints: overlapping saves of threads and processes, kills, what stopped processes leave, and damaged or forged files."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental.array_serialization import _manifest as manifest, _swapping as swapping, pytree_serialization
from gradix.experimental.array_serialization.pytree_serialization import (
    load,
    load_pytreedef,
    nonblocking_load,
    nonblocking_save,
    save,
)
from tests.experimental import checkpoint_programs as programs

ROOT = Path(__file__).resolve().parents[2]
SAVES = ROOT / "tests" / "devices" / "programs" / "saves.py"


def start(*arguments) -> subprocess.Popen:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def names(folder) -> list[str]:
    return sorted(n for n in os.listdir(folder) if n != ".lock")


def is_whole(back) -> bool:
    return bool(np.all(np.asarray(back["w"]) == int(back["step"])))


@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_overlapping_saves_of_one_process(count, tmp_path):
    pending = [nonblocking_save(programs.full(i), tmp_path) for i in range(count)]
    pending[0].result(120)
    for p in pending:
        assert is_whole(load(tmp_path))
        p.result(120)
    assert int(load(tmp_path)["step"]) == count - 1  # the last call wins
    assert names(tmp_path) == [f"{count - 1:08d}"] and not swapping._last and not swapping._held


@pytest.mark.parametrize("count", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_overlapping_saves_of_two_processes(count, tmp_path):
    both = [start("-m", "tests.experimental.checkpoint_programs", "saves", tmp_path, count) for _ in range(2)]
    texts = [p.communicate(timeout=300)[0] for p in both]
    assert [t.strip() for t in texts] == ["done", "done"], texts
    assert is_whole(load(tmp_path)) and names(tmp_path) == [f"{2 * count + 1:08d}"]


def test_saves_without_locks_and_turns_do_not_harm_each_other(tmp_path, monkeypatch):
    """As on file systems that have no locks: names are unique, and a number is taken by one."""
    monkeypatch.setattr(swapping, "fcntl", None)
    monkeypatch.setattr(swapping.Turn, "__enter__", lambda self: self)
    for _ in range(3):
        pending = [nonblocking_save(programs.full(i), tmp_path) for i in range(10)]
        for p in pending:
            p.result(120)
            assert is_whole(load(tmp_path))
    assert len(names(tmp_path)) == 1


def test_values_and_tree_are_those_of_the_call(tmp_path):
    swapping_turn = swapping.Turn(tmp_path)  # holds the queue, as a long save does
    x = np.arange(5.0)
    tree = {"x": x, "more": [1]}
    pending = nonblocking_save(tree, tmp_path)
    x[:], tree["y"] = -1, 3
    tree["more"].append(2)
    assert not pending.done()
    swapping_turn.pass_on()
    pending.result(60)
    back = load(tmp_path)
    assert np.array_equal(back["x"], np.arange(5.0)) and list(back) == ["more", "x"] and len(back["more"]) == 1


def test_errors_do_not_stop_the_queue(tmp_path):
    first = nonblocking_save({"x": 1.0}, tmp_path)
    refused = nonblocking_save({"x": 2.0}, tmp_path, overwrite=False)
    last = nonblocking_save({"x": 3.0}, tmp_path)
    first.result(60)
    with pytest.raises(ValueError, match="has a checkpoint already"):
        refused.result(60)
    last.result(60)
    assert float(load(tmp_path)["x"]) == 3
    with pytest.raises(TypeError, match="must be strings"):
        nonblocking_save({1: 2.0}, tmp_path)
    with pytest.raises(TypeError, match="outside of traced functions"):
        gradix.jit(lambda x: save([x], tmp_path))(1.0)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(OSError, match="file"):
        save([1.0], file)
    save([1.0], tmp_path)


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_what_killed_processes_leave_is_removed(times, tmp_path):
    chance = random.Random(3)
    for _ in range(times):
        writer = start(SAVES, tmp_path)
        last = int(writer.stdout.readline())
        deadline = time.monotonic() + 60
        while not swapping.has_leftovers(tmp_path) and time.monotonic() < deadline:
            pass
        time.sleep(chance.random() * 0.002)
        writer.send_signal(signal.SIGKILL)
        last = max([last, *map(int, writer.communicate()[0].split())])
        back = load(tmp_path)  # sweeps as well
        assert int(back["step"]) >= last and is_whole(back) and not swapping.has_leftovers(tmp_path)
    save({"w": 1}, tmp_path)
    assert len(names(tmp_path)) == 1


def test_what_others_hold_is_kept(tmp_path):
    save({"x": np.arange(3)}, tmp_path)
    number = names(tmp_path)[0]
    with manifest.Checkpoint(tmp_path / number) as opened:  # as a slow load does
        save({"x": np.arange(4)}, tmp_path)
        assert len(names(tmp_path)) == 2
        assert opened.part(opened.leaves[0], opened.leaves[0].parts[0]).tolist() == [0, 1, 2]
    ours = swapping.temporary_folder(tmp_path)  # as a save that is being written
    with swapping.locked(tmp_path) as got:
        assert got
        assert load(tmp_path)["x"].shape == (4,) and ours.exists()
        with swapping.locked(tmp_path, wait=False) as again:
            assert again is False
    save({"x": np.arange(5)}, tmp_path)
    assert len(names(tmp_path)) == 1 and not ours.exists()


def test_leftovers_without_locks_are_judged_by_their_owner(tmp_path):
    save([1.0], tmp_path)
    ended = start("-c", "pass")
    ended.communicate()
    host = swapping._host()
    kept = [f".00000001.{host}.{os.getpid()}.ab.tmp", ".00000001.elsewhere-.7.ab.tmp", ".00000001.tmp", ".other.tmp"]
    gone = [f".00000001.{host}.{ended.pid}.ab.tmp", ".00000002.elsewhere-.7.ab.old", ".00000002.tmp"]
    for name in kept + gone:
        (tmp_path / name).mkdir()
    for name in gone[1:]:
        os.utime(tmp_path / name, (time.time() - 2 * 86400,) * 2)
    swapping.sweep(tmp_path, False)
    assert sorted(kept) == [n for n in names(tmp_path) if n.startswith(".")]
    swapping.sweep(tmp_path, True)  # who holds the lock knows that nobody is saving
    assert [n for n in names(tmp_path) if n.startswith(".")] == [".00000001.tmp", ".other.tmp"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_neither_waits_nor_keeps_locks(tmp_path):
    turn = swapping.Turn(tmp_path)
    with turn, swapping.locked(tmp_path):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if not swapping._held and not swapping._last else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        with swapping.locked(tmp_path, wait=False) as again:
            assert again is False


def test_loads_retry_while_checkpoints_are_replaced(tmp_path):
    save(programs.full(0), tmp_path)
    stop, errors = threading.Event(), []

    def writes():
        while not stop.is_set():
            save(programs.full(1), tmp_path)

    thread = threading.Thread(target=writes)
    thread.start()
    try:
        for _ in range(100):
            if not is_whole(load(tmp_path)) or not is_whole(nonblocking_load(tmp_path).result(60)):
                errors.append("torn")
    finally:
        stop.set()
        thread.join()
    assert not errors


# -- damaged and forged files ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["manifest", "data", "old"])
@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.slow)])
def test_altered_checkpoints_are_refused_in_bounded_memory(kind, count):
    done = start("-m", "tests.experimental.checkpoint_programs", "mutates", 5, count, kind)
    text = done.communicate(timeout=600)[0]
    assert done.returncode == 0 and text.startswith("refused"), text
    assert int(text.split()[1]) > count * 0.6


def forged(folder: Path, change, format: int = 2) -> None:
    """Change a manifest, with digests as one who forges would write them."""
    path = next(folder.glob("0*")) / "manifest.json"
    if format == 1:
        programs.in_format_1(folder)
    top = json.loads(path.read_text())
    change(top)
    path.write_bytes(manifest.encoded(top["tree"], top["leaves"]) if format == 2 else json.dumps(top).encode())


def _part(top):
    return top["leaves"][0]["parts"][0]


FORGERIES = {
    "no parts": (lambda t: t["leaves"][0].update(parts=[]), "do not cover"),
    "half a part": (lambda t: _part(t).update(shape=[2, 4]), "do not cover"),
    "overlap": (lambda t: t["leaves"][0]["parts"].append({**_part(t), "file": "1-1.bin"}), "do not cover"),
    "outside": (lambda t: _part(t).update(start=[1, 0]), "do not cover"),
    "rank": (lambda t: _part(t).update(start=[0], shape=[12]), "rank"),
    "absolute": (lambda t: _part(t).update(file="/etc/passwd"), "not the name of a part"),
    "above": (lambda t: _part(t).update(file="../x.bin"), "not the name of a part"),
    "a number": (lambda t: _part(t).update(file=3), "not the name of a part"),
    "another file": (lambda t: _part(t).update(file="7-7-7.bin"), "missing"),
    "a shared file": (lambda t: t["leaves"][1]["parts"][0].update(file=_part(t)["file"]), "one file for several"),
    "2 GB": (lambda t: (t["leaves"][0].update(shape=[1 << 29, 1]), _part(t).update(shape=[1 << 29, 1])), "48 bytes"),
    "too large": (lambda t: t["leaves"][0].update(shape=[1 << 60, 1 << 60]), "no array can have"),
    "objects": (lambda t: t["leaves"][0].update(dtype="object"), "unknown dtype"),
    "fields": (lambda t: t["leaves"][0].update(dtype="f4,f4"), "unknown dtype"),
    "wide": (lambda t: t["leaves"][0].update(dtype="float64"), "48 bytes"),
    "missing keys": (lambda t: t["leaves"][0].pop("dtype"), "no path, shape, dtype"),
    "leaves left out": (lambda t: t["leaves"].pop(), "does not have the leaves"),
    "a leaf twice": (lambda t: t.update(tree={"list": [{"leaf": 0}] * len(t["leaves"])}), "does not have the leaves"),
    "a strange node": (lambda t: t.update(tree={"set": []}), "unknown kind"),
    "digest": (lambda t: _part(t).update(digest="0" * 32), "digest"),
}


@pytest.mark.parametrize("format", [1, 2])
@pytest.mark.parametrize("what", FORGERIES)
def test_forged_manifests_are_refused(what, format, tmp_path):
    change, words = FORGERIES[what]
    save(programs.TREE, tmp_path)
    forged(tmp_path, change, format)
    with pytest.raises(ValueError, match=f"damaged: .*{words}"):
        load(tmp_path)


def test_a_manifest_nested_without_end_is_refused(tmp_path):
    save([1.0], tmp_path)
    path = tmp_path / "00000000" / "manifest.json"
    for depth in (1000, 200_000):
        path.write_text('{"leaves": [], "tree": ' + '{"list": [' * depth + "]}" * depth + "}")
        with pytest.raises(ValueError, match="damaged"):
            load_pytreedef(tmp_path)
    deep = 1.0
    for _ in range(300):
        deep = [deep]
    with pytest.raises(ValueError, match="levels deep"):
        save(deep, tmp_path)


def test_a_digest_taken_away_does_not_make_it_an_old_one(tmp_path):
    save({"x": np.arange(3)}, tmp_path)
    path = tmp_path / "00000000" / "manifest.json"
    top = json.loads(path.read_text())
    path.write_text(json.dumps({"tree": top["tree"], "leaves": top["leaves"]}))
    with pytest.raises(ValueError, match="digest"):
        load(tmp_path)
    path.write_text(json.dumps({**top, "format": 3}))
    with pytest.raises(ValueError, match="its format 3"):
        load(tmp_path)


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, lambda p: os.symlink("/dev/zero", p), os.mkdir, lambda p: None],
    ids=["fifo", "link", "folder", "missing"],
)
@pytest.mark.parametrize("name", ["manifest.json", "0-0-0.bin"])
def test_what_is_no_file_is_not_read(make, name, tmp_path):
    save({"x": np.arange(3)}, tmp_path)
    path = tmp_path / "00000000" / name
    path.unlink()
    make(path)
    expected = (
        (ValueError, "damaged")
        if path.exists() or name != "manifest.json"
        else (FileNotFoundError, "no complete checkpoint")
    )
    with pytest.raises(expected[0], match=expected[1]):
        load(tmp_path)


def test_a_folder_that_is_a_link_is_not_followed(tmp_path):
    save({"x": np.arange(3)}, tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "00000003").symlink_to(tmp_path / "a" / "00000000")
    with pytest.raises(ValueError, match="symbolic link"):
        load(tmp_path / "b")
    (tmp_path / "c").mkdir()
    os.mkfifo(tmp_path / "c" / ".lock")
    with pytest.raises(OSError, match="regular file"):
        save([1.0], tmp_path / "c")


@pytest.mark.parametrize("name", ["²", "٣", "12a", "9" * 40, "-1", " 1", "1 ", "Ⅷ"])
def test_folders_of_other_names_are_let_alone(name, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "manifest.json").touch()
    with pytest.raises(FileNotFoundError, match="no complete checkpoint"):
        load(tmp_path)
    save([1.0], tmp_path)
    assert float(load(tmp_path)[0]) == 1 and (tmp_path / name / "manifest.json").exists()


@pytest.mark.parametrize("dtype", sorted(manifest._DTYPES))
def test_every_dtype_and_size_comes_back_as_saved(dtype, tmp_path):
    with gradix.enable_x64(True):
        tree = [jnp.ones(shape, dtype) for shape in ((), (0,), (2, 0, 3), (1,), (3, 4))]
        save(tree, tmp_path)
        for new, was in zip(load(tmp_path), tree):
            assert (
                new.dtype == was.dtype and new.shape == was.shape and np.array_equal(np.asarray(new), np.asarray(was))
            )
        programs.in_format_1(tmp_path)
        for new, was in zip(load(tmp_path), tree):
            assert new.dtype == was.dtype and np.array_equal(np.asarray(new), np.asarray(was))


@pytest.mark.x32
def test_integers_are_not_cut_to_32_bits(tmp_path):
    with gradix.enable_x64(True):
        save({"large": np.array([1, 1 << 40]), "small": np.array([5, -7])}, tmp_path)
    with pytest.raises(ValueError, match=r"\['large'\] was saved as int64 .* jax_enable_x64"):
        load(tmp_path)
    assert load(tmp_path, mask={"large": False, "small": True})["small"].tolist() == [5, -7]
    with gradix.enable_x64(True):
        assert load(tmp_path)["large"].tolist() == [1, 1 << 40]


def test_a_disk_that_reads_otherwise_than_it_wrote_keeps_the_old_one(tmp_path, monkeypatch):
    save({"x": 1.0}, tmp_path)
    monkeypatch.setattr(pytree_serialization, "_file_digest", lambda path: "0" * 32)
    with pytest.raises(OSError, match="reads as something else"):
        save({"x": 2.0}, tmp_path)
    monkeypatch.undo()
    assert float(load(tmp_path)["x"]) == 1 and len(names(tmp_path)) == 1


def test_booleans_are_zero_or_one(tmp_path):
    save(np.array([True, False]), tmp_path)
    file = tmp_path / "00000000" / "0-0-0.bin"
    file.write_bytes(b"\x02\x00")
    forged(tmp_path, lambda t: _part(t).update(digest=manifest.part_digest(b"\x02\x00")))
    with pytest.raises(ValueError, match="booleans"):
        load(tmp_path)


def test_a_directory_that_may_only_be_read(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    save({"x": 1.0}, tmp_path)
    (tmp_path / ".00000001.elsewhere-.7.ab.tmp").mkdir()
    tmp_path.chmod(0o500)
    with contextlib.ExitStack() as after:
        after.callback(tmp_path.chmod, 0o700)
        assert float(load(tmp_path)["x"]) == 1
        with pytest.raises(OSError, match="Permission"):
            save({"x": 1.0}, tmp_path)
