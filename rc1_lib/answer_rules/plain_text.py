"""Plain text for reading numbers: one character for all variants of a digit, a sign or a space, and no mark-up.

LaTeX, Markdown and Unicode write the same thing in many ways. The result is ASCII, Han characters and a few signs: `≈`,
`—` (a pause), `≶` (any comparison) and `NARROW` (a space that groups digits).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

NARROW = "\u00a0"

_SUPERSCRIPT = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+", strict=True))
_POWER = re.compile(f"(?<=[0-9)])[{''.join(_SUPERSCRIPT)}]+")
# Dashes of every length are signs or ranges; a long one before a word is a pause.
_SIGNS = {
    **dict.fromkeys("‐‑‒–−➖﹣－₋", "-"),
    **dict.fromkeys("—―", "—"),
    **dict.fromkeys("·⋅∙×✕✖∗•‧", "*"),
    **dict.fromkeys("÷∕⁄", "/"),
    **dict.fromkeys("≈≃≅∼≒≐", "≈"),
    **dict.fromkeys("≤≥≠≦≧±∓≪≫≮≯<>∞∑∫π‰√∛", "≶"),
    **dict.fromkeys("→⇒⟹➜➔", "="),
    **dict.fromkeys("\u00a0\u2005\u2006\u2007\u2008\u2009\u200a\u202f", NARROW),
    **dict.fromkeys("‘’ʼ′", "'"),
    **dict.fromkeys("“”„«»「」『』《》〈〉【】″", '"'),
    **dict.fromkeys("●▪◦‣■►", " "),
    "、": ", ", "。": ". ", "٫": ".", "٬": ",", "٪": "%", "∴": " so ", "…": "..",
    "°": " ", "˚": " ", "º": " ", "〜": "~",
}  # fmt: skip

_SQUARE = re.compile(r"(?<![A-Za-z])(?:mm|cm|km|m|ft|in|yd|mi)\s?(?:[²³]|\^\s?\{?[23]\}?)")
STRUCK = re.compile(r"~~|<(?:s|del|strike)>", re.IGNORECASE)
_CROSSED = re.compile("[✗✘❌🚫👎☐]")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,40}>")
_SIZE = re.compile(r"\|\s?[-−]")
_ARROW = re.compile(r"=+>|-+>|={2,}")
_COMPARISON = re.compile(r"!=|=/=|(?<![\w!])!(?=\d)|%%|[<>]")
"""Signs that change the number after them; to a programmer, `!5` means "not 5"."""
_STARRED_POWER = re.compile(r"(?<=[\d)])\*\*(?=[\d(])")
_MARKDOWN = re.compile(r"\*\*|__|`|^[#\s]+|[#|]|(?<![^\W_])_|_(?![^\W_])", re.MULTILINE)
_PAUSE = re.compile(r"(?<!\d)—(?=\s?\d)|(?<=\d)—(?=\d)")

_SPACING = re.compile(r"\\(?:[,:; ]|thinspace\b)|(?<!\\)~(?=\d{3}\b)")
_NOTHING = re.compile(
    r"\\!|\\(?:left|right|displaystyle|big|Big|quad|qquad|hspace\{[^{}]*\}|limits)(?![A-Za-z])|"
    r"\\(?:begin|end)\{[a-z]+\*?\}|&(?==)"
)
_ESCAPED = re.compile(r"\\([$%#&_])")
_WRAP = re.compile(
    r"\\(?:text(?:bf|it|rm|tt)?|math(?:rm|bf|it|sf|tt)|mbox|boxed|fbox|operatorname|emph|underline|large|bold)\s*\{([^{}]*)\}"
)
_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\d))\s*(?:\{([^{}]*)\}|(\d))")
_ROOT = re.compile(r"\\sqrt\s*(?:\{([^{}]*)\}|(\d))")
_RAISED = re.compile(r"\^\s*\{([^{}]*)\}")
_DEGREES = re.compile(r"\^\s*(?:\{\s*)?\\circ(?:\s*\})?|\\degree|\\circ")
_COMMANDS = {
    **dict.fromkeys(("times", "cdot", "ast"), "*"),
    "div": "/",
    **dict.fromkeys(("approx", "sim", "simeq"), "≈"),
    **dict.fromkeys(("le", "leq", "ge", "geq", "lt", "gt", "ne", "neq", "pm", "mp", "infty", "pi"), "≶"),
    **dict.fromkeys(("to", "Rightarrow", "rightarrow", "implies", "Longrightarrow"), "="),
    **dict.fromkeys(("pounds", "euro", "yen"), "$"),
    **dict.fromkeys(("ldots", "dots", "cdots"), ".."),
    "therefore": " so ",
    "lor": " or ",
    "land": " and ",
}
_COMMAND = re.compile(r"\\([A-Za-z]+)")


def plain_text(text: str) -> str | None:
    """Return `text` in lower case and plain characters; None if it contains an unknown LaTeX command."""
    text = _SQUARE.sub(" units ", text.replace("{,}", ","))
    if "\\" in text:
        text = _without_latex(text)
    if "{" in text:
        text = _RAISED.sub(r"^(\1)", text).replace("{", " ").replace("}", " ")
    if STRUCK.search(text) or _CROSSED.search(text) or _SIZE.search(text):
        return None  # struck out; marked as wrong; a size without its sign
    text = _TAG.sub(" ", text)
    if not text.isascii():
        text = _POWER.sub(lambda run: f"^({''.join(_SUPERSCRIPT[mark] for mark in run[0])})", text)
        text = "".join(map(_plain, text))
        text = _PAUSE.sub("-", text)
    text = _COMPARISON.sub("≶", _ARROW.sub("=", text))
    text = _MARKDOWN.sub(" ", _STARRED_POWER.sub("^", text))
    return None if "\\" in text else text.lower().strip()


@lru_cache(maxsize=4096)
def _plain(mark: str) -> str:
    """Replace one character by plain ones."""
    if mark in _SIGNS:
        return _SIGNS[mark]
    kind, wide = unicodedata.category(mark), unicodedata.normalize("NFKC", mark)
    if kind == "Nd":
        return str(unicodedata.decimal(mark))
    if kind == "No":
        if mark in _SUPERSCRIPT:
            return " "  # the square of a unit
        return f" {wide.replace('⁄', '/')} " if "⁄" in wide else f" {unicodedata.numeric(mark):g} "
    if kind == "Sc":
        return "$"
    if kind in ("Cf", "Mn", "Me"):
        return ""
    if kind == "Zs":
        return " "
    if kind == "So":
        return "".join(_SIGNS.get(part, part) for part in wide) if len(wide) > 1 or wide.isalnum() else " "
    return "".join(_SIGNS.get(part, part) for part in wide)


def _without_latex(text: str) -> str:
    text = _DEGREES.sub(" ", text.replace("\\\\", "\n"))
    text = _ESCAPED.sub(r"\1", _NOTHING.sub("", _SPACING.sub(NARROW, text)))
    before = ""
    while before != text:  # from the innermost braces outwards
        before = text
        text = _ROOT.sub(lambda root: f" sqrt({root[1] or root[2]}) ", _RAISED.sub(r"^(\1)", text))
        text = _WRAP.sub(r" \1 ", _FRACTION.sub(_fraction, text))
    text = re.sub(r"\\[()\[\]{}]", " ", text)
    return _COMMAND.sub(lambda command: _COMMANDS.get(command[1], command[0]), text)


def _fraction(parts: re.Match[str]) -> str:
    above, below = parts[1] or parts[2] or "", parts[3] or parts[4] or ""
    return f" {above}/{below} " if above.isdigit() and below.isdigit() else f" (({above})/({below})) "
