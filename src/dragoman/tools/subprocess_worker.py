"""The child process of `subprocess_executor`: read one request from stdin, run the function, write JSON lines."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from operator import attrgetter
from types import ModuleType
from typing import Any

import msgspec

from dragoman.tools.definition import Context, Executor, ToolDefinition
from dragoman.tools.errors import ToolFailed, ToolRefused
from dragoman.tools.results import to_output
from dragoman.tools.subprocess_executor import FunctionReference, WorkerMessage, WorkerRequest


def run_request(order: WorkerRequest, tell: Callable[[WorkerMessage], None]) -> WorkerMessage:
    """Run the function and return the final frame; progress frames go to `tell` while it runs."""

    def progress(line: str) -> None:
        tell(WorkerMessage(kind="progress", text=line))

    try:
        execute = import_function(order.reference)
        context = Context(session=order.session, caller=order.caller, progress=progress)
        value = execute(order.args, context)
        if inspect.isawaitable(value):
            value = asyncio.run(_await_result(value))
        return WorkerMessage(kind="output", output=to_output(value))
    except ToolRefused as error:
        return WorkerMessage(kind="refused", text=str(error))
    except ToolFailed as error:
        return WorkerMessage(kind="failed", text=str(error))
    except Exception as error:  # the parent process reports it to the model
        return WorkerMessage(kind="error", text=f"{type(error).__name__}: {error}")


def import_function(reference: FunctionReference) -> Executor:
    """Import the referenced function and return its executor."""
    function = attrgetter(reference.qualname)(_import_module(reference))
    if reference.plain:
        executor: Executor = function
        return executor
    execute = ToolDefinition.from_function(function).execute
    assert execute is not None  # noqa: S101 (a function has one)
    return execute


def _import_module(reference: FunctionReference) -> ModuleType:
    """Import the module by name, or from its file if it is `__main__` or not on the import path."""
    if reference.module != "__main__":
        try:
            return importlib.import_module(reference.module)
        except ModuleNotFoundError as error:
            if error.name is None or not reference.module.startswith(error.name):
                raise
    name = "__dragoman_tools__"
    spec = importlib.util.spec_from_file_location(name, reference.file)
    assert spec is not None  # noqa: S101 (a source file has one)
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


async def _await_result(value: Any) -> Any:
    return await value


def main() -> None:
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a tool prints goes to stderr, not into the protocol

    def tell(frame: WorkerMessage) -> None:
        out.write(msgspec.json.encode(frame) + b"\n")

    order = msgspec.json.decode(sys.stdin.buffer.read(), type=WorkerRequest)
    tell(run_request(order, tell))


if __name__ == "__main__":
    main()
