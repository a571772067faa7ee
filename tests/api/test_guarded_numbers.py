"""Python numbers under `transfer_guard("disallow")`: those the user passes are refused as in the reference, the library's own are not."""

import pytest

import gradix

TRANSFERS = {
    "add": lambda lib, x, f: lib.numpy.add(x, 1),
    "x + 1": lambda lib, x, f: x + 1,
    "1.0 + x": lambda lib, x, f: 1.0 + x,
    "x ** 2.5": lambda lib, x, f: x**2.5,
    "x > 0": lambda lib, x, f: x > 0,
    "x == 1": lambda lib, x, f: x == 1,
    "x // 2": lambda lib, x, f: x // 2,
    "maximum": lambda lib, x, f: lib.numpy.maximum(x, 0),
    "sin": lambda lib, x, f: lib.numpy.sin(1.0),
    "lax.add": lambda lib, x, f: lib.lax.add(x, 1.0),
    "lax.clamp": lambda lib, x, f: lib.lax.clamp(0.0, x, 1.0),
    "jit of a float": lambda lib, x, f: f(1.0),
    "jit of an int": lambda lib, x, f: f(3),
    "jit of a bool": lambda lib, x, f: f(True),
    "asarray": lambda lib, x, f: lib.numpy.asarray(1),
    "float32": lambda lib, x, f: lib.numpy.float32(1),
    "array": lambda lib, x, f: lib.numpy.array([1, 2]),
    "grad": lambda lib, x, f: lib.grad(lambda a: a * a)(1.0),
    "jvp": lambda lib, x, f: lib.jvp(lambda a: a * a, (1.0,), (1.0,)),
    "vmap": lambda lib, x, f: lib.vmap(lambda a: a * 2)(x),
    "scan": lambda lib, x, f: lib.lax.scan(lambda c, a: (c + a, a), 0.0, x),
    "tree": lambda lib, x, f: lib.tree.map(lambda a: a * 2, [x]),
}
NONE = {
    "device_put": lambda lib, x, f: lib.device_put(1),
    "device_put of a float": lambda lib, x, f: lib.device_put(1.0),
    "jit": lambda lib, x, f: f(x),
    "traced": lambda lib, x, f: lib.jit(lambda a: a * 3 + 1.0)(x),
    "x ** 2": lambda lib, x, f: x**2,
    "sum": lambda lib, x, f: x.sum(),
    "mean": lambda lib, x, f: x.mean(),
    "relu": lambda lib, x, f: lib.nn.relu(x),
    "-x": lambda lib, x, f: -x,
    "nan_to_num": lambda lib, x, f: lib.numpy.nan_to_num(x),
    "roll": lambda lib, x, f: lib.numpy.roll(x, 1),
    "round": lambda lib, x, f: lib.numpy.round(x, 2),
    "astype": lambda lib, x, f: x.astype("int32"),
    "isclose": lambda lib, x, f: lib.numpy.isclose(x, x),
    "arange": lambda lib, x, f: lib.numpy.arange(3),
    "item": lambda lib, x, f: x[:1].item() if lib is gradix else x.sum().item(),
    "eval_shape": lambda lib, x, f: lib.eval_shape(lambda a: a + 1, 1.0),
}


def is_refused(lib, call):
    x, f = lib.numpy.arange(3.0) * 1, lib.jit(lambda a: a + 1)
    f(x), f(1.0), f(3), f(True)
    for _ in range(2):
        with lib.transfer_guard("disallow"):
            try:
                call(lib, x, f)
            except Exception as e:
                assert type(e).__name__ == "JaxRuntimeError" and "Disallowed host-to-device transfer" in str(e), e
                return True
    return False


@pytest.mark.parametrize("name", TRANSFERS)
def test_numbers_are_refused(name):
    assert is_refused(gradix, TRANSFERS[name])


@pytest.mark.parametrize("name", NONE)
def test_what_needs_no_transfer_passes(name):
    assert not is_refused(gradix, NONE[name])


@pytest.mark.parity
@pytest.mark.parametrize("name", [*TRANSFERS, *NONE])
def test_as_the_reference(name, peer):
    assert is_refused(peer, {**TRANSFERS, **NONE}[name]) == (name in TRANSFERS)


def test_the_librarys_own_numbers_are_no_transfers():
    x = gradix.numpy.arange(8.0) + 1
    with gradix.transfer_guard("disallow"):
        for call in (
            lambda: x.std(),
            lambda: gradix.nn.softmax(x),
            lambda: gradix.numpy.histogram(x),
            lambda: gradix.numpy.percentile(x, 50),
            lambda: gradix.random.gamma(gradix.random.key(0), 2.0),
            lambda: gradix.nn.gelu(x),
            lambda: x[0],
            lambda: x.at[0].set(1.0),
        ):
            call()
