"""Yes/no questions about heights, weights, seats, coins, distances and stores."""

from __future__ import annotations

from rc1_lib.sources.embedded.draft import Draft
from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.setting import Kind, Setting


def under_bridge(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """A ship passes under a bridge when its mast is lower than the arch."""
    p, s, w, y = scene.cast("person", "ship", "work", "town")
    mast = scene.number(20, 160)
    arch = mast + (scene.number(1, 30) if verdict else -scene.number(1, 15))
    draft.look(s, (("mast", "", mast),), (("captain", p, 0),))
    draft.look(w, (("arch", "", arch),), (("stands", y, 0),))
    draft.compute(f"{mast}<{arch}", verdict)
    return Setting({"p": p, "s": s, "w": w, "y": y}, {s: "ship", w: "work"})


def carry_bell(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """A cart carries a bell that weighs less than the cart's greatest load."""
    p, x, w, y = scene.cast("person", "town", "work", "town")
    load = scene.number(60, 850)
    weight = load + (-scene.number(1, 50) if verdict else scene.number(1, 90))
    draft.look(p, (("cart", "", load),), (("home", x, 0),))
    draft.look(w, (("bell", "", weight),), (("stands", y, 0),))
    draft.compute(f"{load}>{weight}", verdict)
    return Setting({"p": p, "x": x, "w": w, "y": y}, {p: "person", w: "work"})


def seated(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """A guild fits into a hall with more seats than it has members."""
    g, p, w, y = scene.cast("guild", "person", "work", "town")
    members = scene.number(20, 560)
    seats = members + (scene.number(1, 60) if verdict else -scene.number(1, 15))
    draft.look(g, (("members", "", members),), (("head", p, 0),))
    draft.look(w, (("seats", "", seats),), (("stands", y, 0),))
    draft.compute(f"{members}<{seats}", verdict)
    return Setting({"g": g, "p": p, "w": w, "y": y}, {g: "guild", w: "work"})


def ride(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """The miles ridden in some days are compared with the length of a road."""
    p, z, x, y = scene.cast("person", "town", "town", "town")
    pace, days = scene.number(9, 60), scene.number(3, 14)
    reach = pace * days
    miles = reach + (-scene.number(1, min(20, reach - 5)) if verdict else scene.number(1, 40))
    draft.look(p, (("pace", "", pace),), (("home", z, 0),))
    draft.look(x, (("road", y, miles),))
    draft.compute(f"{pace}*{days}", reach)
    draft.compute(f"{reach}>{miles}", verdict)
    return Setting({"p": p, "z": z, "x": x, "y": y, "n": days}, {p: "person", x: "town"})


def afford(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """The wages of some weeks are compared with a price."""
    p, x, b, q = scene.cast("person", "town", "book", "person")
    wage, weeks = scene.number(5, 60), scene.number(3, 16)
    purse = wage * weeks
    price = purse + (-scene.number(1, min(30, purse - 5)) if verdict else scene.number(1, 60))
    draft.look(p, (("wage", "", wage),), (("home", x, 0),))
    draft.look(b, (("price", "", price),), (("keeper", q, 0),))
    draft.compute(f"{wage}*{weeks}", purse)
    draft.compute(f"{purse}>{price}", verdict)
    return Setting({"p": p, "x": x, "b": b, "q": q, "n": weeks}, {p: "person", b: "book"})


def feed(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """One town's grain is compared with what another eats in some days."""
    x, y, p = scene.cast("town", "town", "person")
    need, days = scene.number(3, 60), scene.number(3, 15)
    eaten = need * days
    store = eaten + (scene.number(1, 60) if verdict else -scene.number(1, min(30, eaten - 5)))
    draft.look(x, (("store", "", store),), (("founder", p, 0),))
    draft.look(y, (("need", "", need),))
    draft.compute(f"{need}*{days}", eaten)
    draft.compute(f"{store}>{eaten}", verdict)
    return Setting({"x": x, "y": y, "p": p, "n": days}, {x: "town", y: "town"})


def shortened(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """A tower shortened by some feet is compared with another one."""
    a, b, x, y = scene.cast("work", "work", "town", "town")
    height, cut = scene.number(90, 300), scene.number(5, 60)
    left = height - cut
    other = left + (-scene.number(1, 20) if verdict else scene.number(1, 30))
    draft.look(a, (("height", "", height),), (("stands", x, 0),))
    draft.look(b, (("height", "", other),), (("stands", y, 0),))
    draft.compute(f"{height}-{cut}", left)
    draft.compute(f"{left}>{other}", verdict)
    return Setting({"a": a, "b": b, "x": x, "y": y, "n": cut}, {a: "work", b: "work"})


KINDS = {
    "under_bridge": Kind("pswy", under_bridge),
    "carry_bell": Kind("pxwy", carry_bell),
    "seated": Kind("gpwy", seated),
    "ride": Kind("pzxyn", ride),
    "afford": Kind("pxbqn", afford),
    "feed": Kind("xypn", feed),
    "shortened": Kind("abxyn", shortened),
}
