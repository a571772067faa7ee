"""Programs on buffers that run on the host, equation by equation, so that many are tried without compiling any."""

import contextlib
from unittest import mock

import gradix
from gradix._api.checks.coverage import flattened
from gradix._api.jit import jitted_function
from gradix._core.aval import seen
from gradix._runtime.program import Program
from gradix._transforms.cse import simplify
from gradix._transforms.staging import eval_closed

_compile = Program.__init__


@contextlib.contextmanager
def on_host():
    """Run programs as they are lowered, masks and all, by the host's rules of their operations.

    A program of a single operation, which the host has no rule for, is compiled.
    """
    depth = 0

    def make(program, closed, name, *args, **options):
        if depth or args or options.get("donated"):
            _compile(program, closed, name, *args, **options)
            return
        if seen.counts is not None:
            closed = seen.counts.masked(closed)
        flat = flattened(simplify(closed))
        is_running, again = False, None

        def call(operands):
            nonlocal depth, is_running, again
            if is_running:  # its operation has no rule, and asks for a program of its own
                again = again or Program(closed, name)
                return again(list(operands))
            depth, is_running = depth + 1, True
            try:
                return eval_closed(flat, *operands)
            finally:
                depth, is_running = depth - 1, False

        program.call, program.is_loaded = call, False

    # no call is frequent, so none gets code of its own
    with mock.patch.object(Program, "__init__", make), mock.patch.object(jitted_function, "_WARM", 1 << 30):
        try:
            yield
        finally:
            gradix.clear_caches()  # these programs run nowhere else
