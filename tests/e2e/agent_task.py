"""One task that every agent gets, and how its success is seen from all sides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.e2e.agents import Finished, Tools
from tests.e2e.directives import plan, together
from tests.e2e.fake_google import Google
from tests.e2e.recording_proxy import Tap
from tests.e2e.sample_files import make_png


def task_prompt(tools: Tools, cwd: Path) -> str:
    """Write; read and run at once; fail; edit; look at a picture."""
    (cwd / "dot.png").write_bytes(make_png(width=8, height=8))
    return plan(
        tools.write(cwd / "a.txt", "one\n"),
        together(tools.read(cwd / "a.txt"), tools.run("echo ran > b.txt")),
        tools.read(cwd / "missing.txt"),
        tools.edit(cwd / "a.txt", "one", "two"),
        tools.read(cwd / "dot.png"),  # last: some send the picture as a message of its own, a new question
    )


def check_errand(run: Finished, tools: Tools, cwd: Path, google: Google, tap: Tap) -> None:
    """The effect on disk, the calls and results as Google saw them, no refusal, no lost signature."""
    run.check()
    assert not tap.refused(), "\n".join(tap.refused())
    assert (cwd / "a.txt").read_text() == "two\n"
    assert (cwd / "b.txt").read_text() == "ran\n"
    write, read, edit, shell = tools.names
    last = max(google.requests(), key=lambda request: len(request["contents"]))
    calls = [
        [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
        for content in last["contents"]
        if content.get("role") == "model"
    ]
    assert calls[:5] == [[write], [read, shell], [read], [edit], [read]]
    results = [part for part in _parts(last) if "functionResponse" in part]
    names = [part["functionResponse"]["name"] for part in results]
    assert names[:6] == [write, read, shell, read, edit, read]
    assert "one" in str(results[1])
    assert "missing.txt" in str(results[3])
    pictures = [part for part in _parts(last) if _media_type(part).startswith("image/")]
    assert bool(pictures) == tools.sees
    assert google.sentinels() == 0


def _parts(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All parts, those inside a result too."""
    for content in request["contents"]:
        for part in content["parts"]:
            yield part
            yield from part.get("functionResponse", {}).get("parts", ())


def _media_type(part: dict[str, Any]) -> str:
    return str(part.get("inlineData", {}).get("mimeType", ""))
