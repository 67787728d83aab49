"""Mapping between the call ids that clients see and the ids that Google assigned.

Clients get an id that is globally unique, which Google's ids need not be. Google's id is appended to ours, so that it
can be restored from the client's next request without any stored state.
"""

from __future__ import annotations

import re

MAX_ID_CHARS = 64
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OURS = re.compile(r"[A-Za-z]+_[A-Za-z0-9]{16}-(.+)")


def client_id(own: str, upstream: str) -> str:
    """Return the id for the client: `own`, with Google's id appended if the result is short and plain ASCII.

    `own` is a new id: a prefix, an underscore and 16 letters or digits.
    """
    joined = f"{own}-{upstream}"
    return joined if _PLAIN.fullmatch(upstream) and len(joined) <= MAX_ID_CHARS else own


def upstream_id(call_id: str) -> str:
    """Return the id that Google gave this call, or `call_id` itself if it contains none."""
    found = _OURS.fullmatch(call_id)
    return found[1] if found else call_id
