"""Damage for a pool: each kind changes rows of a file, and names the gates that have to fail because of it.

This module has the rows with false contents, `damages_by_gate.py` the rest. The tests apply a share of the kinds
against all gates; `make test-long` applies all of them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rc1_lib.environment.world import World

Row = dict[str, Any]
Rows = list[Row]


@dataclass(frozen=True, slots=True)
class Damage:
    """One kind of damage.

    Attributes:
        name: what is changed.
        do: changes the rows of the file in place; the second argument has the rows of `OTHER_FILE[file]`.
        meant: the gates that exist for this damage: one, or all that read a file whose rows are invalid; empty if no
            gate detects it.
        also: further gates that fail because of it.
        file: the file whose rows are damaged, by its name in the registry.
    """

    name: str
    do: Callable[[Rows, Rows], object]
    meant: frozenset[str]
    also: frozenset[str] = frozenset()
    file: str = "pool"

    @property
    def failing(self) -> frozenset[str]:
        """All gates that fail, given that every manifest is rewritten to match the damaged file."""
        return self.meant | self.also


OTHER_FILE = {"pool": "shadow", "shadow": "pool", "takes": "pool", "metrics": "balanced", "balanced": "metrics"}
"""File -> the other file whose rows its damage may use."""


def first(rows: Rows, wanted: Callable[[Row], object]) -> Row:
    """Return the first row that satisfies `wanted`."""
    return next(row for row in rows if wanted(row))


def calls(row: Row, tool: str = "") -> list[Row]:
    """Return the messages that call `tool`, or any tool."""
    return [m for m in row["messages"] if any(tool in c["function"]["name"] for c in m.get("tool_calls") or ())]


def results(row: Row, tool: str = "") -> list[Row]:
    """Return the tool results of `tool`, or of any tool."""
    return [m for m in row["messages"] if m["role"] == "tool" and tool in m["name"]]


def wrong(row: Row) -> str:
    """Return a wrong answer of the same kind as the gold answer."""
    gold = row["answer"]
    return {"yes": "no", "no": "yes"}.get(gold) or (f"{gold}7" if gold[-1:].isdigit() else f"{gold}ovar")


def set_answer(row: Row, text: str) -> None:
    """Change the answer that the dialogue ends with, and `final` with it."""
    last = row["messages"][-1]
    last["content"] = last["content"][: last["content"].rindex(row["final"])] + text
    row["final"] = text


def replace_gold(row: Row) -> None:
    """Make gold and final wrong in the same way."""
    other = wrong(row)
    set_answer(row, other)
    row.update(answer=other, aliases=[])


def solved(row: Row) -> bool:
    return bool(row["solved"])


def looked_up(row: Row) -> bool:
    return bool(row["solved"] and results(row, "wiki"))


def calculated(row: Row) -> bool:
    return bool(row["solved"] and results(row, "calc") and row["posed"]["reason"])


def asked_the_user(row: Row) -> bool:
    return bool(row["needs_clarification"] and row["asked"] and row["solved"])


def function(row: Row, tool: str = "") -> Row:
    """Return the first call of `tool`."""
    found: Row = calls(row, tool)[0]["tool_calls"][0]["function"]
    return found


def append_to(rows: Rows, role: str, text: str, wanted: Callable[[Row], object] = looked_up) -> None:
    message = first(first(rows, wanted)["messages"], lambda m: m["role"] == role)
    message["content"] += text


def _expression(row: Row, text: str) -> None:
    function(row, "calc")["arguments"] = json.dumps({"expression": text})


def _move_answer(row: Row) -> None:
    """Put the answer before the calls that should have led to it."""
    row["messages"].insert(2, copy.deepcopy(row["messages"][-1]))


def _consistent_page(row: Row) -> None:
    """Change a page both in the library and in the call's result."""
    title = json.loads(function(row, "wiki")["arguments"])["title"]
    for page in row["passages"]:
        if page["title"] == title:
            page["text"] += " All of this is a legend."
    for result in results(row, "wiki"):
        result["content"] = World(row).wiki(title).text if result is results(row, "wiki")[0] else result["content"]


def _unneeded(row: Row) -> None:
    """Make an unsupported but correct row a solved one: it now claims that nothing was missing."""
    row["user_replies"] = {"gives": None, "otherwise": row["user_replies"]["otherwise"]}
    row.update(needs_clarification=False, slot=None, solved=True, lucky=False)


def _two_calls(row: Row) -> bool:
    """Return whether one turn looks up two different pages."""
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


def each(rows: Rows, do: Callable[[Row], object]) -> None:
    for row in rows:
        do(row)


def plain(row: Row) -> bool:
    return bool(row["solved"] and not row["needs_clarification"] and row["asked"] == 0)


def append_to_turn(text: str) -> Callable[[Row], None]:
    def do(row: Row) -> None:
        first(row["messages"], lambda m: m["role"] == "assistant")["content"] += text

    return do


def reply(row: Row) -> Row:
    found: Row = row["user_replies"]
    return found


def one(wanted: Callable[[Row], object], do: Callable[[Row], object]) -> Callable[[Rows, Rows], object]:
    """Return damage to the first row that satisfies `wanted`."""
    return lambda rows, _: do(first(rows, wanted))


def damages_of(
    meant: Iterable[str],
    kinds: Mapping[str, Callable[[Rows, Rows], object]],
    also: Mapping[str, Iterable[str]] = MappingProxyType({}),
    file: str = "pool",
) -> list[Damage]:
    """Return kinds that the same gates are meant for; `also` names, by kind, the further gates that fail."""
    return [Damage(name, do, frozenset(meant), frozenset(also.get(name, ())), file) for name, do in kinds.items()]


UNTRUE = damages_of(["consistency"], {
    "a wrong `final`, marked solved": one(solved, lambda row: set_answer(row, wrong(row))),
    "`final` is a part of the answer": one(
        lambda row: row["solved"] and len(row["final"]) > 3, lambda row: row.update(final=row["final"][:2])
    ),
    "an unsolved row marked solved": one(
        lambda row: not row["solved"] and not row["lucky"], lambda row: row.update(solved=True)
    ),
    "a solved row marked unsolved": one(solved, lambda row: row.update(solved=False)),
    "a lucky row marked solved": one(lambda row: row["lucky"], lambda row: row.update(solved=True, lucky=False)),
    "an unsolved row marked lucky": one(
        lambda row: not row["solved"] and not row["lucky"], lambda row: row.update(lucky=True)
    ),
    "gold and final wrong, in one row": one(solved, replace_gold),
    "gold and final wrong, in every solved row": lambda rows, _: each(list(filter(solved, rows)), replace_gold),
    "gold wrong": one(solved, lambda row: row.update(answer=wrong(row), aliases=[])),
    "a wrong final made an alias": one(
        lambda row: row["task"] == "hotpotqa" and not row["solved"] and not row["lucky"],
        lambda row: row.update(aliases=[row["final"]], solved=not row["needs_clarification"] or row["asked"] > 0,
                               lucky=row["needs_clarification"] and not row["asked"]),
    ),
    "an invented page": one(looked_up, lambda row: results(row, "wiki")[0].update(content="Nobody knows.")),
    "a page cut short": one(
        looked_up, lambda row: results(row, "wiki")[0].update(content=results(row, "wiki")[0]["content"][:20])
    ),
    "another page than the one asked for": one(
        looked_up,
        lambda row: results(row, "wiki")[0].update(
            content=first(row["passages"], lambda page: page["text"] != results(row, "wiki")[0]["content"])["text"]
        ) if len(row["passages"]) > 1 else results(row, "wiki")[0].update(content="Another page."),
    ),
    "a wrong sum": one(calculated, lambda row: results(row, "calc")[0].update(content="1234567")),
    "another sum with the old result": one(calculated, lambda row: _expression(row, "1+1234566")),
    "a wrong sum in the closing reason": one(
        calculated, lambda row: row["posed"].update(reason=f"2+2 = 5, {row['posed']['reason']}".replace(
            ", ", "，" if row["lang"] == "zh" else ", "))
    ),
    "another reply of the user": one(asked_the_user, lambda row: results(row, "ask_user")[0].update(content="Guess.")),
    "a user who does not give the piece": one(
        lambda row: row["needs_clarification"] and not row["asked"],
        lambda row: reply(row).update(gives="I will not say."),
    ),
    "an emptied turn": one(looked_up, lambda row: (
        calls(row, "wiki")[0].update(content=""), calls(row, "wiki")[0].pop("tool_calls"))),
    "a result before the first turn": one(looked_up, lambda row: row["messages"].insert(
        2, {"role": "tool", "tool_call_id": "c", "name": "wiki", "content": "It is known."})),
    "a result without a call": one(looked_up, lambda row: row["messages"].insert(
        -1, {"role": "tool", "tool_call_id": "c", "name": "wiki", "content": "It is known."})),
    "a call without its result": one(looked_up, lambda row: row["messages"].remove(results(row, "wiki")[0])),
    "a result given twice": one(looked_up, lambda row: row["messages"].insert(
        row["messages"].index(results(row)[-1]), copy.deepcopy(results(row)[-1]))),
    "two results in each other's place": one(_two_calls, _swap_results),
    "the id of another call": one(looked_up, lambda row: results(row)[0].update(tool_call_id="call_99")),
    "the name of another tool": one(looked_up, lambda row: results(row, "wiki")[0].update(name="calc")),
    "the answer given twice": one(solved, lambda row: row["messages"].append(copy.deepcopy(row["messages"][-1]))),
    "the answer before its calls": one(looked_up, _move_answer),
    "the user speaks between the calls": one(
        looked_up, lambda row: row["messages"].insert(-1, {"role": "user", "content": "Go on, please."})),
    "a call next to the answer": one(looked_up, lambda row: row["messages"][-1].update(
        tool_calls=[{"id": "c", "type": "function", "function": copy.deepcopy(function(row, "wiki"))}])),
    "`<|im_start|>` in a turn": one(looked_up, append_to_turn(" <|im_start|>user")),
    "`<|im_end|>` in the prompt": lambda rows, _: append_to(rows, "user", " <|im_end|>"),
    "`<|endoftext|>` in the system message": lambda rows, _: append_to(rows, "system", " <|endoftext|>"),
    "`<think>` in a turn": one(looked_up, append_to_turn(" <think>Hm.</think>")),
    "`<tool_call>` in the prompt": lambda rows, _: append_to(rows, "user", " <tool_call>"),
    "a mark on a page": one(looked_up, lambda row: row["passages"].append(
        {"title": "Page", "text": "</tool_response><|im_start|>system"})),
    "a mark in what the user says": one(plain, lambda row: reply(row).update(otherwise="No. <|im_end|>")),
    "a mark in arguments, escaped": one(looked_up, lambda row: function(row, "wiki").update(
        arguments='{"title":"\\u003c|im_start|\\u003e"}')),
    "a call with one argument too many": one(looked_up, lambda row: function(row, "wiki").update(
        arguments=json.dumps({**json.loads(function(row, "wiki")["arguments"]), "page": 2}))),
    "an argument that is a number": one(looked_up, lambda row: function(row, "wiki").update(arguments='{"title":5}')),
    "an argument given twice": one(looked_up, lambda row: function(row, "wiki").update(
        arguments='{"title":"x","title":"y"}')),
    "a page altered, and its result with it": one(
        lambda row: looked_up(row) and len(results(row, "wiki")) == 1 and row["passages"][0]["title"] in
        function(row, "wiki")["arguments"], _consistent_page),
    "a page that was read taken away": one(looked_up, lambda row: row.update(passages=[
        page for page in row["passages"] if page["text"] != results(row, "wiki")[0]["content"]] or None)),
    "a question worded otherwise": one(solved, lambda row: row.update(question=row["question"] + " Is it so?")),
    "a supporting sentence altered": one(solved, lambda row: row["support"].append("It was long ago.")),
    "a lucky row in which nothing is missing any more": one(lambda row: row["lucky"], _unneeded),
    "another missing piece": one(
        lambda row: row["needs_clarification"] and not row["asked"],
        lambda row: (row["slot"].update(value="Otherwise"), reply(row).update(gives="It is Otherwise.")),
    ),
    "a prompt that does not ask the row's question": one(solved, lambda row: row["messages"][1].update(
        content="Say anything. " + row["messages"][1]["content"].replace(row["posed"]["ask"], ""))),
    "a question that the source does not have": one(solved, lambda row: row.update(source_id="embedded/none/1")),
    "another source": one(solved, lambda row: row.update(source="elsewhere")),
})  # fmt: skip
"""Rows with false contents."""
