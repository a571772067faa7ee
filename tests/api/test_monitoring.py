"""Listeners hear what a program records, and what tracing and compiling took."""

import pytest

import gradix
from gradix import monitoring
from gradix._base import events


@pytest.fixture(autouse=True)
def quiet_after():
    yield
    monitoring.clear_event_listeners()
    assert not events.listeners


KINDS = {
    "event": (monitoring.register_event_listener, monitoring.unregister_event_listener, monitoring.record_event, ()),
    "duration": (
        monitoring.register_event_duration_secs_listener,
        monitoring.unregister_event_duration_listener,
        monitoring.record_event_duration_secs,
        (1.5,),
    ),
    "time span": (
        monitoring.register_event_time_span_listener,
        monitoring.unregister_event_time_span_listener,
        monitoring.record_event_time_span,
        (1.0, 2.5),
    ),
    "scalar": (
        monitoring.register_scalar_listener,
        monitoring.unregister_scalar_listener,
        monitoring.record_scalar,
        (7,),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_listeners_of_its_own(kind):
    seen = []
    register, unregister, record, values = KINDS[kind]

    def listener(event, *values, **more):
        seen.append((event, values, more))

    register(listener)
    for *_, other, given in KINDS.values():
        other("/mine", *given, step=2)
    assert seen == [("/mine", values, {"step": 2})]
    unregister(listener)
    record("/mine", *values)
    assert len(seen) == 1 and not events.listeners
    with pytest.raises(AssertionError, match="not registered"):
        unregister(listener)


def test_clearing_forgets_all():
    seen = []
    for register, *_ in KINDS.values():
        register(lambda *a, **k: seen.append(a))
    monitoring.clear_event_listeners()
    for _, _, record, values in KINDS.values():
        record("/mine", *values)
    assert not seen


def test_tracing_and_compiling_are_told():
    durations, spans = {}, []
    monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **more: durations.update({event: (seconds, more)})
    )
    monitoring.register_event_time_span_listener(lambda event, start, end, **more: spans.append((event, end - start)))

    def plus_one(x):
        return x + 1

    gradix.jit(plus_one).lower(1.0).compile()
    seconds, more = durations["/jax/core/compile/jaxpr_trace_duration"]
    assert seconds > 0 and "plus_one" in more["fun_name"]
    assert {"/jax/core/compile/backend_compile_duration", "/jax/compilation_cache/cache_retrieval_time_sec"} & set(
        durations
    )
    assert all(length >= 0 for _, length in spans) and len(spans) >= 2


def test_programs_from_disk_count_as_compiled(tmp_path):
    gradix.config.update("gradix_cache", str(tmp_path))
    gradix.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    seen = []
    monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: seen.append(event.rpartition("/")[2]))
    for _ in range(2):
        seen.clear()
        gradix.clear_caches()
        gradix.jit(lambda x: x * 3 + 1)(1.0)
        assert seen.count("backend_compile_duration") == 1, seen
    assert "cache_retrieval_time_sec" in seen


def test_that_the_disk_is_used_or_not_is_told_once(tmp_path):
    from gradix.experimental import compilation_cache

    def seen_with(directory) -> list:
        compilation_cache.compilation_cache.reset_cache()
        gradix.config.update("gradix_cache", directory)
        seen = []
        monitoring.register_event_listener(lambda event, **_: seen.append(event.rpartition("/")[2]))
        for n in (2.0, 3.0):
            gradix.jit(lambda x, n=n: x + n)(1.0)
        monitoring.clear_event_listeners()
        return seen

    assert seen_with("off") == ["task_disabled_cache"]
    assert seen_with(str(tmp_path)) == ["tasks_using_cache", *["compile_requests_use_cache", "cache_misses"] * 2]
