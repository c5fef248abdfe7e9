"""Every forgery of the table is refused in a sentence, or is one of those that are known not to be seen."""

from __future__ import annotations

import pytest

from rc1_lib.artifacts import PROJECT_ROOT
from rc1_lib.errors import RC1Error
from rc1_lib.preflight.ticket import verify_ticket
from rc1_lib.run import Run

from .forgeries import EVERY, Forgery

PAGE = PROJECT_ROOT / "docs/experiments/forgeries.md"


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


@pytest.mark.parametrize("of", EVERY)
def test_the_page_tells_of_every_kind(of: str) -> None:
    told = PAGE.read_text(encoding="utf-8")
    silent = [one.kind for one in EVERY[of] if f"| {one.kind} | {one.said or '**not seen**'}" not in told]
    assert silent == []
