"""Types and functions that tools are made of; in a module of their own, as real ones are."""

from __future__ import annotations

import dataclasses
import enum
import time
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pydantic

from dragoman.tools import Context, ToolFailed, ToolRefused, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict):
    deep: bool
    limit: NotRequired[int]


class Pair(NamedTuple):
    left: str
    right: int


class Query(msgspec.Struct):
    """What to look for."""

    text: str
    limit: Annotated[int, msgspec.Meta(ge=1, description="how many")] = 10


class Tree(msgspec.Struct):
    name: str
    children: list[Tree] = []


class Person(pydantic.BaseModel):
    """Somebody."""

    name: str
    age: int = pydantic.Field(ge=0, description="in years")


class Cat(pydantic.BaseModel):
    meow: str


class Unknowable:
    """No type of JSON's."""

    def __init__(self, value: Any) -> None:
        self.value = value


def annotated(
    text: str,
    number: int,
    ratio: float = 0.5,
    flag: bool = False,
    mode: Literal["fast", "slow"] = "fast",
    colour: Colour = Colour.RED,
    maybe: int | None = None,
    either: int | str = 1,
    many: list[str] = [],  # noqa: B006 (what a careless author writes)
    table: dict[str, int] | None = None,
    two: tuple[int, str] = (1, "a"),
    unique: set[int] = frozenset(),  # type: ignore[assignment]
    point: Point | None = None,
    options: Options | None = None,
    query: Query | None = None,
    pair: Pair | None = None,
    anything: Any = None,
) -> dict[str, Any]:
    """Everything at once."""
    return {name: repr(value) for name, value in locals().items()}


def google(city: str, days: int = 1) -> str:
    """Forecast the weather.

    Works for cities only,
    and only on Earth.

    Args:
        city: The name of the city,
            in English.
        days (int): How far ahead.

    Returns:
        Words.
    """
    return f"{city} {days}"


def numpy(city: str, days: int = 1) -> str:
    """Forecast the weather.

    Works for cities only,
    and only on Earth.

    Parameters
    ----------
    city : str
        The name of the city,
        in English.
    days : int, optional
        How far ahead.

    Returns
    -------
    str
        Words.
    """
    return f"{city} {days}"


def rest(city: str, days: int = 1) -> str:
    """Forecast the weather.

    Works for cities only,
    and only on Earth.

    :param city: The name of the city,
        in English.
    :param int days: How far ahead.
    :returns: Words.
    """
    return f"{city} {days}"


def undocumented(city: str) -> str:
    return city


def with_context(text: str, context: Context) -> str:
    """Says who asks."""
    context.progress(f"working on {text}")
    return f"{context.session}/{context.caller}: {text}"


async def with_context_async(text: str, ctx: Context | None = None) -> str:
    assert ctx is not None
    ctx.progress("waiting")
    return f"{ctx.session}: {text}"


def described(
    path: Annotated[str, "relative to the root"],
    size: Annotated[int, msgspec.Meta(ge=1), msgspec.Meta(description="in bytes")],
    age: Annotated[int, pydantic.Field(ge=0, le=150, description="in years")] = 1,
) -> str:
    """Described where it is declared.

    Args:
        path: less important than the annotation
    """
    return f"{path} {size} {age}"


def positional(first: int = 1, second: int = 2, /, *, third: int = 3) -> list[int]:
    return [first, second, third]


def whom(person: Person, pet: Person | Cat | None = None, home: Path = Path("/srv")) -> str:
    """Greets."""
    return f"{type(person).__name__} {person.name} {type(pet).__name__} {home!r}"


def lists(either: list[int] | list[str]) -> str:
    return f"{either!r}"


def starred(*names: str) -> None: ...


def double_starred(**names: str) -> None: ...


def unannotated(name) -> None: ...  # type: ignore[no-untyped-def]


def unknowable(good: int, bad: Unknowable) -> None: ...


def unresolvable(name: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


class Service:
    """A tool that remembers."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def note(self, text: str) -> int:
        """Keep a text."""
        self.seen.append(text)
        return len(self.seen)

    async def __call__(self, text: str) -> str:
        return text.upper()


@tool(process=True, timeout_s=20)
def busy(seconds: float, context: Context) -> str:
    """Never listens."""
    context.progress("began")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    return f"{context.session} done"


@tool(process=True)
def choosy(what: str) -> Any:
    """Ends in every way there is."""
    match what:
        case "refuse":
            raise ToolRefused("not here")
        case "fail":
            raise ToolFailed("did not work")
        case "crash":
            raise KeyError("lost")
        case "die":
            import os

            os._exit(7)
        case "print":
            print("this is no answer")
        case "spawn":
            import subprocess

            child = subprocess.Popen(["sleep", "600"])
            return child.pid
        case "long":
            return "x" * 200_000
    return {"what": what}


@tool(process=True)
async def asleep(text: str) -> str:
    return text[::-1]


def plain_executor(args: dict[str, Any], context: Context) -> Any:
    return {"got": args, "session": context.session}
