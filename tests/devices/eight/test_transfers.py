"""transfer_guard in all directions and levels: what passes, what is told, what is refused."""

import logging

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.errors import JaxRuntimeError
from tests.devices.eight.common import mesh, on, sharded

A, I = np.arange(8, dtype=np.float32), np.array([0, 2])
double = gradix.jit(lambda v: v * 2)
divided = gradix.jit(lambda v: v * 2, in_shardings=on(mesh(), "x"))
both = gradix.jit(lambda v, w: v * w)
here, there = jnp.arange(8.0) + 0, gradix.device_put(A, gradix.devices()[1])
across, places = sharded(A, mesh(), "x"), jnp.arange(2) + 1

# By direction, what takes arrays there in passing, and what does so because it was asked to.
PASSING = {
    "host_to_device": [
        lambda: jnp.sin(A),
        lambda: here + A,
        lambda: double(A),
        lambda: double(A),
        lambda: divided(A),
        lambda: both(across, A),
        lambda: jnp.asarray(A),
        lambda: jnp.array([1.0, 2.0]),
        lambda: gradix.vmap(jnp.sin)(A),
        lambda: across + A,
        lambda: gradix.pmap(lambda v: v)(A),
        lambda: jnp.where(A > 1, here, 0.0),
        lambda: jnp.add(here, np.float32(2)),
        *[lambda i=i: here[i] for i in (I, I, A > 3)],
        lambda: here.at[I].set(0.0),
        lambda: here[None, I],
        lambda: gradix.grad(lambda v: v[I].sum())(here),
        lambda: here + 1,
        lambda: across * 2.0,
        lambda: double(2.0),
        lambda: there + 1,
        lambda: lax.scan(lambda c, v: (c + v, c), 0.0, here),
        lambda: gradix.make_array_from_callback((8,), on(mesh(), "x"), lambda i: A[i]),
    ],
    "device_to_device": [
        lambda: divided(here),
        lambda: both(across, here),
        lambda: across + here,
        lambda: gradix.pmap(lambda v: v)(here),
        lambda: lax.with_sharding_constraint(here, on(mesh(), "x")),
    ],
}
ASKED = {
    "host_to_device": [
        lambda: gradix.device_put(A),
        lambda: gradix.device_put(A, gradix.devices()[1]),
        lambda: gradix.device_put(A, on(mesh(), "x")),
        lambda: gradix.device_put(1.0),
        lambda: gradix.make_array_from_process_local_data(on(mesh(), "x"), A),
    ],
    "device_to_device": [
        lambda: gradix.device_put(here, gradix.devices()[1]),
        lambda: gradix.device_put(here, on(mesh(), "x")),
        lambda: gradix.device_put(across, on(mesh(), "y")),
        lambda: here.to_device(gradix.devices()[1]),
    ],
}
NEVER = [
    lambda: jnp.sin(here),
    lambda: double(here),
    lambda: there + here,
    lambda: gradix.device_put(here, gradix.devices()[0]),
    lambda: gradix.device_put(across, across.sharding),
    lambda: here[1],
    lambda: jnp.zeros(3),
    lambda: gradix.jit(lambda v: v + A)(here),
    lambda: np.asarray(across * across),
    lambda: float(here[0]),
    lambda: here.at[0].set(1.0),
    lambda: gradix.random.normal(gradix.random.key(0), (3,)),
    lambda: gradix.grad(lambda v: (v**2).sum())(here),
    lambda: lax.scan(lambda c, v: (c + v, c), here[0], here),
    lambda: gradix.jit(lambda v: v[I])(here),
    lambda: here[0],
    lambda: here[1:3],
    lambda: here[places],
    lambda: jnp.sort(here),
    lambda: jnp.argsort(-here),
    lambda: jnp.linalg.inv(jnp.eye(3)),
    lambda: jnp.quantile(here, 0.5),
    lambda: jnp.interp(here, here, here),
    lambda: jnp.tril(jnp.ones((3, 3))),
    lambda: jnp.diag(here),
    lambda: jnp.fft.fft(here),
    lambda: jnp.roll(here, 1),
    lambda: jnp.flip(here),
    lambda: jnp.cov(here),
    lambda: jnp.histogram(here),
    lambda: jnp.unique(here),
    lambda: jnp.nonzero(here),
    lambda: gradix.random.permutation(gradix.random.key(0), here),
    lambda: gradix.nn.one_hot(places, 3),
    lambda: gradix.hessian(lambda v: (v**3).sum())(here),
    lambda: jnp.polyfit(here, here, 1),
    lambda: jnp.convolve(here, here),
    lambda: gradix.vmap(lambda v: v * v)(here),
    lambda: jnp.median(here),
    lambda: jnp.percentile(here, 50),
    lambda: jnp.gradient(here),
    lambda: jnp.vander(here, 3),
]
GUARDS = {
    "host_to_device": gradix.transfer_guard_host_to_device,
    "device_to_device": gradix.transfer_guard_device_to_device,
    "device_to_host": gradix.transfer_guard_device_to_host,
}


def refused(call) -> bool:
    try:
        call()
    except JaxRuntimeError as e:
        assert "Disallowed" in str(e) and "allow it with gradix.transfer_guard_" in str(e).replace("Allow", "allow")
        return True
    return False


@pytest.mark.parametrize("direction", PASSING)
@pytest.mark.parametrize("guard", ["of the direction", "of all"])
def test_levels(direction, guard):
    other = next(d for d in PASSING if d != direction)
    set_to = GUARDS[direction] if guard == "of the direction" else gradix.transfer_guard
    for call in (*PASSING[direction], *ASKED[direction], *NEVER):
        call()
    for level, passing, asked in (
        ("allow", False, False),
        ("disallow", True, False),
        ("disallow_explicit", True, True),
    ):
        with set_to(level):
            assert [refused(c) for c in PASSING[direction]] == [passing] * len(PASSING[direction]), level
            assert [refused(c) for c in ASKED[direction]] == [asked] * len(ASKED[direction]), level
            assert [i for i, c in enumerate(NEVER) if refused(c)] == [], level
            if guard == "of the direction":
                assert not any(refused(c) for c in (*PASSING[other], *ASKED[other])), level


def test_levels_that_tell(caplog):
    with caplog.at_level(logging.WARNING):
        for level, passing, asked in (("log", 1, 0), ("log_explicit", 1, 1), ("allow", 0, 0)):
            with gradix.transfer_guard(level):
                for call, count in (
                    (lambda: jnp.sin(A), passing),
                    (lambda: gradix.device_put(A), asked),
                    (lambda: both(across, here), passing),
                ):
                    caplog.clear()
                    call()
                    assert len([r for r in caplog.records if "transfer:" in r.getMessage()]) == count, level
    with gradix.transfer_guard("log"):
        caplog.clear()
        jnp.sin(A)
    assert "host-to-device transfer: an operand of dtype float32 and shape (8,)" in caplog.text


def test_options_of_the_process_and_traces():
    traces = double.stats().traces
    gradix.config.update("jax_transfer_guard", "disallow")
    try:
        assert refused(lambda: double(A)) and not refused(lambda: double(here))
        with gradix.transfer_guard("allow"):
            double(A)
    finally:
        gradix.config.update("jax_transfer_guard", "allow")
    assert double.stats().traces == traces  # nothing is traced anew under a guard
    with pytest.raises(ValueError, match="disallow"):
        gradix.config.update("jax_transfer_guard", "forbid")
