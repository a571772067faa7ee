"""The path of a call through the library: its files and functions the first time; its lines and calls once modules are loaded.

    python -m benchmarks.paths [--list] [--library jax]

Each call is made in a process of its own, after `import gradix, gradix.numpy`, or those of JAX. What runs while a module is loaded does
not count. The compile cache is off. For the lines and calls it is made again after `clear_caches()`: distinct lines, calls of Python
functions, and how deep they are nested.
"""

import argparse
import collections
import importlib
import json
import subprocess
import sys
import threading
from pathlib import Path

CALLS = {
    "jit(grad(f))(x)": "api.jit(api.grad(lambda v: (jnp.sin(v) * v).sum()))(x)",
    "grad(f)(x)": "api.grad(lambda v: (jnp.sin(v) * v).sum())(x)",
    "vmap(f)(x)": "api.vmap(lambda v: jnp.sin(v) * v)(x)",
    "jit(f)(x)": "api.jit(lambda v: jnp.sin(v) * v)(x)",
    "jnp.sin(x)": "jnp.sin(x)",
}


def trace(library: str, expression: str) -> dict[str, list[str]]:
    """The functions of a library that run in an expression, by file, in the order in which files are reached."""
    api = importlib.import_module(library)
    jnp = importlib.import_module(f"{library}.numpy")
    if library == "gradix":
        api.config.update("gradix_cache", "off")
    root = str(Path(api.__file__).parent) + "/"
    x = jnp.ones(3)
    code = compile(expression, "<call>", "eval")
    found: dict[str, dict[str, None]] = collections.defaultdict(dict)
    loading = 0  # modules that are being loaded, one by another

    def note(frame, event, argument):
        nonlocal loading
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if event not in ("call", "return") or not file.startswith(root):
            return
        if name == "<module>":
            loading += 1 if event == "call" else -1
        elif event == "call" and not loading:
            found[file.removeprefix(root)][name] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        api.block_until_ready(eval(code, {"api": api, "jnp": jnp, "x": x}))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {file: list(functions) for file, functions in found.items()}


class Walk:
    """Counts the distinct lines, the calls and the depth of what runs below a folder, as a trace function."""

    def __init__(self, root: str):
        self.root, self.lines, self.calls, self.depth, self.deepest = root, set(), 0, 0, 0

    def __call__(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(self.root):
            return None
        self.calls += 1
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        self._note(frame)
        return self._within

    def _note(self, frame) -> None:
        self.lines.add((frame.f_code.co_filename, frame.f_lineno))

    def _within(self, frame, event, argument):
        if event == "line":
            self._note(frame)
        elif event == "return":
            self.depth -= 1
        return self._within


def walk(library: str, expression: str) -> dict[str, int]:
    """The distinct lines, the calls and the greatest depth of an expression that is run a second time, traced anew."""
    api = importlib.import_module(library)
    jnp = importlib.import_module(f"{library}.numpy")
    if library == "gradix":
        api.config.update("gradix_cache", "off")
    names = {"api": api, "jnp": jnp, "x": jnp.ones(3)}
    code = compile(expression, "<call>", "eval")
    api.block_until_ready(eval(code, names))
    api.clear_caches()
    found = Walk(str(Path(api.__file__).parent) + "/")
    sys.settrace(found)
    try:
        api.block_until_ready(eval(code, names))
    finally:
        sys.settrace(None)
    return {"lines": len(found.lines), "calls": found.calls, "depth": found.deepest}


def main() -> None:
    """Print for each call how many files and functions it goes through, and how many lines and calls it takes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paths", description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="name the files and their functions too")
    parser.add_argument("--only", default="", help="calls whose text holds this")
    parser.add_argument("--library", default="gradix", choices=("gradix", "jax"))
    parser.add_argument("--trace", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        expression = CALLS[options.trace]
        json.dump([trace(options.library, expression), walk(options.library, expression)], sys.stdout)
        return
    for call in CALLS:
        if options.only not in call:
            continue
        command = [sys.executable, "-m", "benchmarks.paths", "--library", options.library]
        command += ["--trace", call]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found, again = json.loads(done.stdout)
        total = sum(map(len, found.values()))
        print(
            f"{call:18} {len(found):3} files {total:4} functions; "
            f"again {again['lines']:5} lines {again['calls']:5} calls, depth {again['depth']}"
        )
        if options.list:
            for file, functions in found.items():
                print(f"    {file}: {', '.join(functions)}")


if __name__ == "__main__":
    main()
