"""Isolate commands with bubblewrap (Linux namespaces), and detect whether it works on this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.errors import ConfigError

IsolationMode = Literal["auto", "required", "off"]

_PROBE_TIMEOUT_S = 10.0
# Folders in the home directory that hold credentials of other programs; isolated commands see them empty.
SECRET_FOLDERS = (
    ".ssh .gnupg .aws .azure .kube .docker .config/gcloud .config/gh .config/op .password-store "
    ".local/share/keyrings .mozilla .config/google-chrome .claude .codex .gemini"
).split()
SECRET_FILES = (".netrc", ".git-credentials", ".npmrc", ".pypirc", ".pgpass")
# Needed for name resolution, and on NixOS for the programs themselves.
_KEPT_IN_RUN = ("/run/systemd/resolve", "/run/current-system", "/run/wrappers")
_NAMESPACES = (
    "--unshare-user-try",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
)


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """How commands are isolated; if they are not, `program` is empty and `note` gives the reason."""

    program: str = ""
    note: str = ""
    network: bool = False
    hidden: tuple[Path, ...] = ()

    def wrap(self, argv: Sequence[str], *, root: Path, cwd: Path) -> list[str]:
        """Return the command line to start: only `root` is writable, the rest read-only, and secrets are hidden."""
        if not self.program:
            return list(argv)
        return [
            self.program,
            "--die-with-parent",
            *_NAMESPACES,
            *(() if self.network else ("--unshare-net",)),
            *("--cap-drop", "ALL"),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),  # noqa: S108
            *("--tmpfs", "/run"),  # hides the sockets of daemons such as Docker
            *(word for path in _KEPT_IN_RUN for word in ("--ro-bind-try", path, path)),
            *("--bind", str(root), str(root)),
            *self._hide(root),
            *("--chdir", str(cwd), "--"),
            *argv,
        ]

    def _hide(self, root: Path) -> list[str]:
        """Return the flags that hide secrets; a folder that contains the root is left visible."""
        flags: list[str] = []
        for path in map(Path.resolve, self.hidden):  # bubblewrap cannot mount on a symlink
            if path.is_dir() and not root.is_relative_to(path):
                flags += ["--tmpfs", str(path)]
            elif path.is_file():
                flags += ["--ro-bind", os.devnull, str(path)]
        return flags


async def detect_isolation(
    *,
    wanted: IsolationMode = "auto",
    network: bool = False,
    hidden: Sequence[Path] = (),
    search_path: str | None = None,
) -> Isolation:
    """Return the isolation that works on this machine.

    `hidden` are further paths to hide, such as the state folder with the keys. Raises `ConfigError` if isolation
    is `required` and does not work.
    """
    if wanted == "off":
        return Isolation(note="commands are not isolated: it is switched off")
    program = shutil.which("bwrap", path=search_path)
    isolation = Isolation(program=program or "", network=network, hidden=(*home_secrets(), *hidden))
    problem = await _probe(isolation) if program else "bubblewrap (bwrap) is not installed"
    if not problem:
        return isolation
    if wanted == "required":
        message = f"commands must be isolated, but {problem}\ninstall bubblewrap, or do without run_command"
        raise ConfigError(message)
    return Isolation(note=f"commands are not isolated: {problem}")


def home_secrets(home: Path | None = None) -> tuple[Path, ...]:
    """Return the paths of credentials in the home directory, whether they exist or not."""
    home = home or Path.home()
    return tuple(home / name for name in (*SECRET_FOLDERS, *SECRET_FILES))


async def _probe(isolation: Isolation) -> str:
    """Try bubblewrap and return what is wrong, or "". Many containers and some distributions forbid namespaces."""
    argv = isolation.wrap(["true"], root=Path("/"), cwd=Path("/"))
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        return f"bubblewrap cannot be started: {error.strerror}"
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _PROBE_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"bubblewrap gave no answer within {_PROBE_TIMEOUT_S:g} s"
    detail = output.decode(errors="replace").strip()[-200:]
    return f"bubblewrap does not work here ({detail})" if process.returncode else ""
