"""Template packs: the words around a question, by kind of task and language, read from a folder of JSON files.

A pack is a folder; each file holds `{"pack": "v2", "kind": "maths", "lang": "en", "templates": [...]}`. A template has
no logic: it is a set of phrases with slots in braces, which the pool builder fills with `str.format`.
"""

from __future__ import annotations

import hashlib
import json
import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from rc1_lib.answer_rules.message import MARK
from rc1_lib.errors import TemplateError
from rc1_lib.records import Language
from rc1_lib.task_specs import template_kinds
from rc1_lib.text.normalization import undisguised
from rc1_lib.text.tokens import tokenize, tokens
from rc1_lib.workspace.input_files import is_hidden, read_text


def pieces(phrase: str) -> list[tuple[str, str | None]]:
    """Split a phrase into literal texts, each with the slot that follows it (None at the end).

    `"It is {value}."` gives `[("It is ", "value"), (".", None)]`.

    Raises:
        ValueError: for an unmatched brace, or for a slot with a format or a conversion.
    """
    found: list[tuple[str, str | None]] = []
    for literal, slot, form, conversion in string.Formatter().parse(phrase):
        if form or conversion:
            raise ValueError(f"a plain slot {{{slot}}} without ':' or '!'")
        found.append((literal, slot))
    return found


def _slots(slot: str | None = None, *, required: bool = False) -> AfterValidator:
    """Return a validator: a phrase has no slot except `slot`, exactly once if required, else at most once."""
    rule = f"{{{slot}}} {'exactly' if required else 'at most'} once and no other slot" if slot else "text without slots"
    allowed: list[list[str | None]] = [[slot]] if required else [[], [slot]]

    def check(phrase: str) -> str:
        try:
            found = [name for _, name in pieces(phrase) if name is not None]
        except ValueError as fault:
            raise ValueError(f"{rule}, not {fault}" if "brace" in str(fault).lower() else f"{rule}: {fault}") from fault
        if found not in allowed:
            raise ValueError(rule)
        return phrase

    return AfterValidator(check)


def _unanswered(phrase: str) -> str:
    if re.search(MARK, phrase, re.IGNORECASE):
        raise ValueError("no 'Answer:' or '答案：', which the pool builder writes itself")
    return phrase


def _known(kind: str) -> str:
    kinds = template_kinds()
    if kind not in kinds:
        raise ValueError(f"{', '.join(map(repr, kinds[:-1]))} or {kinds[-1]!r}")
    return kind


_Name = Annotated[str, Field(pattern=r"^[a-z][a-z_-]*$")]
_Line = Annotated[str, Field(min_length=1)]
# What the assistant says: `_Aside` next to a tool call, where it may be empty; `_Said` elsewhere.
_Aside = Annotated[str, AfterValidator(_unanswered)]
_Said = Annotated[_Aside, Field(min_length=1)]
_Few = Field(min_length=2, max_length=3)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Steps(_Strict):
    wiki: Annotated[tuple[Annotated[_Aside, _slots("title")], ...], _Few]
    calc: Annotated[tuple[Annotated[_Aside, _slots("expression")], ...], _Few]


class Template(_Strict):
    """One way of wording a dialogue.

    Attributes:
        id: unique in its pack.
        role: the assistant's role, for example `tutor`.
        style: the style of both sides, for example `terse`.
        user: wraps the question: `{question}`.
        quote: wraps the evidence quoted before the question: `{evidence}`.
        lookup: names the pages to look up: `{titles}`.
        spoken: the file's key `steps`; read it through the property `steps`.
        final: closing words before the answer, `{reason}` optional: a clause or a sum without a full stop.
        ask: clarifying questions: `{wanted}`, a noun phrase such as "how many jars Harn filled".
        reply: the user's replies: `{value}`.
        nothing_missing: the user's replies to a needless clarifying question.
    """

    id: Annotated[str, Field(min_length=1)]
    role: _Name
    style: _Name
    system: Annotated[_Line, _slots()]
    user: Annotated[_Line, _slots("question", required=True)]
    quote: Annotated[_Line, _slots("evidence", required=True)]
    lookup: Annotated[_Line, _slots("titles", required=True)]
    spoken: Annotated[_Steps, Field(alias="steps")]
    final: Annotated[tuple[Annotated[_Said, _slots("reason")], ...], _Few]
    ask: Annotated[tuple[Annotated[_Said, _slots("wanted", required=True)], ...], _Few]
    reply: Annotated[tuple[Annotated[_Line, _slots("value", required=True)], ...], _Few]
    nothing_missing: Annotated[tuple[Annotated[_Line, _slots()], ...], _Few]

    @cached_property
    def steps(self) -> Mapping[str, tuple[str, ...]]:
        """Tool (`wiki`, `calc`) -> what the assistant may write next to a call; "" is nothing."""
        return {"wiki": self.spoken.wiki, "calc": self.spoken.calc}

    def phrases(self) -> Iterator[str]:
        """Yield every non-empty phrase of the template, with its slots."""
        lists = (*self.steps.values(), self.final, self.ask, self.reply, self.nothing_missing)
        singles = (self.system, self.user, self.quote, self.lookup)
        yield from (phrase for phrase in (*singles, *(line for lines in lists for line in lines)) if phrase)


class _PackFile(_Strict):
    pack: Annotated[str, Field(min_length=1)]
    kind: Annotated[str, AfterValidator(_known)]
    lang: Language
    templates: Annotated[tuple[Template, ...], Field(min_length=1)]


_KNOWN_KEYS = {
    0: tuple(_PackFile.model_fields),
    2: tuple(field.alias or name for name, field in Template.model_fields.items()),
    3: tuple(_Steps.model_fields),
}


@dataclass(frozen=True)
class Pack:
    """All templates of one folder: `groups` maps (kind, language) to templates sorted by id."""

    name: str
    groups: Mapping[tuple[str, str], tuple[Template, ...]]

    def select(self, kind: str, lang: str) -> tuple[Template, ...]:
        """Return the templates of one kind and language, sorted by id; never empty.

        Raises:
            TemplateError: when the pack has none.
        """
        if (kind, lang) not in self.groups:
            have = ", ".join(f"{a}.{b}" for a, b in sorted(self.groups))
            raise TemplateError(f"pack {self.name}: no templates of kind '{kind}' in '{lang}'; it has {have}")
        return self.groups[kind, lang]

    @property
    def templates(self) -> tuple[Template, ...]:
        """Every template, sorted by id."""
        return tuple(sorted((t for group in self.groups.values() for t in group), key=lambda t: t.id))

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """The distinct roles, sorted."""
        return tuple(sorted({template.role for template in self.templates}))

    @cached_property
    def styles(self) -> tuple[str, ...]:
        """The distinct styles, sorted."""
        return tuple(sorted({template.style for template in self.templates}))

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the number of templates by language and kind, with 0 for kinds that a language lacks."""
        found = Counter({key: len(group) for key, group in self.groups.items()})
        languages = sorted({lang for _, lang in self.groups})
        return {lang: {kind: found[kind, lang] for kind in template_kinds()} for lang in languages}

    def literals(self, lang: str) -> list[str]:
        """Return the distinct texts between slots that contain a word, the longest first.

        They serve to ignore template text in comparisons of rows. Some are a single word: compare n-grams instead of
        cutting them out of a row as substrings.
        """
        chosen = (t for (_, language), group in self.groups.items() if language == lang for t in group)
        texts = {literal.strip() for t in chosen for phrase in t.phrases() for literal, _ in pieces(phrase)}
        return sorted((text for text in texts if tokenize(text)), key=lambda text: (-len(text), text))

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the content; file names, spacing and the order of templates do not matter."""
        content = [
            [lang, kind, [t.model_dump(mode="json", by_alias=True) for t in group]]
            for (kind, lang), group in sorted(self.groups.items())
        ]
        canonical = json.dumps([self.name, content], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


_MAX_ALIKE = 0.3
"""Largest share of word pairs that two different templates have in common: the closest of the shipped pack's 219 pairs
has 0.13, all of the reference pack's have 0.9."""


def worded_apart(pack: Pack) -> tuple[Template, ...]:
    """Return the templates without near-duplicates of an earlier one of the same kind and language.

    Similarity is the share of word pairs that two templates have in common, of the one with fewer pairs. Pairs are
    taken within a phrase, without slots.
    """
    kept: list[Template] = []
    for group in pack.groups.values():
        pairs: list[set[tuple[str, str]]] = []
        for template in group:
            ours = _word_pairs(template)
            if all(len(ours & other) <= _MAX_ALIKE * min(len(ours), len(other)) for other in pairs):
                pairs.append(ours)
                kept.append(template)
    return tuple(kept)


def _word_pairs(template: Template) -> set[tuple[str, str]]:
    bare = [" ".join(literal for literal, _ in pieces(phrase)) for phrase in template.phrases()]
    words = undisguised(pl.Series(bare, dtype=pl.String)).to_frame("text").select(tokens("text")).to_series()
    return {pair for phrase in words for pair in pairwise(phrase)}


def load_pack(folder: Path) -> Pack:
    """Read every `*.json` of a folder, except hidden files, as one pack.

    Raises:
        TemplateError: when the folder holds no pack, a file does not fit the schema, files name different packs, or
            two templates share an id.
    """
    files = sorted(path for path in folder.glob("*.json") if not is_hidden(path, folder))
    if not files:
        raise TemplateError(
            f"{folder}: no template files (*.json) found; give a pack's folder, for example templates/pack_v2"
        )
    name, first = "", files[0]
    homes: dict[str, Path] = {}
    groups: dict[tuple[str, str], list[Template]] = defaultdict(list)
    for file in files:
        content = _read(file)
        name = name or content.pack
        if content.pack != name:
            raise TemplateError(
                f"{file}: key 'pack' holds '{content.pack}', but {first} holds '{name}'; they must agree"
            )
        for template in content.templates:
            if template.id in homes:
                taken = f"template \"{template.id}\": key 'id' is taken by a template of {homes[template.id]}"
                raise TemplateError(f"{file}: {taken}; rename one of them")
            homes[template.id] = file
        groups[content.kind, content.lang] += content.templates
    return Pack(name, {key: tuple(sorted(group, key=lambda t: t.id)) for key, group in sorted(groups.items())})


def _read(file: Path) -> _PackFile:
    try:
        body = json.loads(read_text(file))
    except OSError as fault:
        raise TemplateError(
            f"{file}: cannot be read ({fault.strerror}), expected a JSON file; correct or remove it"
        ) from fault
    except UnicodeDecodeError as fault:
        raise TemplateError(f"{file}: byte {fault.start} is not UTF-8; save the file as UTF-8") from fault
    except RecursionError as fault:
        raise TemplateError(f"{file}: nested too deeply for a template file; correct the file") from fault
    except json.JSONDecodeError as fault:
        raise TemplateError(f"{file}: line {fault.lineno}: not JSON ({fault.msg}); correct the file") from fault
    except ValueError as fault:  # a number of thousands of digits
        raise TemplateError(f"{file}: not a template file ({fault}); correct the file") from fault
    try:
        return _PackFile.model_validate(body)
    except ValidationError as fault:
        raise TemplateError(describe(fault, file, body, _KNOWN_KEYS)) from fault


_SHOWN = 80


def shown(value: Any) -> str:
    """Return a value as JSON, cut if it is too long for a sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def describe(error: ValidationError, file: Path, body: Any, known_keys: Mapping[int, Sequence[str]]) -> str:
    """Return one sentence about the first error that pydantic found.

    Args:
        error: what pydantic raised on `body`.
        file: where `body` comes from.
        body: the decoded JSON.
        known_keys: the allowed keys by depth of the object: 0 the file, 2 a template, 3 its steps.
    """
    fault = error.errors()[0]
    place = fault["loc"]
    where = f"{file}: {_template(place, body)}"
    key = ".".join(str(part) for part in place[2:] or place)
    if fault["type"] == "extra_forbidden":
        known = known_keys[len(place) - 1]
        near = get_close_matches(str(place[-1]), known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known keys are {', '.join(known)}"
        return f"{where}unknown key '{key}' with {shown(fault['input'])}; {hint}"
    if fault["type"] == "missing":
        found = ", ".join(map(str, fault["input"])) or "no keys"
        return f"{where}key '{key}' is missing; found only {found}; add it"
    expected = str(fault.get("ctx", {}).get("error") or fault["msg"]).removeprefix("Input should be ")
    return f"{where}key '{key}' holds {shown(fault['input'])}; expected {expected}"


def _template(place: Sequence[int | str], body: Any) -> str:
    """Return the id of the faulty template, or its number if it has no id; empty for an error of the file itself."""
    if len(place) < 2 or not isinstance(place[1], int):
        return ""
    number = place[1]
    template = body["templates"][number]
    name = template.get("id") if isinstance(template, dict) else None
    return f"template {shown(name)}: " if name else f"template number {number + 1}: "
