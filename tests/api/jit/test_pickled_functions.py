"""Jitted functions are pickled by reference where a module names them, and with their settings otherwise."""

import pickle

import pytest

import gradix
import gradix.numpy as jnp


@gradix.jit
def doubled(x):
    return 2 * x


def raised(x, n):
    return x**n


def test_by_reference():
    assert pickle.loads(pickle.dumps(doubled)) is doubled


def test_with_its_settings():
    again = pickle.loads(pickle.dumps(gradix.jit(raised, static_argnums=1)))
    assert again(jnp.float32(3), 2) == 9 and again.stats().traces == 1
    assert again(jnp.float32(3), 3) == 27 and again.stats().traces == 2


def test_by_content():
    cloudpickle = pytest.importorskip("cloudpickle")
    assert pickle.loads(cloudpickle.dumps(gradix.jit(lambda x: x + 1)))(1.0) == 2
