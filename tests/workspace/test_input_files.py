"""Paths that a user names: `~` is expanded, and a user that does not exist is a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rc1_lib.cli.options import source
from rc1_lib.errors import ConfigError
from rc1_lib.workspace.input_files import named_path


def test_named_path_is_absolute_with_the_home_folder_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert named_path("~/key.pem", "RC1_TICKET_KEY") == named_path("key.pem", "RC1_TICKET_KEY") == tmp_path / "key.pem"


@pytest.mark.parametrize("read", [source, lambda text: named_path(text, "--sources")])
def test_home_folder_of_nobody_is_a_configuration_error(read: Callable[[str], object]) -> None:
    with pytest.raises(ConfigError, match=r"^--sources: begins with ~ and the name of nobody"):
        read("~nobody-here/x")
