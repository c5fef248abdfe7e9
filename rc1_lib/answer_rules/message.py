"""Find the answer in a final message (docs/answers.md): after an answer mark, else by the task's function."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

Unmarked = Callable[[str], str]
"""Finds the answer in a message without a mark."""

MARK = r"(?:Answer|ANSWER|答案)[*_]{0,3}[ \t]*[:：]"
"""The mark before an answer; `rc1_lib.rows.chat` has the builder's form. Polars uses this pattern too."""
OTHER_MARK = r"####|\\boxed\b"
"""How GSM8K and LaTeX mark an answer; used if there is no `MARK`, and after one to contradict it."""
_MARK = re.compile(MARK)
_HASHES = re.compile(r"####[ \t]*(.*)")
_TEXT_LINE = re.compile(r"\n[ \t]*(?!####)\S")
_BOX = re.compile(r"\\boxed\s*\{")
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_THOUGHT = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_ANSWER_IS = re.compile(
    r"\banswer(?:\s+to\s+[^.:\n]{1,80})?(?:\s+is\b:?|\s*[:：])|答案\s*(?:是|为|[:：])", re.IGNORECASE
)
_DIGIT = re.compile(r"(?<![Ss]tep )(?<!\d)\d")
_FIGURE = re.compile(r"\W*\d[\d.,/]*%?\W*")
_NAMES_ONE = re.compile(
    r"[\s*_`\"'“「]*(?!\$*\\boxed)(?:[-−$\d]|[A-Z]|[\u4e00-\u9fff]|(?:yes|no|true|false)\b(?! (?:longer|more|one)))"
)
"""What follows `answer is` where that is an answer, and no remark on it ("the answer is based on ...")."""
_GOES_ON = re.compile(
    r"\W*$|[*_`\"'”」]*(?:[,:](?!\d)|[;!?)，。；：（]|\.(?:\s|$)|\s+(?:\(|(?:because|since|as|which|who|for)\b))"
)
_IN_TEXT = re.compile(r"\\(?:text(?:bf)?|mathrm|mathbf)\s*\{([^{}]*)\}")
_NOT_IN_A_NUMBER = re.compile(r"(?<!\d)[,/%]|[.,/](?!\d)")
_DIFFER = "; "
"""Joins contradicting answers; no rule accepts the result."""


def last_statement(message: str) -> str:
    """Return the answer of a message without a mark: what follows its last `answer is`, else its last line."""
    found = [*_ANSWER_IS.finditer(message)]
    return _first_line(message[found[-1].end() :]) if found else message.strip().rpartition("\n")[2].strip()


def final_answer(content: str, unmarked: Unmarked = last_statement) -> str:
    """Return the answer of a final message without thoughts; empty if nothing follows a mark.

    Args:
        unmarked: the task's function that finds the answer if there is no mark.
    """
    message = _without_thoughts(content)
    marked = _marked(message)
    if marked is None:
        return unmarked(message)
    answers = [_without_box(text) for text in marked if text]
    answers += [text for text in _later(message) if not any(_repeats(text, answer) for answer in answers)]
    if len({_folded(text) for text in answers}) > 1:
        return _DIFFER.join(dict.fromkeys(answers))
    return answers[-1] if answers else ""


def _without_thoughts(content: str) -> str:
    """Remove what is within `<think>` and `</think>`, or before a closing one."""
    *_, spoken = _THOUGHT_ENDS.split(content)
    return _THOUGHT.split(spoken, maxsplit=1)[0]


def _marked(message: str) -> list[str] | None:
    """Return the text after each mark, in order; None without a mark."""
    marks = [*_MARK.finditer(message)]
    if marks:
        ends = [*(mark.start() for mark in marks[1:]), len(message)]
        return [_first_line(message[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    found = [
        (match.start(), text)
        for match in _HASHES.finditer(message)
        if _FIGURE.fullmatch(text := match[1].strip()) or not _is_heading(text, message, match.end())
    ]
    found += [(match.start(), _braced(message, match.end())) for match in _BOX.finditer(message)]
    return [text for _, text in sorted(found)] or None


def _is_heading(text: str, message: str, end: int) -> bool:
    """Return whether text after a `####` line marks an answer of its own, or has the figures that the line lacks."""
    line = _TEXT_LINE.search(message, end)
    if line is None:
        return False
    after = message[line.start() :]
    marked = "####" in after or _BOX.search(after) or _ANSWER_IS.search(f"{text.rstrip('*: ')}:{after}")
    return bool(marked) or (not _DIGIT.search(text) and _DIGIT.search(after) is not None)


def _later(message: str) -> list[str]:
    """Return the answers after marks of another kind, on lines after the first answer that `MARK` marks."""
    first = _MARK.search(message)
    if first is None:
        return []
    answer = message.find(_first_line(message[first.end() :]), first.end())
    start = message.find("\n", answer)
    if start < 0:
        return []
    after = message[start:]
    found = [text for match in _HASHES.finditer(after) if _FIGURE.fullmatch(text := match[1].strip())]
    found += [_braced(after, match.end()) for match in _BOX.finditer(after)]
    rests = [after[match.end() :] for match in _ANSWER_IS.finditer(after)]
    return found + [_first_line(rest) for rest in rests if _NAMES_ONE.match(rest)]


def _repeats(text: str, answer: str) -> bool:
    """Return whether a text repeats an answer, alone or with a remark after it."""
    plain = (_IN_TEXT.sub(r"\1", unicodedata.normalize("NFKC", part)) for part in (text, answer))
    one, other = (part.casefold().strip(" *_`$\"'“”「」.") for part in plain)
    return bool(other) and one.startswith(other) and _GOES_ON.match(one, len(other)) is not None


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _braced(text: str, start: int) -> str:
    """Return the text from `start` to the matching closing brace, or to the end if there is none."""
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if not depth:
            return text[start:place].strip()
    return text[start:].strip()


def _without_box(text: str) -> str:
    r"""Return the content of a `\boxed{}`, and of a `\text{}`, that is all of `text`; otherwise `text`."""
    bare = text.strip("$*. ")
    if box := _BOX.match(bare):
        inside = _braced(bare, box.end())
        if len("".join(bare[box.end() :].split())) == len("".join(inside.split())) + 1:
            text = inside
    whole = _IN_TEXT.fullmatch(text)
    return whole[1].strip() if whole else text


def _folded(text: str) -> str:
    """Keep letters, digits and the marks within numbers: what two spellings of one answer share."""
    wide = unicodedata.normalize("NFKC", text).casefold()
    return "".join(mark for mark in _NOT_IN_A_NUMBER.sub("", wide) if mark.isalnum() or mark in "-−.,/%")
