"""The programs of the page about Bedrock, run as they are printed, on a gateway that asks for its key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fake_google import emulated_google
from tests.e2e.gateway import GATEWAY_KEY, Gateway

PAGE = Path(__file__).parents[2] / "docs" / "bedrock.md"
BLOCKS = re.findall(r"<!-- python: (.*?) -->\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_the_programs_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", GATEWAY_KEY)
    assert [name for name, _ in BLOCKS] == ["boto3", "a stream", "AnthropicBedrock"]
    with emulated_google() as google:
        gateway = Gateway(tmp_path / "home", google.url)
        gateway.start()
        try:
            shared: dict[str, Any] = {}
            for name, code in BLOCKS:
                exec(compile(code.replace("http://127.0.0.1:8377", gateway.url), name, "exec"), shared)
                assert "Hello" in capsys.readouterr().out, name
            shared["claude"].close()
        finally:
            gateway.stop()
        assert google.refusals() == []
