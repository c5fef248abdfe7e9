"""What can be reached from a row's prompt without asking the user: the prompt, and every page that leads on from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rc1_lib.records import Row
from rc1_lib.task_specs.reach import reachable


@dataclass(frozen=True, slots=True)
class Closure:
    """All texts that a policy can read without asking; what `calc` makes of them is for the solver to say.

    Attributes:
        prompt: the messages before the assistant's first, joined by newlines.
        pages: title -> text of the pages that can be reached, in the row's order.
        reply: the user's reply to a question for the missing piece; None if the user was not asked.
    """

    prompt: str
    pages: Mapping[str, str]
    reply: str | None = None


def closure(row: Row, reply: str | None = None) -> Closure:
    """Return what can be reached in `row`.

    A page can be reached if its title stands in the prompt, in `reply` or on a page that can be reached. Titles are
    compared as the tool `wiki` compares them, so that no policy reaches more.

    Args:
        row: a row that `check_rows` has accepted, as read from JSON lines or from a frame.
        reply: the user's reply, if it is known.
    """
    prompt = prompt_of(row)
    pages: dict[str, str] = {}
    for page in row.get("passages") or ():
        pages.setdefault(page["title"], page["text"])  # of several equal titles, the first page counts
    opened = reachable((prompt, reply or ""), pages)
    return Closure(prompt, {title: text for title, text in pages.items() if title in opened}, reply)


def prompt_of(row: Row) -> str:
    """Return the texts before the assistant's first message, joined by newlines."""
    texts: list[str] = []
    for message in row["messages"]:
        if message["role"] == "assistant":
            break
        texts.append(message["content"] or "")
    return "\n".join(texts)
