"""Yes/no questions about who or what came first."""

from __future__ import annotations

from rc1_lib.sources.embedded.draft import Draft
from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.setting import Kind, Setting


def met(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """One person can meet another only if the other was born before the first one's death."""
    a, b, x, y = scene.cast("person", "person", "town", "town")
    born = scene.number(180, 880)
    died = born + (scene.number(4, 70) if verdict else -scene.number(2, 70))
    draft.look(a, (("died", "", died),), (("home", x, 0),))
    draft.look(b, (("birth", "", born),), (("home", y, 0),))
    draft.compute(f"{died}>{born}", verdict)
    return Setting({"a": a, "b": b, "x": x, "y": y}, {a: "person", b: "person"})


def standing(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """A landmark exists already if another is finished later."""
    a, b, x, y = scene.cast("work", "work", "town", "town")
    first = scene.number(250, 900)
    second = first + (scene.number(1, 90) if verdict else -scene.number(1, 90))
    draft.look(a, (("built", "", first),), (("stands", x, 0),))
    draft.look(b, (("built", "", second),), (("stands", y, 0),))
    draft.compute(f"{first}<{second}", verdict)
    return Setting({"a": a, "b": b, "x": x, "y": y}, {a: "work", b: "work"})


def grown(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """Someone's age in a year is that year minus the year of birth."""
    p, x, w, y = scene.cast("person", "town", "work", "town")
    born, limit = scene.number(150, 880), scene.number(12, 70)
    age = limit + (scene.number(1, 25) if verdict else -scene.number(1, 10))
    draft.look(p, (("birth", "", born),), (("home", x, 0),))
    draft.look(w, (("built", "", born + age),), (("stands", y, 0),))
    draft.compute(f"{born + age}-{born}", age)
    draft.compute(f"{age}>{limit}", verdict)
    return Setting({"p": p, "x": x, "w": w, "y": y, "n": limit}, {p: "person", w: "work"})


def jubilee(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """A guild's anniversary falls before or after a launch."""
    g, p, s, q = scene.cast("guild", "person", "ship", "person")
    opened, span = scene.number(100, 600), scene.number(50, 300)
    launched = opened + span + (scene.number(1, 80) if verdict else -scene.number(1, 40))
    draft.look(g, (("opened", "", opened),), (("head", p, 0),))
    draft.look(s, (("launched", "", launched),), (("owner", q, 0),))
    draft.compute(f"{opened}+{span}", opened + span)
    draft.compute(f"{opened + span}<{launched}", verdict)
    return Setting({"g": g, "p": p, "s": s, "q": q, "n": span}, {g: "guild", s: "ship"})


def childhood(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """Someone can read a book before a birthday only if it was finished by then."""
    p, x, b, q = scene.cast("person", "town", "book", "person")
    born, limit = scene.number(200, 880), scene.number(7, 60)
    written = born + limit + (-scene.number(1, 40) if verdict else scene.number(1, 40))
    draft.look(p, (("birth", "", born),), (("home", x, 0),))
    draft.look(b, (("written", "", written),), (("keeper", q, 0),))
    draft.compute(f"{born}+{limit}", born + limit)
    draft.compute(f"{born + limit}>{written}", verdict)
    return Setting({"p": p, "x": x, "b": b, "q": q, "n": limit}, {p: "person", b: "book"})


def outlived(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """Two ages at death, each from two years, are compared."""
    a, b, x, y = scene.cast("person", "person", "town", "town")
    age = scene.number(35, 85)
    other = age + (-scene.number(1, 20) if verdict else scene.number(1, 15))
    for name, home, years in ((a, x, age), (b, y, other)):
        born = scene.number(150, 850)
        draft.look(name, (("birth", "", born), ("died", "", born + years)), (("home", home, 0),))
        draft.compute(f"{born + years}-{born}", years)
    draft.compute(f"{age}>{other}", verdict)
    return Setting({"a": a, "b": b, "x": x, "y": y}, {a: "person", b: "person"})


def same_fair(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """Two fairs share a day if the later one opens before the earlier one closes."""
    x, y, p, q = scene.cast("town", "town", "person", "person")
    closes = scene.number(20, 300)
    opens = closes + (-scene.number(1, 9) if verdict else scene.number(1, 20))
    start, end = closes - scene.number(10, 19), opens + scene.number(10, 30)
    draft.look(x, (("fair", "", start), ("fair_end", "", closes)), (("founder", p, 0),))
    draft.look(y, (("fair", "", opens), ("fair_end", "", end)), (("founder", q, 0),))
    draft.compute(f"{closes}>{opens}", verdict)
    return Setting({"x": x, "y": y, "p": p, "q": q}, {x: "town", y: "town"})


KINDS = {
    "met": Kind("abxy", met),
    "standing": Kind("abxy", standing),
    "grown": Kind("pxwyn", grown),
    "jubilee": Kind("gpsqn", jubilee),
    "childhood": Kind("pxbqn", childhood),
    "outlived": Kind("abxy", outlived),
    "same_fair": Kind("xypq", same_fair),
}
