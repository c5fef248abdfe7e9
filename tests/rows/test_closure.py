"""What can be reached from a prompt: titles lead from page to page, as the tool `wiki` reads them."""

from __future__ import annotations

from typing import Any, cast

from rc1_lib.environment.world import UNKNOWN_PAGE, World
from rc1_lib.records import Row
from rc1_lib.rows.closure import closure
from tests.gates import toy_pieces


def row(prompt: str, pages: dict[str, str]) -> Row:
    made: dict[str, Any] = toy_pieces.row(0, "gone")
    made["messages"][1]["content"] = prompt
    made["passages"] = [{"title": title, "text": text} for title, text in pages.items()]
    return cast(Row, made)


PAGES = {"One": "On to Page Two.", "Page Two": "On to Three.", "Three": "The end.", "Four": "On to One."}


def test_pages_are_reached_from_the_prompt_and_from_each_other() -> None:
    assert list(closure(row("Read One.", PAGES)).pages) == ["One", "Page Two", "Three"]
    assert list(closure(row("Read nothing.", PAGES)).pages) == []


def test_a_reply_leads_to_further_pages() -> None:
    reach = closure(row("Read nothing.", PAGES), "It is Three.")
    assert (list(reach.pages), reach.reply) == (["Three"], "It is Three.")


def test_what_the_assistant_says_later_reaches_nothing() -> None:
    made = row("Read nothing.", PAGES)
    made["messages"].append({"role": "user", "content": "Read One."})
    assert list(closure(made).pages) == []


def test_titles_are_folded_as_the_tool_folds_them() -> None:
    made = row("Read ｐａｇｅ  two.", PAGES)
    assert "Page Two" in closure(made).pages
    assert World(made).wiki("ｐａｇｅ  two").text != UNKNOWN_PAGE
