"""Load settings in one line, or learn why they were refused."""

from __future__ import annotations

import pytest

from dragoman.config import LoadedConfig, load
from dragoman.errors import ConfigError

KEY = "a-gateway-key-that-is-long-enough"


def loaded(file: str | None = None, env: dict[str, str] | None = None, **flags: object) -> LoadedConfig:
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return load(file_text=file, file_name="my.toml", env=env or {}, flags=dotted)


def refusal(file: str | None = None, env: dict[str, str] | None = None, **flags: object) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(file, env, **flags)
    return str(caught.value)
