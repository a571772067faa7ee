"""Calls over eight CPU devices, apart from their work: dispatch, device_put, pmap, tracing of shard_map."""

import os
import re

import numpy

from benchmarks.case import case, uniform

COUNT = 8


def on_mesh(x, *spec):
    """A sharding on a mesh of 4 by 2 devices; outside of this group's processes, on the devices that exist."""
    s, devices = x.api.sharding, numpy.array(x.api.devices()[:COUNT])
    shape = (4, 2) if len(devices) == COUNT else (len(devices), 1)
    return s.NamedSharding(s.Mesh(devices.reshape(shape), ("x", "y")), s.PartitionSpec(*spec))


def often(x, call):
    """A call that was made so often before that a library does not change it any more."""
    for _ in range(300):
        x.block(call())
    return lambda: x.block(call())


def parts(x):
    """An example for each device."""
    return uniform(min(COUNT, x.api.device_count()), 16)


@case("call of a compiled function, 1 array over 8 devices", "devices", limit=0.9)
def call_one(x):
    f = x.api.jit(lambda a: a + 1)
    a = x.api.device_put(uniform(64, 64), on_mesh(x, "x", "y"))
    return often(x, lambda: f(a))


@case("call of a compiled function, 20 arrays over 8 devices", "devices", limit=0.9)
def call_many(x):
    f = x.api.jit(lambda given: [a + 1 for a in given])
    given = [x.api.device_put(uniform(16, 16), on_mesh(x, "x", "y")) for _ in range(20)]
    return often(x, lambda: f(given))


@case("call with a sum over 8 devices", "devices", limit=0.9)
def call_sum(x):
    f = x.api.jit(lambda a: a.sum())
    a = x.api.device_put(uniform(64, 64), on_mesh(x, "x", "y"))
    return lambda: x.block(f(a))


@case("device_put of 64 x 64 over 8 devices", "devices", limit=0.9)
def put(x):
    where, values = on_mesh(x, "x", "y"), uniform(64, 64)
    return lambda: x.block(x.api.device_put(values, where))


@case("device_put of 1024 x 1024 over 8 devices", "devices", limit=0.9)
def put_large(x):
    where, values = on_mesh(x, "x", "y"), uniform(1024, 1024)
    return lambda: x.block(x.api.device_put(values, where))


@case("device_put from one division to another", "devices", limit=0.9)
def put_again(x):
    a, where = x.api.device_put(uniform(64, 64), on_mesh(x, "x", "y")), on_mesh(x, None, "x")
    return lambda: x.block(x.api.device_put(a, where))


@case("pmap of 8 parts", "devices", limit=0.9)
def pmap(x):
    f = x.api.pmap(lambda a: a * 2)
    a = f(parts(x))
    return often(x, lambda: f(a))


@case("pmap of 8 parts with psum", "devices", limit=0.9)
def pmap_sum(x):
    f = x.api.pmap(lambda a: a / x.lax.psum(a, "i"), axis_name="i")
    a = f(parts(x))
    return lambda: x.block(f(a))


def _mapped(x):
    s = x.api.sharding
    mesh = on_mesh(x).mesh

    def part(w, a):
        y = x.np.tanh(a @ w)
        return x.lax.psum(y.sum(0), "x"), x.lax.all_gather(y, "y")

    return x.api.shard_map(
        part,
        mesh=mesh,
        in_specs=(s.PartitionSpec(), s.PartitionSpec("x", None)),
        out_specs=(s.PartitionSpec(), s.PartitionSpec(None, "x")),
        check_vma=False,
    )


@case("tracing of shard_map", "devices", limit=0.9)
def trace_shard_map(x):
    w, a = uniform(16, 16), uniform(32, 16)

    def run():
        return x.api.make_jaxpr(_mapped(x))(w, a)

    return run


@case("lowering of shard_map and its gradient", "devices", limit=0.9)
def lower_shard_map(x):
    w, a = uniform(16, 16), uniform(32, 16)

    def run():
        f = _mapped(x)
        return x.api.jit(x.api.grad(lambda w, a: f(w, a)[0].sum())).lower(w, a).as_text()

    return run


def environment() -> dict[str, str]:
    """The environment of a process with eight CPU devices."""
    rest = re.sub(r"--xla_force_host_platform_device_count=\d+", "", os.environ.get("XLA_FLAGS", ""))
    return {**os.environ, "XLA_FLAGS": f"{rest} --xla_force_host_platform_device_count={COUNT}".strip()}
