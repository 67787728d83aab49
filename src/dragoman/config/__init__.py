"""Settings: typed, strictly validated, and loaded without I/O."""

from dragoman.config.load import LoadedConfig, load, load_config
from dragoman.config.model import (
    Config,
    MediaConfig,
    ModelsConfig,
    ObserveConfig,
    ServerConfig,
    SessionsConfig,
    StoreConfig,
    UpstreamConfig,
)
from dragoman.config.model_mapping import model_for
from dragoman.config.settings import secrets_of
from dragoman.config.show import show_config
from dragoman.config.tools import AgentConfig, McpConfig, McpServer, Profile, ToolsConfig
from dragoman.config.validation import LOOPBACK_NAMES, check_gateway_key, check_strict_extra, is_loopback

__all__ = [
    "LOOPBACK_NAMES",
    "AgentConfig",
    "Config",
    "LoadedConfig",
    "McpConfig",
    "McpServer",
    "MediaConfig",
    "ModelsConfig",
    "ObserveConfig",
    "Profile",
    "ServerConfig",
    "SessionsConfig",
    "StoreConfig",
    "ToolsConfig",
    "UpstreamConfig",
    "check_gateway_key",
    "check_strict_extra",
    "is_loopback",
    "load",
    "load_config",
    "model_for",
    "secrets_of",
    "show_config",
]
