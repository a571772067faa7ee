"""Compiled programs on disk: kept whole or not at all, found again, bounded, and trusted only where they may be."""

import logging
import multiprocessing
import os
import random
import stat
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._base import config
from gradix._runtime import cache_key, disk_cache, xla
from gradix._runtime.disk_cache import Entries, pack, unpack
from gradix.experimental.compilation_cache import compilation_cache
from tests.runtime.test_surface import without_loader

ROOT = Path(__file__).parents[2]
KEY = "ab" * 20


@pytest.fixture
def entries(tmp_path):
    return Entries(str(tmp_path))


@pytest.fixture
def cache(tmp_path):
    """The directory of a cache that is on."""
    gradix.config.update("gradix_cache", str(tmp_path))
    disk_cache.reset()
    yield tmp_path
    disk_cache.reset()


def files(path):
    return sorted(p for p in Path(path).iterdir() if p.suffix == ".xla")


def run(code, cache, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
        env={**os.environ, "GRADIX_CACHE": str(cache), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done


# -- one file -------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read(entries):
    assert entries.read(KEY) is None
    entries.write(KEY, b"first")
    entries.write(KEY, b"second")
    assert entries.read(KEY) == b"second" and [p.name for p in files(entries.path)] == [KEY + ".xla"]
    assert stat.S_IMODE(files(entries.path)[0].stat().st_mode) == 0o600
    assert sorted(os.listdir(entries.path)) == [".swept", KEY + ".xla"]


def test_no_changed_file_is_taken_for_one_of_ours():
    rng = random.Random(0)
    payload = rng.randbytes(300)
    good = pack(KEY, payload)
    assert unpack(KEY, good) == payload and unpack("cd" * 20, good) is None
    for _ in range(5000):
        data = bytearray(good)
        kind = rng.randrange(5)
        if kind == 0:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[rng.randrange(len(data)) :]
        elif kind == 2:
            data += rng.randbytes(rng.randrange(1, 20))
        elif kind == 3:
            start = rng.randrange(len(data))
            data[start : start + rng.randrange(1, 60)] = rng.randbytes(rng.randrange(60))
        else:
            data[:48] = rng.randbytes(48)
        if data != good:
            assert unpack(KEY, bytes(data)) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: p.write_bytes(b""),
        lambda p: p.write_bytes(p.read_bytes()[:-1]),
        lambda p: p.write_bytes(b"not ours at all" * 10),
        lambda p: (p.unlink(), p.mkdir()),
        lambda p: (p.rename(p.with_name("other")), p.symlink_to("other")),
        lambda p: p.chmod(0o620),
        lambda p: (p.unlink(), os.mkfifo(p)),
    ],
    ids=["empty", "cut", "foreign", "directory", "link", "writable", "pipe"],
)
def test_a_damaged_entry_is_named_once_and_left(entries, damage, caplog):
    entries.write(KEY, b"x" * 100)
    damage(files(entries.path)[0])
    with caplog.at_level(logging.WARNING):
        assert entries.read(KEY) is None and entries.read(KEY) is None
    assert len(caplog.messages) == 1 and "The compilation cache" in caplog.messages[0]


def test_damage_may_raise(entries):
    entries.write(KEY, b"x" * 100)
    files(entries.path)[0].write_bytes(b"?")
    gradix.config.update("jax_raise_persistent_cache_errors", True)
    with pytest.raises(RuntimeError, match="holds .* which is damaged"):
        entries.read(KEY)


def test_a_full_disk_costs_nothing_but_the_entry(entries, monkeypatch, caplog):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with caplog.at_level(logging.WARNING):
        entries.write(KEY, b"x")
        entries.write(KEY, b"x")
    assert len(caplog.messages) == 1 and "No space left" in caplog.messages[0]
    assert files(entries.path) == [] and not [n for n in os.listdir(entries.path) if n.endswith(".tmp")]


# -- bounds ---------------------------------------------------------------------------------------------------------


def aged(path, days):
    then = time.time() - 86400 * days
    os.utime(path, (then, then))


def test_the_oldest_go_first(entries, tmp_path):
    for i in range(10):
        entries.write(f"{i:040d}", b"x" * 1000)
        aged(tmp_path / f"{i:040d}.xla", 10 - i)
    (tmp_path / "notes.txt").write_text("not ours")
    aged(tmp_path / "notes.txt", 1000)
    entries.sweep(10**9, 86400 * 8.5)
    assert [p.name[39] for p in files(tmp_path)] == list("23456789")
    entries.sweep(5500, 86400 * 90)
    assert [p.name[39] for p in files(tmp_path)] == list("6789") and (tmp_path / "notes.txt").exists()


def test_use_keeps_an_entry_young(entries, tmp_path):
    entries.write(KEY, b"x")
    aged(files(tmp_path)[0], 5)
    assert entries.read(KEY) == b"x"
    entries.sweep(10**9, 86400)
    assert entries.read(KEY) == b"x"


def test_what_killed_writers_left_goes_too(entries, tmp_path):
    for name, age in ((".a.1.0.tmp", 1), (".b.1.0.tmp", 0)):
        (tmp_path / name).write_bytes(b"half")
        aged(tmp_path / name, age)
    entries.sweep(10**9, 10**9)
    assert [n for n in os.listdir(tmp_path) if n.endswith(".tmp")] == [".b.1.0.tmp"]


def test_writing_much_sweeps(tmp_path):
    gradix.config.update("jax_compilation_cache_max_size", 20_000)
    entries = Entries(str(tmp_path))
    for i in range(100):
        entries.write(f"{i:040d}", b"x" * 1000)
        assert sum([p.stat().st_size for p in files(tmp_path)]) < 23_000
    assert f"{99:040d}.xla" in os.listdir(tmp_path)


# -- where ----------------------------------------------------------------------------------------------------------


def test_the_default_directory(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/me")
    assert disk_cache.default_directory() == "/var/me/gradix"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert disk_cache.default_directory() == "/home/me/.cache/gradix"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert disk_cache.default_directory() == "/home/me/Library/Caches/gradix"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/c/local")
    assert disk_cache.default_directory() == "/c/local/gradix"


def test_options(tmp_path, monkeypatch):
    update, one, two = gradix.config.update, str(tmp_path / "one"), str(tmp_path / "two")
    monkeypatch.setattr(disk_cache, "default_directory", lambda: str(tmp_path / "default"))
    disk_cache.reset()

    def path():
        found = disk_cache.current()
        return found and os.path.basename(found.path)

    assert path() is None  # as tests/conftest.py asks for
    update("gradix_cache", None)
    assert path() == "default" and stat.S_IMODE(os.stat(tmp_path / "default").st_mode) == 0o700
    update("jax_compilation_cache_dir", one)
    assert path() == "one"
    update("gradix_cache", two)
    assert path() == "two"
    for off in ("off", "OFF", False, "0"):
        update("gradix_cache", off)
        assert path() is None
    update("gradix_cache", True)
    assert path() == "one"
    for name, value in (("jax_enable_compilation_cache", False), ("jax_compilation_cache_max_size", 0)):
        before = gradix.config.read(name)
        update(name, value)
        assert path() is None
        update(name, before)
    with pytest.raises(ValueError, match="'off', 'on' or a directory; got 3"):
        update("gradix_cache", 3)
    disk_cache.reset()


@pytest.mark.skipif(os.name != "posix", reason="modes and owners")
@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda p, monkeypatch: p.chmod(0o777), "other users can write programs into it"),
        (
            lambda p, monkeypatch: monkeypatch.setattr(disk_cache, "_owners", lambda: (12345,)),
            "belongs to another user",
        ),
        (lambda p, monkeypatch: (p.rmdir(), p.write_text("")), "cannot be made"),
    ],
    ids=["writable", "owner", "file"],
)
def test_a_directory_that_cannot_be_trusted_is_not_used(tmp_path, spoil, message, monkeypatch, caplog):
    path = tmp_path / "d"
    path.mkdir()
    spoil(path, monkeypatch)
    gradix.config.update("gradix_cache", str(path))
    disk_cache.reset()
    with caplog.at_level(logging.WARNING):
        assert disk_cache.current() is None and disk_cache.current() is None
    assert len(caplog.messages) == 1 and message in caplog.messages[0]
    f = gradix.jit(lambda x: x + 1)
    assert f(1.0) == 2 and f.stats().compiles == 1
    disk_cache.reset()


def test_nothing_is_said_of_a_default_directory_that_cannot_be_had(tmp_path, monkeypatch, caplog):
    gradix.config.update("gradix_cache", None)
    (tmp_path / "file").write_text("")
    (tmp_path / "read only").mkdir(mode=0o500)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    f = gradix.jit(lambda x: x + 11)
    with caplog.at_level(logging.WARNING):
        for path, n in ((tmp_path / "file" / "gradix", 1), (tmp_path / "read only", 2)):
            monkeypatch.setattr(disk_cache, "default_directory", lambda path=path: str(path))
            disk_cache.reset()
            assert f(np.ones(n, "f4"))[0] == 12
    assert caplog.messages == [] and files(tmp_path / "read only") == []
    disk_cache.reset()


def test_a_remote_directory_is_refused(caplog):
    gradix.config.update("gradix_cache", "gs://bucket/cache")
    disk_cache.reset()
    with caplog.at_level(logging.WARNING):
        assert disk_cache.current() is None
    assert "not a directory of this machine" in caplog.text
    disk_cache.reset()


# -- programs -------------------------------------------------------------------------------------------------------

PROGRAMS = {
    "elementwise": (lambda x: jnp.sin(x) * 2, (np.arange(6, dtype="f4"),)),
    "product": (lambda x: x @ x.T, (np.arange(6, dtype="f4").reshape(2, 3),)),
    "sort": (lambda x: jnp.sort(x), (np.array([3, 1, 2], "f4"),)),
    "argsort": (lambda x: jnp.argsort(x), (np.array([3, 1, 2], "i4"),)),
    "loop": (lambda x: gradix.lax.fori_loop(0, 5, lambda i, c: c * 2 + i, x), (np.float32(1),)),
    "solve": (lambda a, b: jnp.linalg.solve(a, b), (np.eye(3, dtype="f4") * 2, np.ones(3, "f4"))),
    "captured": (lambda x: x + jnp.arange(100.0), (np.ones(100, "f4"),)),
    "several results": (lambda x: {"a": x, "b": (x > 1, -x)}, (np.arange(3, dtype="f4"),)),
    "grad": (gradix.grad(lambda x: jnp.tanh(x).prod()), (np.arange(1, 4, dtype="f4"),)),
    "random": (lambda k: gradix.random.normal(k, (5,)), (np.array([0, 1], "u4"),)),
    "bfloat16": (lambda x: x.astype(jnp.bfloat16).sum(), (np.ones(4, "f4"),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_loaded_programs_give_the_same(name, cache):
    f, args = PROGRAMS[name]
    made, loaded = gradix.jit(f), gradix.jit(f)
    want = made(*args)
    assert made.stats().compiles == 1 and made.stats().loads == 0
    for got in (loaded(*args), loaded(*args)):
        for a, b in zip(gradix.tree.leaves(got), gradix.tree.leaves(want)):
            np.testing.assert_array_equal(a, b)
    assert loaded.stats().compiles == 0 and loaded.stats().loads == 1


def test_donation_survives_the_disk(cache):
    for _ in range(2):
        f, x = gradix.jit(lambda x: x + 1, donate_argnums=0), jnp.arange(1000.0) + 0
        assert f(x)[1] == 2 and x.is_deleted()
    assert f.stats().loads == 1


def test_single_operations_are_kept_too(cache):
    with gradix.debug.explain(show=False) as seen, config.Setting("gradix_eager", "")("xla"):
        jnp.linalg.inv(jnp.eye(7) * 3)
    assert files(cache) and any(e.kind == "compile" for e in seen.events)


def test_what_calls_python_is_not_kept(cache):
    f = gradix.jit(lambda x: gradix.pure_callback(np.sin, gradix.ShapeDtypeStruct((), "float32"), x))
    with gradix.debug.explain(show=False) as seen:
        f(np.float32(1))
    assert files(cache) == [] and "calls Python" in seen.events[-1].why


def test_what_is_damaged_or_not_loadable_is_compiled_again(cache, caplog):
    def fresh():
        f = gradix.jit(lambda x: x * 3 + 1)
        assert f(np.float32(2)) == 7
        return f.stats().loads

    fresh()
    (path,) = files(cache)
    path.write_bytes(path.read_bytes()[:100])
    assert fresh() == 0 and fresh() == 1
    path.write_bytes(pack(path.stem, b"XLA will not like this"))  # rightly wrapped, wrong inside
    with caplog.at_level(logging.WARNING):
        disk_cache.reset()
        assert fresh() == 0 and fresh() == 1
    assert len(caplog.messages) == 2 and "XLA does not load" in caplog.messages[1]


def test_thresholds(cache):
    gradix.config.update("jax_persistent_cache_min_compile_time_secs", 1e6)
    gradix.jit(lambda x: x * 5)(1.0)
    gradix.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    gradix.config.update("jax_persistent_cache_min_entry_size_bytes", 10**9)
    gradix.jit(lambda x: x * 6)(1.0)
    assert files(cache) == []


def test_the_key_holds_what_code_depends_on(monkeypatch):
    plain = xla.options()
    keys = [
        cache_key.key_of("a", plain),
        cache_key.key_of("b", plain),
        cache_key.key_of("a", xla.options(small_loops=True)),
        cache_key.key_of("a", xla.options(quick=True)),
        cache_key.key_of("a", xla.options(compiler_options={"xla_cpu_enable_fast_math": True})),
    ]
    for change in (
        lambda: monkeypatch.setattr(xla, "fingerprint", lambda: "another processor"),
        lambda: monkeypatch.setattr(cache_key, "__version__", "9.9.9"),
        lambda: monkeypatch.setattr(cache_key, "cores", lambda: 12345),
    ):
        change()
        cache_key._process_part.cache_clear()
        keys.append(cache_key.key_of("a", plain))
    monkeypatch.undo()
    cache_key._process_part.cache_clear()
    assert len(set(keys)) == len(keys) and cache_key.key_of("a", plain) == keys[0]


def test_a_file_of_flags_counts_by_its_content(tmp_path, monkeypatch):
    flags = tmp_path / "flags"
    flags.write_text("--one")
    monkeypatch.setenv("XLA_FLAGS", str(flags))
    before = cache_key._flags_file()
    flags.write_text("--two")
    assert (before, cache_key._flags_file()) == ("--one", "--two")


def test_the_public_module(tmp_path):
    gradix.config.update("gradix_cache", None)
    compilation_cache.set_cache_dir(str(tmp_path / "new"))
    compilation_cache.reset_cache()
    f = gradix.jit(lambda x: x - 8)
    f(1.0)
    assert gradix.config.jax_compilation_cache_dir == str(tmp_path / "new") and len(files(tmp_path / "new")) == 1


# -- processes ------------------------------------------------------------------------------------------------------

SCRIPT = """if True:
    import gradix, gradix.numpy as jnp, numpy as np
    with gradix.debug.explain(show=False) as seen:
        f = gradix.jit(gradix.value_and_grad(lambda w, x: jnp.tanh(x @ w).sum() + jnp.sort(w)[0]))
        value, _ = f(np.ones(3, 'f4'), np.ones((2, 3), 'f4'))
        gradix.random.normal(gradix.random.key(0), (1000,)).block_until_ready()
    print(float(value), sum(e.kind == 'compile' for e in seen.events), sum(e.kind == 'load' for e in seen.events))"""


def test_the_second_process_compiles_nothing(tmp_path):
    first, second = [run(SCRIPT, tmp_path, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    value, compiled, loaded = first.stdout.split()
    assert int(compiled) > 0 and loaded == "0" and first.stderr == ""
    assert second.stdout.split() == [value, "0", compiled] and without_loader(second.stderr) == ""


@pytest.mark.slow
def test_the_second_run_of_an_example_compiles_nothing(tmp_path):
    code = f"""if True:
        import runpy, sys, gradix
        sys.path.insert(0, 'examples')
        sys.argv = ['digits.py', '--quick', '--out', {str(tmp_path / "digits.png")!r}]
        with gradix.debug.explain(show=False) as seen:
            try:
                runpy.run_path('examples/digits.py', run_name='__main__')
            finally:
                print('COUNTS', seen.count('compile'), seen.count('load'))"""
    counts = []
    for _ in range(2):
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=300,
            cwd=ROOT,
            env={**os.environ, "GRADIX_CACHE": str(tmp_path / "cache")},
        )
        counts.append(done.stdout.split("COUNTS")[1].split())
    assert int(counts[0][0]) > 0 and counts[1] == ["0", str(int(counts[0][0]) + int(counts[0][1]))]


def write_many(path, worker):
    entries = Entries(path)
    for i in range(200):
        key = f"{i % 20:040d}"
        found = entries.read(key)
        assert found is None or found == bytes([i % 20]) * 5000, (worker, i)
        entries.write(key, bytes([i % 20]) * 5000)
    return entries._complained


def test_many_processes_write_the_same_entries(tmp_path):
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        complaints = list(pool.map(write_many, [str(tmp_path)] * 4, range(4)))
    assert complaints == [False] * 4 and len(files(tmp_path)) == 20
    assert not [n for n in os.listdir(tmp_path) if n.endswith(".tmp")]


KILLER = """if True:
    import os, random, signal, sys, time
    from gradix._runtime.disk_cache import Entries
    path, kills = sys.argv[1], int(sys.argv[2])
    rng = random.Random(kills)
    for _ in range(kills):
        begun, begins = os.pipe()
        writer = os.fork()
        if not writer:
            entries, n = Entries(path), rng.randrange(50)
            os.write(begins, b'.')
            while True:
                entries.write(f'{n % 50:040d}', bytes([n % 50]) * 200_000)
                n += 1
        os.read(begun, 1)
        os.close(begun), os.close(begins)
        time.sleep(rng.random() * 0.03)
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        entries = Entries(path)
        for name in os.listdir(path):
            if name.endswith('.xla'):
                assert entries.read(name[:-4]) == bytes([int(name[:-4])]) * 200_000, name
        assert not entries._complained
    print(len([n for n in os.listdir(path) if n.endswith('.xla')]))"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
@pytest.mark.parametrize("kills", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_writers_leave_nothing_half(tmp_path, kills):
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path), str(kills)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 1


@pytest.mark.slow
def test_programs_survive_kills_and_mutations(tmp_path):
    """Whole processes: killed while they compile and write, over entries that were altered."""
    code = """if True:
        import gradix, gradix.numpy as jnp, numpy as np
        print('ready', flush=True)
        for n in range(1, 30):
            y = gradix.jit(lambda x: (x * n).sum())(np.ones(n, 'f4'))
            assert y == n * n, (n, y)
        print('done')"""
    rng = random.Random(0)
    for turn in range(12):
        worker = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "GRADIX_CACHE": str(tmp_path)},
        )
        assert worker.stdout.readline() == b"ready\n"
        time.sleep(rng.random() * 0.3)
        worker.kill()
        worker.communicate()
        for path in rng.sample(files(tmp_path), min(5, len(files(tmp_path)))):
            data = bytearray(path.read_bytes())
            data[rng.randrange(len(data))] ^= 255
            path.write_bytes(data[: rng.randrange(len(data))] if turn % 2 else data)
    done = run(code, tmp_path)
    assert done.stdout.split() == ["ready", "done"] and done.stderr.count("\n") <= 1
    assert without_loader(run(code, tmp_path).stderr) == ""


def test_the_log_says_what_was_found_and_written_and_what_was_not(tmp_path, caplog):

    caplog.set_level(logging.DEBUG, logger="gradix.cache")
    config = gradix.config
    before = {
        n: config.read(n)
        for n in (
            "gradix_cache",
            "jax_enable_compilation_cache",
            "jax_persistent_cache_min_compile_time_secs",
            "jax_persistent_cache_min_entry_size_bytes",
        )
    }

    def lines(f):
        caplog.clear()
        gradix.clear_caches()
        gradix.jit(f).lower(1.0).compile()
        return [(r.levelname, r.getMessage()) for r in caplog.records if r.name == "gradix.cache"]

    try:
        config.update("gradix_cache", str(tmp_path))
        config.update("jax_enable_compilation_cache", True)
        config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        config.update("jax_persistent_cache_min_entry_size_bytes", 0)
        f = lambda x: x * 3 + 1  # noqa: E731
        (level, miss), (_, written) = lines(f)
        assert level == "DEBUG" and "CACHE MISS for '<lambda>'" in miss and written.startswith("Writing '<lambda>'")
        [(level, hit)] = lines(f)
        assert level == "DEBUG" and "cache hit for '<lambda>'" in hit
        config.update("jax_persistent_cache_min_compile_time_secs", 100.0)
        with gradix.explain_cache_misses():
            told = lines(lambda x: x * 5 + 1)
        assert [level for level, _ in told] == ["WARNING"] * 2 and "took < 100.00 seconds" in told[1][1]
        config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        config.update("jax_persistent_cache_min_entry_size_bytes", 10**9)
        assert "is less than threshold 1000000000" in lines(lambda x: x * 7 + 1)[1][1]
        told = lines(lambda x: gradix.pure_callback(lambda v: v, gradix.ShapeDtypeStruct((), "float32"), x))
        assert "uses host callbacks" in told[-1][1]
    finally:
        for name, value in before.items():
            config.update(name, value)
