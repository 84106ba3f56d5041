"""How do messages keep their bounds on a stream? Each has its length in front.

The reader says how long it waits and how much it takes: the writer may be hostile.
"""

from __future__ import annotations

import socket
import struct
import time

LARGEST = 1 << 26  # bytes of the arrays of a message
HEADER = 1 << 23  # bytes of its JSON: the objects need some ten times as much memory


class Lost(Exception):  # noqa: N818  it says what happened
    """The other side has gone, is silent for too long, or says too much."""


class Gone(Lost):
    """The other side has closed the stream."""


class Silent(Lost):
    """Nothing came in time."""


def send(channel: socket.socket, data: bytes, until: float | None = None) -> None:
    """Send one message, until a moment of `time.monotonic`."""
    try:
        channel.settimeout(_left(until))
        channel.sendall(struct.pack("<Q", len(data)) + data)
    except TimeoutError:
        raise Silent from None
    except OSError:
        raise Gone from None


def receive(channel: socket.socket, until: float | None = None) -> bytes:
    """Return the next message.

    Args:
        channel: a stream socket.
        until: a moment of `time.monotonic`; None waits for ever.

    Raises:
        Gone, Silent: nothing more comes, or not in time.
        Lost: the message is too long.
    """
    (size,) = struct.unpack("<Q", _exactly(channel, 8, until))
    if size > LARGEST + HEADER + 4:
        raise Lost("a message is too long")
    return bytes(_exactly(channel, size, until))


def _exactly(channel: socket.socket, size: int, until: float | None) -> bytearray:
    data = bytearray()
    while len(data) < size:
        try:
            channel.settimeout(_left(until))
            piece = channel.recv(min(size - len(data), 1 << 20))
        except TimeoutError:
            raise Silent from None
        except OSError:
            raise Gone from None
        if not piece:
            raise Gone
        data += piece
    return data


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.001, until - time.monotonic())
