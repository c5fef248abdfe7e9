"""Statements and what they speak of: sentences, names, and which statements a question leads to.

A name is a capitalised word that is never written small in the same dialogue and is no function word (a closed class,
listed below). Chinese has no capitals: there, statements are joined by pairs of characters that they share.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rc1_lib.text import tokenize

_SENTENCE = re.compile(r"(?:[^.。!！?？…\n:：]|(?<=\d)[:.](?=\d))+[.。!！?？…:：]*")
_CAPITALISED, _SMALL = re.compile(r"\b[A-Z][\w'’-]*"), re.compile(r"\b[a-z][\w'’-]*")
_WORD = re.compile(r"[\w'’-]+")
_HAN_RUN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]+")
FUNCTION_WORDS = frozenset(
    "a an the this that these those my your his her its our their some any each every no all both either neither "
    "another other such what which whose who whom and or but nor so yet for if unless because since although though "
    "while whereas when whenever where wherever as than whether until till before after once then therefore however "
    "thus hence of to in on at by from with without within into onto upon over under above below between among "
    "through during against about around near off out up down across behind beyond per via i you he she it we they "
    "me him us them mine yours ours theirs myself yourself itself themselves somebody someone something anybody "
    "anyone anything nobody nothing everybody everyone everything one am is are was were be been being do does did "
    "have has had having can could may might must shall should will would let not never always often there here now "
    "today later again also only just even still too very well yes no please how why".split()
)
_JOINING = frozenset({"and", "or", "then"})


@dataclass(frozen=True, slots=True)
class Mentions:
    """What a text speaks of: its names, in lower case, and its pairs of Han characters."""

    names: frozenset[str]
    pairs: frozenset[str]

    def touches(self, names: Collection[str], pairs: Collection[str]) -> bool:
        """Whether it speaks of any of these."""
        return not (self.names.isdisjoint(names) and self.pairs.isdisjoint(pairs))


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of the user or of a tool: its text, what it speaks of, and whether it lists names and says nothing."""

    text: str
    spoken: Mentions
    lists: bool


def sentences(text: str) -> list[str]:
    """The sentences of a text, with their marks; what stands before a colon is one of its own."""
    plain = unicodedata.normalize("NFKC", text).replace("...", "…")
    return [found.strip() for found in _SENTENCE.findall(plain) if found.strip()]


def is_cut_off(sentence: str) -> bool:
    """Whether it breaks off: it ends in an ellipsis."""
    return sentence.endswith("…")


def names_in(texts: Sequence[str]) -> frozenset[str]:
    """The names of these texts, in lower case."""
    plain = [unicodedata.normalize("NFKC", text) for text in texts]
    small = {word for text in plain for word in _SMALL.findall(text)}
    large = {word.lower() for text in plain for word in _CAPITALISED.findall(text)}
    return frozenset(large - small - FUNCTION_WORDS)


def mentions(text: str, names: Collection[str]) -> Mentions:
    """What a text speaks of, among the names of its dialogue."""
    runs = _HAN_RUN.findall(unicodedata.normalize("NFKC", text))
    pairs = frozenset(run[place : place + 2] for run in runs for place in range(len(run) - 1))
    return Mentions(frozenset(set(tokenize(text)) & set(names)), pairs)


def is_list(sentence: str, names: Collection[str]) -> bool:
    """Whether it names two things or more and says nothing of them: only commas and "and" stand between the names."""
    words = [word.lower() for word in _WORD.findall(unicodedata.normalize("NFKC", sentence))]
    places = [place for place, word in enumerate(words) if word in names]
    if len(places) < 2:
        return False
    return all(word in names or word in _JOINING for word in words[places[0] : places[-1]])


def says(text: str, tokens: Sequence[str]) -> bool:
    """Whether these tokens stand in the text, side by side."""
    found, length = tokenize(text), len(tokens)
    return length > 0 and any(found[place : place + length] == list(tokens) for place in range(len(found)))


def read_statements(texts: Sequence[str], names: Collection[str]) -> list[Statement]:
    """These sentences with what each speaks of, among the names of their dialogue."""
    return [Statement(text, mentions(text, names), is_list(text, names)) for text in texts]


def reached(statements: Sequence[Statement], start: Mentions, *, apart: Collection[str] = ()) -> list[str]:
    """The texts of the statements that one comes to from `start`, each by something that it shares with one before.

    Args:
        statements: of the user and of tools; lists lead nowhere.
        start: what the question, and replies about it, speak of.
        apart: tokens that lead nowhere: a statement is not reached because it holds the answer.
    """
    open_names, open_pairs = set(start.names) - set(apart), set(start.pairs)
    waiting = [statement for statement in statements if not statement.lists]
    found: list[str] = []
    grown = True
    while grown:
        grown, rest = False, []
        for statement in waiting:
            if statement.spoken.touches(open_names, open_pairs):
                found.append(statement.text)
                open_names |= statement.spoken.names - set(apart)
                open_pairs |= statement.spoken.pairs
                grown = True
            else:
                rest.append(statement)
        waiting = rest
    return found


def groups(statements: Sequence[Statement], asked: Collection[str]) -> list[frozenset[str]]:
    """The groups of names that these statements join, each with one that is asked about at least.

    A statement joins what it speaks of. Names that no statement speaks of are in none.
    """
    joined_up: list[set[str]] = []
    for statement in statements:
        spoken = set(statement.spoken.names)
        if not spoken or statement.lists:
            continue
        joined = [group for group in joined_up if group & spoken]
        joined_up = [group for group in joined_up if not group & spoken]
        joined_up.append(spoken.union(*joined))
    return [frozenset(group) for group in joined_up if group & set(asked)]
