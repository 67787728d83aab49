"""The files of deploy/ say what the code knows: every variable is a setting, every promise has its time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman.cli.main import COMMANDS
from dragoman.config import Config, load_config

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SAMPLE = "a-key-that-is-long-enough"
DEFAULT = re.compile(r"\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}")

Json = dict[str, Any]

CONTAINER = (DEPLOY / "Containerfile").read_text("utf-8")
COMPOSE: Json = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
KUBERNETES: list[Json] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))


def instructions() -> Iterator[tuple[str, str]]:
    for line in CONTAINER.replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word.isupper():
            yield word, rest.strip()


def container_env() -> dict[str, str]:
    pairs = (pair.partition("=") for word, rest in instructions() if word == "ENV" for pair in rest.split())
    return {name: value for name, _, value in pairs}


def settings_of(env: dict[str, str]) -> Config:
    """As a container with these variables would read them; an unknown one is an error."""
    return load_config(file_text=None, file_name="", env=container_env() | env, flags={})


def kubernetes(kind: str, name: str = "dragoman") -> Json:
    return next(one for one in KUBERNETES if (one["kind"], one["metadata"]["name"]) == (kind, name))


def compose_env(service: str) -> dict[str, str]:
    given = COMPOSE["services"][service]["environment"]
    return {name: DEFAULT.sub(lambda found: found[2] or SAMPLE, value) for name, value in given.items()}


def pod_env() -> dict[str, str]:
    (container,) = kubernetes("Deployment")["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one.get("value", SAMPLE) for one in container["env"]}


def test_the_container_runs_a_command_of_ours_as_nobody_and_copies_what_is_there() -> None:
    said = dict(instructions())
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", said["USER"])
    assert json.loads(said["ENTRYPOINT"]) == ["dragoman"]
    assert json.loads(said["CMD"])[0] in COMMANDS
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and "--from" not in rest]
    for name in (name for names in copied for name in names):
        assert (ROOT / name).exists(), name
        assert f"!{name}" in (DEPLOY / "Containerfile.dockerignore").read_text().split()


@pytest.mark.parametrize("service", ["gateway-1", "gateway-2"])
def test_compose_starts_gateways_that_can_be_reached_and_drained(service: str) -> None:
    one = COMPOSE["services"][service]
    config = settings_of(compose_env(service))
    assert (config.backend, config.server.host) == ("gemini", "0.0.0.0")
    assert config.server.allowed_hosts
    assert config.store.url.startswith("redis://redis:")
    seconds = int(one["stop_grace_period"].removesuffix("s"))
    assert config.server.drain_s > 0
    assert seconds > config.server.drain_s + config.server.shutdown_s
    assert f"server {service}:{config.server.port} " in (DEPLOY / "nginx.conf").read_text()
    assert f" {service}:{config.server.port}\n" in (DEPLOY / "haproxy.cfg").read_text()


def test_compose_gives_nobody_more_than_needed() -> None:
    for name, service in COMPOSE["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name


def test_kubernetes_rolls_gateways_without_a_gap() -> None:
    spec = kubernetes("Deployment")["spec"]
    pod = spec["template"]["spec"]
    config = settings_of(pod_env())
    assert (config.backend, config.server.host) == ("gemini", "0.0.0.0")
    assert len(config.server.keys) == 1
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert pod["terminationGracePeriodSeconds"] > config.server.drain_s + config.server.shutdown_s
    (container,) = pod["containers"]
    ready = container["readinessProbe"]
    assert config.server.drain_s > ready["periodSeconds"] * ready["failureThreshold"]
    for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
        # By default the kubelet calls by the pod's address, which the gateway does not answer to.
        assert container[probe]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": "localhost"}]
    assert container["ports"][0]["containerPort"] == config.server.port
    store = kubernetes("StatefulSet", "dragoman-redis")["metadata"]["name"]
    assert config.store.url == f"redis://{store}:6379/0"


def test_kubernetes_gives_nobody_more_than_needed() -> None:
    user = dict(instructions())["USER"].partition(":")[0]
    for name, kind in (("dragoman", "Deployment"), ("dragoman-redis", "StatefulSet")):
        pod = kubernetes(kind, name)["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            context = container["securityContext"]
            assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
    deployed = kubernetes("Deployment")["spec"]["template"]["spec"]
    assert str(deployed["securityContext"]["runAsUser"]) == user
    mounts = {mount["mountPath"] for mount in deployed["containers"][0]["volumeMounts"]}
    assert mounts == {container_env()["DRAGOMAN_HOME"], "/tmp"}


def test_no_secret_is_in_the_files() -> None:
    for path in filter(Path.is_file, DEPLOY.iterdir()):
        assert not re.search(r"AIza|AQ\.|kind: Secret|password", path.read_text("utf-8")), path.name
