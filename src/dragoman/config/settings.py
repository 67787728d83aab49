"""The names of all settings, derived from the model, their secrets, and the conversion of environment values.

Names are dotted in the file and `DRAGOMAN_…` in the environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import inspect

from dragoman.config.model import Config

ENV_PREFIX = "DRAGOMAN_"
#: Settings that are hidden when shown; a URL may contain a password.
SECRETS = frozenset(
    {"server.admin_keys", "server.keys", "store.url", "upstream.api_key", "upstream.api_keys"}
)
#: Secret members of each entry of a table: they may contain tokens for MCP servers.
SECRET_MEMBERS = {"mcp.servers": ("env", "headers")}


class SettingDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """One value that a user can set."""

    key: str
    type: Any

    @property
    def env(self) -> str:
        return ENV_PREFIX + self.key.upper().replace(".", "_")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` for the closest known name, or ""."""
    import difflib  # imported here because it is rarely needed

    # Compare without the common prefix, which would make all variables similar.
    bare = {one.removeprefix(ENV_PREFIX): one for one in known}
    wanted = name.removeprefix(ENV_PREFIX)
    last = name.replace("_", ".").rpartition(".")[2].lower()
    same_end = [one for one in bare if one.lower().endswith((f".{last}", f"_{last}"))]
    near = difflib.get_close_matches(wanted, bare, n=1, cutoff=0.75) or same_end
    near = near or difflib.get_close_matches(wanted, bare, n=1, cutoff=0.5)
    return f"; did you mean {bare[near[0]]}?" if near else ""


def _walk_struct(struct: type[msgspec.Struct], prefix: str) -> Iterator[SettingDefinition]:
    for field in msgspec.structs.fields(struct):
        key = prefix + field.name
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _walk_struct(field.type, f"{key}.")
        else:
            yield SettingDefinition(key=key, type=field.type)


SETTINGS: dict[str, SettingDefinition] = {setting.key: setting for setting in _walk_struct(Config, "")}
#: Settings that are tables of tables. Errors about them omit the values, which may be secret.
TABLES = frozenset({"mcp.servers", "profiles"})
SECTIONS = frozenset(key.partition(".")[0] for key in SETTINGS if "." in key)


def secrets_of(config: Config) -> tuple[str, ...]:
    """Return all secret values, without duplicates."""
    return tuple(dict.fromkeys(text for text in _secret_texts(config) if text))


def _secret_texts(config: Config) -> Iterator[str]:
    for key in SECRETS:
        value = value_of(config, key)
        texts: tuple[str, ...] = value if isinstance(value, tuple) else (str(value),)
        for text in texts:
            yield from _passwords(text) if "://" in text else (text,)
    for key, members in SECRET_MEMBERS.items():
        table = value_of(config, key)
        for entry in table.values() if isinstance(table, dict) else ():
            for member in members:
                for text in getattr(entry, member).values():
                    # also without the scheme of an Authorization header
                    yield from (text, text.rpartition(" ")[2])


def _passwords(url: str) -> Iterator[str]:
    """Yield the password of a URL, as written and percent-decoded; the rest of a URL is not secret."""
    written = urlsplit(url).password or ""
    yield from (written, unquote(written))


def value_of(config: Config, key: str) -> object:
    """Return the value of the setting with this dotted name."""
    value: object = config
    for name in key.split("."):
        value = getattr(value, name)
    return value


_BOOLEAN_WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


def parse_text(text: str, wanted: Any) -> object:
    """Parse a value; lists are comma-separated, tables are `name=value,name=value` or JSON.

    Raise `ValueError` if the text does not fit the type.
    """
    match inspect.type_info(wanted):
        case inspect.BoolType():
            if text.lower() not in _BOOLEAN_WORDS:
                raise ValueError(text)
            return _BOOLEAN_WORDS[text.lower()]
        case inspect.VarTupleType():
            value: object = tuple(part.strip() for part in text.split(",") if part.strip())
        case inspect.DictType(value_type=inspect.StructType() | inspect.VarTupleType()):
            table: object = msgspec.json.decode(text, type=wanted)
            return table
        case inspect.DictType():
            pairs = (part.partition("=") for part in text.split(",") if part.strip())
            value = {name.strip(): word.strip() for name, _, word in pairs}
        case _:
            value = text
    return msgspec.convert(value, wanted, strict=False)


def describe_type(wanted: Any) -> str:
    match inspect.type_info(wanted):
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType() | inspect.FloatType() as number:
            return _describe_number(number)
        case inspect.LiteralType(values=words):
            return "one of " + ", ".join(map(str, words))
        case inspect.VarTupleType():
            return "a list of texts"
        case inspect.DictType(value_type=inspect.StructType(cls=entry)):
            return f"a table of names, each with a table of {', '.join(entry.__struct_fields__)}"
        case inspect.DictType(value_type=inspect.VarTupleType()):
            return "a table of names, each with a list of models"
        case inspect.DictType():
            return "a table of names and models"
        case inspect.StrType(min_length=1):
            return "a text that is not empty"
        case _:
            return "a text"


def _describe_number(number: inspect.IntType | inspect.FloatType) -> str:
    noun = "a whole number" if isinstance(number, inspect.IntType) else "a number"
    if number.gt is not None:
        noun += f" above {number.gt}"
    if number.ge is not None:
        noun += f" of at least {number.ge}"
    if number.le is not None:
        noun += f" and at most {number.le}"
    return noun
