"""StrategyQA-style questions: yes or no, deduced from two to four looked-up facts.

The verdict is drawn first, then a world in which it holds, so that both answers are equally frequent. Compared numbers
are close to each other, so that knowing one of them does not tell the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from rc1_lib.records import Language, Question
from rc1_lib.sources.embedded.form import Form, Leg, Start
from rc1_lib.sources.embedded.lexicon import Wordings
from rc1_lib.sources.embedded.lookups import Lookups
from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.word_files import open_words

Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """A form, and how its numbers are drawn: one for each leg, then the one that the question states, if it does."""

    form: Form
    draw: Callable[[Scene, bool], Numbers]


def _near(scene: Scene, holds: bool, above: int, below: int) -> int:
    """Draw a distance: from 1 to `above` if the verdict holds, else from -1 to -`below`."""
    return scene.number(1, above) if holds else -scene.number(1, below)


def met(scene: Scene, holds: bool) -> Numbers:
    """One person can meet another only if the other was born before the first one's death."""
    born = scene.number(180, 880)
    return born + _near(scene, holds, 70, 70), born


def standing(scene: Scene, holds: bool) -> Numbers:
    """A landmark exists already if another is finished later."""
    first = scene.number(250, 900)
    return first, first + _near(scene, holds, 90, 90)


def grown(scene: Scene, holds: bool) -> Numbers:
    """Someone's age in a year is that year minus the year of birth."""
    born, limit = scene.number(150, 880), scene.number(16, 70)
    return born, born + limit + _near(scene, holds, 15, 15), limit


def jubilee(scene: Scene, holds: bool) -> Numbers:
    """A guild's anniversary falls before or after a launch."""
    opened, span = scene.number(100, 600), scene.number(50, 300)
    return opened, opened + span + _near(scene, holds, 60, 60), span


def childhood(scene: Scene, holds: bool) -> Numbers:
    """Someone can read a book before a birthday only if it was finished by then."""
    born, limit = scene.number(200, 880), scene.number(7, 60)
    return born, born + limit - _near(scene, holds, 40, 40), limit


def outlived(scene: Scene, holds: bool) -> Numbers:
    """Two ages at death, each from two years, are compared."""
    age, born, other = scene.number(35, 85), scene.number(150, 850), scene.number(150, 850)
    return born, born + age, other, other + age - _near(scene, holds, 20, 20)


def same_fair(scene: Scene, holds: bool) -> Numbers:
    """Two fairs share a day if the later one opens before the earlier one closes."""
    closes = scene.number(20, 300)
    return closes, closes - _near(scene, holds, 12, 12)


def under_bridge(scene: Scene, holds: bool) -> Numbers:
    """A ship passes under a bridge when its mast is lower than the arch."""
    mast = scene.number(25, 150)
    return mast, mast + _near(scene, holds, 20, 20)


def carry_bell(scene: Scene, holds: bool) -> Numbers:
    """A cart carries a bell that weighs less than the cart's greatest load."""
    load = scene.number(100, 800)
    return load, load - _near(scene, holds, 70, 70)


def seated(scene: Scene, holds: bool) -> Numbers:
    """A guild fits into a hall with more seats than it has members."""
    members = scene.number(60, 540)
    return members, members + _near(scene, holds, 40, 40)


def ride(scene: Scene, holds: bool) -> Numbers:
    """The miles ridden in some days are compared with the length of a road."""
    pace, days = scene.number(9, 60), scene.number(3, 9)
    return pace, pace * days - _near(scene, holds, 20, 20), days


def afford(scene: Scene, holds: bool) -> Numbers:
    """The wages of some weeks are compared with a price."""
    wage, weeks = scene.number(8, 60), scene.number(5, 9)
    return wage, wage * weeks - _near(scene, holds, 30, 30), weeks


def feed(scene: Scene, holds: bool) -> Numbers:
    """One town's grain is compared with what another eats in some days."""
    need, days = scene.number(8, 60), scene.number(5, 9)
    return need * days + _near(scene, holds, 30, 30), need, days


def shortened(scene: Scene, holds: bool) -> Numbers:
    """A tower shortened by some feet is compared with another one."""
    height, cut = scene.number(90, 300), scene.number(5, 50)
    return height, height - cut - _near(scene, holds, 25, 25), cut


def _of(starts: str, *legs: str, sums: Sequence[str] = (), same: tuple[str, str] | None = None) -> Form:
    """Write a form briefly: starts as `p:person home=x`, legs as `s captain born` or `x road=y`."""
    named: dict[str, Start] = {}
    for text in starts.split(", "):
        head, *stated = text.split()
        letter, kind = head.split(":")
        named[letter] = Start(kind, dict(pair.split("=") for pair in stated))
    walked = []
    for text in legs:
        start, *path = text.split()
        last, _, names = path[-1].partition("=")
        walked.append(Leg(start, (*path[:-1], last), names))
    counts = any("{n}" in text for text in sums)
    return Form("strategyqa", named, tuple(walked), "verdict", tuple(sums), same, counts)


_TWO_PEOPLE, _TWO_WORKS = "a:person home=x, b:person home=y", "a:work stands=x, b:work stands=y"
_TWO_TOWNS = "x:town founder=p, y:town founder=q"
KINDS: Mapping[str, Kind] = {
    # Who or what came first.
    "met": Kind(_of(_TWO_PEOPLE, "a died", "b birth", sums=["{0}>{1}"]), met),
    "standing": Kind(_of(_TWO_WORKS, "a built", "b built", sums=["{0}<{1}"]), standing),
    "grown": Kind(
        _of("p:person home=x, w:work stands=y", "p birth", "w built", sums=["{1}-{0}", "{r0}>{n}"]), grown
    ),
    "jubilee": Kind(
        _of("g:guild head=p, s:ship owner=q", "g opened", "s launched", sums=["{0}+{n}", "{r0}<{1}"]), jubilee
    ),
    "childhood": Kind(
        _of("p:person home=x, b:book keeper=q", "p birth", "b written", sums=["{0}+{n}", "{r0}>{1}"]), childhood
    ),
    "outlived": Kind(
        _of(_TWO_PEOPLE, "a birth", "a died", "b birth", "b died", sums=["{1}-{0}", "{3}-{2}", "{r0}>{r1}"]), outlived
    ),
    "same_fair": Kind(_of(_TWO_TOWNS, "x fair_end", "y fair", sums=["{0}>{1}"]), same_fair),
    # Heights, weights, seats, coins, distances and stores.
    "under_bridge": Kind(_of("s:ship captain=p, w:work stands=y", "s mast", "w arch", sums=["{0}<{1}"]), under_bridge),
    "carry_bell": Kind(_of("p:person home=x, w:work stands=y", "p cart", "w bell", sums=["{0}>{1}"]), carry_bell),
    "seated": Kind(_of("g:guild head=p, w:work stands=y", "g members", "w seats", sums=["{0}<{1}"]), seated),
    "ride": Kind(_of("p:person home=z, x:town", "p pace", "x road=y", sums=["{0}*{n}", "{r0}>{1}"]), ride),
    "afford": Kind(
        _of("p:person home=x, b:book keeper=q", "p wage", "b price", sums=["{0}*{n}", "{r0}>{1}"]), afford
    ),
    "feed": Kind(_of("x:town founder=p, y:town", "x store", "y need", sums=["{1}*{n}", "{0}>{r0}"]), feed),
    "shortened": Kind(_of(_TWO_WORKS, "a height", "b height", sums=["{0}-{n}", "{r0}>{1}"]), shortened),
    # Belonging: do two facts lead to the same entity?
    "aboard": Kind(_of("p:person home=x, s:ship port=t", "p guild", "s rule", same=("0", "1")), lambda *_: ()),
    "raft": Kind(_of(_TWO_TOWNS, "x river", "y river", same=("0", "1")), lambda *_: ()),
    "vote": Kind(_of("p:person spouse=q, y:town", "p born", "y vote", same=("0", "y")), lambda *_: ()),
    "home_river": Kind(_of("s:ship owner=q", "s captain born river", same=("0", "r")), lambda *_: ()),
    "same_teacher": Kind(
        _of("w:work stands=y, b:book keeper=q", "w builder teacher", "b author teacher", same=("0", "1")), lambda *_: ()
    ),
}
_KEYS = tuple(KINDS)


def yesno(scene: Scene) -> Question | None:
    """Return one yes/no question, or None if this scene's names clash."""
    key = scene.pick(_KEYS)
    verdict, kind = scene.chance(0.5), KINDS[key]
    numbers = kind.draw(scene, verdict)
    legs = [None] * len(kind.form.legs) if kind.form.same else list(numbers[: len(kind.form.legs)])
    lookups = Lookups(scene, kind.form, legs, numbers[-1] if kind.form.counts else 0, holds=verdict)
    return lookups.question(scene.pick(wordings(scene.lexicon.lang)[key]))


@cache
def wordings(lang: Language) -> Wordings:
    """Read the wordings of every kind from `words/<lang>/yesno.yaml`.

    Raises:
        SourceError: when the file does not fit the schema.
    """
    entries = open_words(f"{lang}/yesno").fields(KINDS)
    return {key: lines.texts(KINDS[key].form.slots) for key, lines in entries.items()}
