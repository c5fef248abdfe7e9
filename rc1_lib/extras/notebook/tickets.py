"""Verify a ticket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from rc1_lib.extras.notebook.cards import Card, Shown
from rc1_lib.preflight import ticket as tickets
from rc1_lib.run import Run


@dataclass(frozen=True, slots=True, repr=False)
class Ticket(Shown):
    """A valid ticket: everything that it pins is unchanged.

    Attributes:
        profile: for which it was issued.
        issued: when it was issued.
        expires: when it expires.
        signed_by: the key's id; None if it is not signed.
        waived: gate -> why it was waived.
        not_applicable: gate -> why it did not apply.
        files: one row per pinned file: `name, path, sha256`.
    """

    profile: str
    issued: datetime
    expires: datetime
    signed_by: str | None
    waived: Mapping[str, str]
    not_applicable: Mapping[str, str]
    files: pl.DataFrame

    def card(self) -> Card:
        """Its expiry, what was waived or not applicable, and the files."""
        signed = f"signed by key {self.signed_by[:16]}" if self.signed_by else "not signed"
        waived = [f"waived: {name} ({why})" for name, why in self.waived.items()]
        waived += [f"not applicable: {name} ({why})" for name, why in self.not_applicable.items()]
        title = f"valid ticket of profile {self.profile} until {self.expires.isoformat(sep=' ')}"
        return Card(title, [f"issued {self.issued.isoformat(sep=' ')}, {signed}", *waived], [self.files])


def verify_ticket(run: Run) -> Ticket:
    """Compare everything that the workspace's ticket pins with the current state, like `rc1 ticket verify`.

    Args:
        run: from `open_run`, with the settings of the preflight: another configuration is another run.

    Raises:
        RC1Error: if there is no ticket, or it is invalid; naming every cause.
    """
    body = tickets.verify_ticket(run)
    signatures = (body.get("envelope") or {}).get("signatures") or []
    files = [{"name": name, **{key: file[key] for key in ("path", "sha256")}} for name, file in body["files"].items()]
    return Ticket(
        body["profile"],
        datetime.fromisoformat(body["issued"]),
        datetime.fromisoformat(body["expires"]),
        signatures[0]["keyid"] if signatures else None,
        body["waived"],
        body["not_applicable"],
        pl.DataFrame(files, schema={"name": pl.String, "path": pl.String, "sha256": pl.String}),
    )
