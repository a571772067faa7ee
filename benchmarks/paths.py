"""The path of a call through the files: which functions of the library run, and in how many files, the first time.

    python -m benchmarks.paths [--list] [--library jax]

Each call is made in a process of its own, after `import gradix, gradix.numpy`, or those of JAX. What runs while a module is loaded does
not count. The compile cache is off.
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


def main() -> None:
    """Print for each call how many files and functions it goes through."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paths", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "--list", action="store_true", help="name the files and their functions too"
    )
    parser.add_argument("--only", default="", help="calls whose text holds this")
    parser.add_argument("--library", default="gradix", choices=("gradix", "jax"))
    parser.add_argument("--trace", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        json.dump(trace(options.library, CALLS[options.trace]), sys.stdout)
        return
    for call in CALLS:
        if options.only not in call:
            continue
        command = [sys.executable, "-m", "benchmarks.paths", "--library", options.library]
        command += ["--trace", call]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        total = sum(map(len, found.values()))
        print(f"{call:18} {len(found):3} files {total:4} functions")
        if options.list:
            for file, functions in found.items():
                print(f"    {file}: {', '.join(functions)}")


if __name__ == "__main__":
    main()
