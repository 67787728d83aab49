"""What the container consists of, as a CycloneDX document: read off the packages that are installed.

`make sbom` writes it to dist/. It has no date and no chance in it: the same packages are the same document.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.lock import EXTRAS

ROOT_PACKAGE = "dragoman"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/dragoman")

Json = dict[str, Any]


def make_sbom(root: str = ROOT_PACKAGE, extras: tuple[str, ...] = EXTRAS) -> Json:
    """The package and all it needs to run, who needs whom included."""
    edges: dict[str, list[str]] = {}
    found: dict[str, Distribution] = {}
    waiting = [(root, frozenset(extras))]
    while waiting:
        name, wished = waiting.pop()
        if name not in found:
            found[name], edges[name] = distribution(name), []
        for needed, more in _needed(found[name], wished):
            if needed not in edges[name]:
                edges[name].append(needed)
                waiting.append((needed, more))
    parts = {name: _component(name, found[name]) for name in sorted(found)}
    top = {**parts.pop(root), "type": "application"}
    refs = {name: part["bom-ref"] for name, part in {**parts, root: top}.items()}
    document: Json = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": top},
        "components": list(parts.values()),
        "dependencies": [
            {"ref": refs[name], "dependsOn": sorted(refs[one] for one in edges[name])}
            for name in sorted(edges)
        ],
    }
    number = uuid.uuid5(_NAMESPACE, json.dumps(document, sort_keys=True))
    return {**document, "serialNumber": f"urn:uuid:{number}"}


def _needed(package: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """What it asks for here: on this system, with these extras."""
    for text in package.requires or ():
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(one.name), frozenset(one.extras)


def _component(name: str, package: Distribution) -> Json:
    purl = f"pkg:pypi/{name}@{package.version}"
    said = {"type": "library", "bom-ref": purl, "name": name, "version": package.version, "purl": purl}
    return {**said, **_licenses(package)}


def _licenses(package: Distribution) -> Json:
    """An expression where the package has one, its own words where they are short, else nothing."""
    metadata = package.metadata.json
    expression = metadata.get("license_expression", "")
    if expression:
        return {"licenses": [{"expression": expression}]}
    words = str(metadata.get("license", "")) or _classified(package)
    return {"licenses": [{"license": {"name": words}}]} if words and len(words) < 80 else {}


def _classified(package: Distribution) -> str:
    classes = package.metadata.get_all("Classifier") or ()
    return ", ".join(one.rpartition(" :: ")[2] for one in classes if one.startswith("License :: "))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(make_sbom(), indent=2) + "\n", "utf-8")
