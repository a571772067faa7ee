"""Rotations against SciPy's, their derivatives also at no rotation, as pytrees, and what they refuse."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation as Reference, Slerp as ReferenceSlerp

import gradix
import gradix.numpy as jnp
from gradix.scipy.spatial.transform import Rotation, Slerp
from gradix.test_util import check_grads
from tests.same import assert_same

RNG = np.random.default_rng(11)
SEQUENCES = [
    "".join(p)
    for n in (1, 2, 3)
    for letters in ("xyz", "XYZ")
    for p in itertools.product(letters, repeat=n)
    if all(a != b for a, b in zip(p, p[1:]))
]


@pytest.fixture(autouse=True)
def _wide():
    with gradix.enable_x64(True):
        yield


def pair(*shape):
    q = RNG.normal(size=(*shape, 4))
    return Rotation.from_quat(q), Reference.from_quat(q)


@pytest.mark.parametrize("shape", [(), (1,), (7,)])
def test_forms(shape):
    ours, theirs = pair(*shape)
    assert_same(ours.as_quat(), theirs.as_quat())
    assert_same(ours.as_quat(canonical=True, scalar_first=True), np.roll(theirs.as_quat(canonical=True), 1, -1))
    assert_same(ours.as_matrix(), theirs.as_matrix())
    assert_same(ours.as_rotvec(), theirs.as_rotvec())
    assert_same(ours.as_rotvec(degrees=True), theirs.as_rotvec(degrees=True))
    assert_same(ours.as_mrp(), theirs.as_mrp())
    assert_same(ours.magnitude(), theirs.magnitude())
    assert_same(ours.inv().as_matrix(), theirs.inv().as_matrix())
    for back in (
        Rotation.from_matrix(theirs.as_matrix()),
        Rotation.from_rotvec(theirs.as_rotvec()),
        Rotation.from_mrp(theirs.as_mrp()),
        Rotation.from_rotvec(theirs.as_rotvec(degrees=True), degrees=True),
    ):
        assert_same(back.as_matrix(), theirs.as_matrix())
    v = RNG.normal(size=(*shape, 3))
    assert_same(ours.apply(v), theirs.apply(v))
    assert_same(ours.apply(v[..., :], inverse=True), theirs.apply(v, inverse=True))
    other = pair()
    assert_same((ours * other[0]).as_matrix(), (theirs * other[1]).as_matrix())
    assert ours.single == theirs.single


def test_euler_angles():
    for seq in SEQUENCES:
        angles = RNG.uniform(-3, 3, (4, len(seq)))
        ours, theirs = Rotation.from_euler(seq, angles), Reference.from_euler(seq, angles)
        assert_same(ours.as_matrix(), theirs.as_matrix())
        if len(seq) == 3:
            assert_same(ours.as_euler(seq), theirs.as_euler(seq))
            assert_same(ours.as_euler(seq, degrees=True), theirs.as_euler(seq, degrees=True))
            angles[:, 1] = [np.pi / 2, -np.pi / 2] * 2 if seq[0] != seq[2] else [0, np.pi] * 2
            locked = Rotation.from_euler(seq, angles)
            assert_same(Rotation.from_euler(seq, locked.as_euler(seq)).as_matrix(), locked.as_matrix(), 1e-6)


def test_arrays_of_rotations():
    ours, theirs = pair(5)
    assert len(ours) == 5
    assert_same(ours[1].as_quat(), theirs[1].as_quat())
    assert_same(ours[1:4].as_quat(), theirs[1:4].as_quat())
    assert_same(Rotation.concatenate([ours[0], ours[1:]]).as_quat(), theirs.as_quat())
    weights = np.array([1.0, 2, 0, 4, 1])
    assert_same(ours.mean().as_matrix(), theirs.mean().as_matrix())
    assert_same(ours.mean(weights).as_matrix(), theirs.mean(weights).as_matrix())
    assert_same(Rotation.identity(3).as_matrix(), np.stack([np.eye(3)] * 3))
    assert_same(Rotation.identity().apply(np.ones((2, 3))), np.ones((2, 3)))
    drawn = Rotation.random(gradix.random.key(0), 4000)
    assert_same(drawn.as_matrix().mean(0), np.zeros((3, 3)), atol=0.05)
    assert_same(Rotation.random(gradix.random.key(0)).magnitude().shape, ())


def test_between_rotations():
    ours, theirs = pair(4)
    times = np.array([0.0, 1.0, 1.5, 4.0])
    at = np.array([0.0, 0.3, 1.0, 1.2, 3.9, 4.0])
    assert_same(Slerp.init(times, ours)(at).as_matrix(), ReferenceSlerp(times, theirs)(at).as_matrix())
    assert_same(Slerp.init(times, ours)(1.2).as_matrix(), ReferenceSlerp(times, theirs)(1.2).as_matrix())


SMOOTH = {
    "matrix": lambda v: Rotation.from_rotvec(v).as_matrix(),
    "and back": lambda v: Rotation.from_rotvec(v).as_rotvec(),
    "from matrix": lambda v: Rotation.from_matrix(Rotation.from_rotvec(v).as_matrix()).as_mrp(),
    "euler": lambda v: Rotation.from_euler("xyz", v).as_euler("ZYX"),
    "mrp": lambda v: Rotation.from_mrp(v).as_quat(),
    "slerp": lambda v: Slerp.init(jnp.arange(2.0), Rotation.from_rotvec(jnp.stack([v, -v])))(v[0] + 0.5).as_quat(),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_and_mapping(name):
    f = SMOOTH[name]
    v = np.array([[0.3, -0.2, 0.4], [0.1, 0.2, -0.3]])
    check_grads(f, (v[0],), order=2)
    check_grads(f, (np.full(3, 1e-9),), order=1)
    assert_same(gradix.jit(gradix.vmap(f))(v), np.stack([f(jnp.asarray(row)) for row in v]))


def test_rotations_pass_through_transformations():
    ours, _ = pair(3)
    turned = gradix.jit(lambda r: r.inv())(ours)
    assert isinstance(turned, Rotation)
    mapped = gradix.vmap(lambda r, v: r.apply(v))(ours, np.ones((3, 3)))
    assert_same(mapped, ours.apply(np.ones((3, 3))))
    single = gradix.vmap(lambda r: r)(ours)
    assert_same(single.quat, ours.quat)
    assert gradix.tree.structure(ours) == gradix.tree.structure(ours[0])


REFUSED = {
    "quaternion": (lambda: Rotation.from_quat(np.ones(3)), ValueError, r"\(\.\.\., 4\)"),
    "matrix": (lambda: Rotation.from_matrix(np.ones((3, 2))), ValueError, "3, 3"),
    "letters": (lambda: Rotation.from_euler("abc", np.ones(3)), ValueError, "abc"),
    "mixed": (lambda: Rotation.from_euler("xY", np.ones(2)), ValueError, "xY"),
    "twice": (lambda: Rotation.from_euler("xx", np.ones(2)), ValueError, "different"),
    "too many": (lambda: Rotation.from_euler("xyzx", np.ones(4)), ValueError, "3 characters"),
    "angles": (lambda: Rotation.from_euler("xy", np.ones(3)), ValueError, r"\(\.\.\., 2\)"),
    "two axes": (lambda: Rotation.identity().as_euler("xy"), ValueError, "3 axes"),
    "len": (lambda: len(Rotation.identity()), TypeError, "len"),
    "index": (lambda: Rotation.identity()[0], TypeError, "subscriptable"),
    "product": (lambda: Rotation.identity() * 2, TypeError, "unsupported"),
    "vectors": (lambda: Rotation.identity(2).apply(np.ones((3, 3))), ValueError, "broadcast"),
    "weights": (lambda: Rotation.identity(2).mean(np.ones(3)), ValueError, "3 values and 2"),
    "one rotation": (lambda: Slerp.init([0], Rotation.identity(1)), ValueError, "at least 2"),
    "times": (lambda: Slerp.init([0, 1, 2], Rotation.identity(2)), ValueError, "2 rotations and 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()
