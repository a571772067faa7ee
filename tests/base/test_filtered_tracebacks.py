"""What `jax_traceback_filtering` does to exceptions that are caught, mode by mode, and beside the reference."""

import importlib.util
import os
import sys
import traceback
from types import SimpleNamespace

import pytest

import gradix
from gradix._base.source import located
from gradix._base.tracebacks import NOTE, UnfilteredStackTrace, boundary
from gradix.compat.internals import traceback_util

MODES = "off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"


class Mine(Exception):
    """An exception of the user's own."""


class OfSlots(Mine):
    __slots__ = ("said",)

    def __init__(self, said):
        self.said = said


class Frozen(Exception):
    """Takes no attributes, such as notes."""

    def __setattr__(self, name, value):
        if name != "__traceback__":  # which context managers set
            raise AttributeError(name)


class Refuses(Mine):
    def with_traceback(self, _):
        raise RuntimeError("no")


def programs(lib):
    """Programs that raise, by name; each calls the function that raises through transformations."""
    jnp, lax, x = lib.numpy, lib.lax, lib.numpy.ones(3)

    def raising(error, cause=None):
        def bad(*_):
            raise error

        def chained(*_):
            try:
                raise LookupError("first")
            except LookupError as first:
                if cause == "context":
                    raise error  # noqa: B904 (is what is tested)
                raise error from (first if cause == "cause" else None)

        return chained if cause else bad

    def nested(x):
        return lib.jit(lambda x: lib.grad(lambda y: lib.vmap(raising(Mine("deep")))(y).sum())(x))(x)

    def caught(x):
        def outer(x):
            try:
                lib.jit(raising(Mine("inner")))(x)
            except Mine as e:
                raise Mine("outer") from e

        return lib.jit(outer)(x)

    def backward(x):
        f = lib.custom_vjp(lambda x: x)
        f.defvjp(lambda x: (x, None), raising(Mine("bwd")))
        return lib.grad(lambda x: f(x).sum())(x)

    def forward(x):
        f = lib.custom_jvp(lambda x: x)
        f.defjvp(raising(Mine("jvp")))
        return lib.jvp(f, (x,), (x,))

    return {
        "jit": lambda: lib.jit(raising(Mine("m")))(x),
        "nested": lambda: nested(x),
        "scan": lambda: lax.scan(raising(Mine("m")), 0.0, x),
        "while_loop": lambda: lax.while_loop(raising(Mine("m")), lambda x: x, x),
        "fori_loop": lambda: lax.fori_loop(0, 3, raising(Mine("m")), x),
        "map": lambda: lax.map(raising(Mine("m")), x),
        "cond": lambda: lax.cond(x.sum() > 0, raising(Mine("m")), lambda x: x, x),
        "switch": lambda: lax.switch(0, [raising(Mine("m")), lambda x: x], x),
        "associative_scan": lambda: lax.associative_scan(raising(Mine("m")), x),
        "checkpoint": lambda: lib.grad(lib.checkpoint(raising(Mine("m"))))(1.0),
        "jacfwd": lambda: lib.jacfwd(raising(Mine("m")))(x),
        "jacrev": lambda: lib.jacrev(raising(Mine("m")))(x),
        "hessian": lambda: lib.hessian(raising(Mine("m")))(x),
        "value_and_grad": lambda: lib.value_and_grad(raising(Mine("m")))(1.0),
        "vjp": lambda: lib.vjp(raising(Mine("m")), x),
        "linearize": lambda: lib.linearize(raising(Mine("m")), x),
        "make_jaxpr": lambda: lib.make_jaxpr(raising(Mine("m")))(x),
        "eval_shape": lambda: lib.eval_shape(raising(Mine("m")), x),
        "lower": lambda: lib.jit(raising(Mine("m"))).lower(x),
        "backward": lambda: backward(x),
        "forward": lambda: forward(x),
        "cause": lambda: lib.jit(raising(Mine("m"), "cause"))(x),
        "context": lambda: lib.jit(raising(Mine("m"), "context"))(x),
        "from None": lambda: lib.jit(raising(Mine("m"), "none"))(x),
        "caught inside": lambda: caught(x),
        "slots": lambda: lib.jit(raising(OfSlots("m")))(x),
        "group": lambda: lib.jit(raising(ExceptionGroup("g", [Mine("a"), ValueError("b")])))(x),
        "stop": lambda: lib.jit(raising(StopIteration(3)))(x),
        "interrupt": lambda: lib.jit(raising(KeyboardInterrupt()))(x),
        "exit": lambda: lib.jit(raising(SystemExit(3)))(x),
        "refused": lambda: lib.jit(lambda x: x + jnp.ones(4))(x),
        "a decision": lambda: lib.jit(lambda x: 1 if x.sum() > 0 else 2)(x),
        "result": lambda: lib.jit(lambda x: "words")(x),
    }


def raised(program):
    try:
        program()
    except BaseException as e:
        return e
    raise AssertionError("nothing was raised")


def frames_of(error):
    """The frames of a traceback after the one that ran the program."""
    frames = [f for f, _ in traceback.walk_tb(error.__traceback__)]
    starts = [i for i, f in enumerate(frames) if f.f_code is raised.__code__]
    return frames[starts[0] + 1 :] if starts else frames


def names(frames):
    return [f.f_code.co_name for f in frames]


def shown(error):
    """The functions of a traceback whose frames are not hidden."""
    return names([f for f in frames_of(error) if "__tracebackhide__" not in f.f_locals])


def users(error):
    """The functions of a traceback that are in this file."""
    return names([f for f in frames_of(error) if f.f_code.co_filename == __file__])


NAMES = sorted(programs(gradix))
PASSED = ("interrupt", "exit")


@pytest.fixture
def mode(request):
    gradix.config.update("jax_traceback_filtering", request.param)
    return request.param


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", MODES, indirect=True)
def test_frames_of_caught_exceptions(mode, name):
    e = raised(programs(gradix)[name])
    every = names(frames_of(e))
    if mode == "off" or name in PASSED:
        assert (
            shown(e) == every != users(e)
            and not hasattr(e, "__notes__")
            and not isinstance(e.__cause__, UnfilteredStackTrace)
        )
        return
    assert shown(e) == users(e) and len(users(e)) >= 1
    if mode == "tracebackhide":
        assert every != users(e) and not hasattr(e, "__notes__")
        return
    assert every == users(e)
    if mode == "remove_frames":
        whole = e.__cause__
        assert (
            isinstance(whole, UnfilteredStackTrace) and type(e).__name__ in str(whole) and not hasattr(e, "__notes__")
        )
        assert users(whole) == every != names(frames_of(whole))
    else:
        assert e.__notes__ == [NOTE] and not isinstance(e.__cause__, UnfilteredStackTrace)


def summary(error, unfiltered, depth=0):
    """An exception and those it arose from: types, the user's frames, and where the whole traceback hangs."""
    if error is None or depth > 4:
        return None
    whole = type(error).__name__ == "UnfilteredStackTrace"
    assert whole == isinstance(error, unfiltered)
    # what the other library says of its own accord, such as where an operation was written
    own = type(error.__cause__).__name__ == "JaxStackTraceBeforeTransformation"
    cause = None if own else error.__cause__
    return (
        type(error).__name__,
        users(error),
        len(getattr(error, "__notes__", ())),
        error.__suppress_context__ and not own,
        summary(cause, unfiltered, depth + 1),
        summary(error.__context__, unfiltered, depth + 1),
    )


@pytest.mark.parity
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", MODES, indirect=True)
def test_as_the_reference(mode, name, peer):
    from jax._src.traceback_util import UnfilteredStackTrace as theirs

    before = peer.config.jax_traceback_filtering
    peer.config.update("jax_traceback_filtering", mode)
    try:
        want = summary(raised(programs(peer)[name]), theirs)
    finally:
        peer.config.update("jax_traceback_filtering", before)
    assert summary(raised(programs(gradix)[name]), UnfilteredStackTrace) == want


@pytest.mark.parametrize("mode", MODES, indirect=True)
@pytest.mark.parametrize("kind", [Frozen, Refuses])
def test_exceptions_that_take_no_attributes(kind, mode):
    error = kind("m")

    def bad(x):
        raise error

    e = raised(lambda: gradix.jit(bad)(1.0))
    assert e is error and shown(e)[-1] == "bad"
    if mode in ("remove_frames", "quiet_remove_frames", "auto"):
        assert shown(e) == ["<lambda>", "bad"] and isinstance(e.__cause__, UnfilteredStackTrace) == (
            mode == "remove_frames"
        )


@pytest.mark.promotes
def test_an_exception_raised_again_has_one_note_and_one_traceback():
    error = Mine("again")

    def bad(x):
        raise error

    first = [shown(raised(lambda: gradix.jit(bad)(1.0))) for _ in range(2)][0]
    assert first == ["<lambda>", "bad"] and error.__notes__ == [NOTE]


def test_handlers_inside_of_a_transformed_function_see_every_frame():
    seen = []

    def outer(x):
        try:
            gradix.vmap(inner)(x)
        except Mine as e:
            seen.append([os.path.basename(f.f_code.co_filename) for f, _ in traceback.walk_tb(e.__traceback__)])
            raise

    def inner(x):
        raise Mine("m")

    assert shown(raised(lambda: gradix.jit(outer)(gradix.numpy.ones(3)))) == ["<lambda>", "outer", "inner"]
    assert "vmap.py" in seen[0]


def test_functions_of_arrays_are_left_out_too():
    for call in (
        lambda: gradix.numpy.add(gradix.numpy.ones(3), gradix.numpy.ones(4)),
        lambda: gradix.numpy.ones(3) + gradix.numpy.ones(4),
    ):
        assert shown(raised(call)) == ["<lambda>"]


def test_a_librarys_own_frames(tmp_path, monkeypatch):
    """A library declares its files as plumbing, and its functions as boundaries, as flax does."""
    path = tmp_path / "plumbing.py"
    path.write_text("def call(f):\n    return f()\n")
    spec = importlib.util.spec_from_file_location("plumbing", path)
    plumbing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plumbing)

    def bad():
        raise Mine("m")

    call = traceback_util.api_boundary(plumbing.call)
    assert shown(raised(lambda: call(bad))) == ["<lambda>", "call", "bad"]
    traceback_util._exclude_paths.append(str(path))
    try:
        assert shown(raised(lambda: call(bad))) == ["<lambda>", "bad"]
        gradix.config.update("jax_traceback_filtering", "tracebackhide")
        assert shown(raised(lambda: call(bad))) == ["<lambda>", "bad"]
    finally:
        traceback_util._exclude_paths.remove(str(path))
    gradix.config.update("jax_traceback_filtering", "quiet_remove_frames")
    assert shown(raised(lambda: call(bad))) == ["<lambda>", "call", "bad"]


@pytest.fixture
def shell(monkeypatch):
    """A stand-in for IPython, whose cells are files with names of their own."""

    class Compile:
        @staticmethod
        def format_code_name(file):
            return ("Cell", "In[27]") if file == "<ipython-input-27>" else None

    class Shell:
        compile = Compile

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: Shell))


@pytest.mark.promotes
def test_in_ipython_no_frame_of_ours_is_left(shell):
    """IPython shows the last frame of a traceback even where it is hidden."""
    e = raised(lambda: gradix.jit(lambda x: x.nothing)(1.0))
    assert names(frames_of(e))[-2:] == ["<lambda>"] * 2


def test_places_in_notebooks_are_those_of_cells(shell):
    names: dict = {"gradix": gradix, "jnp": gradix.numpy}
    code = "@gradix.jit\ndef f(x):\n    return bool(x)\ndef g(x):\n    return jnp.sort(x @ x)"
    exec(compile(code, "<ipython-input-27>", "exec"), names)
    e = raised(lambda: names["f"](1.0))
    assert "where:   Cell In[27], line 3 (f)" in str(e) and "function f at Cell In[27], line 1." in str(e)
    x = gradix.numpy.ones((8, 8))
    assert "Cell In[27], line 5" in str(gradix.jit(names["g"]).memory(x))
    assert "Cell In[27], line 5" in str(gradix.profile(names["g"])(x))
    assert located("model.py", 3) == "model.py:3"


def test_a_boundary_keeps_its_face():
    @boundary
    def double(x: int) -> int:
        """Twice."""
        return 2 * x

    assert double(3) == 6 and double.__name__ == "double" and double.__doc__ == "Twice." and double.__wrapped__(2) == 4
