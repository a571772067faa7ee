"""Every name of the reference implementation's export module, with its parameters, fields and members, is here."""

import importlib.util
import json
import subprocess
import sys

import pytest

import gradix
from gradix import export

TOLD = """
import dataclasses, inspect, json, sys
import numpy as np
library = sys.argv[1]
export = __import__(f"{library}.export", fromlist=["x"])
jit = __import__(library).jit

def parameters(f):
    return [[p.name, str(p.kind), "" if p.default is p.empty else repr(p.default)] for p in inspect.signature(f).parameters.values()]

def members(kind):
    return {n: parameters(m) for n in dir(kind) if not n.startswith("_") and inspect.isroutine(m := getattr(kind, n))}

names = {n: getattr(export, n) for n in dir(export) if not n.startswith("_")}
told = {
    "names": sorted(names),
    "functions": {n: parameters(f) for n, f in names.items() if inspect.isfunction(f)},
    "members": {n: members(c) for n, c in names.items() if inspect.isclass(c)},
    "fields": [f.name for f in dataclasses.fields(export.Exported)],
    "values": {n: repr(v) for n, v in names.items() if isinstance(v, int)},
    "scope": parameters(export.SymbolicScope),
}
e = export.export(jit(lambda p, x: (p["w"] * x, x.shape[0])))({"w": np.float32(1)}, np.zeros((2, 3), "f4"))
d, = export.symbolic_shape("d", constraints=["d >= 3"])
told["values"].update({n: repr(getattr(e, n)) for n in hasattr(e, "_has_named_shardings") * ["_has_named_shardings"] + [
    "fun_name", "nr_devices", "platforms", "ordered_effects", "unordered_effects", "calling_convention_version", "module_kept_var_idx",
    "uses_global_constants", "in_shardings_hlo"]})
told["values"].update({n: repr([(a.shape, str(a.dtype)) for a in getattr(e, n)]) for n in ("in_avals", "out_avals")})
told["values"]["text"] = f"{e} {export.DisabledSafetyCheck.platform()} {export.DisabledSafetyCheck.custom_call('f')!r}"
told["values"]["checks"] = repr([export.DisabledSafetyCheck.platform() == export.DisabledSafetyCheck.platform(),
                                export.DisabledSafetyCheck.custom_call("f").is_custom_call(), export.DisabledSafetyCheck.platform().is_custom_call(),
                                len({export.DisabledSafetyCheck.custom_call("f"), export.DisabledSafetyCheck.custom_call("f")})])
told["values"]["dimensions"] = repr([str(d * d - 2 * d + 1), d >= 2, export.is_symbolic_dim(d), export.is_symbolic_dim(3), e.has_vjp(),
                                     type(e.mlir_module()).__name__, type(e.serialize()).__name__, export.default_export_platform()])
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    run = lambda library: json.loads(
        subprocess.run([sys.executable, "-c", TOLD, library], check=True, capture_output=True, text=True).stdout
    )
    return run("jax"), run("gradix")


def lacking(theirs: list, ours: list) -> list:
    """Parameters that are not there under their name, kind and default; ours may have more, with defaults."""
    have = {name: (kind, default) for name, kind, default in ours}
    wrong = [
        p for p in theirs if p[0] not in have or have[p[0]][0] != p[1] or (have[p[0]][1] != p[2] and not have[p[0]][1])
    ]
    return wrong + [
        [n, d] for n, (_, d) in have.items() if n not in [p[0] for p in theirs] and not d and n not in ("values",)
    ]


@pytest.mark.parity
def test_all_names_are_here(told):
    theirs, ours = told
    assert set(theirs["names"]) <= set(ours["names"])
    fields = [n for n in theirs["fields"] if not n.startswith("_")]
    assert [n for n in ours["fields"] if n in fields] == fields
    assert {n: ours["values"][n] for n in theirs["values"]} == theirs["values"]


@pytest.mark.parity
def test_all_parameters_are_here(told):
    theirs, ours = told
    wrong = {n: lacking(p, ours["functions"][n]) for n, p in theirs["functions"].items()}
    wrong |= {
        f"{c}.{n}": lacking(p, ours["members"][c].get(n, []))
        for c, ms in theirs["members"].items()
        for n, p in ms.items()
    }
    wrong["SymbolicScope"] = lacking(theirs["scope"], ours["scope"])
    assert {n: w for n, w in wrong.items() if w} == {}


def test_the_module_itself_is_there_too():
    e = export.export(gradix.jit(lambda x: x * 2))(1.0)
    module = e.mlir_module(serialized=False)
    assert str(module) == e.mlir_module() and [op.attributes["sym_name"].value for op in module.body.operations] == [
        "main"
    ]
