"""All checks by name, ordered by their dependencies."""

from __future__ import annotations

from dragoman.cli.doctor.checks.arrivals import check_arrivals
from dragoman.cli.doctor.checks.environment import check_environment
from dragoman.cli.doctor.checks.files import check_files
from dragoman.cli.doctor.checks.google import check_key, check_upstream
from dragoman.cli.doctor.checks.network import check_ca, check_proxy
from dragoman.cli.doctor.checks.port import check_port
from dragoman.cli.doctor.checks.settings import check_settings
from dragoman.cli.doctor.checks.state import check_disk, check_state, check_store
from dragoman.cli.doctor.checks.versions import check_versions
from dragoman.cli.doctor.finding import Check

CHECKS: dict[str, Check] = {
    "settings": check_settings,
    "key": check_key,
    "proxy": check_proxy,
    "ca": check_ca,
    "upstream": check_upstream,
    "state": check_state,
    "disk": check_disk,
    "store": check_store,
    "port": check_port,
    "environment": check_environment,
    "files": check_files,
    "clients": check_versions,
    "arrival": check_arrivals,
}
#: Titles, shown while a check runs.
CHECK_TITLES = {
    "settings": "settings",
    "key": "Google key",
    "proxy": "proxy",
    "ca": "certificates",
    "upstream": "Google, its models and the clock",
    "state": "state folder",
    "disk": "disk",
    "store": "store",
    "port": "port",
    "environment": "environment variables",
    "files": "settings files of clients",
    "clients": "installed clients",
    "arrival": "does a request of each client arrive?",
}
