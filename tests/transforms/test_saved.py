"""What reverse mode keeps, in words, and what policies may answer."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import checkpoint_policies as policies
from gradix.ad_checkpoint import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint_name,
    print_saved_residuals,
    saved_residuals,
)

W = jnp.ones((3, 3), "float32")
HERE = __file__


def lines(capsys, f, *args, **kwargs):
    print_saved_residuals(f, *args, **kwargs)
    return capsys.readouterr().out.splitlines()


@pytest.mark.x32
def test_arguments_constants_and_results(capsys):
    def f(x, d, *, k):
        return jnp.sin(W @ x * d["k"][0]).sum() * k

    out = lines(capsys, f, jnp.ones(3), {"k": [jnp.ones(3)]}, k=jnp.float32(3.0))
    for kept in ("f32[3,3] from a constant", "f32[3] from the argument d['k'][0]", "f32[] from the argument k"):
        assert kept in out
    where = f"from {HERE}:{f.__code__.co_firstlineno + 1} ({f.__qualname__})"
    assert f"f32[3] output of cos {where}" in out and f"f32[] output of reduce_sum {where}" in out
    assert not any("argument x" in line for line in out)


@pytest.mark.x32
def test_checkpoints_jit_and_nothing(capsys):
    f = lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "a")).sum()
    assert len(lines(capsys, f, jnp.ones(3))) == 2
    assert lines(capsys, gradix.checkpoint(f), jnp.ones(3)) == ["f32[3] from the argument x"]
    named = lines(capsys, gradix.checkpoint(f, policy=policies.save_only_these_names("a")), jnp.ones(3))
    assert len(named) == 2 and named[1].startswith("f32[3] named 'a' from " + HERE)
    assert all("output of jitted function '<lambda>'" in line for line in lines(capsys, gradix.jit(f), jnp.ones(3)))
    assert lines(capsys, lambda x: x.sum() + 2, jnp.ones(3)) == []


def test_the_same_value_is_listed_once():
    found = saved_residuals(lambda x: x * x * x, jnp.float32(2.0))
    assert [text.split(" from ")[0] for _, text in found].count("from the argument x") <= 1
    assert len(found) == len({text for _, text in found})


F = lambda x: jnp.sin(checkpoint_name(jnp.sin(x @ x), "a") @ x).sum()
EVERY = {
    **{
        n: getattr(policies, n)
        for n in (
            "everything_saveable",
            "nothing_saveable",
            "dots_saveable",
            "checkpoint_dots",
            "dots_with_no_batch_dims_saveable",
            "checkpoint_dots_with_no_batch_dims",
        )
    },
    "offload_dot": policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
    "any names but": policies.save_any_names_but_these("b"),
    "anything except": policies.save_anything_except_these_names("a"),
    "only names": policies.save_only_these_names("a"),
    "both": policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("a")),
    "names and offload": policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["b"],
        names_which_can_be_offloaded=["a"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
    "answers": lambda prim, *_, **params: {"sin": Saveable, "dot_general": Offloadable("device", "pinned_host")}.get(
        prim.name, Recompute
    ),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_policy(name):
    x = jnp.array([[0.1, 0.2], [0.3, 0.4]])
    want = gradix.grad(F)(x)
    f = gradix.checkpoint(F, policy=EVERY[name])
    for g in (gradix.grad(f), gradix.jit(gradix.grad(f)), gradix.grad(gradix.jit(f))):
        np.testing.assert_allclose(g(x), want, rtol=1e-5)
    np.testing.assert_allclose(gradix.vmap(gradix.grad(f))(x[None])[0], want, rtol=1e-5)
    np.testing.assert_allclose(gradix.jacfwd(gradix.grad(f))(x), gradix.hessian(F)(x), rtol=1e-4, atol=1e-5)


def test_answers_of_policies():
    assert Saveable and not Recompute and (repr(Saveable), repr(Recompute)) == ("Saveable", "Recompute")
    assert Offloadable("a", "b") == ("a", "b") and Offloadable(src="a", dst="b").dst == "b"
    kept = len(saved_residuals(gradix.checkpoint(F, policy=EVERY["answers"]), jnp.ones((2, 2))))
    assert len(saved_residuals(gradix.checkpoint(F), jnp.ones((2, 2)))) == 1 < kept
