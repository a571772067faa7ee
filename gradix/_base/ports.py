"""Ports of this machine: their numbers, and whether another program listens there."""

from __future__ import annotations

import errno
from typing import Any

from .lazy import lazy_module

socket: Any = lazy_module("socket")
# what a server meets at each of its addresses; others it may lack, such as those of IPv6
_ALWAYS = (errno.EADDRINUSE, errno.EACCES)


def port_number(what: str, value: Any) -> int:
    """A port as an int.

    Args:
        what: the name of the argument, for the error.
        value: an int, or its digits.

    Raises:
        ValueError: it is not a whole number from 1 to 65535.
    """
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and value.isascii() and value.isdigit()):
        number = int(value)
        if 1 <= number <= 65535:
            return number
    raise ValueError(f"{what} must have a port from 1 to 65535, got {value!r}.")


def check_free(what: str, host: str, port: int) -> None:
    """Raise if a server could not listen at this port.

    Raises:
        RuntimeError: the port is taken, or the host is not an address of this machine.
    """
    try:
        for family, kind, number, _, there in socket.getaddrinfo(
            host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            with socket.socket(family, kind, number) as s:
                # as servers do, so that connections that have just ended do not count
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(there)
                s.listen(1)
    except OSError as error:
        if host in ("", "[::]", "0.0.0.0") and error.errno not in _ALWAYS:
            return
        raise RuntimeError(
            f"{what} cannot listen at {host or 'any address'}, port {port}: {error.strerror or error}. "
            "Choose a port that no program of this machine uses, and an address that is this machine's."
        ) from None
