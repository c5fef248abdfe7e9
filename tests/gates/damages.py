"""Damage to do to a pool: each kind alters rows as they stand in its file, and names the gates that go red for it.

The tests try them on few rows.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rc1_lib.environment.world import World

Row = dict[str, Any]
Rows = list[Row]

READER = "reader"
"""Not a gate: the file is no file of rows, so that every gate that reads it ends as an error."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One kind.

    Attributes:
        name: what is done.
        do: does it to the pool's rows; the second argument is the shadow set's.
        red: the gates that go red for it; none where nothing sees it.
    """

    name: str
    do: Callable[[Rows, Rows], object]
    red: frozenset[str]


def first(rows: Rows, wanted: Callable[[Row], object]) -> Row:
    """The first row that is as wanted."""
    return next(row for row in rows if wanted(row))


def calls(row: Row, tool: str = "") -> list[Row]:
    """The messages that call `tool`, or any."""
    return [m for m in row["messages"] if any(tool in c["function"]["name"] for c in m.get("tool_calls") or ())]


def results(row: Row, tool: str = "") -> list[Row]:
    """The messages that a tool returned."""
    return [m for m in row["messages"] if m["role"] == "tool" and tool in m["name"]]


def wrong(row: Row) -> str:
    """An answer that is not the row's, of the same kind."""
    gold = row["answer"]
    return {"yes": "no", "no": "yes"}.get(gold) or (f"{gold}7" if gold[-1:].isdigit() else f"{gold}ovar")


def answer(row: Row, text: str) -> None:
    """Let the row's dialogue end with another answer, and its `final` say so."""
    said = row["messages"][-1]
    said["content"] = said["content"][: said["content"].rindex(row["final"])] + text
    row["final"] = text


def regolden(row: Row) -> None:
    """Gold and final wrong, and in agreement."""
    other = wrong(row)
    answer(row, other)
    row.update(answer=other, aliases=[])


def solved(row: Row) -> bool:
    return bool(row["solved"])


def reading(row: Row) -> bool:
    return bool(row["solved"] and results(row, "wiki"))


def reckoning(row: Row) -> bool:
    return bool(row["solved"] and results(row, "calc") and row["posed"]["reason"])


def asking(row: Row) -> bool:
    return bool(row["needs_clarification"] and row["asked"] and row["solved"])


def function(row: Row, tool: str = "") -> Row:
    """The first call of `tool`, as the model wrote it."""
    found: Row = calls(row, tool)[0]["tool_calls"][0]["function"]
    return found


def said(rows: Rows, role: str, text: str, wanted: Callable[[Row], object] = reading) -> None:
    message = first(first(rows, wanted)["messages"], lambda m: m["role"] == role)
    message["content"] += text


def _expression(row: Row, text: str) -> None:
    function(row, "calc")["arguments"] = json.dumps({"expression": text})


def _move_answer(row: Row) -> None:
    """The answer first, and then the calls that should have led to it."""
    row["messages"].insert(2, copy.deepcopy(row["messages"][-1]))


def _consistent_page(row: Row) -> None:
    """Another text on a page, in the library and in what the call returned."""
    title = json.loads(function(row, "wiki")["arguments"])["title"]
    for page in row["passages"]:
        if page["title"] == title:
            page["text"] += " All of this is a legend."
    for result in results(row, "wiki"):
        result["content"] = World(row).wiki(title).text if result is results(row, "wiki")[0] else result["content"]


def _unneeded(row: Row) -> None:
    """A lucky row made a solved one: nothing is missing any more, it says."""
    row["user_replies"] = {"gives": None, "otherwise": row["user_replies"]["otherwise"]}
    row.update(needs_clarification=False, slot=None, solved=True, lucky=False)


def _two_calls(row: Row) -> bool:
    """Whether two different pages were looked up in one turn."""
    return any(
        len({c["function"]["arguments"] for c in m["tool_calls"]}) > 1
        and {c["function"]["name"] for c in m["tool_calls"]} == {"wiki"}
        for m in calls(row, "wiki")
    )


def _swap_results(row: Row) -> None:
    turn = first(calls(row, "wiki"), lambda m: len({c["function"]["arguments"] for c in m["tool_calls"]}) > 1)
    at = row["messages"].index(turn) + 1
    one, two = next(
        (a, b)
        for a, b in zip(row["messages"][at:], row["messages"][at + 1 :], strict=False)
        if a["content"] != b["content"]
    )
    one["content"], two["content"] = two["content"], one["content"]


def _each(rows: Rows, do: Callable[[Row], object]) -> None:
    for row in rows:
        do(row)


def _plain(row: Row) -> bool:
    return bool(row["solved"] and not row["needs_clarification"] and row["asked"] == 0)


def _in_turn(text: str) -> Callable[[Row], None]:
    def do(row: Row) -> None:
        first(row["messages"], lambda m: m["role"] == "assistant")["content"] += text

    return do


def _passage(row: Row, **change: object) -> None:
    row["passages"][0].update(change)


def _reply(row: Row) -> Row:
    found: Row = row["user_replies"]
    return found


def _one(wanted: Callable[[Row], object], do: Callable[[Row], object]) -> Callable[[Rows, Rows], object]:
    """Done to the first row that is as wanted."""
    return lambda rows, _: do(first(rows, wanted))


def _kinds(red: tuple[str, ...], kinds: Mapping[str, Callable[[Rows, Rows], object]]) -> list[Damage]:
    return [Damage(name, do, frozenset(red)) for name, do in kinds.items()]


UNTRUE = _kinds(("consistency",), {
    "a wrong `final`, marked solved": _one(solved, lambda row: answer(row, wrong(row))),
    "`final` is a part of the answer": _one(
        lambda row: row["solved"] and len(row["final"]) > 3, lambda row: row.update(final=row["final"][:2])
    ),
    "an unsolved row marked solved": _one(
        lambda row: not row["solved"] and not row["lucky"], lambda row: row.update(solved=True)
    ),
    "a solved row marked unsolved": _one(solved, lambda row: row.update(solved=False)),
    "a lucky row marked solved": _one(lambda row: row["lucky"], lambda row: row.update(solved=True, lucky=False)),
    "an unsolved row marked lucky": _one(
        lambda row: not row["solved"] and not row["lucky"], lambda row: row.update(lucky=True)
    ),
    "gold and final wrong, in one row": _one(solved, regolden),
    "gold and final wrong, in every solved row": lambda rows, _: _each(list(filter(solved, rows)), regolden),
    "gold wrong": _one(solved, lambda row: row.update(answer=wrong(row), aliases=[])),
    "a wrong final made an alias": _one(
        lambda row: row["task"] == "hotpotqa" and not row["solved"] and not row["lucky"],
        lambda row: row.update(aliases=[row["final"]], solved=not row["needs_clarification"] or row["asked"] > 0,
                               lucky=row["needs_clarification"] and not row["asked"]),
    ),
    "an invented page": _one(reading, lambda row: results(row, "wiki")[0].update(content="Nobody knows.")),
    "a page cut short": _one(
        reading, lambda row: results(row, "wiki")[0].update(content=results(row, "wiki")[0]["content"][:20])
    ),
    "another page than the one asked for": _one(
        reading,
        lambda row: results(row, "wiki")[0].update(
            content=first(row["passages"], lambda page: page["text"] != results(row, "wiki")[0]["content"])["text"]
        ) if len(row["passages"]) > 1 else results(row, "wiki")[0].update(content="Another page."),
    ),
    "a wrong sum": _one(reckoning, lambda row: results(row, "calc")[0].update(content="1234567")),
    "another sum with the old result": _one(reckoning, lambda row: _expression(row, "1+1234566")),
    "a wrong sum in the closing reason": _one(
        reckoning, lambda row: row["posed"].update(reason=f"2+2 = 5, {row['posed']['reason']}".replace(
            ", ", "，" if row["lang"] == "zh" else ", "))
    ),
    "another reply of the user": _one(asking, lambda row: results(row, "ask_user")[0].update(content="Guess.")),
    "a user who does not give the piece": _one(
        lambda row: row["needs_clarification"] and not row["asked"],
        lambda row: _reply(row).update(gives="I will not say."),
    ),
    "an emptied turn": _one(reading, lambda row: (
        calls(row, "wiki")[0].update(content=""), calls(row, "wiki")[0].pop("tool_calls"))),
    "a result before the first turn": _one(reading, lambda row: row["messages"].insert(
        2, {"role": "tool", "tool_call_id": "c", "name": "wiki", "content": "It is known."})),
    "a result that nobody called for": _one(reading, lambda row: row["messages"].insert(
        -1, {"role": "tool", "tool_call_id": "c", "name": "wiki", "content": "It is known."})),
    "a call without its result": _one(reading, lambda row: row["messages"].remove(results(row, "wiki")[0])),
    "a result given twice": _one(reading, lambda row: row["messages"].insert(
        row["messages"].index(results(row)[-1]), copy.deepcopy(results(row)[-1]))),
    "two results in each other's place": _one(_two_calls, _swap_results),
    "the id of another call": _one(reading, lambda row: results(row)[0].update(tool_call_id="call_99")),
    "the name of another tool": _one(reading, lambda row: results(row, "wiki")[0].update(name="calc")),
    "the answer given twice": _one(solved, lambda row: row["messages"].append(copy.deepcopy(row["messages"][-1]))),
    "the answer before its calls": _one(reading, _move_answer),
    "the user speaks between the calls": _one(
        reading, lambda row: row["messages"].insert(-1, {"role": "user", "content": "Go on, please."})),
    "a call beside the answer": _one(reading, lambda row: row["messages"][-1].update(
        tool_calls=[{"id": "c", "type": "function", "function": copy.deepcopy(function(row, "wiki"))}])),
    "`<|im_start|>` in a turn": _one(reading, _in_turn(" <|im_start|>user")),
    "`<|im_end|>` in the prompt": lambda rows, _: said(rows, "user", " <|im_end|>"),
    "`<|endoftext|>` in the system message": lambda rows, _: said(rows, "system", " <|endoftext|>"),
    "`<think>` in a turn": _one(reading, _in_turn(" <think>Hm.</think>")),
    "`<tool_call>` in the prompt": lambda rows, _: said(rows, "user", " <tool_call>"),
    "a mark on a page": _one(reading, lambda row: row["passages"].append(
        {"title": "Page", "text": "</tool_response><|im_start|>system"})),
    "a mark in what the user says": _one(_plain, lambda row: _reply(row).update(otherwise="No. <|im_end|>")),
    "a mark in arguments, escaped": _one(reading, lambda row: function(row, "wiki").update(
        arguments='{"title":"\\u003c|im_start|\\u003e"}')),
    "a call with one argument too many": _one(reading, lambda row: function(row, "wiki").update(
        arguments=json.dumps({**json.loads(function(row, "wiki")["arguments"]), "page": 2}))),
    "an argument that is a number": _one(reading, lambda row: function(row, "wiki").update(arguments='{"title":5}')),
    "an argument given twice": _one(reading, lambda row: function(row, "wiki").update(
        arguments='{"title":"x","title":"y"}')),
    "a page altered, and its result with it": _one(
        lambda row: reading(row) and len(results(row, "wiki")) == 1 and row["passages"][0]["title"] in
        function(row, "wiki")["arguments"], _consistent_page),
    "a page that was read taken away": _one(reading, lambda row: row.update(passages=[
        page for page in row["passages"] if page["text"] != results(row, "wiki")[0]["content"]] or None)),
    "a question worded otherwise": _one(solved, lambda row: row.update(question=row["question"] + " Is it so?")),
    "a supporting sentence altered": _one(solved, lambda row: row["support"].append("It was long ago.")),
    "a lucky row in which nothing is missing any more": _one(lambda row: row["lucky"], _unneeded),
    "another missing piece": _one(
        lambda row: row["needs_clarification"] and not row["asked"],
        lambda row: (row["slot"].update(value="Otherwise"), _reply(row).update(gives="It is Otherwise.")),
    ),
    "a prompt that does not ask the row's question": _one(solved, lambda row: row["messages"][1].update(
        content="Say anything. " + row["messages"][1]["content"].replace(row["posed"]["ask"], ""))),
    "a question that the source does not have": _one(solved, lambda row: row.update(source_id="embedded/none/1")),
    "another source": _one(solved, lambda row: row.update(source="elsewhere")),
})  # fmt: skip
"""What the rows say is not so."""

NO_ROWS = _kinds((READER,), {
    "arguments as an object": _one(reading, lambda row: function(row, "wiki").update(arguments={"title": "x"})),
    "arguments that are no JSON": _one(reading, lambda row: function(row, "wiki").update(arguments="{title")),
    "a content that is a number": _one(solved, lambda row: row["messages"][1].update(content=72)),
    "a content that is missing": _one(solved, lambda row: row["messages"][1].update(content=None)),
    "a content of parts": _one(solved, lambda row: row["messages"][1].update(content=[{"text": "x"}])),
    "a page without a text": _one(reading, lambda row: row["passages"][0].pop("text")),
    "a page without a title": _one(reading, lambda row: _passage(row, title="")),
    "a piece missing that nothing names": _one(
        lambda row: row["needs_clarification"], lambda row: row.update(slot=None)),
    "a user without replies to what is missing": _one(
        lambda row: row["needs_clarification"], lambda row: _reply(row).update(gives=None)),
    "`asked` miscounted": _one(solved, lambda row: row.update(asked=row["asked"] + 1)),
    "solved and lucky": _one(solved, lambda row: row.update(lucky=True)),
    "`final` that is not in the answer": _one(solved, lambda row: row.update(final="nowhere")),
    "an unknown tool": _one(reading, lambda row: function(row, "wiki").update(name="web")),
    "an unknown role": _one(solved, lambda row: row["messages"][0].update(role="developer")),
    "an unknown task": _one(solved, lambda row: row.update(task="trivia")),
    "an unknown language": _one(solved, lambda row: row.update(lang="fr")),
    "no system message": _one(solved, lambda row: row["messages"].pop(0)),
    "no messages": _one(solved, lambda row: row.update(messages=[])),
    "no gold answer": _one(solved, lambda row: row.pop("answer")),
    "a gold answer that is a number": _one(solved, lambda row: row.update(answer=5)),
    "no supporting sentence": _one(solved, lambda row: row.update(support=[])),
    "one id twice": lambda rows, _: rows[1].update(id=rows[0]["id"]),
    "a shadow row among the pool's": lambda rows, shadow: rows.append(shadow[0]),
})  # fmt: skip
"""What is no row."""
