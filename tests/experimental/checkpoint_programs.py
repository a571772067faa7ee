"""Programs of the tests of checkpoints, run as processes of their own.

python -m tests.experimental.checkpoint_programs saves FOLDER COUNT     # or: mutates SEED COUNT KIND
"""

import json
import os
import random
import resource
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from gradix.experimental.array_serialization import _manifest as manifest
from gradix.experimental.array_serialization.pytree_serialization import load, nonblocking_save, save

TREE = {
    "a": np.arange(12, dtype="f4").reshape(3, 4),
    "b": [np.int8(3), (None, np.array([True, False]))],
    "c": np.zeros((0, 2)),
}
WRONG = [
    None,
    True,
    -1,
    0,
    1,
    7,
    1 << 40,
    1 << 62,
    1 << 80,
    1.5,
    "",
    "/etc/passwd",
    "../../etc/passwd",
    "0-0-0.bin",
    "fifo",
    "link",
    "float64",
    "object",
    "V8",
    "int4",
    [],
    {},
    [0, 0],
    [3, 4],
    [1 << 31, 1],
    "9" * 5000,
    "²",
    [[]] * 3,
    {"leaf": 0},
    {"list": []},
]
MIB = 1 << 20


def full(i: int) -> dict:
    return {"w": np.full(3000, i, "i4"), "step": np.int32(i)}


def saves(folder: str, count: int) -> None:
    """Overlapping saves, loads in between, and the number of the last save."""
    base = os.getpid() * 1000
    pending = [nonblocking_save(full(base), folder)]
    pending[0].result(120)
    for i in range(count):
        pending.append(nonblocking_save(full(base + i), folder))
        if i % 3 == 2:
            back = load(folder)
            assert np.all(np.asarray(back["w"]) == int(back["step"])), back
    for p in pending:
        p.result(120)
    print("done", flush=True)


def altered_json(node, rng):
    """The value with one place of it altered."""
    places = []

    def walk(at):
        for key in list(at) if isinstance(at, dict) else range(len(at)):
            places.append((at, key))
            if isinstance(at[key], (dict, list)):
                walk(at[key])

    walk(node)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at, key = rng.choice(places)
        kind = rng.random()
        other_at, other = rng.choice(places)
        try:
            if kind < 0.2:
                del at[key]
            elif kind < 0.3 and isinstance(at, list):
                at.append(at[key])
            elif kind < 0.5:
                at[key] = json.loads(json.dumps(other_at[other]))
            else:
                at[key] = rng.choice(WRONG)
        except (KeyError, IndexError):
            continue
    return node


def altered_bytes(raw: bytes, rng) -> bytes:
    b, kind = bytearray(raw), rng.random()
    if kind < 0.2:
        return bytes(b[: rng.randrange(len(b) + 1)])
    if kind < 0.4:
        return bytes(b) + rng.randbytes(rng.choice([1, 4, 4096]))
    for _ in range(rng.choice([1, 1, 2, 8])):
        if b:
            b[rng.randrange(len(b))] = rng.randrange(256)
    return bytes(b)


def in_format_1(folder: Path) -> None:
    """Write the newest checkpoint as versions before the digest of the manifest wrote it."""
    path = next(folder.glob("0*")) / "manifest.json"
    top = json.loads(path.read_text())
    for part in [p for leaf in top["leaves"] for p in leaf["parts"]]:
        part["digest"] = manifest.part_digest((path.parent / part["file"]).read_bytes(), 1)
    path.write_text(json.dumps({"tree": top["tree"], "leaves": top["leaves"]}))


def same(tree) -> bool:
    b = tree["b"]
    return (
        list(tree) == ["a", "b", "c"]
        and np.array_equal(tree["a"], TREE["a"])
        and tree["a"].dtype == "float32"
        and int(b[0]) == 3
        and b[1][0] is None
        and np.array_equal(b[1][1], TREE["b"][1][1])
        and tree["c"].shape == (0, 2)
    )


def mutates(seed: int, count: int, kind: str) -> None:
    """Each altered checkpoint is refused by an error of the documented kinds, or holds what was saved; memory is bounded."""
    rng, where = random.Random(seed), Path(tempfile.mkdtemp())
    save(TREE, where)
    assert same(load(where))
    if kind == "old":
        in_format_1(where)
        assert same(load(where))
    folder = where / "00000000"
    os.mkfifo(folder / "fifo")
    os.symlink("/etc/passwd", folder / "link")
    files = [folder / "manifest.json"] if kind != "data" else sorted(folder.glob("*.bin"))
    whole = {f: f.read_bytes() for f in files}
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 256 * MIB, used + 256 * MIB))
    refused = 0
    for i in range(count):
        file = rng.choice(files)
        if kind == "data" and rng.random() < 0.2:
            file.unlink()
            if rng.random() < 0.7:
                rng.choice(
                    [
                        lambda: os.mkfifo(file),
                        lambda: os.symlink("/dev/zero", file),
                        lambda: file.mkdir(),
                        lambda: file.touch(),
                    ]
                )()
        elif kind == "data" or rng.random() < 0.3:
            file.write_bytes(altered_bytes(whole[file], rng))
        else:
            file.write_text(json.dumps(altered_json(json.loads(whole[file]), rng)))
        try:
            back = load(where)
        except (ValueError, OSError) as e:
            assert not isinstance(e, FileNotFoundError), e
            assert str(folder) in str(e) and "damaged" in str(e), e
            refused += 1
        else:
            assert kind == "old" or same(back), (i, file.read_bytes()[:2000], back)
        if file.is_dir() and not file.is_symlink():
            file.rmdir()
        else:
            file.unlink(missing_ok=True)
        file.write_bytes(whole[file])
    shutil.rmtree(where)
    print(f"refused {refused} of {count}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "saves":
        saves(sys.argv[2], int(sys.argv[3]))
    else:
        mutates(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
