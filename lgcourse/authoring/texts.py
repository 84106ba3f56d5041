"""Which texts does a piece of a notebook hold, as a reader would see them?"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

# Base64 text holds every short string sooner or later, so it is not searched.
BINARY = re.compile(r"image/(?!svg)|application/(?:pdf|octet-stream)|buffers$")


def strings(value: object) -> Iterator[str]:
    """Give every text in a piece of a notebook, keys too, without colour codes and without images.

    Args:
        value: what JSON can hold.

    >>> list(strings({"text/html": ["a &lt; b"], "image/png": "iVBORw0KGgo="}))
    ['text/html', 'a < b', 'image/png']
    """
    if isinstance(value, str):
        text = re.sub(r"\x1b\[[0-9;]*m", "", value)
        yield html.unescape(re.sub(r"base64,[A-Za-z0-9+/=\s]+", "", text))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            if not BINARY.match(key):
                yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)
