"""Load one `Config` from file, environment and flags, without I/O; errors name the place of the setting.

Flags override the environment, which overrides the file, which overrides the defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import msgspec
from msgspec import inspect

from dragoman.config.model import Config
from dragoman.config.settings import (
    ENV_PREFIX,
    SECRETS,
    SECTIONS,
    SETTINGS,
    TABLES,
    SettingDefinition,
    describe_type,
    did_you_mean,
    parse_text,
)
from dragoman.config.validation import check_config
from dragoman.errors import ConfigError

# Variables that the commands read themselves; they are not settings (DRAGOMAN_HOME is one).
COMMAND_ENV = frozenset(
    f"DRAGOMAN_{word}"
    for word in "CONFIG GATEWAY_KEY DEBUG CLAUDE CODEX COPILOT GEMINI KIRO OPENCODE PI Q QWEN".split()
)
_BOTH_KEYS = (
    "GEMINI_API_KEY and GOOGLE_API_KEY are both set and differ: GEMINI_API_KEY is used; "
    "unset one of them to be sure which project pays"
)

SourcedValues = dict[str, tuple[object, str]]  # dotted key -> value and source


class LoadedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings, the source of each value that is not a default, and notes for the user."""

    config: Config
    sources: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()


def load_config(
    *, file_text: str | None, file_name: str, env: Mapping[str, str], flags: Mapping[str, object]
) -> Config:
    """Return the effective settings; raise `ConfigError` if one is invalid."""
    return load(file_text=file_text, file_name=file_name, env=env, flags=flags).config


def load(
    *, file_text: str | None, file_name: str, env: Mapping[str, str], flags: Mapping[str, object]
) -> LoadedConfig:
    """Return the effective settings with their sources and notes; raise `ConfigError` if one is invalid."""
    values: SourcedValues = {}
    if file_text is not None:
        values |= _from_file(file_text, file_name)
    google, notes = _from_google_env(env)
    values |= google
    values |= _from_env(env)
    values |= _from_flags(flags)
    config, more = check_config(
        _build({key: value for key, (value, _) in values.items()}),
        {key: source for key, (_, source) in values.items()},
        gateway_key=env.get("DRAGOMAN_GATEWAY_KEY", ""),
    )
    sources = {key: source for key, (_, source) in values.items()}
    return LoadedConfig(config=config, sources=sources, notes=(*notes, *more))


def _from_file(text: str, name: str) -> SourcedValues:
    import tomllib  # imported here because many installations have no file

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"this is not TOML: {error}", where=name) from None
    values: SourcedValues = {}
    for key, value in _flatten(document, name):
        setting = SETTINGS.get(key)
        if setting is None:
            known = [*SETTINGS, *SECTIONS]
            raise ConfigError(f"unknown key {key}{did_you_mean(key, known)}", where=name)
        values[key] = _convert(setting, value, f"{name}: {key}"), name
    return values


def _flatten(document: dict[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if key not in SECTIONS:
            yield key, value
        elif isinstance(value, dict):
            yield from ((f"{key}.{inner}", one) for inner, one in value.items())
        else:
            raise ConfigError(f"{key} is a section: write [{key}] and its keys below", where=name)


def _from_google_env(env: Mapping[str, str]) -> tuple[SourcedValues, list[str]]:
    """Read the variables of Google's own tools; `DRAGOMAN_*` variables override them."""
    values: SourcedValues = {}
    notes: list[str] = []
    read = {name: text.strip() for name, text in env.items() if name.startswith(("GEMINI_", "GOOGLE_"))}
    gemini, google = read.get("GEMINI_API_KEY"), read.get("GOOGLE_API_KEY")
    if gemini and google and gemini != google:
        notes.append(_BOTH_KEYS)  # known problem M7
    names = {"upstream.base_url": "GEMINI_BASE_URL"}
    names["upstream.api_key"] = "GEMINI_API_KEY" if gemini else "GOOGLE_API_KEY"
    vertex = _vertex_switch(read)
    if vertex is not False:
        names["upstream.project"] = "GOOGLE_CLOUD_PROJECT"
        names["upstream.location"] = "GOOGLE_CLOUD_LOCATION"
    for key, name in names.items():
        if read.get(name):
            values[key] = read[name], f"env {name}"
    if vertex:
        values["upstream.kind"] = "vertex", "env GOOGLE_GENAI_USE_VERTEXAI"
    return values, notes


def _vertex_switch(env: Mapping[str, str]) -> bool | None:
    text = env.get("GOOGLE_GENAI_USE_VERTEXAI", "")
    if not text:
        return None
    try:
        return bool(parse_text(text, bool))
    except ValueError:
        message = f"must be true or false, not {text!r}"
        raise ConfigError(message, where="GOOGLE_GENAI_USE_VERTEXAI") from None


def _from_env(env: Mapping[str, str]) -> SourcedValues:
    by_name = {setting.env: setting for setting in SETTINGS.values()}
    values: SourcedValues = {}
    for name, text in env.items():
        if not name.startswith(ENV_PREFIX) or name in COMMAND_ENV or not text.strip():
            continue
        setting = by_name.get(name)
        if setting is None:
            known = [*by_name, *sorted(COMMAND_ENV)]
            raise ConfigError(f"unknown variable {name}{did_you_mean(name, known)}", where="environment")
        try:
            value = parse_text(text.strip(), setting.type)
        except ValueError as error:
            _raise_invalid(setting, text, name, error)
        values[setting.key] = value, f"env {name}"
    return values


def _from_flags(flags: Mapping[str, object]) -> SourcedValues:
    values: SourcedValues = {}
    for key, value in flags.items():
        if value is None:
            continue
        setting = SETTINGS.get(key)
        if setting is None:
            raise ConfigError(f"unknown setting {key}{did_you_mean(key, SETTINGS)}", where="flags")
        flag = "--" + key.rpartition(".")[2].replace("_", "-")
        values[key] = _convert(setting, value, flag), f"flag {flag}"
    return values


def _convert(setting: SettingDefinition, value: object, where: str) -> object:
    _check_members(setting, value, where)
    try:
        return msgspec.convert(value, setting.type)
    except msgspec.ValidationError as error:
        _raise_invalid(setting, value, where, error)


def _check_members(setting: SettingDefinition, value: object, where: str) -> None:
    """Raise `ConfigError` for unknown keys in the entries of a table of tables."""
    match inspect.type_info(setting.type):
        case inspect.DictType(value_type=inspect.StructType(cls=entry)):
            known = entry.__struct_fields__
        case _:
            return
    tables = value.items() if isinstance(value, dict) else ()
    for name, table in tables:
        unknown = [key for key in table if key not in known] if isinstance(table, dict) else []
        if unknown:
            hint = did_you_mean(unknown[0], known)
            raise ConfigError(f"unknown key {unknown[0]}{hint}", where=f"{where}.{name}")


def _raise_invalid(setting: SettingDefinition, value: object, where: str, error: Exception) -> NoReturn:
    if setting.key in TABLES:
        why = str(error).replace(" - at", ", at")
        raise ConfigError(f"must be {describe_type(setting.type)}: {why}", where=where) from None
    given = "" if setting.key in SECRETS else f", not {value!r}"
    raise ConfigError(f"must be {describe_type(setting.type)}{given}", where=where) from None


def _build(values: Mapping[str, object]) -> Config:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[name] = value
    return msgspec.convert(nested, Config)
