"""The openings of arithmetic stories: numbers and sums of the first part.

Their texts are in `words/<language>/story_openings.yaml` under the same keys. Units: `goods` and `both` (things of one
person or of two), `coins` (earned), `cost` (spent), and others that only some turns can continue.
"""

from __future__ import annotations

from collections.abc import Mapping

from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.story_sums import Numbers, Opening


def _factors(scene: Scene, most: int, low: int = 3) -> tuple[int, int]:
    """Draw two factors whose product is at most `most`."""
    a = scene.number(low, 40)
    return a, scene.number(low, max(low + 1, min(60, most // a)))


def product(scene: Scene) -> Numbers:
    """Equal boxes, rows or days."""
    a, b = _factors(scene, 900)
    return {"a": a, "b": b}


def pair(scene: Scene) -> Numbers:
    """Two makers together."""
    return {"a": scene.number(11, 480), "b": scene.number(11, 480)}


def given(scene: Scene) -> Numbers:
    """Someone gives some things away."""
    a = scene.number(60, 950)
    return {"a": a, "b": scene.number(11, a - 20)}


def shared(scene: Scene) -> Numbers:
    """An even division among children."""
    b, each = scene.number(3, 24), scene.number(3, 40)
    return {"a": b * each, "b": b}


def baked(scene: Scene) -> Numbers:
    """How often a recipe fits into the flour."""
    b, count = scene.number(2, 9), scene.number(12, 100)
    return {"a": b * count, "b": b}


def times(scene: Scene) -> Numbers:
    """One has a multiple of the other's."""
    return {"a": scene.number(6, 150), "b": scene.number(2, 6)}


def fewer(scene: Scene) -> Numbers:
    """One person has a number fewer than the other."""
    a = scene.number(40, 480)
    return {"a": a, "b": scene.number(5, a - 12)}


def spoiled(scene: Scene) -> Numbers:
    """A percentage is lost."""
    return {"a": scene.number(2, 45) * 20, "b": scene.pick((5, 10, 15, 20, 25, 30, 40, 55, 60, 75))}


def fraction(scene: Scene) -> Numbers:
    """One part in so many goes to a friend."""
    b, part = scene.number(3, 9), scene.number(8, 100)
    return {"a": b * part, "b": b}


def wages(scene: Scene) -> Numbers:
    """Coins an hour, hours a day, days."""
    return {"a": scene.number(2, 14), "b": scene.number(4, 10), "c": scene.number(2, 9)}


def change(scene: Scene) -> Numbers:
    """What is left of a purse after a purchase."""
    b, c = _factors(scene, 500, 2)
    return {"a": b * c + scene.number(15, 450), "b": b, "c": c}


def profit(scene: Scene) -> Numbers:
    """Bought at one price and sold at a higher one."""
    a, b, gain = scene.number(5, 90), scene.number(3, 40), scene.number(2, 10)
    return {"a": a, "b": b, "c": b + gain}


def crew(scene: Scene) -> Numbers:
    """Workers, things per hour, hours."""
    return {"a": scene.number(2, 12), "b": scene.number(2, 12), "c": scene.number(2, 8)}


def tank(scene: Scene) -> Numbers:
    """Water flows in and leaks out."""
    b, net, c = scene.number(2, 20), scene.number(3, 35), scene.number(2, 24)
    return {"a": b + net, "b": b, "c": c}


def ages(scene: Scene) -> Numbers:
    """A multiple of an age, some years later."""
    return {"a": scene.number(5, 22), "b": scene.number(2, 4), "c": scene.number(3, 30)}


def fence(scene: Scene) -> Numbers:
    """The perimeter of a field."""
    return {"a": scene.number(12, 220), "b": scene.number(12, 220)}


def reading(scene: Scene) -> Numbers:
    """Pages left after some days."""
    b, c = _factors(scene, 600, 4)
    return {"a": b * c + scene.number(20, 300), "b": b, "c": c}


def fodder(scene: Scene) -> Numbers:
    """What animals eat in some days."""
    return {"a": scene.number(3, 18), "b": scene.number(2, 7), "c": scene.number(3, 12)}


def average(scene: Scene) -> Numbers:
    """The mean of three days."""
    a, b, mean = scene.number(10, 200), scene.number(10, 200), scene.number(150, 300)
    return {"a": a, "b": b, "c": 3 * mean - a - b}


def basket(scene: Scene) -> Numbers:
    """Two kinds of things bought."""
    a, b = _factors(scene, 400, 2)
    c, d = _factors(scene, 400, 2)
    return {"a": a, "b": b, "c": c, "d": d}


def journey(scene: Scene) -> Numbers:
    """Two legs at two speeds."""
    a, b = scene.number(3, 30), scene.number(2, 12)
    return {"a": a, "b": b, "c": scene.number(3, 30), "d": scene.number(2, 12)}


def rivals(scene: Scene) -> Numbers:
    """How many more one maker makes than another."""
    a, b = scene.number(12, 40), scene.number(8, 24)
    return {"a": a, "b": b, "c": scene.number(2, 11), "d": scene.number(3, 8)}


OPENINGS: Mapping[str, Opening] = {
    "crates": Opening("goods", ("{a}*{b}",), product),
    "rows": Opening("goods", ("{a}*{b}",), product),
    "daily": Opening("goods", ("{a}*{b}",), product),
    "pair": Opening("both", ("{a}+{b}",), pair),
    "given": Opening("goods", ("{a}-{b}",), given),
    "shared": Opening("each_child", ("{a}/{b}",), shared),
    "baked": Opening("goods", ("{a}/{b}",), baked),
    "times": Opening("both", ("{a}*{b}", "{a}+{0}"), times),
    "fewer": Opening("both", ("{a}-{b}", "{a}+{0}"), fewer),
    "spoiled": Opening("goods", ("{a}*{b}/100", "{a}-{0}"), spoiled),
    "fraction": Opening("goods", ("{a}/{b}", "{a}-{0}"), fraction),
    "wages": Opening("coins", ("{a}*{b}", "{0}*{c}"), wages),
    "change": Opening("coins", ("{b}*{c}", "{a}-{0}"), change),
    "profit": Opening("coins", ("{c}-{b}", "{0}*{a}"), profit),
    "crew": Opening("goods", ("{a}*{b}", "{0}*{c}"), crew),
    "tank": Opening("jugs", ("{a}-{b}", "{0}*{c}"), tank),
    "ages": Opening("age", ("{a}*{b}", "{0}+{c}"), ages),
    "fence": Opening("paces", ("{a}+{b}", "{0}*2"), fence),
    "reading": Opening("pages", ("{b}*{c}", "{a}-{0}"), reading),
    "fodder": Opening("eaten", ("{a}*{b}", "{0}*{c}"), fodder),
    "average": Opening("mean", ("{a}+{b}+{c}", "{0}/3"), average),
    "basket": Opening("cost", ("{a}*{b}", "{c}*{d}", "{0}+{1}"), basket),
    "journey": Opening("miles", ("{a}*{b}", "{c}*{d}", "{0}+{1}"), journey),
    "rivals": Opening("more", ("{a}*{b}", "{c}*{d}", "{0}-{1}"), rivals),
}
