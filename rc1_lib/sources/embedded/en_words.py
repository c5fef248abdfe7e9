"""English word lists and asides; none of them names a real person or place."""

from __future__ import annotations


def _list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(","))


WORDS: dict[str, tuple[str, ...]] = {
    "trades": _list(
        "potter, weaver, baker, tanner, cooper, smith, miller, fisher, carpenter, mason, tailor, painter, dyer, "
        "barber, "
        "singer, clerk, hunter, shepherd, glazier, saddler, brewer, gardener, healer, porter, scribe, roofer"
    ),
    "likings": _list(
        "chess, loud music, long walks, honey cake, rainy mornings, card games, wild berries, slow dances, strong tea, "
        "bird songs, river baths, ghost stories, garden work, warm bread, snow, riddles, horse races, wood carving, "
        "puppet plays, night fishing"
    ),
    "wares": _list(
        "dried figs, blue wool, copper pots, salt, white candles, smoked eel, silk ribbons, iron nails, amber beads, "
        "goat cheese, black pepper, reed mats, glass cups, barley, cedar chests, clay pipes, olive oil, fur hats, "
        "paper, "
        "plum wine, soap, tin bells"
    ),
    "stones": _list(
        "red brick, grey slate, yellow sandstone, black oak, white chalk, green tiles, pale limestone, brown timber, "
        "polished granite, round pebbles, blue clay, dark basalt, rough flint, silver birch"
    ),
    "fishes": _list(
        "trout, green frogs, silver eels, pike, crayfish, fat carp, otters, perch, swans, salmon, herons, water "
        "snails, "
        "ducks, newts"
    ),
    "topics": _list(
        "bees, storms, the moon, lost roads, herbs, sea battles, family quarrels, bridges, kitchen secrets, wolves, "
        "old coins, fevers, dreams, star signs, border wars, horses, weather, masks, gardens, numbers"
    ),
    "badges": _list(
        "a red fox, two keys, a blue wheel, a golden ladder, three stars, a black anchor, a white owl, a burning lamp, "
        "a green leaf, an open hand, a silver comb, a broken chain, a laughing mask, a sleeping cat"
    ),
    "goods": _list(
        "jars, lamps, candles, buttons, shells, ropes, pears, plums, nails, bricks, tiles, spoons, bowls, combs, "
        "needles, "
        "ribbons, masks, drums, flutes, kites, whistles, rings, beads, cheeses, eggs, apples, figs, lemons, melons, "
        "blankets, hats, gloves, brushes, mirrors, maps, bells, cups, plates, dolls, pencils"
    ),
    "plants": _list("trees, vines, roses, cabbages, tulips, beans, pumpkins, onions, herbs, bushes"),
    "animals": _list("goats, horses, sheep, geese, cows, mules, rabbits, hens, donkeys, camels"),
    "bakes": _list("loaves, cakes, pies, buns, puddings, tarts"),
    "boxes": _list("crate|crates, basket|baskets, sack|sacks, barrel|barrels, cart|carts, shelf|shelves, chest|chests"),
    "costs": _list(
        "a new roof, a pair of boots, a lame horse, a broken window, a silver ring, the doctor, a warm coat, the tax, "
        "a long dinner, a music lesson, a sharp saw, the toll, a bag of seed, a painted sign"
    ),
    "losses": _list(
        "on a bad road, in a storm, during the night, at the river crossing, because of a fire, to a thief, in the "
        "crowd, "
        "when a wheel broke, after heavy rain, because of the heat"
    ),
    "openings": (
        "{p} of {t} is a {w}.",
        "It was a {mood} day in {t}, and {p} the {w} had work to do.",
        "In {t} everyone knows the {w} {p}.",
        "When the market opened in {t}, {p} the {w} was already there.",
        "{p} works as a {w} in {t}, but the work is never done.",
        "Near the gates of {t} lives a {w} named {p}.",
    ),
    "moods": _list("cold, warm, busy, quiet, windy, sunny, grey, long, dry, rainy"),
    "j": _list(
        "old, plain, northern, southern, royal, secret, famous, hidden, honest, local, eastern, western, foreign, "
        "clever, "
        "loud, rare, strange, wise, modest, trusted, simple, nameless"
    ),
    "k": _list(
        "rolls, letters, songs, charts, lists, tales, records, notes, scrolls, tablets, verses, drawings, poems, "
        "diaries, "
        "ledgers, maps, chronicles, sagas, prints, pictures"
    ),
    "f": _list(
        "witnesses, teachers, monks, sailors, clerks, neighbours, singers, farmers, guests, travellers, children, "
        "judges, "
        "cooks, soldiers, widows, priests, beggars, elders, students, merchants"
    ),
}

# {j} a quality that suits both people and writings, {k} writings, {f} people.
PREFIXES: tuple[str, ...] = (
    "If the {j} {k} are right, ",
    "Although few {f} mention it, ",
    "Because the {j} {k} agree, we know that ",
    "While some {j} {f} are silent, ",
    "If {k} count for anything, ",
    "Since {j} {f} say so, ",
    "Since the {j} {k} were found, it is clear that ",
    "Though {j} {f} seldom tell it, ",
    "So {j} {f} say that ",
    "Unless the {f} lie, ",
    "However the {f} tell it, ",
    "Before the {k} were lost, we learned that ",
)

SUFFIXES: tuple[str, ...] = (
    ", because the {j} {k} say so.",
    ", but few {f} remember it.",
    ", so the {j} {f} claim.",
    ", although {f} still doubt it.",
    ", and then {f} wrote it down.",
    ", while {j} {f} keep quiet.",
    ", since all {k} agree.",
    ", if {j} {k} can be trusted.",
    ", or so {f} say.",
    ", though no {j} {k} praise it.",
    ", therefore {f} still talk of it.",
    ", unless the {j} {k} are wrong.",
)

# A sentence that opens with one of these takes no aside in front.
JOINERS = frozenset(
    {
        "But",
        "Then",
        "So",
        "After",
        "Because",
        "If",
        "When",
        "While",
        "However,",
        "Later",
        "Since",
        "Therefore",
        "Although",
    }
)

VAGUE: dict[str, tuple[str, ...]] = {
    "person": ("a certain person", "someone", "somebody"),
    "town": ("a certain town", "some town"),
    "river": ("in question", "I have in mind"),
    "ship": ("in question", "I have in mind"),
    "book": ("in question", "I have in mind"),
    "guild": ("in question", "I have in mind"),
    "work": ("in question", "I have in mind"),
    "number": ("some", "several"),
}

WANTED: dict[str, tuple[str, ...]] = {
    "person": ("which person you mean", "the name of that person"),
    "town": ("which town you mean", "the name of that town"),
    "river": ("which river you mean", "the name of that river"),
    "ship": ("which ship you mean", "the name of that ship"),
    "book": ("which book you mean", "the name of that book"),
    "guild": ("which guild you mean", "the name of that guild"),
    "work": ("which building you mean", "the name of that building"),
}
