"""Isolation: with bubblewrap the rest of the machine cannot be changed; without it, that is said."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.ir import Text
from dragoman.tools import bubblewrap as module
from dragoman.tools.bubblewrap import Isolation, detect_isolation, home_secrets
from dragoman.tools.definition import Context
from dragoman.tools.run_command import command_tool
from tests.requirements import require_bubblewrap


def fake_bwrap(folder: Path, script: str) -> str:
    folder.mkdir()
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(folder)


async def test_without_bubblewrap_commands_run_as_they_are_and_it_is_said(tmp_path: Path) -> None:
    found = await detect_isolation(search_path=str(tmp_path))
    assert found.note == "commands are not isolated: bubblewrap (bwrap) is not installed"
    assert found.wrap(["ls"], root=tmp_path, cwd=tmp_path) == ["ls"]


async def test_switched_off_is_said_too() -> None:
    assert (await detect_isolation(wanted="off")).note == "commands are not isolated: it is switched off"


@pytest.mark.parametrize(
    ("script", "note"),
    [
        ("echo 'no namespaces here' >&2; exit 1", "bubblewrap does not work here (no namespaces here)"),
        ("exec sleep 300", "bubblewrap gave no answer within 0.2 s"),
    ],
)
async def test_a_bubblewrap_that_does_not_work_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, note: str
) -> None:
    monkeypatch.setattr(module, "_PROBE_TIMEOUT_S", 0.2 if "sleep" in script else 30.0)
    path = fake_bwrap(tmp_path / "bin", script)
    found = await detect_isolation(search_path=f"{path}:/bin:/usr/bin")
    assert (found.program, found.note) == ("", f"commands are not isolated: {note}")
    with pytest.raises(ConfigError, match="commands must be isolated, but bubblewrap"):
        await detect_isolation(search_path=path, wanted="required")


async def test_a_bubblewrap_that_cannot_be_started_is_found_out(tmp_path: Path) -> None:
    path = fake_bwrap(tmp_path / "bin", "")
    (tmp_path / "bin" / "bwrap").write_bytes(b"#!/no/such/interpreter\n")
    found = await detect_isolation(search_path=path)
    assert found.note == "commands are not isolated: bubblewrap cannot be started: No such file or directory"


async def test_one_that_works_is_used(tmp_path: Path) -> None:
    path = fake_bwrap(tmp_path / "bin", "exit 0")
    found = await detect_isolation(search_path=path, hidden=[tmp_path])
    assert found.program == f"{path}/bwrap"
    assert found.note == ""
    assert found.hidden == (*home_secrets(), tmp_path)


def test_the_root_is_writable_the_rest_is_not_and_there_is_no_network(tmp_path: Path) -> None:
    root, cwd = tmp_path / "root", tmp_path / "root" / "sub"
    argv = Isolation(program="/usr/bin/bwrap").wrap(["ls", "-l"], root=root, cwd=cwd)
    text = " ".join(argv)
    assert "--ro-bind / / " in text
    assert f"--bind {root} {root} " in text
    assert text.index("--ro-bind / /") < text.index("--tmpfs /tmp") < text.index(f"--bind {root}")
    assert text.endswith(f"--chdir {cwd} -- ls -l")
    for flag in ("--unshare-net", "--unshare-pid", "--die-with-parent", "--cap-drop ALL"):
        assert flag in text
    assert "--unshare-net" not in Isolation(program="bwrap", network=True).wrap(["x"], root=root, cwd=root)


def test_secrets_are_hidden_unless_the_project_itself_lies_there(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".netrc").write_text("secret")
    isolation = Isolation(program="bwrap", hidden=home_secrets(home))
    text = " ".join(isolation.wrap(["x"], root=tmp_path / "root", cwd=tmp_path))
    assert f"--tmpfs {home}/.ssh" in text
    assert f"--ro-bind /dev/null {home}/.netrc" in text
    assert ".aws" not in text
    inside = " ".join(isolation.wrap(["x"], root=home / ".ssh" / "project", cwd=tmp_path))
    assert f"--tmpfs {home}/.ssh" not in inside


@pytest.fixture(params=["with bubblewrap", "without bubblewrap"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if request.param == "with bubblewrap":
        require_bubblewrap()
        return {"wanted": "required"}
    return {"search_path": str(tmp_path_factory.mktemp("empty"))}


async def run(root: Path, args: dict[str, Any], **settings: Any) -> tuple[str, bool]:
    isolation = await detect_isolation(**settings)
    tool = command_tool(root, isolation=isolation)
    assert tool.execute is not None
    output = await tool.execute(args, Context())
    (part,) = output.content
    assert isinstance(part, Text)
    return part.text, bool(isolation.program)


async def test_a_command_can_write_in_the_root_and_only_there(tmp_path: Path, world: dict[str, Any]) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    elsewhere = Path(f"/var/tmp/dragoman-test-{uuid.uuid4()}")
    root.mkdir()
    outside.mkdir()
    script = f"echo in > inside.txt; echo out > {outside}/file; echo out > {elsewhere}; true"
    _, isolated = await run(root, {"command": ["sh", "-c", script]}, **world)
    assert (root / "inside.txt").read_text() == "in\n"
    assert (outside / "file").exists() is not isolated
    assert elsewhere.exists() is not isolated
    elsewhere.unlink(missing_ok=True)


async def test_a_command_sees_no_other_process_and_no_hidden_folder(
    tmp_path: Path, world: dict[str, Any]
) -> None:
    root, state = tmp_path / "root", tmp_path / "root" / "state"
    (root / "real").mkdir(parents=True)
    state.symlink_to("real")
    (state / "gateway.key").write_text("top secret\n")
    script = "cat state/gateway.key real/gateway.key; ls /proc | grep -c '^[0-9]'"
    said, isolated = await run(root, {"command": ["sh", "-c", script]}, hidden=[state], **world)
    assert ("top secret" in said) is not isolated
    processes = int(said.splitlines()[-2])
    assert (processes < 6) is isolated


async def test_a_command_has_no_network_unless_it_is_allowed(tmp_path: Path, world: dict[str, Any]) -> None:
    args = {"command": ["sh", "-c", "tail -n +3 /proc/net/dev | grep -vc lo:; true"]}
    outside = len(Path("/proc/net/dev").read_text().splitlines()) - 3
    said, isolated = await run(tmp_path, args, **world)
    assert int(said.split()[0]) == (0 if isolated else outside)
    assert int((await run(tmp_path, args, network=True, **world))[0].split()[0]) == outside


async def test_even_one_that_left_its_family_ends_with_an_isolated_command(
    tmp_path: Path, world: dict[str, Any]
) -> None:
    seconds = f"300.{uuid.uuid4().int % 10**9}"
    script = f"setsid sleep {seconds} & until [ $(cat /proc/$!/comm) = sleep ]; do sleep 0.02; done"
    said, isolated = await run(tmp_path, {"command": ["sh", "-c", script]}, **world)
    assert said.endswith("[exit code 0]")
    survivors = [pid for pid in find_processes(seconds) if not isolated or await outlives(pid)]
    assert bool(survivors) is not isolated
    for pid in survivors:
        os.kill(pid, signal.SIGKILL)


def find_processes(word: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


async def outlives(pid: int) -> bool:
    """Whether it is still there after the kernel had time to end it."""
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists():
            return False
        await asyncio.sleep(0.02)
    return True
