"""PJRT plug-ins, the packages that bring XLA to a GPU: they are found, loaded and registered.

None of this has run on a GPU. Without one, a plug-in is found, loaded and initialised, but its
client reports that there is no device.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jaxlib import _jax

from gradix._base import config
from gradix._base.lazy import lazy_module
from gradix._runtime.xla_client import has_driver

xc: Any = lazy_module("jaxlib.xla_client")
metadata: Any = lazy_module("importlib.metadata")  # It imports most of the package `email`.
_options = config.state
_CUDA = (13, 12)  # the supported versions, the newest first
# NVIDIA's libraries, each after those that it needs.
_LIBRARIES = (
    "cudart",
    "nvrtc",
    "nvJitLink",
    "cublasLt",
    "cublas",
    "nccl",
    "cupti",
    "cusparse",
    "cusolver",
    "cufft",
    "nvshmem_host",
    "cudnn",
)
_REGISTRATIONS = ("gpu_solver", "gpu_linalg", "gpu_sparse", "gpu_prng", "gpu_rnn", "gpu_triton")
_SYNONYMS = {"gpu": "cuda"}


class Plugin(NamedTuple):
    """An installed plug-in.

    Attributes:
        name: the platform.
        library: its shared library.
        extension: the package whose functions are registered with XLA.
        wheel: the name and version of its wheel, for errors.
        factory: a function that makes the client, if no library has to be loaded.
    """

    name: str
    library: Path
    extension: str | None = None
    wheel: str = ""
    factory: Callable[[], Any] | None = None


# The functions that make the clients of platforms which this process has registered.
factories: dict[str, Callable[[], Any]] = {}


def installed() -> dict[str, Plugin]:
    """The installed plug-ins by platform.

    They are those of `PJRT_NAMES_AND_LIBRARY_PATHS` ("name:path,..."), registered factories, and
    NVIDIA's wheels.
    """
    found = {name: Plugin(name, Path(), factory=factory) for name, factory in factories.items()}
    found.update({p.name: p for p in _of_environment()})
    for version in _CUDA:
        plugin = _wheel(version)
        if plugin is not None:
            found.setdefault("cuda", plugin)
    return found


def _of_environment() -> Iterator[Plugin]:
    text = os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "")
    for part in text.split(",") if text else ():
        name, separator, path = part.partition(":")
        if not separator or not name or not path:
            raise RuntimeError(
                f"PJRT_NAMES_AND_LIBRARY_PATHS={text!r} must be pairs name:path separated by commas; got {part!r}."
            )
        yield Plugin(name, Path(path))


def _wheel(version: int) -> Plugin | None:
    """The plug-in of NVIDIA's wheel for a version of CUDA; None if it is not installed.

    Its package is not imported, because it imports another library.
    """
    name = f"jax-cuda{version}-pjrt"
    try:
        wheel = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    files = [f for f in wheel.files or () if f.name == "xla_cuda_plugin.so"]
    if not files:
        return None
    extension = f"jax_cuda{version}_plugin"
    has_extension = importlib.util.find_spec(extension) is not None
    return Plugin(
        "cuda", Path(str(wheel.locate_file(files[0]))), extension if has_extension else None, f"{name} {wheel.version}"
    )


def wanted(plugins: dict[str, Plugin]) -> list[str]:
    """The platforms to use, the default one first.

    The option `jax_platforms` names them. By default they are CUDA, if a wheel and NVIDIA's driver
    are installed, and the CPU.

    Raises:
        RuntimeError: no plug-in for a requested platform is installed.
    """
    asked = _options.jax_platforms
    if not asked:
        return ["cuda", "cpu"] if "cuda" in plugins and has_driver() else ["cpu"]
    names = [_SYNONYMS.get(n, n) for n in asked.split(",")]
    for n in names:
        if n != "cpu" and n not in plugins:
            advice = (
                "Run pip install gradix[cuda13]" if n == "cuda" else "Name its library in PJRT_NAMES_AND_LIBRARY_PATHS"
            )
            raise RuntimeError(
                f"Unable to initialize backend '{n}': no plug-in for it is installed "
                f"(jax_platforms={asked!r}, and the installed platforms are "
                f"{', '.join(['cpu', *plugins])}). {advice}, or set JAX_PLATFORMS=cpu."
            )
    return names


def start(plugin: Plugin, distributed_client=None, node_id: int = 0, num_nodes: int = 1):
    """A new client of a plug-in, which is loaded and registered.

    Args:
        plugin: the plug-in.
        distributed_client: the client of the coordination service, if there are several processes.
        node_id, num_nodes: the number of this process, and the number of processes.

    Raises:
        RuntimeError: the plug-in cannot be loaded, does not fit this jaxlib, or finds no device.
    """
    if plugin.factory is not None:
        return plugin.factory()
    try:
        if plugin.extension is not None:
            _load_libraries()
        interface = _load(plugin)
        client = xc.make_c_api_client(plugin.name, client_options(plugin, node_id, num_nodes), distributed_client)
    except (_jax.JaxRuntimeError, OSError) as e:
        wheel = f" ({plugin.wheel}; it must have the version of jaxlib, which is {_version()})" if plugin.wheel else ""
        raise RuntimeError(
            f"Unable to initialize backend '{plugin.name}': {str(e).splitlines()[0]} Its library is "
            f"{plugin.library}{wheel}. Set JAX_PLATFORMS=cpu to run without it."
        ) from None
    if plugin.extension is not None:
        register(plugin, interface)
    return client


def _version() -> str:
    return metadata.version("jaxlib")


def _load(plugin: Plugin):
    if xc.pjrt_plugin_loaded(plugin.name):
        return None
    interface = xc.load_pjrt_plugin_dynamically(plugin.name, str(plugin.library))
    if not xc.pjrt_plugin_initialized(plugin.name):
        xc.initialize_pjrt_plugin(plugin.name)
    return interface


def client_options(plugin: Plugin, node_id: int = 0, num_nodes: int = 1) -> dict[str, Any]:
    """The options of a client: memory (`XLA_PYTHON_CLIENT_...`), visible devices and processes."""
    options = dict(xc.generate_pjrt_gpu_plugin_options()) if plugin.name == "cuda" else {}
    visible = _options.jax_cuda_visible_devices
    if plugin.name == "cuda" and visible not in (None, "all"):
        options["visible_devices"] = [int(i) for i in visible.split(",")]
    if num_nodes > 1:
        options.update(node_id=node_id, num_nodes=num_nodes)
    return options


def _load_libraries() -> None:
    """Load NVIDIA's libraries from their wheels, so that the plug-in finds them."""
    for path in libraries():
        try:
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
        except OSError:  # The plug-in reports a library that it needs and does not find.
            continue


def libraries() -> list[Path]:
    """The files of NVIDIA's libraries in their wheels, each after those that it needs."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(p) for p in (spec.submodule_search_locations or ())] if spec is not None else []
    found = []
    for name in _LIBRARIES:
        for folder in folders:
            found += sorted(folder.glob(f"**/lib/lib{name}.so*"))[:1]
    return found


def register(plugin: Plugin, interface) -> None:
    """Register the functions of the plug-in's extension and of jaxlib's modules with XLA."""
    extension: Any = lazy_module(f"{plugin.extension}.cuda_plugin_extension")
    xc.register_custom_type_handler("CUDA", functools.partial(extension.register_custom_type, interface))
    xc.register_custom_call_handler("CUDA", functools.partial(extension.register_custom_call_target, interface))
    for name, value in extension.ffi_types().items():
        xc.register_custom_type(name, value, platform="CUDA")
    for name, value in extension.ffi_handlers().items():
        xc.register_custom_call_target(name, value, platform="CUDA", api_version=1)
    for name, value, version in registrations():
        xc.register_custom_call_target(name, value, platform="CUDA", api_version=version)


def registrations() -> list[tuple]:
    """`(name, function, version)` of each function of jaxlib that calls a library of the GPU."""
    found: list[tuple] = []
    for name in _REGISTRATIONS:
        if importlib.util.find_spec(f"jaxlib.{name}") is not None:
            module: Any = lazy_module(f"jaxlib.{name}")
            made: Any = getattr(module, "registrations", None)
            found += made().get("CUDA", []) if made is not None else []
    return found
