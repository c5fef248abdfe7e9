"""The documents: every link has a target, every named file exists, and every gate is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rc1_lib.gates.gate_list import PREFLIGHT
from rc1_lib.workspace.artifacts import PROJECT_ROOT

DOCUMENTS = [
    *sorted(PROJECT_ROOT.glob("*.md")),
    *(page for folder in ("docs", "models") for page in sorted((PROJECT_ROOT / folder).rglob("*.md"))),
]
_FILE = re.compile(
    r"`((?:rc1_lib|tests|configs|flows|tasks|benchmarks|templates|deployments|models)/[\w./-]+)(?::[^`]*)?`"
)
CREATED_BY_USERS = {
    "configs/weights.json", "configs/mine.yaml", "configs/judge/mine.yaml", "rc1_lib/judge/providers/keyword.py",
    "rc1_lib/task_specs/factcheck.py",
    "rc1_lib/training/engines/plain_sft.py", "tests/training/engines/test_plain_sft.py",
}  # fmt: skip
"""Files that a run writes, or a reader of `docs/how-to`."""
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = _HEADING.findall(document.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_has_a_target_and_every_named_file_exists() -> None:
    broken = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for link in _LINK.findall(text):
            path, _, anchor = link.partition("#")
            target = document.parent / path if path else document
            if not link.startswith(("http://", "https://")) and (
                not target.exists() or (anchor and anchor not in anchors(target))
            ):
                broken.append((document.name, link))
        named = set(_FILE.findall(text)) - CREATED_BY_USERS
        broken += [(document.name, name) for name in named if not (PROJECT_ROOT / name).exists()]
    assert broken == []


@pytest.mark.parametrize("page", ["README.md", "README.zh.md", "docs/gates.md"])
def test_every_gate_is_documented(page: str) -> None:
    text = (PROJECT_ROOT / page).read_text(encoding="utf-8")
    assert [spec.name for spec in PREFLIGHT if f"`{spec.name}`" not in text] == []


def commands(readme: str) -> list[str]:
    """The commands of a page: the lines of its blocks, without comments, and the first cells of its table."""
    text = (PROJECT_ROOT / readme).read_text(encoding="utf-8")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    blocks = [block for language, block in fenced if not language]
    typed = [line.partition(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in typed if line] + re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)


@pytest.mark.parametrize("readme", ["README.md", "README.zh.md"])
def test_readme_is_short(readme: str) -> None:
    text = (PROJECT_ROOT / readme).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120 and len(text.split()) <= 1000


def test_readmes_of_both_languages_give_the_same_commands() -> None:
    assert len(commands("README.md")) > 15
    assert commands("README.zh.md") == commands("README.md")
