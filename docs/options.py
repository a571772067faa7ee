"""All options on one page: writes docs/options.md from the options themselves.

Run it as `python -m docs.options`; `--check` tells whether the page is as it was. What an option does is told here; that
it does something at all is found in the source, so that an option nobody reads cannot be praised.
"""

import re
import sys
import textwrap
from pathlib import Path

import gradix
from gradix._base import options
from gradix._runtime import disk_cache, machine  # noqa: F401  (define options)

PAGE = Path(__file__).with_name("options.md")
PACKAGE = Path(gradix.__file__).parent

# What the options do that do something, by subject.
DOES = {
    "Types and promotion": {
        "jax_enable_x64": "64-bit types are made where they are asked for, and are the default ones",
        "jax_explicit_x64_dtypes": "what happens to a 64-bit dtype that is asked for by name while they are off: it is narrowed with a warning, refused, or given",
        "jax_numpy_dtype_promotion": "`strict` refuses operands of different dtypes",
        "jax_numpy_rank_promotion": "whether operands of different ranks broadcast: allowed, with a warning, or refused",
        "jax_default_matmul_precision": "the precision of products and convolutions on accelerators",
        "jax_allow_f16_reductions": "without it `lax.reduce_sum` of 16-bit floats, which adds in their own precision, is refused",
    },
    "Finding errors": {
        "jax_debug_nans": "raise `FloatingPointError` where the first NaN is made",
        "jax_debug_infs": "the same for infinities",
        "jax_debug_key_reuse": "raise `KeyReuseError` when a random key is used twice",
        "jax_check_tracer_leaks": "report traced arrays that outlive their function",
        "jax_check_static_indices": "raise IndexError for integers in an index that are out of bounds",
        "jax_no_tracing": "raise RuntimeError when a function is traced",
        "jax_no_execution": "raise RuntimeError when an operation or a program runs in this thread",
        "jax_disable_jit": "run jitted functions and loops as plain Python, operation by operation",
        "jax_traceback_filtering": "which frames of Gradix a traceback shows; `off` shows all",
        "check_vma": "check in `shard_map` which values differ among devices",
        "jax_disable_bwd_checks": "take cotangents of any type from rules of `custom_vjp`",
        "jax_pallas_enable_debug_checks": "check what `debug_check` asks for in kernels",
        "jax_pallas_poison_buffers": "accepted: what a kernel has not written reads NaN always",
        "jax_pallas_verbose_errors": "accepted: errors in kernels tell all that is known",
    },
    "Tracing and compiling": {
        "jax_log_compiles": "log every trace and compilation",
        "jax_explain_cache_misses": "log why a function is traced again",
        "gradix_retrace_warning": "after how many retraces of one function a warning says why; 0 for never",
        "gradix_check": "what functions that are jitted from now on check for, as `jit(f, check=…)` does: `nan`, `index`, or others, joined with commas",
        "gradix_tier": "how a function runs first: `quick` compiles with few optimizations and whole after some calls, `auto` runs the first calls of tiny functions on the host",
        "gradix_quick_calls": "how many calls the quickly compiled program serves",
        "gradix_eager": "where eager operations run: `host`, `xla`, or as measured",
        "gradix_rewrites": "which rewrites of operations are used: `all`, `correctness`, `off`, or names to leave out",
        "gradix_host_kernels": "let compiled programs call NumPy for sorts and the like, where it is quicker",
        "gradix_xla_metadata": "what `set_xla_metadata` attaches to operations; set by it alone",
        "jax_cpu_enable_async_dispatch": "let long programs run beside the Python program",
    },
    "Compiled programs on disk": {
        "jax_enable_compilation_cache": "keep compiled programs on disk",
        "gradix_cache": "the directory, or `off`",
        "gradix_cache_max_days": "how long a program is kept after its last use",
        "jax_compilation_cache_dir": "the directory, where `gradix_cache` names none",
        "jax_compilation_cache_max_size": "how many bytes are kept; -1 is a GiB",
        "jax_persistent_cache_min_compile_time_secs": "keep only what took at least so long to compile",
        "jax_persistent_cache_min_entry_size_bytes": "keep only what is at least so large",
        "jax_raise_persistent_cache_errors": "raise errors of the file system in place of logging them",
        "jax_export_calling_convention_version": "the version of exported files that are written",
    },
    "Devices and processes": {
        "jax_platforms": "which platforms to start, such as `cpu` or `cuda,cpu`; the first is the default",
        "jax_num_cpu_devices": "how many CPU devices a process has",
        "jax_default_device": "where new arrays are put",
        "jax_cuda_visible_devices": "the numbers of the GPUs to use",
        "gradix_kept_memory": "how many bytes of freed memory the process keeps for its next arrays",
        "gradix_memory_stacks": "let profiles of memory tell the call stack by which an array was made; each call then takes some memory for good",
        "gradix_collective_timeout": "how many seconds a collective waits for other processes; None for ever",
        "gradix_mesh": "the mesh that `set_mesh` sets; set by it alone",
        "gradix_auto_mesh": "the mesh over whose `Auto` axes the arguments of the function that is traced are divided; set by `jit` alone",
        "gradix_home_mesh": "the mesh on whose devices new arrays and programs go; `set_mesh` sets it",
        "jax_transfer_guard": "sets the three options of single directions",
        "jax_transfer_guard_host_to_device": "allow, log or refuse transfers to devices",
        "jax_transfer_guard_device_to_device": "the same between devices",
        "jax_transfer_guard_device_to_host": "the same to the host",
        "jax_enable_preemption_service": "watch for notices of preemption in programs of several processes",
        "jax_enable_recoverability": "let the other processes go on when one fails",
        "jax_auto_pcast": "values that are equal along mesh axes are made to vary where `shard_map` needs it; without it that is refused",
        "jax_disable_vmap_shmap_error": "let `spmd_axis_name` of `vmap` name a mesh axis over which a `shard_map` inside is divided itself",
        "jax_remove_size_one_mesh_axis_from_type": "leave mesh axes of one device out of the types of arrays",
    },
    "Random numbers": {
        "jax_default_prng_impl": "the generator of new keys",
        "jax_enable_custom_prng": "let `PRNGKey` make typed keys",
        "jax_legacy_prng_key": "allow raw keys, warn of them, or refuse them",
        "jax_threefry_partitionable": "draw bits that do not depend on how arrays are divided",
        "jax_random_seed_offset": "a number added to every seed",
        "jax_high_dynamic_range_gumbel": "draw Gumbel numbers with more bits in the tail",
    },
    "Progress": {
        "gradix_progress": "show the progress of long loops",
    },
}  # fmt: skip
# Options that are read by a name that is put together.
PUT_TOGETHER = {"jax_transfer_guard_device_to_host"}


def all_options() -> dict[str, object]:
    """Every option and its default."""
    return {name: _default(name) for name in sorted(gradix.config.values)}


def _default(name: str):
    for table in (options.BOOLEANS, options.INTEGERS, options.FLOATS, options.STRINGS):
        if name in table:
            return table[name]
    if name in options.CHOICES:
        return options.CHOICES[name][0]
    return _OWN_DEFAULTS[name]


_OWN_DEFAULTS = {
    "gradix_auto_mesh": None,
    "gradix_cache": None, "gradix_cache_max_days": 90, "gradix_check": "", "gradix_collective_timeout": 600.0, "gradix_eager": "auto",
    "gradix_home_mesh": None, "gradix_host_kernels": True, "gradix_kept_memory": 1 << 29, "gradix_memory_stacks": False, "gradix_mesh": None, "gradix_progress": False,
    "gradix_quick_calls": 32, "gradix_retrace_warning": 3, "gradix_rewrites": "all", "gradix_tier": "xla",
    "gradix_xla_metadata": None,
}  # fmt: skip


def read_in_source() -> set[str]:
    """The options whose name stands in the package outside the tables that define JAX's."""
    words = {
        word
        for path in PACKAGE.rglob("*.py")
        if path.name != "options.py" and path.parent != PACKAGE
        for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
    }
    return words.intersection(all_options()) | PUT_TOGETHER


def variable(name: str) -> str:
    """The environment variable that gives an option its first value."""
    if name.startswith("gradix_"):
        return name.upper()
    return name.upper() if name.startswith("jax_") else f"GRADIX_{name.upper()}"


def _values(name: str) -> str:
    if name in options.CHOICES:
        values = options.CHOICES[name][1]
        return ", ".join(f"`{v}`" for v in values[:6]) + (" and others" if len(values) > 6 else "")
    return ""


def page() -> str:
    """The text of the page."""
    found = all_options()
    described = {name for group in DOES.values() for name in group}
    lines = [
        "# Options", "",
        f"There are {len(found)} options: {len(described)} do something, and {len(found) - len(described)} are known, so that",
        "programs which set them run, and do nothing here. `python -m docs.options` writes this page from the options.", "",
        "An option has a value of the whole process, which `config.update` sets, and may have another in a thread,",
        "inside a context manager. The environment variable in the table gives the first value; in each of them `GRADIX_`",
        "may stand in place of `JAX_`.", "",
        "```python", ">>> import gradix", ">>> import gradix.numpy as jnp", ">>> with gradix.enable_x64(True):",
        "...     print(jnp.arange(2).dtype)", "int64", ">>> gradix.config.update(\"gradix_retrace_warning\", 5)",
        ">>> gradix.config.gradix_retrace_warning", "5", ">>> gradix.config.update(\"gradix_retrace_warning\", 3)", "", "```", "",
        "A name that is no option, and a value that an option does not take, raise an error:", "",
        "```python", "gradix.config.update(\"gradix_tier\", \"fast\")", "```", "",
        "```text", "ValueError: option gradix_tier must be one of 'xla', 'auto', 'quick'; got 'fast' of type str.", "```", "",
    ]  # fmt: skip
    for subject, group in DOES.items():
        lines += [f"## {subject}", "", "| option, variable | default | what it does |", "|---|---|---|"]
        for name, what in group.items():
            values = _values(name)
            lines.append(
                f"| `{name}`<br>`{variable(name)}` | `{found[name]!r}` | {what}{f'; {values}' if values else ''} |"
            )
        lines.append("")
    rest = [name for name in found if name not in described]
    listed = ", ".join(f"`{name}`" for name in rest)
    lines += ["## Known, and without effect", "",
              "They belong to parts of JAX that Gradix does not have, or to what it does another way. Setting one is no error,",
              "and changes nothing; that includes the context managers of these names.", "",
              *textwrap.wrap(listed, 100, break_on_hyphens=False), ""]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            0
            if PAGE.read_text(encoding="utf-8") == page()
            else "docs/options.md is not what python -m docs.options writes"
        )
    PAGE.write_text(page(), encoding="utf-8")
