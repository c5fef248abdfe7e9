"""The ticket's signature, and the lists of revocations.

With a key outside the workspace, write access to the workspace is not enough to issue or renew a ticket. Revocations
are listed in the workspace, so that a copy of an old ticket is detected, and next to the key if there is one. A list is
as safe as its folder: anyone who can write there can keep a revoked ticket valid until it expires.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from rc1_lib.errors import ConfigError, RC1Error, TicketError
from rc1_lib.provenance.signatures import holds, key_id, read_private, read_public, sign
from rc1_lib.run import TICKET_KEY, Run
from rc1_lib.workspace.input_files import named_path, read_regular

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_TYPE = "application/vnd.in-toto+json"
_STATEMENT, _PREDICATE = "https://in-toto.io/Statement/v1", "urn:rc1:ticket:v1"
_LIST = ".revoked.jsonl"
"""Suffix of the list next to the key, after the first characters of the key's id."""
_ID_CHARS = 16
REVOKED = "reports/preflight/revoked.jsonl"
"""The workspace's list."""


@dataclass(frozen=True, slots=True)
class TicketKey:
    """The key that must have signed tickets.

    Attributes:
        public: the key that checks signatures.
        private: the key that signs; None if only the public key is here, which is enough for training.
        folder: where the key's file is.
    """

    public: Ed25519PublicKey
    private: Ed25519PrivateKey | None
    folder: Path

    @property
    def id(self) -> str:
        """The key's id in a signature."""
        return key_id(self.public)

    @property
    def revoked(self) -> Path:
        """The list of revocations, in the key's folder. Both halves of a key have this name for it."""
        return self.folder / f"{self.id[:_ID_CHARS]}{_LIST}"


def ticket_key(run: Run) -> TicketKey | None:
    """Return the key that `RC1_TICKET_KEY` names; None if it is not set.

    Raises:
        ConfigError: when it is empty, or in the workspace, where it would prove nothing. The error does not repeat the
            path.
        RC1Error: when it is not an ed25519 key.
    """
    named = os.environ.get(TICKET_KEY)
    if named is None:
        return None
    if not named.strip():  # such as a secret that is missing in CI: nobody wants unsigned tickets for it
        raise ConfigError(f"{TICKET_KEY}: is set but empty; name the file of a key, or unset it for unsigned tickets")
    path = named_path(named, TICKET_KEY)
    if path.is_relative_to(run.workspace.root.resolve()):
        raise ConfigError(
            f"{TICKET_KEY}: is in the workspace, where anyone who can write a ticket could also sign it; "
            f"keep it in a folder that only those who issue tickets can read"
        )
    public = read_public(path, TICKET_KEY)
    private = None if public is not None else read_private(path, TICKET_KEY)
    return TicketKey(public or private.public_key(), private, path.parent)  # type: ignore[union-attr]


def check_can_sign(run: Run) -> None:
    """Reject a run that needs to sign a ticket if the configured key cannot sign.

    Raises:
        RC1Error: says why.
    """
    key = ticket_key(run)
    if key is not None and key.private is None:
        raise ConfigError(
            f"{TICKET_KEY}: is a public key, which can verify tickets but not sign them; run the preflight where the "
            f"private key is"
        )


def envelope_of(run: Run, stated: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the signed envelope of what a ticket states; None without a key.

    Raises:
        RC1Error: when the key cannot sign.
    """
    check_can_sign(run)
    key = ticket_key(run)
    return None if key is None or key.private is None else sign(_payload(stated), _TYPE, key.private)


def signature_causes(run: Run, ticket: Mapping[str, Any], stated: Mapping[str, Any]) -> list[str]:
    """Return why a ticket was not issued by the holder of the key; empty without a key.

    Raises:
        RC1Error: when the key cannot be used.
    """
    key = ticket_key(run)
    if key is None:
        return []
    if ticket.get("envelope") is None:
        return [f"it is not signed, but {TICKET_KEY} requires a signature"]
    if not holds(ticket["envelope"], _payload(stated), _TYPE, key.public):
        return [f"its signature is not valid for {TICKET_KEY}: it was not issued with that key"]
    return []


def listed_causes(run: Run, issued: datetime, digest: str) -> list[str]:
    """Return the listed revocations of a ticket: of itself, or of all that was issued before a later time.

    Args:
        run: the run, for its workspace and key.
        digest: the digest of what it states.

    Raises:
        RC1Error: when the key cannot be used, or a list is damaged, so that its revocations are unknown.
    """
    key = ticket_key(run)
    lists = {"revoked": run.workspace.path(REVOKED)} | ({"revoked for good": key.revoked} if key else {})
    found = (
        next((one for one in _revocations(path, run) if _reaches(one, issued, digest)), None) for path in lists.values()
    )
    return [f"it was {how} at {one['time']}: {one['reason']}" for how, one in zip(lists, found, strict=True) if one]


def _reaches(one: Mapping[str, Any], issued: datetime, digest: str) -> bool:
    return one["ticket_sha256"] == digest or issued < datetime.fromisoformat(one["time"])


def revoke_for_good(run: Run, digest: str | None, reason: str) -> None:
    """List all tickets issued until now as revoked, in the workspace and next to a key.

    This includes a ticket that is not there at the moment and is put back later; `rc1 ticket revoke` wants one there.

    Args:
        run: the run, for its workspace and key.
        digest: the digest of the current ticket; None if there is none.

    Raises:
        TicketError: when a list cannot be written, since the note in the ticket alone could be removed.
    """
    key = ticket_key(run)
    line = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "ticket_sha256": digest, "reason": reason}
    ours = run.workspace.path(REVOKED)
    # Without this folder no preflight has ever issued a ticket here.
    for path in (*([ours] if ours.parent.is_dir() else []), *([key.revoked] if key else [])):
        try:
            with path.open("ab+") as stream:
                if stream.tell() and (stream.seek(-1, os.SEEK_END), stream.read(1))[1] != b"\n":
                    stream.write(b"\n")  # a full disk cut the last line off: it stays a line of its own
                stream.write(orjson.dumps(line) + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise TicketError(
                f"{_shown(path, run)} cannot be written ({error.strerror}), so only the note in the ticket says that "
                f"it is revoked; make the list writable and revoke again"
            ) from None


def _shown(path: Path, run: Run) -> str:
    """Return a list's name for errors, which do not repeat the path of a key."""
    ours = path == run.workspace.path(REVOKED)
    return f"{path}: the list of revoked tickets" if ours else f"the list of revoked tickets next to {TICKET_KEY}"


def _revocations(path: Path, run: Run) -> list[dict[str, Any]]:
    """Return the revocations; a damaged line is an error, since what it revoked is unknown."""
    if not path.exists():
        return []
    try:
        lines = [orjson.loads(line) for line in read_regular(path).splitlines()]
        for line in lines:
            datetime.fromisoformat(line["time"]) < datetime.now(UTC), line["ticket_sha256"], line["reason"]
    except (OSError, ValueError, KeyError, TypeError):
        raise RC1Error(
            f"{_shown(path, run)} is damaged or cannot be read, so it is unknown which tickets are valid; correct its "
            f"last line"
        ) from None
    return lines


def _payload(stated: Mapping[str, Any]) -> bytes:
    """Return an in-toto statement: its subjects are the files and reports, its predicate is what the ticket states."""
    named = {one["path"]: one["sha256"] for part in ("files", "reports") for one in stated[part].values()}
    statement = {
        "_type": _STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in sorted(named.items())],
        "predicateType": _PREDICATE,
        "predicate": dict(stated),
    }
    return orjson.dumps(statement, option=orjson.OPT_SORT_KEYS)
