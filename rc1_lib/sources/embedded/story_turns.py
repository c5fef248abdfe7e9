"""How an arithmetic story goes on: each turn takes the number reached so far and adds one or two sums.

Turns after which a story must end are in `LAST`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.story_sums import Part, Unit

_MOST = 999
Turn = Callable[[Scene, int, Unit], Part | None]


def more(scene: Scene, value: int, unit: Unit) -> Part | None:
    """Some more of the same."""
    k = scene.number(5, 160)
    return Part({"k": k}, ((f"{value}+{k}", value + k),), unit) if value + k <= _MOST else None


def less(scene: Scene, value: int, unit: Unit) -> Part | None:
    """Some of it goes."""
    if value < 16:
        return None
    k = scene.number(3, value - 8)
    return Part({"k": k}, ((f"{value}-{k}", value - k),), unit)


def grow(scene: Scene, value: int, unit: Unit) -> Part | None:
    """A multiple of it."""
    k = scene.number(2, 5)
    return Part({"k": k}, ((f"{value}*{k}", value * k),), unit) if value * k <= _MOST else None


def sell(scene: Scene, value: int, unit: Unit) -> Part | None:
    """Each sold at a price."""
    if value > _MOST // 2:
        return None
    k = scene.number(2, min(14, _MOST // value))
    return Part({"k": k}, ((f"{value}*{k}", value * k),), "coins")


def fence_price(scene: Scene, value: int, unit: Unit) -> Part | None:
    """A price per pace."""
    if value > _MOST // 2:
        return None
    k = scene.number(2, min(14, _MOST // value))
    return Part({"k": k}, ((f"{value}*{k}", value * k),), "cost")


def delivery(scene: Scene, value: int, unit: Unit) -> Part | None:
    """More in boxes: a separate product, then the sum."""
    k, j = scene.number(2, 15), scene.number(3, 20)
    total = value + k * j
    return (
        Part({"k": k, "n": j}, ((f"{k}*{j}", k * j), (f"{value}+{total - value}", total)), unit)
        if total <= _MOST
        else None
    )


def bills(scene: Scene, value: int, unit: Unit) -> Part | None:
    """Several equal payments: a separate product, then the difference."""
    k, j = scene.number(2, 12), scene.number(3, 20)
    rest = value - k * j
    return Part({"k": k, "n": j}, ((f"{k}*{j}", k * j), (f"{value}-{k * j}", rest)), unit) if rest >= 8 else None


def purse(scene: Scene, value: int, unit: Unit) -> Part | None:
    """The change after paying the cost."""
    k = value + scene.number(5, 300)
    return Part({"k": k}, ((f"{k}-{value}", k - value),), "coins") if k <= _MOST else None


def stock(scene: Scene, value: int, unit: Unit) -> Part | None:
    """What is left of a store after the animals ate."""
    k = value + scene.number(5, 300)
    return Part({"k": k}, ((f"{k}-{value}", k - value),), "fodder") if k <= _MOST else None


def _divided(scene: Scene, value: int, unit: Unit, most: int) -> Part | None:
    divisors = [k for k in range(2, most + 1) if value % k == 0 and value // k >= 2]
    if not divisors:
        return None
    k = scene.pick(divisors)
    return Part({"k": k}, ((f"{value}/{k}", value // k),), unit)


def pack(scene: Scene, value: int, unit: Unit) -> Part | None:
    """Split evenly into boxes."""
    return _divided(scene, value, "each_box", 24)


def partners(scene: Scene, value: int, unit: Unit) -> Part | None:
    """Coins shared by partners."""
    return _divided(scene, value, "each_partner", 12)


def finish(scene: Scene, value: int, unit: Unit) -> Part | None:
    """The days needed for the rest of a book."""
    return _divided(scene, value, "days_book", 40)


def follow(scene: Scene, value: int, unit: Unit) -> Part | None:
    """The days that another traveller needs."""
    return _divided(scene, value, "days_road", 40)


TURNS: Mapping[str, Turn] = {
    "gain": more,
    "lose": less,
    "grow": grow,
    "sell": sell,
    "delivery": delivery,
    "debt": more,
    "pay": less,
    "bills": bills,
    "fee": more,
    "purse": purse,
    "walk": more,
    "detour": grow,
    "posts": fence_price,
    "rain": more,
    "drink": less,
    "notes": more,
    "stock": stock,
    "spill": less,
    "pack": pack,
    "partners": partners,
    "finish": finish,
    "days_walk": follow,
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
TWO_SUMS = frozenset({"delivery", "bills"})


def numbers_stated(turn: str) -> str:
    """Return the names of the numbers that a turn states, one letter for each of its sums."""
    return "kn" if turn in TWO_SUMS else "k"
