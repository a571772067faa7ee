"""Options: values, checks, overrides by thread, and what traces depend on."""

import asyncio
import doctest
import json
import os
import subprocess
import sys
import threading

import pytest

import gradix
from gradix._base import config as module, options
from gradix._base.config import config, is_x64, trace_context

module.define("gradix_test_limit", 10)
module.define("gradix_test_mode", "fast", ("fast", "safe"), traced=True)
module.define("gradix_test_hooked", 1)


def in_thread(function):
    """What the function returns in a new thread."""
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def in_process(code, **environment):
    """What the code prints in a fresh interpreter, and its errors."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "GRADIX_"))} | environment
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300)
    return done.stdout.strip(), done.stderr


@pytest.mark.x32
def test_update_and_read():
    assert config.jax_enable_x64 is False and config.read("jax_enable_x64") is False and not config.x64_enabled
    config.update("jax_enable_x64", True)
    assert config.jax_enable_x64 is True and config.x64_enabled and is_x64() and in_thread(is_x64)
    config.update("gradix_enable_x64", False)
    assert not is_x64() and config.gradix_enable_x64 is False
    assert len(config.values) >= 133 and config.values["jax_platforms"] is None


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("jax_numpy_rank_promotion", "loud", "'allow', 'warn', 'raise'.*got 'loud'"),
        ("jax_default_matmul_precision", 3, "'highest'.*or None; got 3"),
        ("jax_enable_x64", "maybe", "True or False; got 'maybe'"),
        ("jax_compilation_cache_max_size", 1.5, "type int; got 1.5"),
        ("jax_platforms", 5, "type str; got 5"),
        ("jax_default_device", 5, "must be a Device.*got 5"),
    ],
)
def test_wrong_values(name, value, words):
    before = config.read(name)
    with pytest.raises(ValueError, match=words):
        config.update(name, value)
    assert config.read(name) == before


def test_unknown_options():
    with pytest.raises(AttributeError, match="Unrecognized config option: jax_nope"):
        config.update("jax_nope", 1)
    with pytest.raises(AttributeError, match="Unrecognized"):
        config.read("jax_nope")
    with pytest.raises(AttributeError, match="jax_nope"):
        config.jax_nope
    with pytest.raises(AttributeError, match="config.update"):
        config.jax_enable_x64 = True


@pytest.mark.parametrize("name", sorted(options.CONTEXT_MANAGERS))
def test_context_managers_override_and_put_back(name):
    setting, option = getattr(module, name), options.CONTEXT_MANAGERS[name][0]
    before = config.read(option)
    if isinstance(before, bool):
        values = [not before]
    elif option in options.CHOICES:
        values = options.CHOICES[option][1]
    else:
        values = ["cpu"]
    for value in values:
        with setting(value):
            assert config.read(option) == setting.value == value
            assert in_thread(lambda: config.read(option)) == before
        assert config.read(option) == before
    if isinstance(before, bool):
        with setting():
            assert config.read(option) is True
    else:
        with pytest.raises(TypeError, match="needs an argument"):
            setting()
    assert option in repr(setting)
    example = doctest.DocTestParser().get_doctest(setting.__doc__, {}, name, None, None)
    assert doctest.DocTestRunner().run(example) == (0, 2)


@pytest.mark.x32
def test_overrides_nest_and_survive_errors():
    with module.enable_x64(True), module.enable_x64(False):
        assert not is_x64()
    manager = module.enable_x64(True)
    assert not is_x64()
    with pytest.raises(KeyError), manager, manager:
        assert is_x64()
        raise KeyError
    assert not is_x64() and module.state.__dict__ == {}


@pytest.mark.x32
def test_overrides_decorate_functions():
    @module.enable_x64(True)
    def inside():
        return is_x64()

    assert inside() and not is_x64()


def test_an_override_goes_before_an_update():
    with module.numpy_rank_promotion("raise"):
        config.update("jax_numpy_rank_promotion", "warn")
        assert config.jax_numpy_rank_promotion == "raise"
    assert config.jax_numpy_rank_promotion == "warn"


def test_a_setting_is_no_value():
    with pytest.raises(TypeError, match="config.jax_enable_x64"):
        bool(module.enable_x64)


def test_functions_that_override():
    with module.disable_jit():
        assert config.jax_disable_jit
        with module.disable_jit(False):
            assert not config.jax_disable_jit
    with module.checking_leaks():
        assert config.jax_check_tracer_leaks
    with module.transfer_guard("disallow"):
        assert config.jax_transfer_guard == config.jax_transfer_guard_device_to_host == "disallow"
    assert config.jax_transfer_guard_device_to_host is None
    config.update("jax_transfer_guard", "log")
    assert config.jax_transfer_guard_host_to_device == "log"
    for name in options.IMPLIED["jax_transfer_guard"]:
        config.update(name, None)


def test_choices_in_capitals():
    with module.numpy_dtype_promotion("STRICT"):
        assert config.jax_numpy_dtype_promotion == "strict"


@pytest.mark.x32
def test_trace_context_follows_every_change():
    plain = trace_context()
    assert hash(plain) == hash(trace_context()) and trace_context() is plain
    with module.enable_x64(True):
        wide = trace_context()
        assert wide != plain and in_thread(trace_context) is plain
        with module.log_compiles(True):
            assert trace_context() is wide
        config.update("jax_debug_nans", True)
        assert trace_context() != wide and in_thread(trace_context) != plain
        config.update("jax_debug_nans", False)
        assert trace_context() is wide
    assert trace_context() is plain
    for name in options.TRACED:
        assert name in config.values


def test_own_options():
    config.update("gradix_test_limit", 20)
    assert config.gradix_test_limit == 20
    plain = trace_context()
    config.update("gradix_test_mode", "safe")
    assert trace_context() != plain
    with pytest.raises(ValueError, match="'fast', 'safe'"):
        config.update("gradix_test_mode", "slow")
    with pytest.raises(ValueError, match="type int"):
        config.update("gradix_test_limit", "many")
    config.update("gradix_test_mode", "fast")


def test_a_hook_may_refuse():
    def refuse(value):
        raise RuntimeError(f"too late for {value}")

    module.on_update("gradix_test_hooked", refuse)
    with pytest.raises(RuntimeError, match="too late for 2"):
        config.update("gradix_test_hooked", 2)
    assert config.gradix_test_hooked == 1


def test_an_empty_variable_is_not_set():
    code = "import gradix; print(gradix.config.gradix_rewrites, gradix.config.jax_enable_x64)"
    assert in_process(code, GRADIX_REWRITES="", JAX_ENABLE_X64="") == in_process(code)


def test_environment():
    code = (
        "import json; from gradix._base.config import config as c; print(json.dumps([c.jax_enable_x64, "
        "c.jax_numpy_rank_promotion, c.jax_num_cpu_devices, c.jax_persistent_cache_min_compile_time_secs]))"
    )
    out, _ = in_process(
        code,
        JAX_ENABLE_X64="1",
        GRADIX_NUMPY_RANK_PROMOTION="warn",
        JAX_NUMPY_RANK_PROMOTION="raise",
        GRADIX_NUM_CPU_DEVICES="8",
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0.5",
    )
    assert json.loads(out) == [True, "warn", 8, 0.5]
    _, err = in_process(code, GRADIX_ENABLE_X64="perhaps")
    assert "GRADIX_ENABLE_X64='perhaps'" in err and "True or False" in err
    _, err = in_process(code, JAX_NUM_CPU_DEVICES="eight")
    assert "JAX_NUM_CPU_DEVICES='eight'" in err


TASKS = {
    "enable_x64": (lambda: gradix.enable_x64(True), lambda: config.jax_enable_x64),
    "default_matmul_precision": (
        lambda: gradix.default_matmul_precision("highest"),
        lambda: config.jax_default_matmul_precision,
    ),
    "disable_jit": (gradix.disable_jit, lambda: config.jax_disable_jit),
    "debug_nans": (lambda: gradix.debug_nans(True), lambda: config.jax_debug_nans),
    "default_device": (lambda: gradix.default_device(gradix.devices()[0]), lambda: config.jax_default_device),
    "transfer_guard": (lambda: gradix.transfer_guard("disallow"), lambda: config.jax_transfer_guard),
    "set_mesh": (lambda: gradix.set_mesh(gradix.make_mesh((1,), ("x",))), lambda: config.gradix_mesh),
    "use_abstract_mesh": (
        lambda: gradix.sharding.use_abstract_mesh(gradix.make_mesh((1,), ("x",)).abstract_mesh),
        lambda: config.gradix_mesh,
    ),
    "a mesh": (lambda: gradix.make_mesh((1,), ("x",)), lambda: config.gradix_mesh),
}


@pytest.mark.x32
@pytest.mark.parametrize(("override", "read"), TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("first", [0, 1])
def test_tasks_that_end_in_any_order_leave_nothing_set(override, read, first):
    before, context = read(), trace_context()

    async def task(begin, end):
        await begin.wait()
        with override():
            begun.set()
            await end.wait()

    async def all_tasks():
        begins, ends = [asyncio.Event(), asyncio.Event()], [asyncio.Event(), asyncio.Event()]
        tasks = [asyncio.create_task(task(b, e)) for b, e in zip(begins, ends)]
        for begin in begins:
            begun.clear()
            begin.set()
            await begun.wait()
        for i in (first, 1 - first):
            assert read() != before
            ends[i].set()
            await tasks[i]

    begun = asyncio.Event()
    asyncio.run(all_tasks())
    assert read() == before and trace_context() is context


def test_the_override_that_began_last_holds():
    one, two = gradix.default_matmul_precision("high"), gradix.default_matmul_precision("highest")
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert config.jax_default_matmul_precision == "highest"
    two.__exit__(None, None, None)
    assert config.jax_default_matmul_precision is None


def test_programs_depend_on_contexts_of_the_user():
    scale = gradix.make_user_context(2)
    traced = []

    @gradix.jit
    def f(x):
        traced.append(scale.value)
        return x * scale.value

    for _ in range(2):
        with scale(3):
            assert f(1) == 3 and in_thread(lambda: scale.value) == 2
        assert f(1) == 2
    assert traced == [3, 2]
    scale.set_global(5)
    assert (scale.get_global(), scale.value, f(1)) == (5, 5, 5)
    with scale(3):
        assert (scale.get_global(), f(1)) == (5, 3)
    assert traced == [3, 2, 5]
    other = gradix.make_user_context("a")
    with other("b"):
        assert (other.value, scale.value, f(1)) == ("b", 5, 5)
    for wrong in (lambda: scale([1]), lambda: scale.set_global([1]), lambda: gradix.make_user_context([1])):
        with pytest.raises(TypeError, match=r"must be hashable.*\[1\] of type list"):
            wrong()


def test_settings_tell_the_value_outside_of_context_managers():
    before = gradix.numpy_rank_promotion.get_global()
    with gradix.numpy_rank_promotion("warn"):
        assert gradix.numpy_rank_promotion.get_global() == before
        assert gradix.numpy_rank_promotion.value == "warn"
