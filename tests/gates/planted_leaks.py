"""Leaks to plant: a shadow question, edited or hidden in one of many ways, inside a row of another question."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import polars as pl
import regex

from rc1_lib.rows.spoken import question_texts
from rc1_lib.text.tokens import TOKEN_PATTERN

Row = dict[str, Any]
Edit = Callable[[str, random.Random], str]
Plant = Callable[[Row, str, Mapping[str, Any]], None]

_WORD = regex.compile(TOKEN_PATTERN, regex.V1)


def _each(text: str, change: Callable[[int, str], str]) -> str:
    """Change each word, which `change` gets with its number, and keep the text between the words."""
    numbers = iter(range(len(text)))
    return str(_WORD.sub(lambda word: change(next(numbers), word.group()), text))


def _filler(word: str) -> str:
    return "某" if regex.match(r"\p{Han}", word) else "something"


def _change_middle_word(text: str, change: Callable[[str], str]) -> str:
    middle = len(_WORD.findall(text)) // 2
    return _each(text, lambda number, word: change(word) if number == middle else word)


def _four_fifths(text: str, first: bool) -> str:
    """Return the first or the last four fifths of the words, rounded up."""
    found = list(_WORD.finditer(text))
    count = -(-4 * len(found) // 5)
    return text[: found[count - 1].end()] if first else text[found[-count].start() :]


def _swapped(text: str) -> str:
    """Swap the first two sentences; a single sentence is split at a comma, or else in the middle."""
    parts = regex.split(r"(?<=[.。\n])\s*|(?<=[,，])\s*", text)
    parts = [part for part in parts if part]
    if len(parts) < 2:
        middle = len(text) // 2
        parts = [text[:middle], text[middle:]]
    return " ".join([parts[1], parts[0], *parts[2:]])


def _full_width(text: str) -> str:
    return "".join(chr(ord(mark) + 0xFEE0) if "!" <= mark <= "~" else mark for mark in text)


def _paraphrased(text: str) -> str:
    """Put other words around the names and numbers, the most that a paraphrase keeps."""
    kept = [word for word in _WORD.findall(text)[1:] if word[:1].isupper() or word[:1].isdigit()]
    return "Please look into this matter for me, it concerns " + ", then ".join(kept) + ", and tell what comes out."


def _translated(text: str) -> str:
    kept = [word for word in _WORD.findall(text)[1:] if word[:1].isupper() or word[:1].isdigit()]
    return "请查一查" + "和".join(kept) + "之间有什么关系，然后说出结果。"


_SMALL = str.maketrans("abcdefghijklmnopqrstuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ")

EDITS: dict[str, Edit] = {
    "verbatim": lambda text, _: text,
    "one word in the middle changed": lambda text, _: _change_middle_word(text, _filler),
    "one word in <b>": lambda text, _: _change_middle_word(text, lambda word: f"<b>{word}</b>"),
    "half a word in <i>": lambda text, _: _change_middle_word(text, lambda word: f"<i>{word[:1]}</i>{word[1:]}"),
    "soft hyphens": lambda text, _: _each(text, lambda _, word: "\u00ad".join(word)),
    "zero-width characters": lambda text, _: "\u200b".join(text),
    "combining marks": lambda text, _: _each(text, lambda _, word: "\u0335".join(word)),
    "first 80 %": lambda text, _: _four_fifths(text, True),
    "last 80 %": lambda text, _: _four_fifths(text, False),
    "full-width forms": lambda text, _: _full_width(text),
    "upper case": lambda text, _: text.upper(),
    "Cyrillic letters": lambda text, _: text.translate(str.maketrans("aeopcx", "аеорсх")),
    "HTML entities": lambda text, _: "".join(f"&#{ord(mark)};" for mark in text),
    "emphasis within words": lambda text, _: _each(text, lambda _, word: f"{word[:1]}**{word[1:]}**"),
    "small capitals": lambda text, _: text.lower().translate(_SMALL),
    "letters in boxes": lambda text, _: regex.sub("[A-Z]", lambda mark: chr(ord(mark[0]) + 0x1F12F), text.upper()),
    "letters in black circles": lambda text, _: regex.sub(
        "[A-Z]", lambda mark: chr(ord(mark[0]) + 0x1F150 - 65), text.upper()
    ),
    "letters of flags": lambda text, _: regex.sub("[A-Z]", lambda mark: chr(ord(mark[0]) + 0x1F1E6 - 65), text.upper()),
    "invisible tag characters": lambda text, _: regex.sub("[ -~]", lambda mark: chr(ord(mark[0]) + 0xE0000), text),
    "percent-encoded": lambda text, _: quote(text),
    "escapes by number": lambda text, _: "".join(f"\\u{{{ord(mark):x}}}" for mark in text),
    "letters apart": lambda text, _: " ".join(text),
    "letters apart by an emoji": lambda text, _: "\U0001f642".join(text),
    "letters in reverse after a right-to-left mark": lambda text, _: f"\u202e{text[::-1]}\u202c",
    "words run together": lambda text, _: text.replace(" ", ""),
    "words joined by _": lambda text, _: text.replace(" ", "_"),
    "blanks that are letters": lambda text, _: text.replace(" ", "\u3164"),
    "punctuation changed": lambda text, _: regex.sub(r"[\p{P}\s]+", " - ", text),
    "two sentences swapped": lambda text, _: _swapped(text),
    "numbers changed": lambda text, _: regex.sub(r"\d+", lambda number: str(int(number.group()) + 7), text),
    "every tenth word dropped": lambda text, _: _each(text, lambda number, word: "" if number % 10 == 9 else word),
    "every fifth word dropped": lambda text, _: _each(text, lambda number, word: "" if number % 5 == 4 else word),
    "a word put in after every fifth": lambda text, _: _each(
        text, lambda number, word: f"{word} {_filler(word)} " if number % 5 == 4 else word
    ),
    "half of the words": lambda text, rng: _each(text, lambda _, word: word if rng.random() < 0.5 else _filler(word)),
    "names in other words": lambda text, _: _paraphrased(text),
    "names in Chinese words": lambda text, _: _translated(text),
    "words in reverse": lambda text, _: " ".join(reversed(_WORD.findall(text))),
}
"""Edits of the question, which is then appended to the user's message."""

SURE = (
    *list(EDITS)[: list(EDITS).index("two sentences swapped")],
    "numbers changed", "every tenth word dropped", "a word put in after every fifth",
)  # fmt: skip
"""The edits that keep at least 80 % of the words, in order."""


def _append(row: Row, text: str, _: Mapping[str, Any]) -> None:
    row["messages"][1]["content"] += f" Out of the blue: {text} Well."


def _insert_call(row: Row, arguments: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "wiki", "arguments": arguments}}
    message = {"role": "assistant", "content": "", "tool_calls": [call], "tool_call_id": None, "name": None}
    row["messages"].insert(2, message)


def _insert_result(row: Row, text: str, _: Mapping[str, Any]) -> None:
    message = {"role": "tool", "content": text, "tool_calls": None, "tool_call_id": "c", "name": "wiki"}
    row["messages"].insert(2, message)


def _add_page(row: Row, title: str, text: str) -> None:
    row["passages"] = [*(row["passages"] or []), {"title": title, "text": text}]


def _pose(row: Row, text: str) -> None:
    row.update(question=text, support=[])


def _set_slot(row: Row, text: str, _: Mapping[str, Any]) -> None:
    row["slot"] = {"where": "ask", "vague": "some", "wanted": "it", **(row["slot"] or {}), "value": text}


PLACES: dict[str, tuple[str, Plant]] = {
    "arguments, escaped": (
        "messages[2].tool_calls[0].arguments", lambda row, text, _: _insert_call(row, json.dumps({"title": text})),
    ),
    "arguments, escaped twice": (
        "messages[2].tool_calls[0].arguments",
        lambda row, text, _: _insert_call(row, json.dumps({"title": json.dumps({"title": text})})),
    ),
    "a tool's result": ("messages[2].content", _insert_result),
    "a page's title": ("passages", lambda row, text, _: _add_page(row, text, "Nothing here.")),
    "a page's text": ("passages", lambda row, text, _: _add_page(row, "Page", text)),
    "slot.value": ("slot.value", _set_slot),
    "a user's reply": (
        "user_replies.otherwise",
        lambda row, text, _: row.update(user_replies={**row["user_replies"], "otherwise": text}),
    ),
    "a quoted sentence": (
        "posed.quoted", lambda row, text, _: row.update(posed={**row["posed"], "quoted": [text]}),
    ),
    "verbatim, the row's own question": ("question", lambda row, text, _: _pose(row, text)),
    "one word changed, the row's own question": (
        "question", lambda row, text, _: _pose(row, _change_middle_word(text, _filler)),
    ),
    "first 80 %, the row's own question": ("question", lambda row, text, _: _pose(row, _four_fifths(text, True))),
    "a shadow row's id in a message": (
        "messages[1].content", lambda row, _, shadow: _append(row, shadow["id"], shadow),
    ),
    "a shadow row's id as the row's own": ("id", lambda row, _, shadow: row.update(id=shadow["id"])),
}  # fmt: skip
"""Where the verbatim question is hidden: how the offender's `where` begins, and the change."""

KINDS = (*EDITS, *PLACES)
SURE_PLACES = tuple(place for place in PLACES if "own question" not in place)
"""The places in which the row's own question cannot explain the leak away."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One leak: its kind, the row that contains it, the shadow row it comes from, and the place in the row."""

    kind: str
    id: str
    shadow_id: str
    lang: str
    where: str


def planted(
    rows: pl.DataFrame, shadow: pl.DataFrame, each: int, kinds: tuple[str, ...] = KINDS
) -> tuple[pl.DataFrame, list[Planted]]:
    """Plant `each` leaks of each kind, at most one per row, with English and Chinese questions in turn."""
    rng = random.Random(20250820)
    records = rows.to_dicts()
    texts = dict(zip(shadow["id"], question_texts(shadow), strict=True))
    turn = _in_turn(shadow.to_dicts(), rng)
    free = iter(rng.sample(range(len(records)), each * len(kinds)))
    leaks = []
    for kind in kinds:
        for _ in range(each):
            question, number = next(turn), next(free)
            row = copy.deepcopy(records[number])
            where, plant = PLACES.get(kind, ("messages[1].content", _append))
            text = EDITS[kind](texts[question["id"]], rng) if kind in EDITS else texts[question["id"]]
            plant(row, text, question)
            records[number] = row
            leaks.append(Planted(kind, row["id"], question["id"], question["lang"], where))
    return pl.DataFrame(records, schema=rows.schema), leaks


def _in_turn(shadow: list[Row], rng: random.Random) -> Iterator[Row]:
    by_language = [[row for row in shadow if row["lang"] == lang] for lang in ("en", "zh")]
    while True:
        for rows in by_language:
            yield rng.choice(rows)
