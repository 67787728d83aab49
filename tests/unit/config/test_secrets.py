"""Which texts of the settings must never be shown."""

from __future__ import annotations

from dragoman.config import secrets_of
from tests.unit.config.builders import loaded

ENV = {
    "DRAGOMAN_SERVER_KEYS": "team-key-1-0123456789,team-key-2-0123456789",
    "DRAGOMAN_SERVER_ADMIN_KEYS": "boss-key-0123456789",
    "DRAGOMAN_UPSTREAM_API_KEYS": "AIza-one,AIza-two",
    "GEMINI_API_KEY": "AIza-main",
    "DRAGOMAN_STORE_URL": "redis://somebody:p%40ss%2Fword@db:6379/1",
}
FILE = """
[mcp.servers.a]
command = ["x"]
env = { TOKEN = "given to a" }
[mcp.servers.b]
url = "https://x"
headers = { Authorization = "Bearer sent-to-b" }
"""


def test_o5_every_secret_is_known() -> None:
    known = secrets_of(loaded(FILE, ENV).config)
    expected = {"team-key-1-0123456789", "team-key-2-0123456789", "boss-key-0123456789"}
    expected |= {"AIza-one", "AIza-two", "AIza-main", "p%40ss%2Fword", "p@ss/word"}
    expected |= {"given to a", "a", "Bearer sent-to-b", "sent-to-b"}
    assert set(known) == expected
    assert len(known) == len(set(known))


def test_no_settings_no_secrets() -> None:
    assert secrets_of(loaded().config) == ()
    assert secrets_of(loaded(None, {"DRAGOMAN_STORE_URL": "redis://db:6379"}).config) == ()
