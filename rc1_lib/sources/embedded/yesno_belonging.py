"""Yes/no questions about belonging: the answer depends on whether two facts lead to the same entity."""

from __future__ import annotations

from rc1_lib.sources.embedded.draft import Draft
from rc1_lib.sources.embedded.scene import Scene
from rc1_lib.sources.embedded.setting import Kind, Setting


def aboard(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """A ship takes aboard only members of one guild."""
    p, x, s, t, guild, other = scene.cast("person", "town", "ship", "town", "guild", "guild")
    draft.look(p, (("guild", guild, 0),), (("home", x, 0),))
    draft.look(s, (("rule", guild if verdict else other, 0),), (("port", t, 0),))
    return Setting({"p": p, "x": x, "s": s, "t": t}, {p: "person", s: "ship"})


def raft(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """Water joins two towns if the same river runs through both."""
    x, y, p, q, river, other = scene.cast("town", "town", "person", "person", "river", "river")
    draft.look(x, (("river", river, 0),), (("founder", p, 0),))
    draft.look(y, (("river", river if verdict else other, 0),), (("founder", q, 0),))
    return Setting({"x": x, "y": y, "p": p, "q": q}, {x: "town", y: "town"})


def vote(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """A town lets only people vote who were born there."""
    p, q, y, z = scene.cast("person", "person", "town", "town")
    draft.look(p, (("born", y if verdict else z, 0),), (("spouse", q, 0),))
    draft.look(y, (("vote", "", 0),))
    return Setting({"p": p, "q": q, "y": y}, {p: "person", y: "town"})


def home_river(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """A captain comes from a town, and the town lies on a river."""
    s, q, p, t, river, other = scene.cast("ship", "person", "person", "town", "river", "river")
    draft.look(s, (("captain", p, 0),), (("owner", q, 0),))
    draft.look(p, (("born", t, 0),))
    draft.look(t, (("river", river if verdict else other, 0),))
    return Setting({"s": s, "q": q, "r": river}, {s: "ship", river: "river"})


def same_teacher(scene: Scene, draft: Draft, verdict: bool) -> Setting:
    """The builder and the author learned from one person, or from two."""
    w, y, b, q, builder, author, teacher, other = scene.cast(
        "work", "town", "book", "person", "person", "person", "person", "person"
    )
    draft.look(w, (("builder", builder, 0),), (("stands", y, 0),))
    draft.look(builder, (("teacher", teacher, 0),))
    draft.look(b, (("author", author, 0),), (("keeper", q, 0),))
    draft.look(author, (("teacher", teacher if verdict else other, 0),))
    return Setting({"w": w, "y": y, "b": b, "q": q}, {w: "work", b: "book"})


KINDS = {
    "aboard": Kind("pxst", aboard),
    "raft": Kind("xypq", raft),
    "vote": Kind("pqy", vote),
    "home_river": Kind("sqr", home_river),
    "same_teacher": Kind("wybq", same_teacher),
}
