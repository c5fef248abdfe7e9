"""The ticket's signature, and the lists of what was revoked.

With a key outside the workspace, whoever can merely write there issues and renews nothing. What has been revoked is
listed in the workspace, so that a copy of an old ticket is seen, and next to the key, where there is one. A list is as
safe as its folder: who can write there can let a revoked ticket live until it expires.
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
from rc1_lib.workspace.input_files import read_regular

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_TYPE = "application/vnd.in-toto+json"
_STATEMENT, _PREDICATE = "https://in-toto.io/Statement/v1", "urn:rc1:ticket:v1"
_LIST = ".revoked.jsonl"
"""After the key's own file name."""
REVOKED = "reports/preflight/revoked.jsonl"
"""The workspace's list."""


@dataclass(frozen=True, slots=True)
class TicketKey:
    """The key that tickets have to be signed by.

    Attributes:
        public: checks signatures.
        private: makes them; None where only the public key is here, which is enough for whoever trains.
        revoked: the list of what has been revoked.
    """

    public: Ed25519PublicKey
    private: Ed25519PrivateKey | None
    revoked: Path

    @property
    def id(self) -> str:
        """How a signature names it."""
        return key_id(self.public)


def ticket_key(run: Run) -> TicketKey | None:
    """The key that `RC1_TICKET_KEY` names; None where it names none.

    Raises:
        ConfigError: when it lies in the workspace, where it would prove nothing. The path is not repeated.
        RC1Error: when it is no key of ed25519.
    """
    named = os.environ.get(TICKET_KEY, "")
    if not named:
        return None
    path = Path(named).expanduser().resolve()
    if path.is_relative_to(run.workspace.root.resolve()):
        raise ConfigError(
            f"{TICKET_KEY}: lies in the workspace, where whoever can write a ticket could sign it as well; "
            f"keep it in a folder that only those who issue tickets can read"
        )
    public = read_public(path, TICKET_KEY)
    private = None if public is not None else read_private(path, TICKET_KEY)
    return TicketKey(public or private.public_key(), private, path.with_name(path.name + _LIST))  # type: ignore[union-attr]


def check_can_sign(run: Run) -> None:
    """Refuse to begin what is to end with a ticket, where a key is asked for that cannot sign one.

    Raises:
        RC1Error: saying why.
    """
    key = ticket_key(run)
    if key is not None and key.private is None:
        raise ConfigError(
            f"{TICKET_KEY}: holds a public key, which opens training and signs no ticket; run the preflight where the "
            f"private key is"
        )


def envelope_of(run: Run, stated: Mapping[str, Any]) -> dict[str, Any] | None:
    """The signed envelope about all that a ticket states; None where no key is asked for.

    Raises:
        RC1Error: when the key cannot sign.
    """
    check_can_sign(run)
    key = ticket_key(run)
    return None if key is None or key.private is None else sign(_payload(stated), _TYPE, key.private)


def signature_causes(run: Run, ticket: Mapping[str, Any], stated: Mapping[str, Any]) -> list[str]:
    """Why a ticket is not one that the holder of the key issued; none where no key is asked for.

    Args:
        run: that wants to train.
        ticket: as it lies there.
        stated: all that it states.

    Raises:
        RC1Error: when the key cannot be used.
    """
    key = ticket_key(run)
    if key is None:
        return []
    if ticket.get("envelope") is None:
        return [f"it is not signed, and {TICKET_KEY} asks for a signature"]
    if not holds(ticket["envelope"], _payload(stated), _TYPE, key.public):
        return [f"its signature does not hold under {TICKET_KEY}: whoever has that key did not issue this ticket"]
    return []


def listed_causes(run: Run, issued: datetime, digest: str) -> list[str]:
    """Whether a ticket is among what was revoked: it lay there then, or was issued before.

    Args:
        run: whose workspace and key.
        issued: when the ticket was.
        digest: of all that it states.

    Raises:
        RC1Error: when the key cannot be used, or a list is damaged: nobody knows what it revoked.
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
    """List, in the workspace and next to a key, that nothing which was issued until now holds any more.

    That also reaches a ticket which is not there at the moment, and is put back later.

    Args:
        run: whose workspace and key.
        digest: of what the ticket states that lies there; None where there is none.
        reason: why.

    Raises:
        TicketError: when a list cannot be written: what is only noted in the ticket can be struck out.
    """
    key = ticket_key(run)
    line = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "ticket_sha256": digest, "reason": reason}
    ours = run.workspace.path(REVOKED)
    # Where there is no such folder, no preflight has ever issued anything.
    for path in (*([ours] if ours.parent.is_dir() else []), *([key.revoked] if key else [])):
        try:
            with path.open("ab") as stream:
                stream.write(orjson.dumps(line) + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise TicketError(
                f"{_shown(path, run)} cannot be written ({error.strerror}); until it is, the note in the ticket alone "
                f"says that it is revoked"
            ) from None


def _shown(path: Path, run: Run) -> str:
    """A list, for people; the place of a key is not repeated."""
    ours = path == run.workspace.path(REVOKED)
    return f"{path}: the list of revoked tickets" if ours else f"the list of revoked tickets next to {TICKET_KEY}"


def _revocations(path: Path, run: Run) -> list[dict[str, Any]]:
    """What was revoked. A damaged line is refused: nobody knows what it revoked."""
    if not path.exists():
        return []
    try:
        lines = [orjson.loads(line) for line in read_regular(path).splitlines()]
        for line in lines:
            datetime.fromisoformat(line["time"]) < datetime.now(UTC), line["ticket_sha256"], line["reason"]
    except (OSError, ValueError, KeyError, TypeError):
        raise RC1Error(
            f"{_shown(path, run)} is damaged or cannot be read, so that nothing tells which tickets hold; correct its "
            f"last line"
        ) from None
    return lines


def _payload(stated: Mapping[str, Any]) -> bytes:
    """An in-toto statement: a subject for every file and report, and as predicate all that the ticket states."""
    named = {one["path"]: one["sha256"] for part in ("files", "reports") for one in stated[part].values()}
    statement = {
        "_type": _STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": sha256}} for name, sha256 in sorted(named.items())],
        "predicateType": _PREDICATE,
        "predicate": dict(stated),
    }
    return orjson.dumps(statement, option=orjson.OPT_SORT_KEYS)
