"""The packs in `templates/`: the properties that a pool built with them relies on."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.pool.diversity_report import diversity_report, pack_texts
from rc1_lib.pool.templates import Pack, Template, load_pack, pieces
from rc1_lib.task_specs import template_kinds
from rc1_lib.text.tokens import tokenize

KINDS = template_kinds()

TEMPLATES = Path(__file__).parents[2] / "templates"
SLOT_FILLERS = ("question", "evidence", "titles", "title", "expression", "reason", "wanted", "value")


@pytest.fixture(scope="module")
def old() -> Pack:
    return load_pack(TEMPLATES / "pack_v1")


@pytest.fixture(scope="module")
def new() -> Pack:
    return load_pack(TEMPLATES / "pack_v2")


def of(pack: Pack, lang: str) -> list[Template]:
    return [template for kind in KINDS for template in pack.select(kind, lang)]


def words(phrase: str) -> list[str]:
    return tokenize(" ".join(literal for literal, _ in pieces(phrase)))


def talk(template: Template) -> list[str]:
    """The phrases of user and assistant: all but the system message."""
    return [phrase for phrase in template.phrases() if phrase != template.system]


def test_new_pack_covers_kinds_roles_and_styles(new: Pack) -> None:
    assert new.counts() == {
        "en": {"maths": 10, "multihop": 12, "clarification": 10},
        "zh": {"maths": 7, "multihop": 7, "clarification": 7},
    }
    assert new.name == "v2"
    assert len(new.roles) >= 6
    assert new.styles == ("casual", "formal", "reasoned", "terse")
    for kind in KINDS:
        for lang in ("en", "zh"):
            chosen = new.select(kind, lang)
            assert len({template.style for template in chosen}) == 4
            assert len({template.role for template in chosen}) >= 5


def test_english_phrases_are_short_and_use_a_small_vocabulary(new: Pack) -> None:
    for template in of(new, "en"):
        assert len(words(template.system)) <= 18, template.id
        assert len(words(template.user)) <= 14, template.id
        for phrase in talk(template):
            assert phrase == template.user or len(words(phrase)) <= 10, f"{template.id}: {phrase}"
    vocabulary = {word for template in of(new, "en") for phrase in template.phrases() for word in words(phrase)}
    assert len(vocabulary) < 900


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_two_templates_of_a_language_share_a_phrase(new: Pack, lang: str) -> None:
    seen: dict[str, str] = {}
    for template in of(new, lang):
        for phrase in template.phrases():
            if len(words(phrase)) >= 2:
                assert seen.setdefault(phrase, template.id) == template.id, phrase


def test_phrases_of_both_packs_can_be_filled(old: Pack, new: Pack) -> None:
    values = dict.fromkeys(SLOT_FILLERS, "X")
    for template in (*old.templates, *new.templates):
        for phrase in template.phrases():
            assert "{" not in phrase.format(**values)


def test_new_pack_is_more_varied_than_the_old_and_far_from_it(old: Pack, new: Pack) -> None:
    old_texts, new_texts = pack_texts(old), pack_texts(new)
    report = diversity_report(new_texts, new, old_texts)
    plain = diversity_report(old_texts, old, old_texts)
    assert report["distinct_2"]["windowed"]["minimum"] > 0.75
    assert plain["distinct_2"]["windowed"]["mean"] < 0.3
    assert report["kl_3gram"] > 0.15
    assert plain["kl_3gram"] == 0
