"""Who reaches the embedded emulator."""

from __future__ import annotations

import pytest

from dragoman.server.app import _is_local


@pytest.mark.parametrize(
    ("client", "server", "headers", "expected"),
    [
        ("127.0.0.1", "127.0.0.1", [], True),
        ("::1", "::1", [], True),
        ("127.0.0.1", "0.0.0.0", [], True),
        ("10.0.0.5", "10.0.0.5", [], True),
        ("10.0.0.9", "10.0.0.5", [], False),
        ("10.0.0.9", "0.0.0.0", [], False),
        ("127.0.0.1", "127.0.0.1", [(b"origin", b"https://evil.example")], False),
        ("127.0.0.1", "127.0.0.1", [(b"sec-fetch-site", b"cross-site")], False),
    ],
)
def test_q_only_the_gateway_itself_reaches_the_embedded_emulator(
    client: str, server: str, headers: list[tuple[bytes, bytes]], expected: bool
) -> None:
    scope = {"client": (client, "1"), "server": (server, "2"), "headers": headers}
    assert _is_local(scope) is expected
