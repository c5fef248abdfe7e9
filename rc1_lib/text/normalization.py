r"""Normalise text for the leak search to what a reader sees, despite disguises that defeat string comparison.

In this order: decode escapes (`\u4e2d`, `&nbsp;`), decompose compatibility forms and accents (NFKD), remove invisible
characters and combining marks, fold case, remove markup, and replace letters that look like Latin ones. Both sides of
a comparison are folded, so the result need not be correct spelling.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.text.tokens import TOKEN_PATTERN


@dataclass(frozen=True, slots=True)
class CodedTexts:
    """The words of texts, one after the other.

    Attributes:
        codes: one integer per word, of all texts together.
        ends: for each text the position after its last word.
    """

    codes: NDArray[np.unsignedinteger]
    ends: NDArray[np.int64]

    @property
    def starts(self) -> NDArray[np.int64]:
        """Position of each text's first word."""
        return self.ends - self.lengths

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of words of each text."""
        return np.diff(self.ends, prepend=0)

    @property
    def text_of_words(self) -> NDArray[np.int64]:
        """For each word the index of its text."""
        return np.repeat(np.arange(len(self.ends)), self.lengths)

    @classmethod
    def joined(cls, parts: Sequence[CodedTexts]) -> CodedTexts:
        """Concatenate the texts of all parts."""
        shifts = np.cumsum([0, *(len(part.codes) for part in parts)])
        ends = [part.ends + shift for part, shift in zip(parts, shifts, strict=False)]
        return cls(np.concatenate([part.codes for part in parts]), np.concatenate(ends))

    def take(self, texts: NDArray[np.integer]) -> CodedTexts:
        """Return the texts with these indices, in the given order."""
        lengths = self.lengths[texts]
        ends = np.cumsum(lengths, dtype=np.int64)
        places = np.arange(lengths.sum()) + np.repeat(self.starts[texts] - (ends - lengths), lengths)
        return CodedTexts(self.codes[places], ends)

    def of(self, text: int) -> list[int]:
        """Return the codes of one text."""
        found: list[int] = self.codes[self.span(text)].tolist()
        return found

    def span(self, text: int) -> slice:
        """Return the slice of `codes` that holds one text."""
        return slice(int(self.ends[text - 1]) if text else 0, int(self.ends[text]))


_ESCAPED = re.compile(r"(?:\\+u[0-9a-fA-F]{4})+")
_BY_NUMBER = re.compile(r"\\+(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,5})\})")
_BLANK = re.compile(r"\\+[nrtbf]")
_SUSPECT = r"\\|&[#a-zA-Z]|%[0-9a-fA-F]{2}"
"""Matches texts with an escape or an entity; only these few are unescaped, one by one."""
_ROUNDS = 3
"""How many levels of nested escapes are decoded."""
_INVISIBLE = "[[\\p{Cf}--[\\x{E0020}-\\x{E007E}]]\\p{Mn}\\p{Me}\u115f\u1160\u3164\u2800]"
"""Format characters, combining marks, and letters and symbols without a glyph; not tag characters, which `_LATIN`
maps to the ASCII characters that they repeat."""
_INLINE_TAG = (
    r"</?(?:a|b|i|u|s|em|strong|span|sub|sup|mark|small|big|font|code|tt|wbr|del|ins)(?:\s[^<>]*)?/?>|<!--.*?-->"
)
_TAG = r"</?[a-z][^<>]*>"
_TAG_OPENS = "[<\ufe64\uff1c\u226e]"
"""Characters that decompose to a `<`. Texts with one are not split at blanks, since a tag may contain blanks."""
_EMPHASIS = r"[*_~`]+"
_NO_LETTER = r"[^\p{L}\p{N}]+"
_LATIN = {
    **dict(zip("авекмнорстухіјѕԁԛԝһӏ", "abekmhopctyxijsdqwhl", strict=True)),
    **dict(zip("αβεζηικμνορτυχ", "abezhikmnoptyx", strict=True)),
    **dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz", strict=True)),
    **dict(zip("ɑɡɩօոսհցլϳჿ", "agionuhgljo", strict=True)),
    **{capital.lower(): latin for capital, latin in zip("ᎪᏴᏟᎠᎬᏀᎻᏆᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ", "abcdeghijklmprstvwz", strict=True)},
    **{
        chr(first + place): latin
        for first in (0x1F150, 0x1F170, 0x1F1E6)  # in black circles, in black boxes, of flags
        for place, latin in enumerate("abcdefghijklmnopqrstuvwxyz")
    },
    **{chr(0xE0000 + code): chr(code).lower() for code in range(0x20, 0x7F)},
    **dict.fromkeys("’‘ʼ＇", "'"),
    "ı": "i",
}  # fmt: skip
"""Look-alike -> Latin: Cyrillic, Greek, small capitals, phonetic, Armenian, Georgian, Cherokee, circled, boxed and flag
letters, and tag characters."""


def folded(texts: pl.Series) -> pl.Series:
    """Normalise each text; None becomes ""."""
    return _folded(_unescaped(texts.fill_null("")))


def words(texts: pl.Series) -> pl.Series:
    """Return the folded words of each text, a list[str] per text, in reading order."""
    return folded(texts).str.extract_all(TOKEN_PATTERN)


@dataclass(frozen=True, slots=True)
class ReadTexts:
    """Many texts, folded.

    Attributes:
        words: String, the words of the distinct pieces of all texts; a word may be repeated.
        texts: for each text the positions of its words in `words`, in reading order.
        letters: each text's letters and digits without anything between them.
    """

    words: pl.Series
    texts: CodedTexts
    letters: pl.Series


def read(texts: pl.Series) -> ReadTexts:
    """Fold very many texts.

    Each distinct piece between blanks is folded once: the texts consist of a few ten thousand distinct pieces, and
    folding a piece takes twenty times as long as looking it up.
    """
    text = pl.col("text")
    split = text.str.replace_all("\n", " ", literal=True).str.split(" ")
    split = pl.when(text.str.contains(_TAG_OPENS)).then(pl.concat_list(text)).otherwise(split)
    of_texts = pl.DataFrame({"text": _unescaped(texts.fill_null(""))}).select(split).to_series()
    pieces = of_texts.explode(empty_as_null=False)
    different = pieces.unique(maintain_order=True)
    number = pieces.cast(pl.Enum(different)).to_physical()
    folded_pieces = _folded(different)
    found = folded_pieces.str.extract_all(TOKEN_PATTERN)
    ends = found.list.len().cum_sum()
    positions = pl.select(pl.int_ranges(ends - found.list.len(), ends, dtype=pl.UInt32)).to_series().gather(number)
    last_piece = of_texts.list.len().cum_sum().to_numpy() - 1
    text_ends = positions.list.len().cast(pl.Int64).cum_sum().to_numpy()[last_piece]
    letters = pl.DataFrame({"piece": folded_pieces.str.replace_all(_NO_LETTER, "").gather(number)})
    of_text = pl.Series("text", np.repeat(np.arange(len(texts)), of_texts.list.len())).set_sorted()
    return ReadTexts(
        found.explode(empty_as_null=False),
        CodedTexts(positions.explode(empty_as_null=False).to_numpy(), text_ends),
        letters.group_by(of_text, maintain_order=True).agg("piece")["piece"].list.join(""),
    )


def _folded(texts: pl.Series) -> pl.Series:
    text = (
        pl.col("text")
        .str.normalize("NFKD")
        .str.replace_all(_INVISIBLE, "")
        .str.to_uppercase()
        .str.to_lowercase()
        .str.replace_all(_INLINE_TAG, "")
        .str.replace_all(_TAG, " ")
        .str.replace_all(_EMPHASIS, "")
        .str.replace_many(_LATIN)
    )
    return pl.DataFrame({"text": texts}).select(text).to_series()


_DISGUISE = _INVISIBLE[:-1] + "".join(sorted({c for k in _LATIN if k not in "’‘ʼ＇ı" for c in (k, k.upper())})) + "]"
"""Characters that turn a word into others that look the same."""


def undisguised(texts: pl.Series) -> pl.Series:
    """Remove invisible characters and replace look-alikes, for measures of wording; other texts stay unchanged."""
    suspects = texts.str.contains(_DISGUISE).arg_true()
    if suspects.len() == 0:
        return texts
    plain = pl.col("text").str.normalize("NFKC").str.replace_all(_INVISIBLE, "").str.to_lowercase()
    read = pl.DataFrame({"text": texts.gather(suspects)}).select(plain.str.replace_many(_LATIN)).to_series()
    return texts.scatter(suspects, read)


def unescaped(text: str) -> str:
    """Decode escapes of JSON, HTML and URLs, also nested ones up to three levels."""
    for _ in range(_ROUNDS):
        read = _BY_NUMBER.sub(_character, _ESCAPED.sub(_characters, text))
        read = html.unescape(_BLANK.sub(" ", unquote(read)))
        if read == text:
            break
        text = read
    return text


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1] or escape[2], 16)).encode("utf-8", "replace").decode()


def _characters(escapes: re.Match[str]) -> str:
    units = re.findall(r"u([0-9a-fA-F]{4})", escapes.group())
    return bytes.fromhex("".join(units)).decode("utf-16-be", errors="replace")


def _unescaped(texts: pl.Series) -> pl.Series:
    # Few texts contain escapes: one search over the column finds them, and only they are processed one by one.
    suspects = texts.str.contains(_SUSPECT).arg_true()
    if suspects.len() == 0:
        return texts
    read = pl.Series([unescaped(text) for text in texts.gather(suspects)], dtype=pl.String)
    return texts.scatter(suspects, read)
