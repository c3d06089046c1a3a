"""Addresses to listen on: whether one can be had, and how a client on this machine names it."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class AddressRefused(Exception):
    """An address cannot be listened on; the text is one line for the operator."""


def check_free(address: str) -> None:
    """Raises AddressRefused, with the system's own words, where ``HOST:PORT`` cannot be bound.

    gRPC's error does not tell why, and its C part writes a line of its own to standard error.
    An address ``unix:PATH`` is taken as it is.
    """
    if not address.startswith("unix:"):
        _claimed(address).close()


@contextmanager
def held(address: str) -> Iterator[str]:
    """Keeps ``HOST:PORT`` for processes of this user that share it, and yields it with its real port.

    Within the block those may listen there that bind it with SO_REUSEPORT; ``check_free`` refuses it to
    all others, be it that nobody listens yet. Raises AddressRefused where it cannot be had.
    """
    if sys.platform != "linux":
        raise AddressRefused(f"Cannot share {address}: several workers on one address need Linux.")
    # First alone, so that of two who come at once only one gets it; then shared, without a gap between.
    with _claimed(address) as claim:
        claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        place = claim.getsockname()
        hold = socket.socket(claim.family, claim.type)
        try:
            for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
                hold.setsockopt(socket.SOL_SOCKET, option, 1)
            hold.bind(place)
            # It never listens, so it gets no connection; and only one that does not reuse its address keeps others off.
            hold.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        except OSError as error:
            hold.close()
            raise _refused(address, error) from error
    with hold:
        yield f"{address.rpartition(':')[0]}:{place[1]}"


def _claimed(address: str) -> socket.socket:
    """Returns a socket that listens at an address alone."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise AddressRefused(f"Cannot listen on {address}: it must be HOST:PORT or unix:PATH.")
    try:
        family, kind, _, _, place = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        claim = socket.socket(family, kind)
        try:
            # As gRPC does, so that connections of a server that just ended are no obstacle.
            claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            claim.bind(place)
            # Another listener is met only here where it, too, reuses addresses.
            claim.listen(1)
        except OSError:
            claim.close()
            raise
    except OSError as error:
        raise _refused(address, error) from error
    return claim


def _refused(address: str, error: OSError) -> AddressRefused:
    return AddressRefused(f"Cannot listen on {address}: {error.strerror or error}.")


def local_address(address: str) -> str:
    """Returns a listening address as a client on this machine would name it."""
    host, _, port = address.rpartition(":")
    # An address of all interfaces is none to connect to.
    return f"127.0.0.1:{port}" if host in ("0.0.0.0", "[::]", "") else address  # noqa: S104 - compared, not bound
