"""Run a tool in a separate process: the only way to stop Python code that does not check for cancellation.

The parent starts `python -m dragoman.tools.subprocess_worker`, writes one `WorkerRequest` as JSON to its stdin and
reads `WorkerMessage`s as JSON lines from its stdout.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from dragoman.tools.definition import Context, Executor, ToolOutput
from dragoman.tools.errors import InvalidTool, ToolFailed, ToolRefused

MAX_MESSAGE_BYTES = 64 * 1024 * 1024


class FunctionReference(msgspec.Struct, frozen=True, kw_only=True):
    """How the child process imports the function; a `plain` one is an executor that takes the raw arguments."""

    module: str
    qualname: str
    file: str
    plain: bool = False


class WorkerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The message to the child process."""

    reference: FunctionReference
    args: dict[str, Any]
    session: str
    caller: str


class WorkerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One line from the child process: any number of `progress` frames, then one of another kind."""

    kind: Literal["progress", "output", "refused", "failed", "error"]
    text: str = ""
    output: ToolOutput = ToolOutput()


def subprocess_executor(function: Callable[..., Any], *, plain: bool = False) -> Executor:
    """Return an executor that starts a process for each call and kills its process group afterwards.

    Raises `InvalidTool` unless `function` is defined at the top level of a module with a source file, because the
    child process must be able to import it.
    """
    reference = _reference(function, plain)

    async def execute(args: dict[str, Any], context: Context) -> ToolOutput:
        order = WorkerRequest(reference=reference, args=args, session=context.session, caller=context.caller)
        frame = await _run_child(msgspec.json.encode(order), context)
        match frame.kind:
            case "refused":
                raise ToolRefused(frame.text)
            case "failed" | "error":
                raise ToolFailed(frame.text)
        return frame.output

    return execute


def _reference(function: Callable[..., Any], plain: bool) -> FunctionReference:
    qualname = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", "") or ""
    try:
        file = inspect.getsourcefile(function) or ""
    except TypeError:
        file = ""
    if not qualname or "<" in qualname or hasattr(function, "__self__") or not os.path.isfile(file):
        why = "a tool with its own process must be a function of a module, where the process finds it"
        raise InvalidTool(why, where=qualname or repr(function))
    return FunctionReference(module=module, qualname=qualname, file=os.path.abspath(file), plain=plain)


async def _run_child(order: bytes, context: Context) -> WorkerMessage:
    loop = asyncio.get_running_loop()
    # Same as `create_subprocess_exec`, but gives access to the transport, which is needed to close the pipes.
    transport, protocol = await loop.subprocess_exec(
        lambda: asyncio.subprocess.SubprocessStreamProtocol(limit=MAX_MESSAGE_BYTES, loop=loop),
        sys.executable,
        "-P",  # never import from the working directory
        "-m",
        "dragoman.tools.subprocess_worker",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stderr=None,
        start_new_session=True,
    )
    process = asyncio.subprocess.Process(transport, protocol, loop)
    try:
        return await _communicate(process, order, context)
    finally:
        _kill(process)
        transport.close()
        await process.wait()


async def _communicate(process: asyncio.subprocess.Process, order: bytes, context: Context) -> WorkerMessage:
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None  # noqa: S101 (they are pipes)
    assert stdout is not None  # noqa: S101
    with contextlib.suppress(ConnectionError):  # the child died at once; reported below
        stdin.write(order)
        stdin.write_eof()
        await stdin.drain()
    try:
        async for line in stdout:
            frame = msgspec.json.decode(line, type=WorkerMessage)
            if frame.kind != "progress":
                return frame
            context.progress(frame.text)
    except ValueError:
        raise ToolFailed(f"the answer is longer than {MAX_MESSAGE_BYTES} bytes") from None
    raise ToolFailed(f"the tool's process ended with code {await process.wait()} before it answered")


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the process and everything it started: it leads its own session and process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
