"""Compare a row's words with what the builder writes: the row's template, filled from the row's other columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain

import orjson

from rc1_lib.pool.as_asked import slot_of
from rc1_lib.pool.dialogue import UNSURE, kind_of
from rc1_lib.pool.prompting import replace_word, user_message
from rc1_lib.pool.quotation import first_sentence, leading
from rc1_lib.pool.templates import Pack, Template
from rc1_lib.records import Message, Passage, Row
from rc1_lib.rows.chat import ANSWER_MARK, ARGUMENT_OF, ASK
from rc1_lib.rows.inconsistency import Inconsistency, Kind
from rc1_lib.task_specs.record_fields import HAN, mostly_chinese


def as_worded(row: Row, pack: Pack) -> Iterator[Inconsistency]:
    """Yield every difference between `row` and what the builder would write from the same fields.

    The system message, the user message, the user's replies and the assistant's words must be exactly the template's.
    Quotes must come from the row's own evidence, and listed titles from its own pages. Role, style, pack and kind of
    template must match the row's labels.

    Args:
        row: a row that the builder made; a finished dialogue brings its own words.
        pack: the pool's template pack.
    """
    group = pack.groups.get((kind_of(row["task"], row["cue"]), row["lang"]), ())
    template = next((candidate for candidate in group if candidate.id == row["template_id"]), None)
    if template is None or row["pack"] != pack.name:
        found = f"pack {row['pack']}, template {row['template_id']}, lang {row['lang']}, cue {row['cue']}"
        yield Inconsistency(Kind.LABEL, "template_id", found, f"a template of pack {pack.name} for this kind of row")
        return
    for name, label in (("role", template.role), ("style", template.style)):
        if row[name] != label:  # type: ignore[literal-required]
            yield Inconsistency(Kind.LABEL, name, str(row[name]), label)  # type: ignore[literal-required]
    posed, messages = row["posed"], row["messages"]
    user = user_message(template, posed["quoted"], posed["listed"], posed["ask"], row["lang"])
    for at, text in enumerate((template.system, user)):
        if messages[at]["content"] != text:
            yield Inconsistency(Kind.WORDS, f"messages[{at}].content", str(messages[at]["content"]), text)
    if messages[2]["role"] != "assistant":
        yield Inconsistency(Kind.WORDS, "messages[2]", f"a message of role {messages[2]['role']}", "the assistant's")
    titles = {page["title"] for page in row["passages"] or ()}
    for title in posed["listed"]:
        if title not in titles:
            yield Inconsistency(Kind.WORDS, "posed.listed", title, "a title of the row's own pages")
    for text in posed["quoted"]:
        if not _quotable(text, row):
            yield Inconsistency(Kind.WORDS, "posed.quoted", text, "a sentence of the row's own evidence, or its head")
    for at, message in enumerate(messages):
        if message["role"] == "assistant" and message["content"] not in (known := _allowed(row, message, template)):
            found = str(message["content"])
            yield Inconsistency(Kind.WORDS, f"messages[{at}].content", found, " / ".join(sorted(known)))
    yield from _questions(row, template)
    yield from _replies(row, template)


def _questions(row: Row, template: Template) -> Iterator[Inconsistency]:
    """Yield each question to the user that is not one of the template's, about what is missing if something is."""
    wanted = row["slot"]["wanted"] if row["slot"] and row["needs_clarification"] else None
    filled = re.escape(wanted) if wanted else ".+"
    asked = "|".join(re.escape(phrase).replace(r"\{wanted\}", filled) for phrase in template.ask)
    for at, message in enumerate(row["messages"]):
        for call in message.get("tool_calls") or ():
            with suppress(ValueError, KeyError, TypeError):  # the replay reports malformed arguments
                if call["function"]["name"] == ASK:
                    said = orjson.loads(call["function"]["arguments"])[ARGUMENT_OF[ASK]]
                    if not re.fullmatch(asked, said, re.DOTALL):
                        yield Inconsistency(Kind.WORDS, f"messages[{at}].tool_calls", said, " / ".join(template.ask))


def _allowed(row: Row, message: Message, template: Template) -> set[str]:
    """Return every text that the template allows for this message of the assistant."""
    reason, calls = row["posed"]["reason"], message.get("tool_calls")
    if calls:
        tool = calls[0]["function"]["name"]
        try:
            argument = orjson.loads(calls[0]["function"]["arguments"])[ARGUMENT_OF[tool]]
        except (ValueError, KeyError, TypeError):  # the replay reports malformed arguments
            return {str(message["content"])}
        return {phrase.format(**{ARGUMENT_OF[tool]: argument}) for phrase in template.steps.get(tool, ("",))}
    ending = f" {ANSWER_MARK[row['lang']]}{row['final']}"
    phrases = [phrase for phrase in template.final if reason or "{reason}" not in phrase] or [""]
    return {f"{phrase.format(reason=reason)}{ending}".strip() for phrase in phrases}


def language(row: Row) -> Iterator[Inconsistency]:
    """Yield a difference if the label `lang` contradicts the question: an English one is not mostly Chinese."""
    han = HAN.search(row["question"]) is not None
    if (row["lang"] == "zh" and not han) or (row["lang"] == "en" and mostly_chinese(row["question"])):
        yield Inconsistency(Kind.LABEL, "lang", row["lang"], "zh" if han else "en")


def _quotable(text: str, row: Row) -> bool:
    """Return whether `text` is a supporting sentence, the marked beginning of one, or on a page of the row."""
    slot, lang, cut = row["slot"], row["lang"], text.endswith("…")
    asked = slot_of(slot) if slot and slot["where"] == "ask" and slot.get("way") != "ambiguous" else None
    if any(text in page["text"] for page in row["passages"] or ()):
        return True
    pages = (Passage(page["title"], page["text"]) for page in row["passages"] or ())
    for sentence in chain(row["support"], map(first_sentence, pages)):
        whole = replace_word(sentence, asked, lang) if asked else sentence
        if text == whole or (cut and whole.startswith(text[:-1])):
            return True
    if asked is None or not cut:
        return False
    # The cut may fall inside the withheld words, which `replace_word` then leaves alone.
    heads = (
        leading(sentence, at / len(sentence), lang) for sentence in row["support"] for at in range(1, len(sentence))
    )
    return any(replace_word(head, asked, lang) == text for head in heads)


def _replies(row: Row, template: Template) -> Iterator[Inconsistency]:
    replies, slot = row["user_replies"], row["slot"]
    if replies is None:
        return
    gives = {phrase.format(value=slot["value"]) for phrase in template.reply} if slot else {None}
    otherwise = {UNSURE[row["lang"]]} if slot else set(template.nothing_missing)
    for name, known in (("gives", gives), ("otherwise", otherwise)):
        if replies[name] not in known:  # type: ignore[literal-required]
            found, expected = str(replies[name]), " / ".join(map(str, sorted(known, key=str)))  # type: ignore[literal-required]
            yield Inconsistency(Kind.RESULT, f"user_replies.{name}", found, expected)
