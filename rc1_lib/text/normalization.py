r"""Text as a search for leaks reads it: what a reader sees, whatever hides it from a plain comparison of strings.

Escapes (`\u4e2d`, `&nbsp;`) are read, compatibility forms and accents taken apart (NFKD), invisible characters and
combining marks left out, markup tags removed, case folded, and Cyrillic and Greek letters that look like Latin ones
read as these. Both sides of a comparison are folded, so that nothing hangs on the folded form being good spelling.
"""

from __future__ import annotations

import html
import re
from functools import cache
from urllib.parse import unquote

import polars as pl
import regex

from rc1_lib.text.tokenized_texts import Pieces, ReadTexts
from rc1_lib.text.tokens import TOKEN_PATTERN

_ESCAPED = re.compile(r"(?:\\+u[0-9a-fA-F]{4})+")
_BY_NUMBER = re.compile(r"\\+(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,5})\})")
_BLANK = re.compile(r"\\+[nrtbf]")
_SUSPECT = r"\\|&[#a-zA-Z]|%[0-9a-fA-F]{2}"
"""Texts with an escape or an entity: the few that are unescaped one by one."""
_ROUNDS = 3
"""How often an escape inside an escape is read."""
_INVISIBLE = "[[\\p{Cf}--[\\x{E0020}-\\x{E007E}]]\\p{Mn}\\p{Me}\u115f\u1160\u3164\u2800]"
"""Format characters, combining marks, and the letters and symbols that are drawn as nothing, but for the tags: these
repeat all of ASCII, and whoever reads code points reads them."""
_INLINE_TAG = (
    r"</?(?:a|b|i|u|s|em|strong|span|sub|sup|mark|small|big|font|code|tt|wbr|del|ins)(?:\s[^<>]*)?/?>|<!--.*?-->"
)
_TAG = r"</?[a-z][^<>]*>"
_TAG_OPENS = "[<\ufe64\uff1c\u226e]"
"""What is, or holds, a `<` once compatibility forms are taken apart: a tag may have blanks in it."""
_EMPHASIS = r"[*_~`]+"
_LATIN = {
    **dict(zip("авекмнорстухіјѕԁԛԝһӏ", "abekmhopctyxijsdqwhl", strict=True)),
    **dict(zip("αβεζηικμνορτυχ", "abezhikmnoptyx", strict=True)),
    **dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz", strict=True)),
    **dict(zip("ɑɡɩօոսհցլϳჿ", "agionuhgljo", strict=True)),
    **{capital.lower(): latin for capital, latin in zip("ᎪᏴᏟᎠᎬᏀᎻᏆᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ", "abcdeghijklmprstvwz", strict=True)},
    **{chr(0x1F170 + place): latin for place, latin in enumerate("abcdefghijklmnopqrstuvwxyz")},
    **{chr(0xE0000 + code): chr(code).lower() for code in range(0x20, 0x7F)},
    **dict.fromkeys("’‘ʼ＇", "'"),
    "ı": "i",
}  # fmt: skip
"""Cyrillic, Greek, small capitals, phonetic, Armenian, Georgian, Cherokee and boxed letters, and tags."""


def folded(texts: pl.Series) -> pl.Series:
    """Each text as it is compared, None as "": its words are the runs of `rc1_lib.text.tokens.TOKEN_PATTERN`."""
    return _folded(_unescaped(texts.fill_null("")))


def words(texts: pl.Series) -> pl.DataFrame:
    """The words of texts that `folded` gave, in reading order.

    Returns:
        Columns `row` (u32, position in `texts`), `word` (u64, a hash) and `han` (whether it is a Chinese character,
        which says less than a word does), sorted by row.
    """
    spelled_out = pl.DataFrame({"token": _words(texts)}).with_row_index("row").explode("token", empty_as_null=False)
    return hashed(spelled_out["token"]).insert_column(0, spelled_out["row"])


def words_of_many(texts: pl.Series) -> pl.DataFrame:
    """`words(folded(texts))`, for very many texts."""
    said, _ = read_folded(texts)
    spelled_out = hashed(said.words)
    return said.frame(word=spelled_out["word"], han=spelled_out["han"])


def read_folded(texts: pl.Series) -> tuple[ReadTexts, pl.Series]:
    """The words of very many texts, folded, in reading order; and `letters(folded(texts))`."""
    read = _unescaped(texts.fill_null(""))
    pieces = Pieces.of(read, whole=read.str.contains(_TAG_OPENS))
    as_compared = _folded(pieces.different)
    return pieces.read(_words(as_compared)), pieces.joined(letters(as_compared))


def hashed(spelled_out: pl.Series) -> pl.DataFrame:
    """What a comparison knows of each word: columns `word` and `han`, as `words` has them."""
    return pl.DataFrame({"token": spelled_out}).select(
        word=pl.col("token").hash(seed=7), han=pl.col("token") >= "\u3400"
    )


def _words(texts: pl.Series) -> pl.Series:
    return texts.str.extract_all(TOKEN_PATTERN)


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
"""What text is disguised with: it makes of one word any number of others that look the same."""


def undisguised(texts: pl.Series) -> pl.Series:
    """Each text as a measure of wording reads it: those with invisible or look-alike characters without them."""
    suspects = texts.str.contains(_DISGUISE).arg_true()
    if suspects.len() == 0:
        return texts
    plain = pl.col("text").str.normalize("NFKC").str.replace_all(_INVISIBLE, "").str.to_lowercase()
    read = pl.DataFrame({"text": texts.gather(suspects)}).select(plain.str.replace_many(_LATIN)).to_series()
    return texts.scatter(suspects, read)


_NO_LETTER = r"[^\p{L}\p{N}]+"


def letters(texts: pl.Series) -> pl.Series:
    """The letters and digits alone of texts that `folded` gave: what is said, however it is spaced."""
    return texts.str.replace_all(_NO_LETTER, "")


@cache
def spaced(text: str) -> regex.Pattern[str]:
    """A pattern that finds these letters in a folded text, whatever stands between them, if no word goes on there."""
    word = r"[[\p{L}\p{N}]--\p{Han}]"
    return regex.compile(rf"(?<!{word}){_BETWEEN.join(map(regex.escape, text))}(?!{word})", regex.V1)


_BETWEEN = r"[^\p{L}\p{N}]*+"


def unescaped(text: str) -> str:
    """The text with the escapes of JSON, HTML and addresses read, also those inside one another."""
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
    # Few texts hold any: columns say which, and these alone are read one by one.
    suspects = texts.str.contains(_SUSPECT).arg_true()
    if suspects.len() == 0:
        return texts
    read = pl.Series([unescaped(text) for text in texts.gather(suspects)], dtype=pl.String)
    return texts.scatter(suspects, read)
