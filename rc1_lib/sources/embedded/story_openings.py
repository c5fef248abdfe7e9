"""The openings of arithmetic stories: numbers and sums of the first part.

Their texts are in `words/<language>/story_openings.yaml` under the same keys. Units: `goods` and `both` (things of one
person or of two), `coins` (earned), `cost` (spent), and others that only some turns can continue.
"""

from __future__ import annotations

from collections.abc import Mapping

from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.story_sums import Opening, Part


def _product(scene: Scene, most: int, low: int = 3) -> tuple[int, int]:
    """Draw two factors whose product is at most `most`."""
    a = scene.number(low, 40)
    return a, scene.number(low, max(low + 1, min(60, most // a)))


def crates(scene: Scene) -> Part:
    """Equal boxes."""
    a, b = _product(scene, 900)
    return Part({"a": a, "b": b}, ((f"{a}*{b}", a * b),), "goods")


def pair(scene: Scene) -> Part:
    """Two makers together."""
    a, b = scene.number(11, 480), scene.number(11, 480)
    return Part({"a": a, "b": b}, ((f"{a}+{b}", a + b),), "both")


def given(scene: Scene) -> Part:
    """Someone gives some things away."""
    a = scene.number(60, 950)
    b = scene.number(11, a - 20)
    return Part({"a": a, "b": b}, ((f"{a}-{b}", a - b),), "goods")


def shared(scene: Scene) -> Part:
    """An even division among children."""
    b, each = scene.number(3, 24), scene.number(3, 40)
    return Part({"a": b * each, "b": b}, ((f"{b * each}/{b}", each),), "each_child")


def baked(scene: Scene) -> Part:
    """How often a recipe fits into the flour."""
    b, count = scene.number(2, 9), scene.number(12, 100)
    return Part({"a": b * count, "b": b}, ((f"{b * count}/{b}", count),), "goods")


def times(scene: Scene) -> Part:
    """One has a multiple of the other's."""
    a, k = scene.number(6, 150), scene.number(2, 6)
    return Part({"a": a, "b": k}, ((f"{a}*{k}", a * k), (f"{a}+{a * k}", a + a * k)), "both")


def fewer(scene: Scene) -> Part:
    """One person has a number fewer than the other."""
    a = scene.number(40, 480)
    b = scene.number(5, a - 12)
    return Part({"a": a, "b": b}, ((f"{a}-{b}", a - b), (f"{a}+{a - b}", 2 * a - b)), "both")


def spoiled(scene: Scene) -> Part:
    """A percentage is lost."""
    a, b = scene.number(2, 45) * 20, scene.pick((5, 10, 15, 20, 25, 30, 40, 55, 60, 75))
    lost = a * b // 100
    return Part({"a": a, "b": b}, ((f"{a}*{b}/100", lost), (f"{a}-{lost}", a - lost)), "goods")


def fraction(scene: Scene) -> Part:
    """One part in so many goes to a friend."""
    b, part = scene.number(3, 9), scene.number(8, 100)
    a = b * part
    return Part({"a": a, "b": b}, ((f"{a}/{b}", part), (f"{a}-{part}", a - part)), "goods")


def wages(scene: Scene) -> Part:
    """Coins an hour, hours a day, days."""
    a, b, c = scene.number(2, 14), scene.number(4, 10), scene.number(2, 9)
    return Part({"a": a, "b": b, "c": c}, ((f"{a}*{b}", a * b), (f"{a * b}*{c}", a * b * c)), "coins")


def change(scene: Scene) -> Part:
    """What is left of a purse after a purchase."""
    b, c = _product(scene, 500, 2)
    a = b * c + scene.number(15, 450)
    return Part({"a": a, "b": b, "c": c}, ((f"{b}*{c}", b * c), (f"{a}-{b * c}", a - b * c)), "coins")


def profit(scene: Scene) -> Part:
    """Bought at one price and sold at a higher one."""
    a, b, gain = scene.number(5, 90), scene.number(3, 40), scene.number(2, 10)
    return Part({"a": a, "b": b, "c": b + gain}, ((f"{b + gain}-{b}", gain), (f"{gain}*{a}", gain * a)), "coins")


def crew(scene: Scene) -> Part:
    """Workers, things per hour, hours."""
    a, b, c = scene.number(2, 12), scene.number(2, 12), scene.number(2, 8)
    return Part({"a": a, "b": b, "c": c}, ((f"{a}*{b}", a * b), (f"{a * b}*{c}", a * b * c)), "goods")


def tank(scene: Scene) -> Part:
    """Water flows in and leaks out."""
    b, net, c = scene.number(2, 20), scene.number(3, 35), scene.number(2, 24)
    return Part({"a": b + net, "b": b, "c": c}, ((f"{b + net}-{b}", net), (f"{net}*{c}", net * c)), "jugs")


def ages(scene: Scene) -> Part:
    """A multiple of an age, some years later."""
    a, b, c = scene.number(5, 22), scene.number(2, 4), scene.number(3, 30)
    return Part({"a": a, "b": b, "c": c}, ((f"{a}*{b}", a * b), (f"{a * b}+{c}", a * b + c)), "age")


def fence(scene: Scene) -> Part:
    """The perimeter of a field."""
    a, b = scene.number(12, 220), scene.number(12, 220)
    return Part({"a": a, "b": b}, ((f"{a}+{b}", a + b), (f"{a + b}*2", 2 * (a + b))), "paces")


def reading(scene: Scene) -> Part:
    """Pages left after some days."""
    b, c = _product(scene, 600, 4)
    a = b * c + scene.number(20, 300)
    return Part({"a": a, "b": b, "c": c}, ((f"{b}*{c}", b * c), (f"{a}-{b * c}", a - b * c)), "pages")


def fodder(scene: Scene) -> Part:
    """What animals eat in some days."""
    a, b, c = scene.number(3, 18), scene.number(2, 7), scene.number(3, 12)
    return Part({"a": a, "b": b, "c": c}, ((f"{a}*{b}", a * b), (f"{a * b}*{c}", a * b * c)), "eaten")


def average(scene: Scene) -> Part:
    """The mean of three days."""
    a, b, mean = scene.number(10, 200), scene.number(10, 200), scene.number(150, 300)
    c = 3 * mean - a - b
    return Part({"a": a, "b": b, "c": c}, ((f"{a}+{b}+{c}", 3 * mean), (f"{3 * mean}/3", mean)), "mean")


def basket(scene: Scene) -> Part:
    """Two kinds of things bought."""
    a, b = _product(scene, 400, 2)
    c, d = _product(scene, 400, 2)
    sums = ((f"{a}*{b}", a * b), (f"{c}*{d}", c * d), (f"{a * b}+{c * d}", a * b + c * d))
    return Part({"a": a, "b": b, "c": c, "d": d}, sums, "cost")


def journey(scene: Scene) -> Part:
    """Two legs at two speeds."""
    a, b = scene.number(3, 30), scene.number(2, 12)
    c, d = scene.number(3, 30), scene.number(2, 12)
    sums = ((f"{a}*{b}", a * b), (f"{c}*{d}", c * d), (f"{a * b}+{c * d}", a * b + c * d))
    return Part({"a": a, "b": b, "c": c, "d": d}, sums, "miles")


def rivals(scene: Scene) -> Part:
    """How many more one maker makes than another."""
    a, b = scene.number(12, 40), scene.number(8, 24)
    c, d = scene.number(2, 11), scene.number(3, 8)
    sums = ((f"{a}*{b}", a * b), (f"{c}*{d}", c * d), (f"{a * b}-{c * d}", a * b - c * d))
    return Part({"a": a, "b": b, "c": c, "d": d}, sums, "more")


OPENINGS: Mapping[str, Opening] = {
    "crates": Opening(1, "ab", crates),
    "rows": Opening(1, "ab", crates),
    "daily": Opening(1, "ab", crates),
    "pair": Opening(1, "ab", pair),
    "given": Opening(1, "ab", given),
    "shared": Opening(1, "ab", shared),
    "baked": Opening(1, "ab", baked),
    "times": Opening(2, "ab", times),
    "fewer": Opening(2, "ab", fewer),
    "spoiled": Opening(2, "ab", spoiled),
    "fraction": Opening(2, "ab", fraction),
    "wages": Opening(2, "abc", wages),
    "change": Opening(2, "abc", change),
    "profit": Opening(2, "abc", profit),
    "crew": Opening(2, "abc", crew),
    "tank": Opening(2, "abc", tank),
    "ages": Opening(2, "abc", ages),
    "fence": Opening(2, "ab", fence),
    "reading": Opening(2, "abc", reading),
    "fodder": Opening(2, "abc", fodder),
    "average": Opening(2, "abc", average),
    "basket": Opening(3, "abcd", basket),
    "journey": Opening(3, "abcd", journey),
    "rivals": Opening(3, "abcd", rivals),
}
