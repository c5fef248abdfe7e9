"""Damage to do to a pool: each kind alters rows as they stand in its file, and names the gates that go red for it.

What the rows say that is not so stands here, the rest in `damages_by_gate.py`. The tests try a share of the kinds
against all gates, `make test-long` and `benchmarks/bench_damage.py` all of them.
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
    """One kind.

    Attributes:
        name: what is done.
        do: does it to the rows of its file; the second argument is the rows of the file `BESIDE` it.
        meant: the gates that are there for it: one, or all that read a file without rows; none where nothing sees it.
        besides: the gates that go red for it as well.
        file: whose rows are damaged, by its name in the registry.
    """

    name: str
    do: Callable[[Rows, Rows], object]
    meant: frozenset[str]
    besides: frozenset[str] = frozenset()
    file: str = "pool"

    @property
    def red(self) -> frozenset[str]:
        """All gates that go red for it, where every manifest is written as if the file had been made so."""
        return self.meant | self.besides


BESIDE = {"pool": "shadow", "shadow": "pool", "takes": "pool", "metrics": "balanced", "balanced": "metrics"}
"""File -> the other file that its damage is made with."""


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


def each(rows: Rows, do: Callable[[Row], object]) -> None:
    for row in rows:
        do(row)


def plain(row: Row) -> bool:
    return bool(row["solved"] and not row["needs_clarification"] and row["asked"] == 0)


def in_turn(text: str) -> Callable[[Row], None]:
    def do(row: Row) -> None:
        first(row["messages"], lambda m: m["role"] == "assistant")["content"] += text

    return do


def reply(row: Row) -> Row:
    found: Row = row["user_replies"]
    return found


def one(wanted: Callable[[Row], object], do: Callable[[Row], object]) -> Callable[[Rows, Rows], object]:
    """Done to the first row that is as wanted."""
    return lambda rows, _: do(first(rows, wanted))


def of_gate(
    meant: Iterable[str],
    kinds: Mapping[str, Callable[[Rows, Rows], object]],
    besides: Mapping[str, Iterable[str]] = MappingProxyType({}),
    file: str = "pool",
) -> list[Damage]:
    """Kinds that the same gates are meant for; `besides` names, by kind, those that go red as well."""
    return [Damage(name, do, frozenset(meant), frozenset(besides.get(name, ())), file) for name, do in kinds.items()]


UNTRUE = of_gate(["consistency"], {
    "a wrong `final`, marked solved": one(solved, lambda row: answer(row, wrong(row))),
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
    "gold and final wrong, in one row": one(solved, regolden),
    "gold and final wrong, in every solved row": lambda rows, _: each(list(filter(solved, rows)), regolden),
    "gold wrong": one(solved, lambda row: row.update(answer=wrong(row), aliases=[])),
    "a wrong final made an alias": one(
        lambda row: row["task"] == "hotpotqa" and not row["solved"] and not row["lucky"],
        lambda row: row.update(aliases=[row["final"]], solved=not row["needs_clarification"] or row["asked"] > 0,
                               lucky=row["needs_clarification"] and not row["asked"]),
    ),
    "an invented page": one(reading, lambda row: results(row, "wiki")[0].update(content="Nobody knows.")),
    "a page cut short": one(
        reading, lambda row: results(row, "wiki")[0].update(content=results(row, "wiki")[0]["content"][:20])
    ),
    "another page than the one asked for": one(
        reading,
        lambda row: results(row, "wiki")[0].update(
            content=first(row["passages"], lambda page: page["text"] != results(row, "wiki")[0]["content"])["text"]
        ) if len(row["passages"]) > 1 else results(row, "wiki")[0].update(content="Another page."),
    ),
    "a wrong sum": one(reckoning, lambda row: results(row, "calc")[0].update(content="1234567")),
    "another sum with the old result": one(reckoning, lambda row: _expression(row, "1+1234566")),
    "a wrong sum in the closing reason": one(
        reckoning, lambda row: row["posed"].update(reason=f"2+2 = 5, {row['posed']['reason']}".replace(
            ", ", "，" if row["lang"] == "zh" else ", "))
    ),
    "another reply of the user": one(asking, lambda row: results(row, "ask_user")[0].update(content="Guess.")),
    "a user who does not give the piece": one(
        lambda row: row["needs_clarification"] and not row["asked"],
        lambda row: reply(row).update(gives="I will not say."),
    ),
    "an emptied turn": one(reading, lambda row: (
        calls(row, "wiki")[0].update(content=""), calls(row, "wiki")[0].pop("tool_calls"))),
    "a result before the first turn": one(reading, lambda row: row["messages"].insert(
        2, {"role": "tool", "tool_call_id": "c", "name": "wiki", "content": "It is known."})),
    "a result that nobody called for": one(reading, lambda row: row["messages"].insert(
        -1, {"role": "tool", "tool_call_id": "c", "name": "wiki", "content": "It is known."})),
    "a call without its result": one(reading, lambda row: row["messages"].remove(results(row, "wiki")[0])),
    "a result given twice": one(reading, lambda row: row["messages"].insert(
        row["messages"].index(results(row)[-1]), copy.deepcopy(results(row)[-1]))),
    "two results in each other's place": one(_two_calls, _swap_results),
    "the id of another call": one(reading, lambda row: results(row)[0].update(tool_call_id="call_99")),
    "the name of another tool": one(reading, lambda row: results(row, "wiki")[0].update(name="calc")),
    "the answer given twice": one(solved, lambda row: row["messages"].append(copy.deepcopy(row["messages"][-1]))),
    "the answer before its calls": one(reading, _move_answer),
    "the user speaks between the calls": one(
        reading, lambda row: row["messages"].insert(-1, {"role": "user", "content": "Go on, please."})),
    "a call beside the answer": one(reading, lambda row: row["messages"][-1].update(
        tool_calls=[{"id": "c", "type": "function", "function": copy.deepcopy(function(row, "wiki"))}])),
    "`<|im_start|>` in a turn": one(reading, in_turn(" <|im_start|>user")),
    "`<|im_end|>` in the prompt": lambda rows, _: said(rows, "user", " <|im_end|>"),
    "`<|endoftext|>` in the system message": lambda rows, _: said(rows, "system", " <|endoftext|>"),
    "`<think>` in a turn": one(reading, in_turn(" <think>Hm.</think>")),
    "`<tool_call>` in the prompt": lambda rows, _: said(rows, "user", " <tool_call>"),
    "a mark on a page": one(reading, lambda row: row["passages"].append(
        {"title": "Page", "text": "</tool_response><|im_start|>system"})),
    "a mark in what the user says": one(plain, lambda row: reply(row).update(otherwise="No. <|im_end|>")),
    "a mark in arguments, escaped": one(reading, lambda row: function(row, "wiki").update(
        arguments='{"title":"\\u003c|im_start|\\u003e"}')),
    "a call with one argument too many": one(reading, lambda row: function(row, "wiki").update(
        arguments=json.dumps({**json.loads(function(row, "wiki")["arguments"]), "page": 2}))),
    "an argument that is a number": one(reading, lambda row: function(row, "wiki").update(arguments='{"title":5}')),
    "an argument given twice": one(reading, lambda row: function(row, "wiki").update(
        arguments='{"title":"x","title":"y"}')),
    "a page altered, and its result with it": one(
        lambda row: reading(row) and len(results(row, "wiki")) == 1 and row["passages"][0]["title"] in
        function(row, "wiki")["arguments"], _consistent_page),
    "a page that was read taken away": one(reading, lambda row: row.update(passages=[
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
"""What the rows say is not so."""
