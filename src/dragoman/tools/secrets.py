"""What looks like a secret, taken out of texts and arguments before they are written down."""

from __future__ import annotations

import re
from typing import Any

REDACTED = "[redacted]"

# Keys by the shape their makers gave them.
_SHAPES = re.compile(
    r"""AIza[\w-]{20,}|AQ\.[\w-]{20,}|ya29\.[\w.-]{10,}       # Google
    |dgm-[\w-]{16,}                                            # this gateway
    |(?:sk|rk|pk)[-_][\w-]{16,}                                # OpenAI, Anthropic, Stripe
    |gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}     # GitHub, GitLab
    |xox[a-z]-[\w-]{10,}|xapp-[\w-]{10,}                       # Slack
    |A(?:KIA|SIA|IDA|ROA)[A-Z0-9]{12,}                         # AWS
    |hf_\w{16,}|npm_\w{16,}|pypi-[\w-]{16,}
    |eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?                   # JSON web tokens
    |-----BEGIN[^-]*PRIVATE\ KEY-----.*?(?:-----END[^-]*PRIVATE\ KEY-----|\Z)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_AFTER_WORD = re.compile(
    r"""(?ix)
    (?P<lead> (?: authorization \s*[:=]\s* (?:\w+\s+)?        # a header with its scheme
                | \b(?:bearer|basic)\s+
                | (?:api[-_]?key|secret|token|passw(?:or)?d|passphrase|credentials?) ["']? \s*[:=]\s*
                | --(?:api-key|secret|token|password) \s+ )
      ["']? )
    (?P<value> [^\s"',;&]{4,} )""",
)
_IN_URL = re.compile(r"(?P<lead>[a-z][a-z0-9+.-]{0,30}://[^\s/@:]*:)[^\s/@]+(?=@)", re.IGNORECASE)
_NAMES = re.compile(
    r"(?i)^(?!max)(?:.*[_.-]|.*[a-z]|)(?:passw(?:or)?d|passphrase|secret|token|api_?-?key|apikey|authorization|cookie"
    r"|credentials?|private_?-?key|access_?-?key)s?$"
)


def redact(text: str) -> str:
    """The text without what looks like a key, a password or a token."""
    text = _SHAPES.sub(REDACTED, text)
    text = _AFTER_WORD.sub(rf"\g<lead>{REDACTED}", text)
    return _IN_URL.sub(rf"\g<lead>{REDACTED}", text)


def redact_value(value: Any, *, max_text: int, name: str = "") -> Any:
    """The same for JSON values; what stands under a name like `password` goes whatever it looks like."""
    if name and _NAMES.search(name) and isinstance(value, str | int | float) and not isinstance(value, bool):
        return REDACTED
    if isinstance(value, str):
        text = redact(value)  # before the cut, which could leave a half key that no longer looks like one
        return (
            text if len(text) <= max_text else f"{text[:max_text]} [{len(text) - max_text} more characters]"
        )
    if isinstance(value, list):
        flags = [name, *(one if isinstance(one, str) and one.startswith("-") else name for one in value)]
        return [
            redact_value(one, max_text=max_text, name=flag) for one, flag in zip(value, flags, strict=False)
        ]
    if isinstance(value, dict):
        return {
            redact(str(key)): redact_value(one, max_text=max_text, name=key) for key, one in value.items()
        }
    return value
