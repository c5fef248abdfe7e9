"""Licence, authors and version agree in all files, and the licence's text is the published one."""

from __future__ import annotations

import re
import tomllib
from datetime import date
from typing import Any

import yaml

from rc1_lib.workspace.artifacts import PROJECT_ROOT
from rc1_lib.workspace.file_hashes import sha256_file

APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""SHA-256 of https://www.apache.org/licenses/LICENSE-2.0.txt."""


def project() -> dict[str, Any]:
    with (PROJECT_ROOT / "pyproject.toml").open("rb") as stream:
        return dict(tomllib.load(stream)["project"])


def citation() -> dict[str, Any]:
    return dict(yaml.safe_load((PROJECT_ROOT / "CITATION.cff").read_text(encoding="utf-8")))


def releases() -> list[tuple[str, str]]:
    """Version and day of every release in the changelog, newest first."""
    text = (PROJECT_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.findall(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", text, re.MULTILINE)


def test_licence_is_the_exact_text_of_apache_2() -> None:
    assert sha256_file(PROJECT_ROOT / "LICENSE") == APACHE_2


def test_package_citation_and_bundled_model_name_one_licence() -> None:
    card = (PROJECT_ROOT / "models/embedded/README.md").read_text(encoding="utf-8")
    assert project()["license"] == citation()["license"] == "Apache-2.0"
    assert project()["license-files"] == ["LICENSE"]
    assert "Apache-2.0 ([LICENSE](../../LICENSE))" in card


def test_package_and_citation_name_the_same_authors() -> None:
    assert project()["authors"] == citation()["authors"]


def test_package_and_citation_name_the_newest_release_of_the_changelog() -> None:
    version, day = releases()[0]
    assert project()["version"] == citation()["version"] == version
    assert citation()["date-released"] == date.fromisoformat(day)
