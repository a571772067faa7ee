"""Arrays, functions and trees of ours among the libraries that people use beside: what they take, and what we take of theirs."""

import copy
import importlib
import math
import multiprocessing
import pickle

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import random
from gradix._base.bounded import BoundedCache

X, V = jnp.arange(6, dtype="float32").reshape(3, 2), jnp.arange(3, dtype="float32")


def test_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("ab"))
    assert frame.sum().tolist() == [6.0, 9.0] and frame.assign(c=V).c.dtype == np.float32
    assert pd.Series(V, index=jnp.arange(3)).loc[1] == 1 and frame.iloc[jnp.array([0, 2])].a.tolist() == [0.0, 4.0]
    assert (
        frame[np.asarray(V > 0)].shape == (2, 2)
        and pd.DataFrame([{"loss": v} for v in V]).loss.astype(float).sum() == 3
    )
    assert jnp.asarray(frame).shape == (3, 2) and jnp.asarray(frame.a).dtype == jnp.float32
    np.testing.assert_allclose(gradix.grad(lambda w: (jnp.asarray(frame) @ w).sum())(jnp.ones(2)), [6, 9])


@pytest.mark.filterwarnings("default::DeprecationWarning")
def test_matplotlib():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = pyplot.subplots(2, 3)
    a = axes.ravel()
    (line,) = a[0].plot(V, jnp.sin(V))
    a[1].scatter(X[:, 0], X[:, 1], c=V, s=V * 10 + 1)
    image = a[2].imshow(X)
    counts, _, _ = a[3].hist(V, bins=jnp.linspace(0, 3, 4))
    a[4].bar(jnp.arange(3), V)
    a[5].fill_between(V, V - 1, V + 1)
    a[5].errorbar(V, V, yerr=V)
    a[5].axhline(V[1])
    a[5].set_xlim(V[0], V[2])
    a[5].text(V[0], V[1], f"{V[1]:.2f}")
    np.testing.assert_allclose(line.get_ydata(), jnp.sin(V))
    assert image.get_array().shape == (3, 2) and counts.tolist() == [1, 1, 1] and a[5].get_xlim() == (0, 2)
    pyplot.close(figure)


def test_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LinearRegression
    from sklearn.metrics import accuracy_score, mean_squared_error
    from sklearn.model_selection import train_test_split
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import StandardScaler

    labels = jnp.array([0, 1, 1])
    np.testing.assert_allclose(LinearRegression().fit(X, V).predict(X), V, atol=1e-5)
    np.testing.assert_allclose(StandardScaler().fit_transform(X), (X - X.mean(0)) / X.std(0), rtol=1e-6)
    assert accuracy_score(labels, jnp.array([0, 1, 0])) == pytest.approx(2 / 3) and mean_squared_error(V, V + 1) == 1
    assert (KNeighborsClassifier(1).fit(X, labels).predict(X) == labels).all()
    parts = train_test_split(X, V, random_state=0)
    assert [p.shape for p in parts] == [(2, 2), (1, 2), (2,), (1,)] and all(isinstance(p, gradix.Array) for p in parts)


def test_scipy():
    optimize, integrate = pytest.importorskip("scipy.optimize"), pytest.importorskip("scipy.integrate")
    sparse, linalg = pytest.importorskip("scipy.sparse"), pytest.importorskip("scipy.sparse.linalg")

    def loss(w):
        return jnp.sum((w - 1) ** 2)

    np.testing.assert_allclose(optimize.minimize(gradix.value_and_grad(loss), np.zeros(3), jac=True).x, 1, atol=1e-4)
    assert optimize.minimize(
        gradix.jit(loss), V, jac=gradix.grad(loss), hess=gradix.hessian(loss), method="Newton-CG"
    ).success
    assert optimize.brentq(lambda t: jnp.cos(t) - t, 0.0, 1.0) == pytest.approx(0.739085, abs=1e-5)
    assert optimize.least_squares(lambda w: w - V, np.zeros(3), jac=gradix.jacobian(lambda w: w - V)).success
    assert integrate.solve_ivp(gradix.jit(lambda t, y: -y), (0, 1), V).y[1, -1] == pytest.approx(math.exp(-1), rel=1e-2)
    assert integrate.quad(gradix.jit(jnp.sin), 0, 1)[0] == pytest.approx(1 - math.cos(1), rel=1e-5)
    assert (sparse.csr_matrix(X) @ V[:2]).tolist() == [1.0, 3.0, 5.0]
    solved, _ = linalg.cg(linalg.LinearOperator((3, 3), matvec=lambda w: 2 * jnp.asarray(w)), V)
    np.testing.assert_allclose(solved, V / 2, rtol=1e-5)


@pytest.mark.x32
def test_numpy():
    assert (
        type(np.asarray(X)) is np.ndarray and np.array(V).flags.writeable and isinstance(np.ones(3) + V, gradix.Array)
    )
    assert isinstance(np.float32(2) * V, gradix.Array) and np.add(np.ones(3), V, out=np.zeros(3)).tolist() == [1, 2, 3]
    assert np.arange(5)[jnp.array([1, 2])].tolist() == [1, 2] and np.arange(3)[V > 0].tolist() == [1, 2]
    with pytest.raises(ValueError, match="copy"):
        np.asarray(V, dtype=np.float64, copy=False)
    assert np.asarray(V, copy=False).tolist() == np.asarray(V, dtype=np.float32, copy=False).tolist() == [0, 1, 2]
    assert np.asarray(V, dtype=np.float64).dtype == np.array(V, np.float64, copy=True).dtype == np.float64
    assert np.linalg.norm(X) == pytest.approx(math.sqrt(55)) and np.concatenate([X, np.ones((1, 2))]).shape == (4, 2)
    a = np.zeros(3)
    a[:] = V
    a[jnp.int32(0)] += V[2]
    assert (
        a.tolist() == [2.0, 1.0, 2.0]
        and np.from_dlpack(X).shape == (3, 2)
        and gradix.dlpack.from_dlpack(a).shape == (3,)
    )


def test_python():
    import json

    assert json.loads(json.dumps({"a": V.tolist(), "b": V[1].item()})) == {"a": [0.0, 1.0, 2.0], "b": 1.0}
    assert f"{V[1]:.3f} {jnp.int32(3):d} {V[2]:>6.1f}" == "1.000 3    2.0" and math.sin(V[1]) == math.sin(1)
    assert [1, 2, 3][jnp.int32(1)] == 2 and list(range(jnp.int32(2))) == [0, 1] and "ab" * jnp.int32(2) == "abab"
    assert (sum(V), min(V), max(V), round(float(V[2]), 1)) == (3, 0, 2, 2.0) and V[1] in V and len(list(zip(V, V))) == 3
    match X.shape:
        case (rows, 2):
            assert rows == 3
    first, *rest = V
    assert first == 0 and len(rest) == 2


def test_cupy_style_exchange():
    class Foreign:
        """An array of another library, known by the protocol alone."""

        def __init__(self, a):
            self.a = a

        def __dlpack__(self, **kwargs):
            return self.a.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.a.__dlpack_device__()

    a = np.arange(4, dtype=np.float32)
    assert (jnp.from_dlpack(Foreign(a)) == a).all() and (gradix.dlpack.from_dlpack(Foreign(a)) == a).all()

    class Interface:
        __array_interface__ = a.__array_interface__

    assert (jnp.asarray(Interface()) == a).all()


# -- annotations -----------------------------------------------------------------------------------------------------

ANNOTATED = """
from gradix import Array
from jaxtyping import Float, jaxtyped
from {checker} import {name} as typechecker

@jaxtyped(typechecker=None)
@typechecker
def affine(x: Float[Array, "n m"], w: Float[Array, "m"]) -> Float[Array, "n"]:
    return x @ w
"""


@pytest.mark.parametrize("checker, name", [("beartype", "beartype"), ("typeguard", "typechecked")])
def test_jaxtyping(checker, name, tmp_path, monkeypatch):
    jaxtyping = pytest.importorskip("jaxtyping")
    pytest.importorskip("jax", reason="jaxtyping's PyTree imports jax: without it, run with -p gradix.pytest")
    module = pytest.importorskip(checker)
    if checker == "typeguard" and hasattr(module, "TypeCheckError"):
        pytest.skip("jaxtyping needs typeguard 2: later ones read the strings in annotations as Python")
    (tmp_path / f"annotated_{checker}.py").write_text(ANNOTATED.format(checker=checker, name=name))
    monkeypatch.syspath_prepend(tmp_path)
    affine = importlib.import_module(f"annotated_{checker}").affine
    assert affine(X, V[:2]).shape == (3,)
    for around in (
        gradix.jit,
        lambda f: gradix.jit(gradix.grad(lambda x, w: f(x, w).sum())),
        lambda f: gradix.make_jaxpr(f),
    ):
        around(affine)(X, V[:2])
    assert gradix.vmap(affine, (0, None))(jnp.ones((4, 3, 2)), V[:2]).shape == (4, 3)
    for f, *args in ((affine, X, V), (gradix.jit(affine), X, V), (affine, jnp.ones((3, 2), jnp.int32), V[:2])):
        with pytest.raises(Exception, match=r"(Float\[Array, ' ?m'\]|n m)") as e:
            f(*args)
        assert isinstance(e.value, TypeError) or type(e.value).__module__.startswith(checker)
    assert isinstance(random.key(0), jaxtyping.Key[gradix.Array, ""]) and not isinstance(
        V, jaxtyping.Key[gradix.Array, "..."]
    )
    assert isinstance({"w": X}, jaxtyping.PyTree[jaxtyping.Float[gradix.Array, "..."]])
    assert not isinstance({"w": "text"}, jaxtyping.PyTree[jaxtyping.Float[gradix.Array, "..."]])
    assert isinstance(jnp.int32(1), jaxtyping.Int[gradix.Array, ""])


# -- to other processes, and back ------------------------------------------------------------------------------------

TREE = {"w": X, "key": random.key(0), "none": None, "rest": (1, V.astype(jnp.bfloat16))}


def same(a, b) -> bool:
    return gradix.tree.structure(a) == gradix.tree.structure(b) and gradix.tree.all(
        gradix.tree.map(lambda x, y: bool(jnp.all(x == y)) and gradix.typeof(x) == gradix.typeof(y), a, b)
    )


@pytest.mark.parametrize(
    "again",
    [lambda t: pickle.loads(pickle.dumps(t)), lambda t: pickle.loads(pickle.dumps(t, 5)), copy.deepcopy, copy.copy],
    ids=["pickle", "protocol 5", "deepcopy", "copy"],
)
def test_trees_are_copied(again):
    assert same(again(TREE), TREE)
    structure = gradix.tree.structure(TREE)
    assert again(structure) == structure and again(gradix.ShapeDtypeStruct((2,), jnp.float32)).shape == (2,)
    assert again(gradix.P("x", None)) == gradix.P("x", None) and again(X.dtype) == X.dtype


def test_functions_travel_by_cloudpickle():
    cloudpickle = pytest.importorskip("cloudpickle")

    def again(f):
        return pickle.loads(cloudpickle.dumps(f))

    full = BoundedCache(4, drop=1)
    full.keep("key", object)
    empty = again(full)
    assert (empty, empty.limit, empty.drop) == ({}, 4, 1)
    # in whose types there are sizes that values decide
    gradix.jit(lambda v: jnp.where(v > 0, v, 1.0)[v > 0][:, None] * v)(V)
    scale = jnp.float32(3.0)
    pull = gradix.vjp(jnp.square, 2.0)[1]
    assert again(lambda a: gradix.jit(lambda b: b * scale)(a))(2.0) == 6
    for f, x, expected in (
        (gradix.grad(lambda a: a * a), 1.0, 2.0),
        (gradix.vmap(lambda a: a * a), V, V * V),
        (gradix.checkpoint(jnp.square), V, V * V),
        (gradix.jit(gradix.vmap(gradix.grad(lambda a: a * a))), V, 2 * V),
        (gradix.hessian(lambda a: a**3), 2.0, 12.0),
        (gradix.jacfwd(lambda a: a**2), 2.0, 4.0),
        (gradix.tree_util.Partial(jnp.add, 1.0), V, V + 1),
        (gradix.named_call(jnp.square, name="x"), V, V * V),
        (gradix.nn.relu, -V, 0 * V),
        (gradix.linearize(jnp.square, 2.0)[1], 1.0, 4.0),
        (lambda v: pull(v)[0], 1.0, 4.0),
    ):
        np.testing.assert_allclose(again(f)(x), expected, rtol=1e-6)

    @gradix.custom_jvp
    def forward(x):
        return 2 * x

    forward.defjvp(lambda p, t: (2 * p[0], 5 * t[0]))

    @gradix.custom_vjp
    def backward(x):
        return 2 * x

    backward.defvjp(lambda x: (2 * x, None), lambda _, ct: (7 * ct,))
    assert gradix.grad(again(forward))(1.0) == 5 and gradix.grad(again(backward))(1.0) == 7


def slope(x):
    return gradix.grad(lambda v: (v**2).sum())(x)


@gradix.jit
def doubled(x):
    return 2 * x


@gradix.custom_jvp
def bent(x):
    return 2 * x


bent.defjvp(lambda p, t: (bent(*p), 5 * t[0]))


@gradix.custom_vjp
def turned(x):
    return 2 * x


turned.defvjp(lambda x: (turned(x), None), lambda _, ct: (7 * ct,))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_arrays_and_functions_pass_to_other_processes(method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        out, tree = pool.apply(slope, (X,)), pool.apply(copy.copy, (TREE,))
        sent = [pool.apply(f, (X,)) for f in (doubled, bent, turned)]
        sums = pool.map(jnp.sum, X)
    np.testing.assert_array_equal(out, 2 * X)
    assert same(tree, TREE) and same(sent, [2 * X] * 3) and sums == [1, 5, 9]


def test_functions_with_rules_of_a_module_pickle_by_name():
    assert all(pickle.loads(pickle.dumps(f)) is f for f in (doubled, bent, turned))


def test_meshes_and_shardings_are_copied_with_what_holds_them():
    mesh = gradix.make_mesh((1,), ("x",))
    held = {"mesh": mesh, "at": gradix.NamedSharding(mesh, gradix.P("x")), "one": X.sharding}
    again = copy.deepcopy(held)
    assert again == held and again["mesh"].devices.flat[0] is mesh.devices.flat[0]


def test_the_state_of_options_pickles_by_name():
    from gradix._base.config import state

    assert pickle.loads(pickle.dumps(state)) is state


def test_functions_travel_by_dill():
    dill = pytest.importorskip("dill")
    scale = jnp.float32(3.0)
    for f, expected in (
        (gradix.grad(lambda x: x * scale), 3),
        (gradix.jit(lambda x: x * scale), 6),
        (gradix.hessian(lambda x: x**2), 2),
        (gradix.vmap(lambda x: x * scale, axis_size=1, in_axes=None), 6),
    ):
        np.testing.assert_allclose(dill.loads(dill.dumps(f))(2.0), expected)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="NumPy asks no array for its dtype")
def test_numpy_is_told_that_an_array_is_no_dtype():
    def both(x):
        with pytest.warns(DeprecationWarning, match="write x.dtype"):
            assert np.dtype(x) == np.float32
        return x

    gradix.jit(both)(both(V))
    assert np.zeros(3, V.dtype).dtype == np.float32  # which warns of nothing
