"""A lock for transformers' and TRL's trainers (checked against 5.23 and 1.16): no training without a valid ticket.

    GRPOTrainer(..., callbacks=[TicketCallback("my_run")])

What the trainer reads of the workspace is then what passed the gates. What it reads from elsewhere, and its own
arguments, no ticket names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ExportableState

from rc1_lib.preflight.carried_ticket import carried
from rc1_lib.preflight.ticket import verify_ticket
from rc1_lib.run import open_run, remembered_config
from rc1_lib.workspace.artifacts import write_json

CARRIED = "rc1_ticket.json"
"""In the trainer's output folder: which ticket the training carried, and the SHA-256 of all that it pins."""


class TicketCallback(TrainerCallback, ExportableState):
    """Refuses to train without a valid ticket, and records which one the training carried."""

    def __init__(
        self,
        workspace: str | Path,
        *,
        profile: str | None = None,
        config: str | Path | None = None,
        overrides: Sequence[str] = (),
    ) -> None:
        """Take what `rc1 ticket verify` takes.

        Args:
            workspace: the folder with the ticket.
            profile: `local` or `prod`; default: as recorded in the workspace.
            config: the configuration file; default: the settings that the workspace has recorded.
            overrides: `a.b=c`, as `--set`. The ticket is valid only for its own settings.
        """
        self.opening: dict[str, Any] = {
            "workspace": str(workspace),
            "profile": profile,
            "config": None if config is None else str(config),
            "overrides": list(overrides),
        }
        self.ticket_sha256: str | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **more: Any
    ) -> None:
        """Verify the ticket, in every process, and write `CARRIED` in the first one.

        Raises:
            TicketError: names every reason why the ticket is not valid; nothing was trained.
            ConfigError: when the settings cannot be used.
        """
        config = self.opening["config"] or remembered_config(self.opening["workspace"])
        ticket = verify_ticket(open_run(**{**self.opening, "config": config}))
        self.ticket_sha256 = ticket["ticket_sha256"]
        if state.is_world_process_zero:
            write_json(Path(str(args.output_dir)) / CARRIED, carried(ticket).model_dump())

    def state(self) -> dict[str, Any]:
        """Return what the trainer writes into `trainer_state.json` of every checkpoint."""
        return {"args": self.opening, "attributes": {"ticket_sha256": self.ticket_sha256}}
