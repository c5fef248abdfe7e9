"""Every forgery of the table is detected, or listed as undetected without a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.errors import RC1Error, TicketError
from rc1_lib.preflight.ticket import issue_ticket, verify_ticket
from rc1_lib.run import Run

from .forgeries import EVERY, Forgery


@pytest.mark.parametrize(
    "forgery",
    [
        pytest.param(one, id=f"{of}: {one.kind}", marks=[pytest.mark.long] if one.long else [])
        for of, forgeries in EVERY.items()
        for one in forgeries
    ],
)
def test_forgery_is_detected_or_listed_as_undetected(ticketed: Run, forgery: Forgery) -> None:
    verify_ticket(ticketed)
    forgery.forge(ticketed)
    if forgery.error is None:
        verify_ticket(ticketed)
        return
    with pytest.raises(RC1Error) as caught:
        verify_ticket(ticketed)
    assert forgery.error in str(caught.value)


@pytest.mark.parametrize(
    "forgery", [one for many in EVERY.values() for one in many if one.error is None], ids=lambda one: one.kind
)
def test_forgery_undetected_without_a_key_is_detected_with_signed_tickets(
    ticketed: Run, forgery: Forgery, signing_key: Path
) -> None:
    issue_ticket(ticketed)
    verify_ticket(ticketed)
    forgery.forge(ticketed)
    with pytest.raises(TicketError) as caught:
        verify_ticket(ticketed)
    assert forgery.signed and forgery.signed in str(caught.value)
    assert str(signing_key) not in str(caught.value)
