"""Read rollouts that any trainer wrote into one frame: a function a form, recognised by the records' keys."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import orjson
import polars as pl

from rc1_lib.errors import ConfigError, RowError
from rc1_lib.records import Message
from rc1_lib.reward.chat import dialogue_of
from rc1_lib.rows.frame import ROW_COLUMNS
from rc1_lib.sources.record_files import FileRecord, read_records, read_table
from rc1_lib.workspace.input_files import form_of

COLUMNS: Mapping[str, Any] = {
    "line": pl.Int64,
    "group": pl.String,
    "question": pl.String,
    "written": pl.String,
    "final": pl.String,
    "gold": pl.String,
    "cut": pl.Boolean,
    "samples": pl.List(pl.Float64),
    "messages": ROW_COLUMNS["messages"],
}
"""Column -> type. `line` is the record's line or table row. Rollouts of one prompt in one step share `group`.

`question` is what was asked, `written` all that the policy wrote, calls included, `final` its last message if that has
no call, else empty. `cut`: whether a limit ended the rollout. `samples`: several scores of a judge. What a record does
not say is null.
"""
NUMBER = "of."
"""Prefix of the columns with the records' own numbers, such as `of.accuracy`."""
_REWARDS = ("reward", "score")
_TRUTHS = ("truth", "correct", "is_correct", "acc", "accuracy", "solved", "success", "right", "passed")
_GOLDS = ("answer", "ground_truth", "gts", "gold", "solution")
_SAMPLES = ("judge_scores", "judge_samples", "scores")
_CUT = ("is_truncated", "truncated", "cut")
_NO_REWARDS = {"step", "advantage", *_REWARDS, *_GOLDS}
"""Numbers of TRL's table that are no reward function's."""
_ENDED = ("finish_reason", "stop_condition", "stop_reason", "status")
_BY_LIMIT = ("length", "max_tokens", "max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens")
_Record = Mapping[str, Any]
_Parts = dict[str, Any]
"""`prompt` and `completion`, and what a form has under other names than most."""


def _tau_bench(record: _Record) -> _Parts:
    info = record.get("info") or {}
    return {
        **_dialogue(record["traj"]),
        "group": record["task_id"],  # the simulated user words a task differently in each trial
        "question": (info.get("task") or {}).get("instruction"),
        # Written when an episode ends: one that ran out of steps has none, and keeps the reward 0.
        "cut": info["reward_info"] is None if "reward_info" in info else None,
    }


def _traces(record: _Record) -> _Parts:
    """Of several agents, read the first; of its branches, the last."""
    trace, task = record["traces"][0], (record.get("task") or {}).get("data") or {}
    path = trace["nodes"][-1:]  # none of a rollout that failed before its first message
    while path and (parent := path[0].get("parent")) is not None:
        if not 0 <= parent < len(trace["nodes"]) or len(path) == len(trace["nodes"]):
            raise ValueError(f"a node's parent is {parent}, which leads to no first message")
        path.insert(0, trace["nodes"][parent])
    begun = next((place for place, node in enumerate(path) if node.get("sampled")), len(path))
    messages = [node["message"] for node in path]
    paid = {name: one for name, one in (trace.get("rewards") or {}).items() if one is not None}
    total = sum(one["score"] * one.get("weight", 1.0) for one in paid.values()) if paid else None
    last = [call.get("finish_reason") for call in trace.get("calls") or () if not call.get("error")][-1:]
    return {
        "prompt": messages[:begun],
        "completion": messages[begun:],
        "group": task.get("idx"),
        "gold": _first(task, _GOLDS),
        "cut": _cut({**trace, "finish_reason": "".join(filter(None, last))}),
        "numbers": {**trace.get("metrics", {}), **{name: one["score"] for name, one in paid.items()}, "reward": total},
    }


def _dialogue(messages: Sequence[_Record]) -> _Parts:
    """Split a dialogue before the assistant's first message."""
    begun = next((place for place, one in enumerate(messages) if one.get("role") == "assistant"), len(messages))
    return {"prompt": messages[:begun], "completion": messages[begun:]}


def _pair(prompt: str, completion: str, group: str = "") -> Callable[[_Record], _Parts]:
    return lambda one: {"prompt": one[prompt], "completion": one[completion] or "", "group": one.get(group)}


FORMS: Mapping[str, tuple[set[str], Callable[[_Record], _Parts]]] = {
    "tau-bench": ({"traj", "task_id", "reward"}, _tau_bench),
    "verifiers traces": ({"traces"}, _traces),
    "verifiers": ({"prompt", "completion", "example_id"}, _pair("prompt", "completion", "example_id")),
    "verl": ({"input", "output"}, _pair("input", "output")),
    "TRL": ({"prompt", "completion"}, _pair("prompt", "completion")),
    "OpenAI": ({"messages"}, lambda one: _dialogue(one["messages"])),
}
"""Form -> the keys by which it is recognised, the first that fits, and the function that reads a record."""


def read_rollouts(path: Path, *, reward: str | None = None, truth: str | None = None) -> tuple[str, pl.DataFrame]:
    """Read a file of rollouts: JSON lines, a JSON array (both also packed), or a Parquet table.

    Args:
        path: the file; all its records have the form of the first.
        reward: the key of the reward. Default: `reward` or `score`; in TRL's form the sum of its reward functions.
        truth: the key of what the reward stands for. Default: the first usual one, such as `accuracy`.

    Returns:
        The form's name, and one row per rollout: `COLUMNS`, `reward` and `truth` (Float64), and the records' own
        numbers with the prefix `of.`. NaN, infinity and a reward that is null are null, not absent.

    Raises:
        RC1Error: names file, line and key.
    """
    records = _records(path)
    form = next((name for name, (keys, _) in FORMS.items() if records[0].value.keys() >= keys), None)
    if form is None:
        known = "; ".join(f"{name}: {', '.join(sorted(keys))}" for name, (keys, _) in FORMS.items())
        have = ", ".join(records[0].value)
        raise RowError(f"{path}: the first record has the keys {have}; expected those of one of these forms: {known}")
    named = _REWARDS if reward is None else (reward,)
    rows = [
        _row(one.value, one.line, FORMS[form][1], named, f"{path}, line {one.line}, in {form}'s form")
        for one in records
    ]
    flags = {name for one in records for name, value in one.value.items() if isinstance(value, bool)}
    numbers = sorted({name for row in rows for name in row if name.startswith(NUMBER)})
    frame = pl.DataFrame(rows, schema={**COLUMNS, **dict.fromkeys(numbers, pl.Float64)})
    paid = _number(frame, "reward", reward, _REWARDS, path)
    functions = [name for name in numbers if name.removeprefix(NUMBER) not in _NO_REWARDS | flags]
    itself = {reward}
    if form == "TRL" and reward is None and not {f"{NUMBER}{name}" for name in _REWARDS} & {*numbers} and functions:
        # As TRL adds its reward functions, which it writes next to what they log: what is null is left out.
        itself = {functions[0].removeprefix(NUMBER)} if len(functions) == 1 else set()
        form = f"{form}, reward: {' + '.join(name.removeprefix(NUMBER) for name in functions)}"
        paid = pl.when(pl.any_horizontal(pl.col(functions).is_not_null())).then(pl.sum_horizontal(functions))
    truths = [name for name in _TRUTHS if name not in itself]  # or a reward would be compared with itself
    return form, frame.with_columns(reward=paid, truth=_number(frame, "truth", truth, truths, path))


def read_questions(path: Path) -> pl.Series:
    """Read held-out questions: records with `question`, else rollouts, whose prompts they are."""
    asked = [one.value.get("question") for one in _records(path)]
    return pl.Series(asked) if all(isinstance(one, str) for one in asked) else read_rollouts(path)[1]["question"]


def dialogues(frame: pl.DataFrame) -> list[list[Message]]:
    """Return the rollouts' messages without empty fields, as a judge reads them."""
    found: list[list[Any]] = frame["messages"].to_list()
    return [[{key: part for key, part in one.items() if part is not None} for one in rollout] for rollout in found]  # type: ignore[misc]


def _records(path: Path) -> list[FileRecord]:
    records = list(read_table(path) if form_of(path) == ".parquet" else read_records(path))
    if not records:
        raise RowError(f"{path}: has no records; expected one JSON object per line")
    return records


def _row(record: _Record, line: int, read: Callable[[_Record], _Parts], rewards: Sequence[str], where: str) -> _Parts:
    try:
        parts = {"gold": _first(record, _GOLDS), "cut": _cut(record), "numbers": record, **read(record)}
        prompt, completion = (_nested(parts[name]) for name in ("prompt", "completion"))
        messages: list[Any] = dialogue_of(prompt, completion or "", where)  # a failed rollout may have said nothing
        if not isinstance(parts.get("question"), str | None):
            raise TypeError(f"the question is a {type(parts['question']).__name__}")
        orjson.dumps([messages, *map(parts.get, ("group", "question", "gold"))], default=str)  # half a character fails
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise RowError(f"{where}: expected texts or lists of chat messages ({type(error).__name__}: {error})") from None
    numbers = parts["numbers"]
    if wrong := [f"{name} is {numbers[name]!r}" for name in rewards if isinstance(numbers.get(name), str)]:
        raise RowError(f"{where}: {wrong[0][:80]}, expected a number or null; --reward-key names another key")
    begun = 1 if isinstance(prompt, str) else len(prompt)
    own = [one for one in messages[begun:] if one["role"] == "assistant"]
    asked = "\n".join(one["content"] or "" for one in messages[:begun] if one["role"] != "system")
    calls = [call["function"] for one in own for call in one.get("tool_calls", ())]
    written = [*(one["content"] for one in own), *(f"{call['name']} {call['arguments']}" for call in calls)]
    ended = bool(own) and messages[-1]["role"] != "tool" and not own[-1].get("tool_calls")
    group, gold, samples = parts.get("group"), parts["gold"], _first(record, _SAMPLES)
    gold = gold[0] if isinstance(gold, list) and len(gold) == 1 else gold
    return {
        "line": line,
        "group": f"{record.get('step', '')}/{asked if group is None else group}",
        "question": parts.get("question") or asked,
        "written": "\n".join(filter(None, written)),
        "final": (own[-1]["content"] or "") if ended else "",
        "gold": str(gold) if isinstance(gold, str | int | float) and str(gold).strip() else None,
        "cut": parts["cut"],
        "samples": [float(one) for one in samples if _is_number(one)] if isinstance(samples, list) else None,
        "messages": messages,
        **{
            f"{NUMBER}{name}": float(value) if value is not None and _is_number(value) else None
            for name, value in numbers.items()
            if isinstance(value, int | float) or (value is None and name in rewards)
        },
    }


def _nested(messages: Any) -> Any:
    """Return messages with calls in OpenAI's form; verifiers writes them flat, and formerly as texts."""
    if isinstance(messages, str):
        return messages
    found = []
    for one in messages:
        calls = [orjson.loads(call) if isinstance(call, str) else call for call in one.get("tool_calls") or ()]
        found.append({**one, "tool_calls": [call if "function" in call else {"function": call} for call in calls]})
    return found


def _first(record: _Record, names: Iterable[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _cut(record: _Record) -> bool | None:
    said = [record[name] for name in _CUT if isinstance(record.get(name), bool)]
    said += [record[name] in _BY_LIMIT for name in _ENDED if isinstance(record.get(name), str)]
    return any(said) if said else None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max  # not of NaN, nor of 10 ** 400


def _number(frame: pl.DataFrame, what: str, named: str | None, usual: Sequence[str], path: Path) -> pl.Expr:
    """Return the number under the key `named`, else under the first usual key that there is, else null."""
    have = [name.removeprefix(NUMBER) for name in frame.columns if name.startswith(NUMBER)]
    if named is not None and named not in have:
        raise ConfigError(f"--{what}-key {named}: {path} has no number of this name, only {', '.join(have) or 'none'}")
    found = [name for name in usual if name in have]
    name = named or min(found, key=lambda name: not frame[f"{NUMBER}{name}"].count(), default=None)
    return pl.lit(None, pl.Float64) if name is None else pl.col(f"{NUMBER}{name}")
