"""Exported programs: reading, first and later calls of a file; tracing for sizes that are variables; one trace for many lengths."""

import importlib
import itertools

import numpy

from benchmarks.case import case, uniform

LIMIT = 0.7
LENGTHS = range(1, 41)


def _model(x):
    np = x.np

    def model(w, images):
        for _ in range(6):
            images = np.tanh(images @ w) / images.shape[0] + np.mean(images, axis=0)
        return images.sum(axis=1)

    return model


def _traced(x, size="n"):
    """The model exported for 16 features and rows of a number, or of any number."""
    export = importlib.import_module(f"{x.name}.export")
    (rows,) = export.symbolic_shape(size)
    spec = x.api.ShapeDtypeStruct
    return export.export(x.api.jit(_model(x)))(spec((16, 16), numpy.float32), spec((rows, 16), numpy.float32))


@case("read the file of an exported function", "export", LIMIT)
def _read(x):
    export = importlib.import_module(f"{x.name}.export")
    blob = _traced(x).serialize()
    return lambda: export.deserialize(blob)


def _read_and_called(x):
    """A function that reads a file, prepares it for a size that is new in this process, and calls it."""
    export = importlib.import_module(f"{x.name}.export")
    blob, w, sizes = _traced(x).serialize(), uniform(16, 16), itertools.count(3)
    return lambda: x.api.jit(export.deserialize(blob).call)(w, numpy.ones((next(sizes), 16), numpy.float32))


@case(
    "read a file, compile it for a new size or take it from the disk where programs are kept, and call it",
    "export",
    LIMIT,
)
def _first(x):
    return _read_and_called(x)


@case("read a file, compile it for a new size with no cache, and call it", "export", 1.0)
def _first_of_all(x):
    call = _read_and_called(x)
    if x.name != "gradix":
        return call

    def without_cache():
        before = x.api.config.gradix_cache
        x.api.config.update("gradix_cache", "off")
        try:
            return call()
        finally:
            x.api.config.update("gradix_cache", before)

    return without_cache


@case("call an exported function, untraced", "export", LIMIT)
def _called(x):
    call, w, images = _traced(x).call, x.array(16, 16), x.array(8, 16)
    return lambda: call(w, images)


@case("call an exported function, jitted", "export", 1.0)
def _jitted(x):
    call, w, images = x.api.jit(_traced(x).call), x.array(16, 16), x.array(8, 16)
    return lambda: call(w, images)


@case("export with a size that is a variable", "export", LIMIT)
def _open(x):
    return lambda: _traced(x)


@case("export with sizes that are numbers", "export", LIMIT)
def _fixed(x):
    return lambda: _traced(x, "8")


@case(
    "40 lengths of rows, one trace where the library has it, compiled programs on the disk where it keeps them",
    "export",
    0.5,
)
def _lengths(x):
    w = x.array(16, 16)
    options = {"symbolic": (None, "n, _")} if x.name == "gradix" else {}
    arrays = [uniform(n, 16) for n in LENGTHS]

    def all_lengths():
        f = x.api.jit(_model(x), **options)
        return [f(w, a) for a in arrays]

    return all_lengths
