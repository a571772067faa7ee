"""The exceptions of tracing: their classes and what they tell."""

import pytest

from gradix import errors


class Aval:
    def __init__(self, text):
        self.text = text

    def str_short(self):
        return self.text


class FakeTracer:
    def __init__(self, text, origin="jit of f, argument x"):
        self.aval, self.origin = Aval(text), origin

    def _origin(self):
        return self.origin


@pytest.mark.parametrize(
    "name, bases",
    [
        ("ConcretizationTypeError", ("JAXTypeError", TypeError)),
        ("TracerBoolConversionError", ("ConcretizationTypeError",)),
        ("TracerArrayConversionError", ("JAXTypeError", TypeError)),
        ("KeyReuseError", ("JAXTypeError", TypeError)),
        ("TracerIntegerConversionError", ("JAXTypeError", TypeError)),
        ("UnexpectedTracerError", ("JAXTypeError", TypeError)),
        ("NonConcreteBooleanIndexError", ("JAXIndexError", IndexError)),
        ("JaxprTypeError", (TypeError,)),
        ("JaxRuntimeError", (RuntimeError,)),
        ("InconclusiveDimensionOperation", (Exception,)),
        ("RetraceError", (RuntimeError,)),
    ],
)
def test_inheritance(name, bases):
    assert name in errors.__all__
    for base in bases:
        assert issubclass(getattr(errors, name), getattr(errors, base) if isinstance(base, str) else base)


@pytest.mark.parametrize(
    "name, aval, words",
    [
        (
            "ConcretizationTypeError",
            "int32[]",
            ["Abstract tracer value encountered where concrete value is expected", "static"],
        ),
        (
            "TracerBoolConversionError",
            "bool[]",
            ["Attempted boolean conversion of traced array with shape bool[]", "lax.cond"],
        ),
        (
            "TracerArrayConversionError",
            "int32[4]",
            ["The numpy.ndarray conversion method __array__() was called on traced array with shape int32[4]", "jnp"],
        ),
        (
            "TracerIntegerConversionError",
            "int32[]",
            ["The __index__() method was called on traced array with shape int32[]"],
        ),
        (
            "NonConcreteBooleanIndexError",
            "bool[10]",
            ["Array boolean indices must be concrete", "ShapedArray(bool[10])", "where"],
        ),
        ("UnexpectedTracerError", "float32[3]", ["unexpected tracer", "float32[3]", "return the value"]),
    ],
)
def test_messages_say_what_where_why_and_what_instead(name, aval, words):
    message = str(getattr(errors, name)(FakeTracer(aval)))
    for word in [*words, __file__, "jit of f, argument x", "instead: "]:
        assert word in message


def test_context_and_use():
    context = "axis argument to jnp.min()"
    assert context in str(errors.ConcretizationTypeError(FakeTracer("int32[]"), context))
    assert "used by 'add'" in str(errors.UnexpectedTracerError(FakeTracer("int32[]"), "it is used by 'add'"))


def test_weak_types_and_missing_origins_are_left_out():
    message = str(errors.TracerBoolConversionError(FakeTracer("~int32[]", "")))
    assert "shape int32[]" in message and "traced: " not in message


def test_plain_messages():
    for cls in (
        errors.KeyReuseError,
        errors.UnexpectedTracerError,
        errors.JAXTypeError,
        errors.JAXIndexError,
        errors.JaxprTypeError,
        errors.RetraceError,
        errors.InconclusiveDimensionOperation,
    ):
        assert str(cls("just this")) == "just this"
