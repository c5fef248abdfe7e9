"""Gates of other packages, which register them by the entry point `rc1.gates`: one line and one file a gate."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from pydantic import create_model

from rc1_lib.config.values import Section
from rc1_lib.errors import ConfigError
from rc1_lib.workspace.file_hashes import sha256_file

GROUP = "rc1.gates"


@dataclass(frozen=True, slots=True)
class ForeignGate:
    """A gate of another package.

    Attributes:
        spec: its `SPEC`, a `rc1_lib.gates.spec.GateSpec`.
        thresholds: those that the package publishes; a configuration may change them in `gates.<name>`.
        facts: name and version of the package, and SHA-256 of the file, for reports and tickets.
    """

    spec: Any
    thresholds: Section
    file: Path
    facts: Mapping[str, str]


@cache
def foreign_gates() -> dict[str, ForeignGate]:
    """Return name -> gate of all that are registered, sorted by name; loaded once per process, as other code is.

    Raises:
        ConfigError: when one cannot be loaded, is no gate, or shares its name with another; names the package.
    """
    found: dict[str, ForeignGate] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        package = entry.dist.name if entry.dist else "?"
        said = f"the package {package} registers the gate '{entry.name}' ({GROUP}: {entry.value})"
        if entry.name in found:
            raise ConfigError(f"{said}, but {found[entry.name].facts['package']} has one of that name; uninstall one")
        try:
            found[entry.name] = _loaded(entry, package)
        except Exception as error:
            raise ConfigError(
                f"{said}, which cannot be used: {type(error).__name__}: {error}; mend or uninstall the package"
            ) from error
    return found


def _loaded(entry: EntryPoint, package: str) -> ForeignGate:
    spec = entry.load()
    thresholds = getattr(spec, "thresholds", None) or Section()
    if getattr(spec, "name", None) != entry.name or not isinstance(thresholds, Section):
        raise TypeError(f"found {spec!r}, expected a GateSpec with the name '{entry.name}' and a Section of thresholds")
    file = Path(str(sys.modules[entry.module].__file__))
    version = entry.dist.version if entry.dist else "?"
    return ForeignGate(spec, thresholds, file, {"package": package, "version": version, "sha256": sha256_file(file)})


def foreign_facts() -> dict[str, dict[str, str]]:
    """Return gate -> its package, version and SHA-256, by which reports and tickets identify its code."""
    return {name: dict(gate.facts) for name, gate in foreign_gates().items()}


@cache
def sections() -> type[Section]:
    """Return the model of the sections that a configuration may have below `gates` for them."""
    kinds: dict[str, Any] = {name: (type(gate.thresholds), ...) for name, gate in foreign_gates().items()}
    return create_model("ForeignSections", __base__=Section, **kinds)
