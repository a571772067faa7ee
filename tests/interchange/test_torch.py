"""PyTorch's tensors and functions here, and arrays and functions of here in PyTorch."""

import importlib.util

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental.torch import as_gradix, as_torch, from_torch, to_torch

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

X, W = np.linspace(-1, 1, 12, dtype="f4").reshape(4, 3), np.linspace(0, 2, 6, dtype="f4").reshape(3, 2)
Z = np.array([1 + 2j, 0.5 - 1j], "c8")


@pytest.fixture(scope="module")
def torch():
    import torch

    return torch


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_bytes_of_floats_go_both_ways(torch, dtype):
    x = torch.tensor([0.5, -1.75, 0.0, float("nan")]).to(getattr(torch, dtype)).reshape(2, 2)
    a = from_torch(x.T)
    assert (
        a.dtype == dtype
        and to_torch(a).dtype == x.dtype
        and torch.equal(to_torch(a).view(torch.uint8), x.T.contiguous().view(torch.uint8))
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32", "int8", "uint8", "bool", "complex64"])
def test_values_go_both_ways(torch, dtype):
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    a = from_torch({"x": x.T, "n": 3})
    assert a["x"].dtype == dtype and a["n"] == 3
    back = to_torch(a)["x"]
    assert back.dtype == x.dtype and torch.equal(back, x.T)
    back.zero_()
    x.zero_()
    want = np.arange(6).reshape(2, 3).T.astype(bool if dtype == "bool" else int)
    np.testing.assert_array_equal(np.asarray(a["x"]).astype("c8"), want)


def test_a_function_of_arrays_is_one_of_tensors(torch):
    f = as_torch(lambda p, x, i=0: {"y": (jnp.tanh(x @ p["w"]) * i).sum(), "n": jnp.argmax(x)})
    w, x = torch.tensor(W, requires_grad=True), torch.tensor(X, requires_grad=True)
    out = f({"w": w}, x, i=3.0)
    want = 3 * torch.tanh(x @ w).sum()
    torch.testing.assert_close(out["y"], want)
    assert out["n"] == 11 and not out["n"].requires_grad
    have = torch.autograd.grad(out["y"], (w, x))
    for h, g in zip(have, torch.autograd.grad(want, (w, x))):
        torch.testing.assert_close(h, g)


def test_gradients_of_gradients_through_arrays(torch):
    f = as_torch(lambda x, n: (jnp.sin(x).sum() * n, n + 1))
    x = torch.tensor([0.3, 0.5], requires_grad=True)
    (g,) = torch.autograd.grad(f(x, torch.tensor(2))[0], x, create_graph=True)
    (second,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    torch.testing.assert_close(second, -2 * torch.sin(x))
    torch.testing.assert_close(third, -2 * torch.cos(x))


def test_complex_gradients_are_each_librarys_own(torch):
    z = torch.tensor(Z, requires_grad=True)
    (have,) = torch.autograd.grad(as_torch(lambda z: jnp.abs(z * z * 1j + z).sum())(z), z)
    (want,) = torch.autograd.grad(torch.abs(z * z * 1j + z).sum(), z)
    torch.testing.assert_close(have, want)
    f = as_gradix(lambda z: torch.abs(z * z * 1j + z).sum())
    np.testing.assert_allclose(gradix.grad(f)(Z), gradix.grad(lambda z: jnp.abs(z * z * 1j + z).sum())(Z), rtol=1e-5)


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit])
def test_a_function_of_tensors_is_one_of_arrays(torch, transform):
    f = as_gradix(lambda p, x: {"y": torch.tanh(x @ p["w"]), "n": torch.argmax(x)})
    g = lambda p, x: {"y": jnp.tanh(x @ p["w"]), "n": jnp.argmax(x)}
    have, want = transform(f)({"w": W}, X), g({"w": W}, X)
    np.testing.assert_allclose(have["y"], want["y"], rtol=1e-5)
    assert have["n"] == want["n"]
    have, want = [
        transform(gradix.grad(lambda p, x, f=f: (f(p, x)["y"] ** 2).sum(), (0, 1)))({"w": W}, X) for f in (f, g)
    ]
    np.testing.assert_allclose(have[0]["w"], want[0]["w"], rtol=1e-4)
    np.testing.assert_allclose(have[1], want[1], rtol=1e-4)


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit])
def test_gradients_of_gradients_through_tensors(torch, transform):
    f = as_gradix(lambda x, w, n: (torch.sin(x * w).sum() * n, n + 1))
    g = lambda x, w, n: (jnp.sin(x * w).sum() * n, n + 1)
    x, w = X[0], np.float32(0.5)
    third = [
        gradix.grad(lambda x, f=f: gradix.grad(lambda x: gradix.grad(lambda x: f(x, w, 2)[0])(x).sum())(x).sum())
        for f in (f, g)
    ]
    np.testing.assert_allclose(transform(third[0])(x), third[1](x), rtol=1e-4)
    mixed = [gradix.jacrev(gradix.grad(lambda x, w, f=f: f(x, w, 2)[0], 1)) for f in (f, g)]
    np.testing.assert_allclose(transform(mixed[0])(x, w), mixed[1](x, w), rtol=1e-4)
    linear = as_gradix(lambda x: (2 * x).sum())
    assert gradix.jacrev(gradix.grad(linear))(x).tolist() == np.zeros((3, 3)).tolist()


def test_tensors_without_gradients_and_of_other_strides(torch):
    f = as_torch(lambda x, w: (jnp.sin(x) * w).sum())
    base, w = torch.arange(12.0).reshape(3, 4).requires_grad_(), torch.ones(2, 3)
    f(base.T[::2], w).backward()
    (want,) = torch.autograd.grad(torch.sin(base.T[::2]).sum(), base)
    torch.testing.assert_close(base.grad, want)
    assert w.grad is None and not f(torch.ones(2), torch.ones(2)).requires_grad
    with torch.no_grad():
        assert not f(base, 1.0).requires_grad
    out = f(torch.ones(2, requires_grad=True), torch.ones(2))
    out.backward(retain_graph=True)
    out.backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()


def test_a_function_of_tensors_is_mapped(torch):
    f = as_gradix(lambda x, w: torch.tanh(x @ w), gradix.ShapeDtypeStruct((2,), "float32"))
    np.testing.assert_allclose(gradix.vmap(f, (0, None))(X, W), np.tanh(X @ W), rtol=1e-5)


def test_modules_train_inside_of_programs(torch):
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 2)
    params = from_torch(dict(module.named_parameters()))
    f = as_gradix(lambda p, x: torch.func.functional_call(module, p, (x,)))
    grads = gradix.grad(lambda p: f(p, X).sum())(params)
    module(torch.tensor(X)).sum().backward()
    for name, p in module.named_parameters():
        np.testing.assert_allclose(grads[name], p.grad.numpy(), rtol=1e-5)
