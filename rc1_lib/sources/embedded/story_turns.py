"""How an arithmetic story goes on: each turn takes the number reached so far and adds one or two sums.

Turns after which a story must end are in `LAST`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.story_sums import Numbers, Turn, Unit

_MOST = 999


def more(scene: Scene, value: int) -> Numbers | None:
    """Some more of the same."""
    k = scene.number(5, 160)
    return {"k": k} if value + k <= _MOST else None


def less(scene: Scene, value: int) -> Numbers | None:
    """Some of it goes."""
    return {"k": scene.number(3, value - 8)} if value >= 16 else None


def grow(scene: Scene, value: int) -> Numbers | None:
    """A multiple of it."""
    k = scene.number(2, 5)
    return {"k": k} if value * k <= _MOST else None


def price(scene: Scene, value: int) -> Numbers | None:
    """Each at a price."""
    return {"k": scene.number(2, min(14, _MOST // value))} if value <= _MOST // 2 else None


def delivery(scene: Scene, value: int) -> Numbers | None:
    """More in boxes: a separate product, then the sum."""
    k, n = scene.number(2, 15), scene.number(3, 20)
    return {"k": k, "n": n} if value + k * n <= _MOST else None


def bills(scene: Scene, value: int) -> Numbers | None:
    """Several equal payments: a separate product, then the difference."""
    k, n = scene.number(2, 12), scene.number(3, 20)
    return {"k": k, "n": n} if value - k * n >= 8 else None


def supply(scene: Scene, value: int) -> Numbers | None:
    """What there was before it was used."""
    k = value + scene.number(5, 300)
    return {"k": k} if k <= _MOST else None


def _divisor(most: int) -> Callable[[Scene, int], Numbers | None]:
    """Return a draw of the number, at most `most`, of equal parts that it is divided into."""

    def draw(scene: Scene, value: int) -> Numbers | None:
        divisors = [k for k in range(2, most + 1) if value % k == 0 and value // k >= 2]
        return {"k": scene.pick(divisors)} if divisors else None

    return draw


TURNS: Mapping[str, Turn] = {
    "gain": Turn(None, ("{v}+{k}",), more),
    "lose": Turn(None, ("{v}-{k}",), less),
    "grow": Turn(None, ("{v}*{k}",), grow),
    "sell": Turn("coins", ("{v}*{k}",), price),
    "delivery": Turn(None, ("{k}*{n}", "{v}+{0}"), delivery),
    "debt": Turn(None, ("{v}+{k}",), more),
    "pay": Turn(None, ("{v}-{k}",), less),
    "bills": Turn(None, ("{k}*{n}", "{v}-{0}"), bills),
    "fee": Turn(None, ("{v}+{k}",), more),
    "purse": Turn("coins", ("{k}-{v}",), supply),
    "walk": Turn(None, ("{v}+{k}",), more),
    "detour": Turn(None, ("{v}*{k}",), grow),
    "posts": Turn("cost", ("{v}*{k}",), price),
    "rain": Turn(None, ("{v}+{k}",), more),
    "drink": Turn(None, ("{v}-{k}",), less),
    "notes": Turn(None, ("{v}+{k}",), more),
    "stock": Turn("fodder", ("{k}-{v}",), supply),
    "spill": Turn(None, ("{v}-{k}",), less),
    "pack": Turn("each_box", ("{v}/{k}",), _divisor(24)),
    "partners": Turn("each_partner", ("{v}/{k}",), _divisor(12)),
    "finish": Turn("days_book", ("{v}/{k}",), _divisor(40)),
    "days_walk": Turn("days_road", ("{v}/{k}",), _divisor(40)),
}

# Unit -> turns that may follow, repeated to be drawn more often. Units that are not listed end a story.
FOLLOWING: Mapping[Unit, tuple[str, ...]] = {
    "goods": ("gain", "lose", "grow", "sell", "delivery", "gain", "lose"),
    "both": ("gain", "lose", "sell", "delivery"),
    "coins": ("debt", "pay", "bills", "pay"),
    "cost": ("fee", "purse", "purse"),
    "miles": ("walk", "detour", "walk"),
    "paces": ("posts",),
    "jugs": ("rain", "drink"),
    "pages": ("notes",),
    "eaten": ("stock",),
    "fodder": ("spill",),
}
LAST: Mapping[Unit, tuple[str, ...]] = {
    "goods": ("pack",),
    "both": ("pack",),
    "coins": ("partners",),
    "miles": ("days_walk",),
    "pages": ("finish",),
}
