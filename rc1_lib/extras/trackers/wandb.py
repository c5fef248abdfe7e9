"""Track a run in Weights & Biases, offline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rc1_lib.errors import ConfigError


class Run:
    """An offline run for `wandb sync` to upload. A resumed training adds another one with the same id."""

    def __init__(self, folder: Path, project: str, title: str, key: str, settings: Mapping[str, Any]) -> None:
        """Start a run below `folder`/wandb.

        Raises:
            ConfigError: when it would go online by settings of the current folder, which may name a server for the key.
        """
        mode = os.environ.get("WANDB_MODE") or "offline"
        found = [path for folder in ("wandb", ".wandb") if (path := Path(folder, "settings").absolute()).exists()]
        if mode not in ("offline", "dryrun", "disabled") and found:
            raise ConfigError(
                f"{found[0]}: W&B reads the server's address from it, and would send WANDB_API_KEY there; remove it, "
                f"and set WANDB_BASE_URL if you need another server"
            )
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # no telemetry
        import wandb

        folder.mkdir(parents=True, exist_ok=True)
        silent = wandb.Settings(
            console="off", silent=True, disable_git=True, disable_code=True, save_code=False, disable_job_creation=True,
            x_disable_stats=True, x_disable_meta=True, x_save_requirements=False,
        )  # fmt: skip
        self._run: Any = wandb.init(
            mode=mode, dir=str(folder), project=project, name=title, id=key,
            resume="allow", config=dict(settings), settings=silent,
        )  # fmt: skip

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write the metrics of a step."""
        self._run.log(dict(numbers), step=step)

    def close(self) -> None:
        """Write what is still buffered."""
        self._run.finish()
