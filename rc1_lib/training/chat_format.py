"""Tokenize dialogues (prompts, observations, demonstrations) by a tokenizer's own chat template.

The template is rendered once with placeholders for all contents, and split at its special tokens. The text between two
of them is filled in and tokenized as plain text. So no content can ever be read as a special token. Text next to a line
break of the template gets the same tokens as on a server. Sampled tokens are never tokenized again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, cast

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from rc1_lib.config.training import Training
from rc1_lib.environment.markers import CALL, CALL_END, THINK, THINK_END, defused
from rc1_lib.errors import ConfigError
from rc1_lib.records import Message
from rc1_lib.training.chat_template import PLACE, ChatTemplate

_TOGETHER = 4_000
"""Texts tokenized in one call: enough for all cores, few enough to hold their tokens in memory."""


class _Text(NamedTuple):
    """Text between two special tokens, from messages and the template, which is tokenized together.

    Attributes:
        behind_newline: whether a line break precedes it that is not tokenized with it, as before a sampled turn.
        marked: whether special tokens in it count as such, as in the assistant's text.
    """

    text: str
    behind_newline: bool = False
    marked: bool = False

    @property
    def reads_newline(self) -> bool:
        """Whether a tokenizer might merge the preceding line break with the beginning."""
        return self.behind_newline and bool(self.text) and not self.text[0].isspace()


_Piece = _Text | tuple[int, ...]
"""Text to tokenize, or special tokens of the template."""
_Slot = str | tuple[int, ...]
"""Text of the template with placeholders, or fixed tokens."""


class ChatFormat:
    """The chat template of a tokenizer, as functions from messages to token ids.

    Attributes:
        end_id: token that ends a turn in the template.
        thoughts: tokens that open and close a block of thoughts; None if the tokenizer has none.
        opens_thoughts: whether the generation prompt ends inside a block of thoughts.
        pad_id: padding token.
        template: the template, and the roles in which it receives messages.
        fingerprint: hash of everything that decides the tokens.
    """

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The model's tokenizer."""
        return self._tokenizer

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        describe_tools: bool = False,
        enable_thinking: bool | None = None,
    ) -> None:
        """Analyse the template.

        Args:
            describe_tools: whether prompts describe the tools; some models know them from training.
            enable_thinking: value of this variable of the template; None leaves it unset.

        Raises:
            ConfigError: if the tokenizer has no chat template or end-of-text token, or its template cannot render what
                training would learn.
        """
        if not tokenizer.chat_template or tokenizer.eos_token_id is None:
            raise ConfigError(
                f"{tokenizer.name_or_path}: the tokenizer has no chat_template or no eos_token; use an "
                "instruction-tuned model"
            )
        self._tokenizer = tokenizer
        self._backend = cast(Tokenizer, cast(Any, tokenizer).backend_tokenizer)
        added = [one for one in self._backend.get_added_tokens_decoder().items() if one[1].content.strip()]
        longest_first = sorted((token.content for _, token in added), key=lambda mark: (-len(mark), mark))
        self._mark = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._marks = {token.content: (number, token) for number, token in added}
        self.template = ChatTemplate(
            tokenizer, self._mark, describe_tools=describe_tools, enable_thinking=enable_thinking
        )
        self.end_id = self._marks[self.template.end][0]
        opening, closing = self._marks.get(THINK), self._marks.get(THINK_END)
        self.thoughts = (opening[0], closing[0]) if opening and closing else None
        self.opens_thoughts = bool(self.template.closing)
        self.pad_id = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id)
        written = self._backend.to_str()
        spoken = (self.template.source, tokenizer.special_tokens_map, self.template.described, enable_thinking)
        self.fingerprint = hashlib.sha256(f"{spoken}\0{written}".encode()).digest()
        self._plain = _without_marks(written)
        self._newline = self._ids("\n")
        self._fixed: dict[str, tuple[int, ...]] = {}
        self._shapes: dict[tuple[str, ...], list[_Slot]] = {}
        self._behind_newline = self.template.prompt(("user",)).endswith("\n")

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """Tokenize the opening messages, up to where the assistant's first token goes."""
        return self._tokens(self._prompt(messages))

    def observation_ids(self, messages: Sequence[Message]) -> list[int]:
        """Tokenize tool results: everything from the end of an assistant's turn to the first token of its next."""
        return self._tokens(self._observation(messages))

    def turn_ids(self, message: Message) -> list[int]:
        """Tokenize a demonstrated turn, including its end-of-turn token."""
        return self._tokens(self._turn(message))

    def dialogue_ids(self, messages: Sequence[Message]) -> tuple[list[int], list[bool]]:
        """Tokenize a whole demonstration.

        Returns:
            Token ids and action mask, which have the same length.
        """
        ids: list[int] = []
        own: list[bool] = []
        for pieces, mine in self._dialogue(messages):
            ids += self._tokens(pieces)
            own += [mine] * (len(ids) - len(own))
        return ids, own

    def dialogue_lengths(self, dialogues: Iterable[Sequence[Message]]) -> list[int]:
        """Count the tokens of each dialogue. Equal texts are tokenized once, and all cores are used."""
        whole = [[piece for pieces, _ in self._dialogue(messages) for piece in pieces] for messages in dialogues]
        counts = self._counts({piece for pieces in whole for piece in pieces if isinstance(piece, _Text)})
        return [sum(counts[each] if isinstance(each, _Text) else len(each) for each in pieces) for pieces in whole]

    def holds_mark(self, messages: Sequence[Message]) -> bool:
        """Whether the assistant's text contains a special token. If it were learned, the model could forge turns."""
        own = (message for message in messages if message["role"] == "assistant")
        return any(self._mark.search(text) for message in own for text in _written(message))

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._plain_ids(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, including special tokens."""
        return self._backend.decode(list(ids), skip_special_tokens=False)

    def _prompt(self, messages: Sequence[Message]) -> list[_Piece]:
        shape = tuple(str(m["role"]) for m in messages)
        if shape not in self._shapes:
            self._shapes[shape] = self._slots(self.template.prompt(shape))
        return self._fill(self._shapes[shape], [m["content"] or "" for m in messages])

    def _observation(self, messages: Sequence[Message]) -> list[_Piece]:
        if not messages:
            raise ValueError("an observation needs at least one message")
        shape = ("assistant", *(str(m.get("name", "")) for m in messages))
        if shape not in self._shapes:
            self._shapes[shape] = self._slots(self.template.observation(messages))
        return self._fill(self._shapes[shape], [m["content"] or "" for m in messages])

    def _turn(self, message: Message) -> list[_Piece]:
        text = self.template.closing + turn_text(message)
        return [_Text(text, self._behind_newline, marked=True), (self.end_id,)]

    def _dialogue(self, messages: Sequence[Message]) -> Iterator[tuple[list[_Piece], bool]]:
        """Yield the pieces of a demonstration, and whether they are the assistant's."""
        place = next(i for i, m in enumerate(messages) if m["role"] == "assistant")
        yield self._prompt(messages[:place]), False
        while place < len(messages):
            yield self._turn(messages[place]), True
            after = place + 1
            while after < len(messages) and messages[after]["role"] != "assistant":
                after += 1
            if after > place + 1:
                yield self._observation(messages[place + 1 : after]), False
            place = after

    def _slots(self, text: str) -> list[_Slot]:
        """Split a rendered template at its special tokens."""
        slots: list[_Slot] = []
        start, strip = 0, False
        for found in [*self._mark.finditer(text), None]:
            words = text[start : found.start() if found else len(text)]
            number, mark = self._marks[found.group()] if found else (0, None)
            # Some special tokens absorb adjacent white space, as the tokenizer itself does.
            words = words.lstrip() if strip else words
            words = words.rstrip() if mark is not None and mark.lstrip else words
            if words:
                slots.append(words if PLACE.search(words) else self._fixed_ids(words))
            if found and mark is not None:
                slots.append((number,))
                start, strip = found.end(), mark.rstrip
        return slots

    def _fixed_ids(self, words: str) -> tuple[int, ...]:
        if words not in self._fixed:
            self._fixed[words] = tuple(self._ids(words))
        return self._fixed[words]

    def _fill(self, slots: Sequence[_Slot], contents: Sequence[str]) -> list[_Piece]:
        """Put contents into a template's placeholders."""
        plain = [defused(str(content)) for content in contents]
        filled: list[_Piece] = []
        for slot in slots:
            if isinstance(slot, str):
                text = PLACE.sub(lambda found: plain[int(found[1])], slot)
                if text:
                    filled.append(_Text(text))
            else:
                filled.append(slot)
        return filled

    def _tokens(self, pieces: Iterable[_Piece]) -> list[int]:
        ids: list[int] = []
        for piece in pieces:
            ids += self._content(piece) if isinstance(piece, _Text) else piece
        return ids

    def _content(self, text: _Text) -> list[int]:
        """Tokenize a text as it would be after a line break, if that makes a difference."""
        encode = self._ids if text.marked else self._plain_ids
        if text.reads_newline:
            ids = encode("\n" + text.text)
            if ids[: len(self._newline)] == self._newline:
                return ids[len(self._newline) :]
        return encode(text.text)

    def _counts(self, texts: set[_Text]) -> dict[_Text, int]:
        """Count the tokens that `_content` returns for each text."""
        counts: dict[_Text, int] = {}
        for marked, reads_newline in product((False, True), repeat=2):
            encode, skipped = self._backend if marked else self._plain, self._newline if reads_newline else []
            these = [each for each in texts if (each.marked, each.reads_newline) == (marked, reads_newline)]
            for first in range(0, len(these), _TOGETHER):
                part = these[first : first + _TOGETHER]
                given = ["\n" + each.text if reads_newline else each.text for each in part]
                for each, found in zip(part, encode.encode_batch_fast(given, add_special_tokens=False), strict=True):
                    ids = found.ids
                    cut = ids[: len(skipped)] == skipped
                    counts[each] = len(ids) - len(skipped) if cut else len(self._content(each))
        return counts

    def _ids(self, text: str) -> list[int]:
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def _plain_ids(self, text: str) -> list[int]:
        return list(self._plain.encode(text, add_special_tokens=False).ids)


def format_of(tokenizer: PreTrainedTokenizerBase, training: Training) -> ChatFormat:
    """Create the chat format of a run. The configuration decides whether prompts describe the tools.

    Raises:
        ConfigError: if the tokenizer's template cannot render what training would learn.
    """
    return ChatFormat(tokenizer, describe_tools=training.describe_tools, enable_thinking=training.enable_thinking)


def _without_marks(written: str) -> Tokenizer:
    """Return a copy of the tokenizer that treats all special tokens in a text as plain text."""
    body = json.loads(written)
    for token in body["added_tokens"]:
        token["special"] = token["special"] or bool(token["content"].strip())
    plain: Tokenizer = Tokenizer.from_str(json.dumps(body))
    plain.encode_special_tokens = True
    return plain


def _written(message: Message) -> list[str]:
    """Return the assistant's own text in a turn, without the marks around its calls."""
    return [message.get("content") or "", *map(_body, message.get("tool_calls") or ())]


def _body(call: Mapping[str, Any]) -> str:
    function = call["function"]
    body = {"name": function["name"], "arguments": json.loads(function["arguments"])}
    return json.dumps(body, ensure_ascii=False)


def turn_text(message: Message) -> str:
    """Render an assistant's message in Qwen3's format: the text, then every call between its marks."""
    content = message.get("content")
    parts = [content] if content else []
    parts += [f"{CALL}\n{_body(call)}\n{CALL_END}" for call in message.get("tool_calls") or ()]
    return "\n".join(parts)
