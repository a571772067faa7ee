"""The vocabulary of primitives is closed: whatever is asked of one is declared in `primitive.py`, and shown by the table."""

import ast
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import gradix
from gradix import lax
from gradix._core.primitive import Primitive
from gradix._ops import rule_table
from gradix._ops.families import Elementwise
from gradix.extend.core import Primitive as UserPrimitive

PACKAGE = Path(gradix.__file__).parent
# What a file asks of primitives that it knows to be of one family.
OF_A_FAMILY = {"_ops/rule_table.py": Elementwise}


def is_primitive(node: ast.AST) -> bool:
    """Whether an expression is a primitive of any class, by its name."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("primitive", "prim")
    return isinstance(node, ast.Name) and node.id in ("prim", "primitive")


def asked(tree: ast.AST):
    """`(line, attribute)` for each attribute that is read from or set on a primitive of any class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_primitive(node.value):
            yield node.lineno, node.attr
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "setattr", "hasattr")
            and is_primitive(node.args[0])
            and isinstance(node.args[1], ast.Constant)
        ):
            yield node.lineno, f"{node.func.id} {node.args[1].value}"


def declared(family=Primitive) -> set[str]:
    return {*dir(family), "name"}


def test_nothing_undeclared_is_asked_of_a_primitive():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        known = declared(OF_A_FAMILY.get(name, Primitive))
        if name in OF_A_FAMILY:
            known |= vars(lax.sin_p).keys()
        found += [
            f"{name}:{line} asks for {attribute!r}"
            for line, attribute in asked(ast.parse(path.read_text("utf-8")))
            if attribute not in known
        ]
    assert not found, "declare these in gradix/_core/primitive.py:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "line", ["eqn.primitive.speed", "prim.speed = 1", "getattr(prim, 'dce', None)", "setattr(e.prim, 'dce', f)"]
)
def test_what_is_undeclared_is_found(line):
    assert [a for _, a in asked(ast.parse(line)) if a not in declared()]


def test_the_table_shows_everything_declared():
    shown = {*rule_table.COLUMNS, *rule_table.FURTHER, *rule_table.DECLARED}
    shown |= {"expand", "run", "accepts"}  # within the columns lower, host and dtypes
    shown |= {"params_key"}  # the same for all but primitives of users
    shown |= {"effectful", "named"}  # whether `effects` and `names` are asked
    shown |= {"hlo", "identity", "combine"}  # parts of `lower`
    shown |= {
        "bind",
        "takes_sharding",
        "impl",
        "abstract_eval",
        "get_bind_params",
        "bind_with_trace",
        "hand_to",
        "missing",
    }
    assert {n for n in vars(Primitive) if not n.startswith("__")} - shown == set()


def test_every_declared_rule_and_property_is_explained():
    source = (PACKAGE / "_core/primitive.py").read_text("utf-8")
    for name in rule_table.FURTHER:
        assert f"`{name}(" in source or f"`{name}`" in source or f"def {name}(self" in source, name
    for name in rule_table.DECLARED:
        above, line = next(
            pair for pair in pairwise(source.splitlines()) if pair[1].startswith((f"    {name}:", f"    {name} ="))
        )
        assert "#" in above + line or name in ("multiple_results", "inlining", "mesh", "values"), line


def test_the_table_shows_properties():
    cells = dict(zip(rule_table.COLUMNS, rule_table.row(lax.scan_p)))
    assert cells["also"].split() == [
        "work",
        "dependent",
        "dce",
        "effects",
        "names",
        "show",
        "multiple_results",
        "mesh=mixes+types_inside",
        "costly",
    ]
    assert "neutral=0" in rule_table.row(lax.mul_p)[-1]


# -- what libraries read and write ------------------------------------------------------------------------------------


def test_built_in_primitives_are_evaluated_by_impl():
    assert float(lax.sin_p.impl(np.float32(0.5))) == float(lax.sin(np.float32(0.5)))
    out, effects = lax.sin_p.abstract_eval(gradix.core.ShapedArray((2,), np.float32))
    assert (out.shape, effects) == ((2,), frozenset())


def test_an_interpreter_of_libraries_evaluates_programs_by_impl():
    closed = gradix.make_jaxpr(lambda x: lax.sin(x) * x)(0.5)
    values = dict(zip(closed.jaxpr.invars, [np.float32(0.5)]))
    for eqn in closed.eqns:
        out = eqn.primitive.impl(*[values[v] for v in eqn.invars], **eqn.primitive.get_bind_params(eqn.params))
        values[eqn.outvars[0]] = out
    assert float(values[closed.jaxpr.outvars[0]]) == pytest.approx(0.5 * np.sin(0.5))


def test_impl_may_be_assigned_read_and_wrapped():
    p = UserPrimitive("twice")
    p.impl = lambda x: 2 * np.asarray(x)
    assert float(p.bind(3.0)) == 6.0
    first = p.impl
    p.def_impl(lambda x: first(x) + 1)
    assert float(p.bind(3.0)) == float(p.impl(3.0)) == 7.0


@pytest.mark.x32
def test_impl_and_types_may_be_methods_of_a_subclass():
    class Thrice(UserPrimitive):
        def impl(self, x):
            return 3 * np.asarray(x)

        def abstract_eval(self, x):
            return x, frozenset()

    p = Thrice("thrice")
    assert float(p.bind(2.0)) == 6.0
    assert [v.aval.dtype for v in gradix.make_jaxpr(p.bind)(2.0).jaxpr.outvars] == [np.float32]


def test_abstract_eval_gives_types_and_effects():
    p = UserPrimitive("typed")
    with pytest.raises(NotImplementedError, match="def_abstract_eval"):
        p.abstract_eval()
    p.def_abstract_eval(lambda x: x)
    aval = gradix.core.ShapedArray((3,), np.float32)
    assert p.abstract_eval(aval) == (aval, frozenset())
