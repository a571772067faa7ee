"""What libraries build transformations with: `api_util`, the current trace, `hijax`, calls, and the profiler."""

import contextlib
import gzip
import socket
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import api_util, profiler
from gradix.core import Trace, Tracer
from gradix.experimental import hijax
from gradix.extend import backend, core as jex, linear_util as lu, source_info_util
from gradix.interpreters import pxla


def test_flattened_functions():
    leaves, tree = gradix.tree.flatten(((1, [2]), {"z": 3}))
    flat, out_tree = api_util.flatten_fun(lu.wrap_init(lambda x, y, z: (x, {"s": y[0] + z})), tree)
    assert flat.call_wrapped(*leaves) == [1, 5] and str(out_tree()) == "PyTreeDef((*, {'s': *}))"
    flat, out_tree = api_util.flatten_fun_nokwargs(lu.wrap_init(lambda x, y: [x, y]), gradix.tree.structure((1, 2)))
    assert flat.call_wrapped(4, 5) == [4, 5] and out_tree() == gradix.tree.structure([1, 2])


def test_parts_of_arguments():
    f = lu.wrap_init(lambda *a: a)
    g, dynamic = api_util.argnums_partial(f, (0, -1), (10, 20, 30))
    assert dynamic == (10, 30) and g.call_wrapped(1, 3) == (1, 20, 3)
    with pytest.raises(ValueError, match="Non-hashable static.*argument 1 is a list"):
        api_util.argnums_partial(f, 0, (1, [2]))
    assert api_util.argnums_partial(f, 0, (1, [2]), require_static_args_hashable=False)[0].call_wrapped(7) == (7, [2])
    tree = gradix.tree.structure(((1, (2, 3)), {"z": 1}))
    assert api_util.donation_vector((0,), (), tree) == (True, False, False, False)
    assert api_util.donation_vector((1,), ("z",), tree) == (False, True, True, True)
    assert api_util.rebase_donate_argnums((3, 4), (0, 1)) == (1, 2)
    with pytest.raises(ValueError, match="cannot intersect"):
        api_util.rebase_donate_argnums((1,), (1,))
    with pytest.raises(ValueError, match="in_axes"):
        api_util.flatten_axes("in_axes", gradix.tree.structure((1, (2, 3))), (0,))
    assert api_util.safe_map(lambda a, b: a + b, [1, 2], (3, 4)) == [4, 6]
    with pytest.raises(ValueError, match=r"lengths \[1, 2\]"):
        api_util.safe_map(max, [1], [1, 2])
    assert api_util.shaped_abstractify(np.float32(1)).str_short() == "float32[]"


class NamingTracer(Tracer):
    def __init__(self, trace, val):
        super().__init__(trace, gradix.typeof(val))
        self.val = val


class NamingTrace(Trace):
    """Notes the name of each operation on its tracers, and hands the operation on."""

    def __init__(self, parent):
        self.parent, self.names = parent, []

    def process_primitive(self, primitive, tracers, params):
        self.names.append(primitive.name)
        vals = [t.val if isinstance(t, NamingTracer) else t for t in tracers]
        out = primitive.bind_with_trace(self.parent, vals, None, params)
        return gradix.tree.map(lambda v: NamingTracer(self, v), out)


def naming(f):
    def g(x):
        with jex.take_current_trace() as parent:
            trace = NamingTrace(parent)
            with jex.set_current_trace(trace):
                out = f(NamingTracer(trace, x))
        return out.val, trace.names

    return g


@pytest.mark.parametrize("around", [lambda g: g, gradix.jit, lambda g: lambda x: gradix.jvp(g, (x,), (1.0,))[0]])
def test_an_interpreter_of_ones_own(around):
    names = []

    def f(x):
        out, met = naming(lambda y: jnp.sin(y) * gradix.jit(jnp.cos)(y))(x)
        names[:] = met
        return out

    assert np.allclose(around(f)(0.5), np.sin(0.5) * np.cos(0.5)) and names == ["sin", "jit", "mul"]
    assert isinstance(jex.find_top_trace(()), Trace) and jnp.add(1, 1) == 2


def test_a_trace_without_a_method_says_which():
    class Silent(Trace):
        pass

    with (
        pytest.raises(NotImplementedError, match="Silent does not say.*process_primitive"),
        jex.set_current_trace(Silent()),
    ):
        jnp.sin(1.0)
    assert jex.TraceTag() != jex.TraceTag()


def test_calls_of_libraries():
    call_p, closed_call_p = jex.primitives.call_p, jex.primitives.closed_call_p
    program = gradix.make_jaxpr(lambda x: x * x)(2.0)
    assert call_p.bind(3.0, call_jaxpr=program.jaxpr)[0] == 9
    f = lambda x: closed_call_p.bind(x, call_jaxpr=program)[0]
    assert gradix.grad(f)(3.0) == 6 and gradix.jit(gradix.grad(f))(3.0) == 6
    assert gradix.vmap(f)(jnp.arange(3.0)).tolist() == [0, 1, 4]
    assert [e.primitive.name for e in gradix.make_jaxpr(f)(1.0).eqns] == ["closed_call"]
    assert call_p.bind(lu.wrap_init(lambda x: [x + 1]), 1.0) == [2.0]


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


class PairType(hijax.HiType):
    def lower_val(self, pair):
        return [pair.a, pair.b]


class Sum(hijax.HiPrimitive):
    def impl(self, pair, *, scale):
        return scale * (pair.a + pair.b)


def test_types_above_arrays_are_evaluated_and_ask_for_what_tracing_needs():
    hijax.register_hitype(Pair, lambda p: PairType())
    assert isinstance(gradix.typeof(Pair(1, 2)), hijax.AbstractValue)
    sum_p = Sum("pair_sum")
    assert sum_p.bind(Pair(jnp.float32(1), 2), scale=3) == 9
    with pytest.raises(NotImplementedError, match="PairType must implement"):
        gradix.jit(lambda x: sum_p.bind(Pair(x, x), scale=1))(1.0)
    hijax.control_flow_allowed_effects.add_type(PairType)
    assert hijax.control_flow_allowed_effects.contains(PairType())


class Box:
    """A value that asks for its state whenever an attribute is missing."""

    def __init__(self, x):
        self.content = [x]

    def __getattr__(self, name):
        return getattr(gradix.experimental.cur_qdd(self)[0], name)

    def cur_qdd(self):
        return [gradix.typeof(x) for x in self.content]


class BoxType(hijax.MutableHiType):
    pass


def test_the_state_of_values_that_change():
    hijax.register_hitype(Box, lambda box: BoxType())
    box = Box(jnp.ones(2))
    assert box.shape == (2,)
    box.content[0] = jnp.ones((3, 1))
    assert box.shape == (3, 1)
    with pytest.raises(TypeError, match="`has_qdd` is True"):
        hijax.cur_qdd(jnp.ones(2))


def test_clients_and_the_mesh_in_force():
    client = backend.get_backend("cpu")
    assert client.platform == "cpu" and client in backend.backends().values() and backend.get_backend(client) is client
    backend.get_backend.cache_clear()  # What libraries do after they set flags.
    assert backend.get_backend("cpu") is client
    assert backend.get_default_device() in gradix.devices() and backend.backend_xla_version() is None
    mesh = gradix.make_mesh((1,), ("x",), devices=gradix.devices()[:1])
    assert pxla.thread_resources.env.physical_mesh.empty
    with mesh:
        assert pxla.thread_resources.env.physical_mesh is mesh


def test_files_are_excluded_and_taken_in_again(tmp_path):
    from gradix._base import source

    source_info_util.register_exclusion(str(tmp_path / "a.py"))
    assert source.is_inside(str(tmp_path / "a.py"))
    source.include(str(tmp_path / "a.py"))
    assert not source.is_inside(str(tmp_path / "a.py"))


def test_a_profile_is_written(tmp_path):
    with profiler.trace(tmp_path), profiler.StepTraceAnnotation("step", step_num=1):
        gradix.jit(lambda x: x + 1.125)(jnp.ones(3))
        with pytest.raises(RuntimeError, match="Only one profile"):
            profiler.start_trace(tmp_path)
    (found,) = tmp_path.rglob("*.xplane.pb")
    data = profiler.ProfileData.from_file(str(found))
    names = {event.name for plane in data.planes for line in plane.lines for event in line.events}
    assert "step" in names
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert (tmp_path / "memory.prof").stat().st_size


def test_a_profile_is_handed_to_perfetto(tmp_path, capsys, monkeypatch):
    from gradix._api import perfetto

    with socket.socket() as taken:  # a free port in place of the one that the site fetches from
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(perfetto, "_PORT", taken.getsockname()[1])
    fetched = []

    def fetch():
        address = f"http://127.0.0.1:{perfetto._PORT}/"
        for _ in range(600):
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                with pytest.raises(urllib.error.HTTPError):
                    urllib.request.urlopen(address + "other", timeout=5)
                with urllib.request.urlopen(address + "perfetto_trace.json.gz", timeout=5) as answer:
                    fetched.append((answer.headers["Access-Control-Allow-Origin"], answer.read()))
                return
            time.sleep(0.05)

    browser = threading.Thread(target=fetch)
    browser.start()
    with profiler.trace(tmp_path, create_perfetto_link=True):
        gradix.jit(lambda x: x + 1.375)(jnp.ones(3))
    browser.join(60)
    ((origin, content),) = fetched
    assert origin == "https://ui.perfetto.dev" and b"traceEvents" in gzip.decompress(content)
    assert (
        f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{perfetto._PORT}/perfetto_trace.json.gz"
        in capsys.readouterr().out
    )


def test_a_profile_of_memory_has_call_stacks_where_asked():
    def made_by_this_function():
        return gradix.jit(lambda x: x + 1.625)(jnp.ones(300_000))

    without = made_by_this_function()
    assert b"made_by_this_function" not in gzip.decompress(profiler.device_memory_profile())
    gradix.config.update("gradix_memory_stacks", True)
    try:
        kept = made_by_this_function()
        assert b"made_by_this_function" in gzip.decompress(profiler.device_memory_profile())
    finally:
        gradix.config.update("gradix_memory_stacks", False)
    assert kept.shape == without.shape


def test_copies_among_primitives():
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(gradix.jit(gradix.lax.copy_p.bind)(x), x)
    assert gradix.grad(lambda x: gradix.lax.copy_p.bind(x) * 2)(1.0) == 2
    np.testing.assert_array_equal(gradix.vmap(gradix.lax.copy_p.bind)(x), x)
    (same,) = gradix.jit(lambda x: gradix.lax.device_put_p.bind(x, devices=(None,), srcs=(None,), copy_semantics=()))(x)
    np.testing.assert_array_equal(same, x)
    with pytest.raises(NotImplementedError, match="gradix.device_put"):
        gradix.jit(lambda x: gradix.lax.device_put_p.bind(x, devices=(gradix.devices()[0],)))(x)


def test_log_takes_values(caplog):
    with caplog.at_level("INFO", "gradix.debug"):
        gradix.jit(lambda x: gradix.debug.log("x = {x}", x=x))(2.0)
        gradix.debug.log(ordered=True)("y = {}", 3)
        gradix.effects_barrier()
    assert [m for m in caplog.messages if "=" in m] == ["x = 2.0", "y = 3"]


class Wrapped(Tracer):
    """A value wrapped by an interpreter that has a method of its own for functions with a rule."""

    def __init__(self, trace, val):
        super().__init__(trace, gradix.typeof(val))
        self.val = val


class Wrapping(Trace):
    def __init__(self, parent, keeps):
        super().__init__()
        self.parent, self.keeps, self.met = parent, keeps, []

    def unwrap(self, x):
        return x.val if isinstance(x, Wrapped) and x._trace is self else x

    def process_primitive(self, primitive, tracers, params):
        self.met.append((primitive.name, *[k for k in ("inline", "donated_invars", "keep_unused") if k in params]))
        out = primitive.bind_with_trace(self.parent, [self.unwrap(t) for t in tracers], None, params)
        return gradix.tree.map(lambda v: Wrapped(self, v), out)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        self.met.append(primitive.name)
        assert all(self.full_raise(t) is t for t in tracers)
        if not self.keeps:
            with jex.set_current_trace(self):
                return fun.call_wrapped(*tracers)
        params = {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros}
        out = primitive.bind_with_trace(self.parent, [self.unwrap(t) for t in tracers], None, params)
        return [Wrapped(self, v) for v in out]


@pytest.mark.parametrize("keeps, slope", [(True, 7.0), (False, 2.0)])
@pytest.mark.parametrize(
    "inside",
    [lambda f: f, lambda f: lambda x: jex.jaxpr_as_fun(gradix.make_jaxpr(f)(x))(x)[0]],
    ids=["traced", "staged"],
)
def test_functions_with_a_rule_in_an_interpreter_of_ones_own(keeps, slope, inside):
    f = gradix.custom_jvp(lambda x: 2 * x)
    f.defjvp(lambda p, t: (f(*p), 7 * t[0]))
    met = []

    def wrapped(x):
        with jex.take_current_trace() as parent:
            trace = Wrapping(parent, keeps)
            with jex.set_current_trace(trace):
                out = inside(lambda x: gradix.jit(jnp.negative)(f(x)))(Wrapped(trace, x))
        met[:] = trace.met
        return trace.unwrap(out)

    for call in (wrapped, gradix.jit(wrapped)):
        assert call(3.0) == -6
        assert ("jit", "inline", "donated_invars", "keep_unused") in met and "custom_jvp_call" in met
    assert gradix.grad(wrapped)(3.0) == -slope and gradix.jit(gradix.grad(wrapped))(3.0) == -slope
