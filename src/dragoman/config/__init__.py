"""Settings: typed, strict, and pure to load."""

from dragoman.config.load import Loaded, load, load_config
from dragoman.config.model import Config, ModelsConfig, ServerConfig, StoreConfig, UpstreamConfig
from dragoman.config.routing import model_for
from dragoman.config.rules import LOOPBACK_NAMES, check_gateway_key, is_loopback
from dragoman.config.show import show_config

__all__ = [
    "LOOPBACK_NAMES",
    "Config",
    "Loaded",
    "ModelsConfig",
    "ServerConfig",
    "StoreConfig",
    "UpstreamConfig",
    "check_gateway_key",
    "is_loopback",
    "load",
    "load_config",
    "model_for",
    "show_config",
]
