"""Call ids: the client sees one of ours that is unique for ever, and Google gets its own back.

Google's id rides at the end of ours when it is plain enough, so that no memory is needed to find it.
"""

from __future__ import annotations

import re

MAX_ID_CHARS = 64
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OURS = re.compile(r"[A-Za-z]+_[A-Za-z0-9]{16}-(.+)")


def client_id(own: str, upstream: str) -> str:
    """`own` is a fresh id (prefix, underscore, 16 letters or digits)."""
    joined = f"{own}-{upstream}"
    return joined if _PLAIN.fullmatch(upstream) and len(joined) <= MAX_ID_CHARS else own


def upstream_id(call_id: str) -> str:
    """The id Google gave this call, or the client's own where Google never saw it."""
    found = _OURS.fullmatch(call_id)
    return found[1] if found else call_id
