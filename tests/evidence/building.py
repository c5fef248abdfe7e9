"""Building in a process that has nothing of ours but what the builder imports, and telling what that was."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

OTHERS = ("matplotlib.figure", "numpy", "orjson", "pandera.polars", "polars", "pydantic", "scipy.stats", "yaml")
"""Others' packages that builders import: once for all of them."""


def build(builder: str, root: str, *overrides: str) -> None:
    """Call a builder, and print the files of all modules that are loaded then."""
    assert not [name for name in sys.modules if name.partition(".")[0] == "rc1_lib"]
    run = importlib.import_module("rc1_lib.run").open_run(profile="local", workspace=Path(root), overrides=overrides)
    module, _, function = builder.rpartition(".")
    getattr(importlib.import_module(module), function)(run)
    for one in list(sys.modules.values()):
        print(getattr(one, "__file__", None))
