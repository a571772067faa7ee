"""Limits BLAS and LAPACK to one thread, where the work is too small to divide.

These libraries divide even a small product among the threads of a pool, and the call ends when the
last thread ends. If another program occupies that thread's processor, the call waits for the
scheduler, which takes far longer than the product.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any

from gradix._base.lazy import lazy_module

_threadpoolctl: Any = lazy_module("threadpoolctl")
# Wheels of either bring a library of their own, which is loaded with these.
_LOADING: dict[str, Any] = {"numpy": lazy_module("numpy.linalg"), "scipy": lazy_module("scipy.linalg.lapack")}


class _Pools:
    """The thread pools of one package, and a count of the callers that limit them to one thread."""

    def __init__(self, package: str):
        self.package = package
        self.pools: list[tuple[Callable[[], int], Callable[[int], Any]]] | None = None
        self.found: list[int] = []
        self.start_anew()

    def start_anew(self) -> None:
        """Make a new lock and count; after a fork, a thread of the parent may hold the old lock."""
        self.lock, self.holders = threading.Lock(), 0

    def hold(self) -> None:
        pools = self.pools
        if pools is None:
            pools = self.pools = _pools_of(self.package)
        with self.lock:
            self.holders += 1
            if self.holders == 1:
                self.found = [get() for get, _ in pools]
                for threads, (_, put) in zip(self.found, pools):
                    if threads != 1:
                        put(1)

    def release(self) -> None:
        with self.lock:
            self.holders -= 1
            if not self.holders:
                for threads, (_, put) in zip(self.found, self.pools or ()):
                    if threads != 1:
                        put(threads)


_held = {package: _Pools(package) for package in _LOADING}
if hasattr(os, "register_at_fork"):
    for _pools in _held.values():
        os.register_at_fork(after_in_child=_pools.start_anew)


def on_one_thread(function: Callable, package: str) -> Callable:
    """`function`, with the BLAS and LAPACK of `package` ("numpy" or "scipy") limited to one thread.

    The limit holds for the whole process, so it applies to what other threads compute meanwhile.
    """
    held = _held[package]
    hold, release = held.hold, held.release

    def call(*args, **kwargs):
        hold()
        try:
            return function(*args, **kwargs)
        finally:
            release()

    return call


def _pools_of(package: str) -> list:
    """Pairs of functions that get and set the number of threads of each thread pool."""
    hasattr(_LOADING[package], "__name__")  # reading an attribute imports the lazy module
    found = [c for c in _threadpoolctl.ThreadpoolController().lib_controllers if c.user_api == "blas"]
    own = [c for c in found if f"{package}.libs" in c.filepath or f"{os.sep}{package}{os.sep}" in c.filepath]
    return [_direct(c) or (c.get_num_threads, c.set_num_threads) for c in own or found]


def _direct(controller) -> tuple | None:
    """OpenBLAS's functions to get and set the number of threads, faster than the controller's."""
    for prefix, suffix in itertools.product(("", "scipy_"), ("", "64_", "_64", "_", "64__")):
        names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
        try:
            get, put = [controller.dynlib[name] for name in names]
        except AttributeError:
            continue
        put.restype = None
        return get, put
    return None
