"""Change any leaf of the ticket or of a report that it pins, and it is no longer valid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rc1_lib.errors import RC1Error, TicketError
from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.ticket import TICKET, stated, verify_ticket
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json, sha256_json, write_json
from rc1_lib.workspace.file_hashes import hashes_known

MOST = 24
"""Leaves of one report that are tried; a report has thousands."""


def leaves(body: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in a JSON document, and of every empty list and object."""
    inside = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    places = [place for key, value in inside for place in leaves(value, (*at, key))]
    yield from places or [at]


def changed(body: Any, at: tuple[Any, ...]) -> Any:
    """The document with another value at this place, of the same type where it has more than one value."""
    if at:
        first, *rest = at
        copy = dict(body) if isinstance(body, dict) else list(body)
        copy[first] = changed(copy[first], tuple(rest))
        return copy
    if isinstance(body, bool):
        return not body
    return body + 1 if isinstance(body, int | float) else f"{body}x" if isinstance(body, str) else ["x"]


def reports(run: Run) -> dict[str, str]:
    return {name: one["path"] for name, one in read_json(run.workspace.path(TICKET))["reports"].items()}


def test_every_report_that_a_round_reads_is_pinned(ticketed: Run) -> None:
    assert set(reports(ticketed)) == {"round1", "round2", "calibration", "reward_hacking", "overclar_ablation"}


@pytest.mark.parametrize("name", ["ticket", "round1", "round2", "calibration", "reward_hacking", "overclar_ablation"])
def test_any_changed_leaf_is_refused(ticketed: Run, name: str) -> None:
    path = ticketed.workspace.path({**reports(ticketed), "ticket": TICKET}[name])
    body = read_json(path)
    places = list(leaves(body))
    with hashes_known():
        for place in places if name == "ticket" else places[:: 1 + len(places) // MOST]:
            write_json(path, changed(body, place))
            with pytest.raises(TicketError):
                verify_ticket(ticketed)
                pytest.fail(f"{name}: {place} was changed")
        write_json(path, body)
        verify_ticket(ticketed)


def test_with_a_key_any_leaf_is_refused_also_with_its_digest_recomputed(ticketed: Run, signing_key: object) -> None:
    issue_ticket(ticketed)
    path = ticketed.workspace.path(TICKET)
    body = read_json(path)
    places = [place for place in leaves(body) if place[0] not in ("revoked", "ticket_sha256")]
    with hashes_known():
        for place in places[::7]:
            other = changed(body, place)
            write_json(path, {**other, "ticket_sha256": sha256_json(stated(other))})
            with pytest.raises(RC1Error):
                verify_ticket(ticketed)
                pytest.fail(f"{place} was changed")
