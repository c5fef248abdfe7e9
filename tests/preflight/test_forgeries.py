"""Every forgery of the table is refused in a sentence, or is one of those that are known not to be seen."""

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
def test_a_forgery_is_refused_or_known_not_to_be_seen(ticketed: Run, forgery: Forgery) -> None:
    verify_ticket(ticketed)
    forgery.forge(ticketed)
    if forgery.said is None:
        verify_ticket(ticketed)
        return
    with pytest.raises(RC1Error) as refused:
        verify_ticket(ticketed)
    assert forgery.said in str(refused.value)


@pytest.mark.parametrize(
    "forgery", [one for many in EVERY.values() for one in many if one.said is None], ids=lambda one: one.kind
)
def test_what_is_not_seen_otherwise_is_refused_where_tickets_are_signed(
    ticketed: Run, forgery: Forgery, signing_key: Path
) -> None:
    issue_ticket(ticketed)
    verify_ticket(ticketed)
    forgery.forge(ticketed)
    with pytest.raises(TicketError) as refused:
        verify_ticket(ticketed)
    assert forgery.signed and forgery.signed in str(refused.value)
    assert str(signing_key) not in str(refused.value)
