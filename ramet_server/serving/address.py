"""Addresses to listen on: whether one can be had, and how a client on this machine names it."""

import socket


class AddressRefused(Exception):
    """An address cannot be listened on; the text is one line for the operator."""


def check_free(address: str) -> None:
    """Raises AddressRefused, with the system's own words, where ``HOST:PORT`` cannot be bound.

    gRPC's error does not tell why, and its C part writes a line of its own to standard error.
    An address ``unix:PATH`` is taken as it is.
    """
    if address.startswith("unix:"):
        return
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise AddressRefused(f"Cannot listen on {address}: it must be HOST:PORT or unix:PATH.")
    try:
        family, kind, _, _, place = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            # As gRPC does, so that connections of a server that just ended are no obstacle.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(place)
            # Another listener is met only here where it, too, reuses addresses.
            trial.listen(1)
    except OSError as error:
        raise AddressRefused(f"Cannot listen on {address}: {error.strerror or error}.") from error


def local_address(address: str) -> str:
    """Returns a listening address as a client on this machine would name it."""
    host, _, port = address.rpartition(":")
    # An address of all interfaces is none to connect to.
    return f"127.0.0.1:{port}" if host in ("0.0.0.0", "[::]", "") else address  # noqa: S104 - compared, not bound
