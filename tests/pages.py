"""Code blocks of the documents, for tests that run them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rc1_lib.workspace.artifacts import PROJECT_ROOT

HOW_TO = PROJECT_ROOT / "docs" / "how-to"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def example(page: str, opening: str) -> str:
    """The only block of a page in `docs/how-to` that starts with these words."""
    (found,) = [block for block in BLOCK.findall((HOW_TO / page).read_text("utf-8")) if block.startswith(opening)]
    return str(found)


def run(code: str, given: Mapping[str, Any] = MappingProxyType({})) -> Mapping[str, Any]:
    """Run a block; gives its names, including the given ones."""
    names: dict[str, Any] = {"__name__": "example", **given}
    exec(compile(code, "example", "exec", dont_inherit=True), names)
    return names
