"""What `pictures.json` says of each picture: its bytes, the run's commit, what is shown, and the source that drew it.

Of Python source the statements count. Comments, docstrings and layout may change without a picture being out of date.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
RECORD = FOLDER / "pictures.json"

_PLOTS = "rc1_lib/plots"
DRAWN_BY: Mapping[str, Sequence[str]] = {
    "report.png": ["rc1_lib/release/report.py", "rc1_lib/release/report.html.j2"],
    "asking.png": [f"{_PLOTS}/canvas.py", f"{_PLOTS}/evaluation.py"],
    "calibration.png": [f"{_PLOTS}/canvas.py", f"{_PLOTS}/reward.py"],
    "training.png": [f"{_PLOTS}/canvas.py", f"{_PLOTS}/training.py"],
    "gate_failed.png": ["rc1_lib/gates/duplicates.py", "tasks/gates.py", "rc1_lib/check_words.py"],
    "round_failed.png": ["tasks/reports.py", "rc1_lib/check_words.py"],
}
"""Picture -> the files that decide what it looks like; what they import does not count."""


def fingerprint(files: Sequence[str]) -> str:
    """SHA-256 over the statements of Python files and the text of all others, relative to the project's root."""
    digest = hashlib.sha256()
    for name in files:
        text = (ROOT / name).read_text(encoding="utf-8")
        content = json.dumps(_plain(ast.parse(text))) if name.endswith(".py") else text
        digest.update(f"{name}\0{hashlib.sha256(content.encode()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _plain(node: Any) -> Any:
    """A syntax tree as lists, without its empty fields, docstrings, imports and places."""
    if isinstance(node, list):
        return [_plain(one) for one in node if not (_is_docstring(one) or isinstance(one, ast.Import | ast.ImportFrom))]
    if isinstance(node, ast.AST):
        return [type(node).__name__, *_fields(node)]
    return node if isinstance(node, str | int | float | bool | None) else repr(node)


def _fields(node: ast.AST) -> Iterator[Any]:
    for name, value in ast.iter_fields(node):
        if value is not None and value != []:
            yield [name, _plain(value)]


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def entry(name: str, content: bytes, commit: str, shown: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A picture's lines of `pictures.json`.

    Args:
        name: of the file.
        content: its bytes.
        commit: of the run that it shows, as is said below the picture.
        shown: what is named in it: `criteria` of the judge and rules, or `gates`.
    """
    return {
        "sha256": hashlib.sha256(content).hexdigest(),
        "commit": commit,
        "drawn_by": fingerprint(DRAWN_BY[name]),
        "shown": {kind: list(names) for kind, names in shown.items()},
    }
