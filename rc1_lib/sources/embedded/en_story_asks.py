"""English questions of the arithmetic stories by what is counted, and what the user is asked for.

`BLANKS` names the numbers of each part that can be withheld, with the phrase that completes "could you tell me ...".
"""

from __future__ import annotations

BLANKS: dict[str, tuple[tuple[str, str], ...]] = {
    "crates": (("a", "how many {boxes} {p} has"), ("b", "how many {g} are in each {box}")),
    "rows": (("a", "how many rows {p} has"), ("b", "how many {g} stand in a row")),
    "daily": (("a", "how many days {p} worked"), ("b", "how many {g} {p} makes in a day")),
    "pair": (("a", "how many {g} came from {p}"), ("b", "how many {g} came from {q}")),
    "given": (("a", "how many {g} {p} had at first"), ("b", "how many {g} {q} got")),
    "shared": (("a", "how many {g} {p} had to share"),),
    "baked": (("a", "how many cups of flour {p} had"), ("b", "how many cups of flour one piece takes")),
    "times": (("a", "how many {g} {p} has"), ("b", "how many times as many {q} has")),
    "fewer": (("a", "how many {g} {p} has"), ("b", "how many fewer {q} has")),
    "spoiled": (("a", "how many {g} there were at first"), ("b", "what percentage was lost")),
    "fraction": (("a", "how many {g} {p} had"), ("b", "out of how many one was given away")),
    "wages": (
        ("a", "what {p} is paid for an hour"),
        ("b", "how many hours a day {p} works"),
        ("c", "how many days {p} works"),
    ),
    "change": (("a", "how many coins {p} had"), ("b", "how many {g} {p} bought"), ("c", "what one of the {g} costs")),
    "profit": (
        ("a", "how many {g} {p} bought"),
        ("b", "for how much {p} bought the {g}"),
        ("c", "for how much {p} sold the {g}"),
    ),
    "crew": (
        ("a", "how many people worked for {p}"),
        ("b", "how many {g} one makes in an hour"),
        ("c", "how many hours they worked"),
    ),
    "tank": (
        ("a", "how much water comes in each hour"),
        ("b", "how much water leaks each hour"),
        ("c", "how many hours it took"),
    ),
    "ages": (("a", "how old {q} is"), ("b", "how many times as old {p} is"), ("c", "how many years are to be added")),
    "fence": (("a", "how long the longer side named first is"), ("b", "how long the side named second is")),
    "reading": (
        ("a", "how many pages the book has"),
        ("b", "how many days {p} has read"),
        ("c", "how many pages {p} reads in a day"),
    ),
    "fodder": (
        ("a", "how many {l} {p} keeps"),
        ("b", "how much hay one animal eats in a day"),
        ("c", "how many days it lasts"),
    ),
    "average": (
        ("a", "the number of the first day"),
        ("b", "the number of the second day"),
        ("c", "the number of the third day"),
    ),
    "basket": (
        ("a", "how many {g} {p} bought"),
        ("b", "what one of the {g} costs"),
        ("c", "how many {h} {p} bought"),
        ("d", "what one of the {h} costs"),
    ),
    "journey": (
        ("a", "how fast {p} was at first"),
        ("b", "how many hours the first part took"),
        ("c", "how fast {p} was later"),
        ("d", "how many hours the second part took"),
    ),
    "rivals": (
        ("a", "the first number told of {p}"),
        ("b", "the second number told of {p}"),
        ("c", "the first number told of {q}"),
        ("d", "the second number told of {q}"),
    ),
    "gain": (("k", "how many {g} were added"),),
    "lose": (("k", "how many of the {g} went away"),),
    "grow": (("k", "to how many times its size the stock grew"),),
    "sell": (("k", "for how many coins each of the {g} was sold"),),
    "delivery": (("k", "how many times {r} added {g}"), ("n", "how many {g} {r} added each time")),
    "debt": (("k", "how many coins were added"),),
    "pay": (("k", "how many coins were paid for {cost}"),),
    "bills": (("k", "how many payments {p} made"), ("n", "how many coins each payment took")),
    "fee": (("k", "how many coins {p} had to add"),),
    "purse": (("k", "how many coins there were before the purchase"),),
    "walk": (("k", "how many miles were added"),),
    "detour": (("k", "how many times the trip was made"),),
    "posts": (("k", "what one pace of the fence costs"),),
    "rain": (("k", "how many jugs were added"),),
    "drink": (("k", "how many jugs were taken"),),
    "notes": (("k", "how many pages were added"),),
    "stock": (("k", "how much hay there was before"),),
    "spill": (("k", "how much hay was lost"),),
    "pack": (("k", "how many {boxes} were used"),),
    "partners": (("k", "how many people shared the coins"),),
    "finish": (("k", "how many pages {p} reads in a day from now on"),),
    "days_walk": (("k", "how many miles {r} makes in a day"),),
}

ASKS: dict[str, tuple[str, ...]] = {
    "goods": (
        "How many {g} does {p} of {t} have now?",
        "What is the number of {g} that {p} from {t} ends up with?",
        "In the end, how many {g} does {p} in {t} count altogether?",
        "So how many {g} are there for {p} at {t}?",
    ),
    "both": (
        "How many {g} do {p} and {q} have together in {t}?",
        "If {p} and {q} of {t} put everything together, how many {g} are there?",
        "What number of {g} belongs to {p} and {q} of {t} in all?",
    ),
    "coins": (
        "How many coins does the {w} {p} of {t} have from all this?",
        "In the end, how many coins does the {w} {p} of {t} still hold?",
        "So how many coins does the {w} {p} of {t} have after all this?",
    ),
    "cost": (
        "How many coins did the {w} {p} of {t} spend in all?",
        "What does all this cost the {w} {p} of {t} in coins?",
        "So how many coins must the {w} {p} pay in {t} for everything?",
    ),
    "miles": (
        "How many miles did the {w} {p} who passed {t} cover in all?",
        "How many miles does the {w} {p} cover when the way by {t} is counted too?",
        "So what distance in miles did the {w} {p} travel on the road by {t} in all?",
    ),
    "paces": (
        "How many paces of fence does the {w} {p} need in {t}?",
        "What is the length of the fence of the {w} {p} at {t} in paces?",
        "So how many paces long is the fence that the {w} {p} of {t} builds?",
    ),
    "jugs": (
        "How many jugs of water are in the tank of the {w} {p} at {t} now?",
        "What amount of water, in jugs, does the tank of the {w} {p} at {t} have inside?",
        "So how many jugs does the tank of the {w} {p} in {t} hold at the end?",
    ),
    "pages": (
        "How many pages does the {w} {p} of {t} still have to read?",
        "What number of pages is left for the {w} {p} in {t}?",
        "So how many pages of the book has the {w} {p} of {t} still to go?",
    ),
    "days_book": (
        "How many days does the {w} {p} of {t} still need for the book?",
        "In how many days will the {w} {p} of {t} be through with the book?",
        "So for how many more days will the {w} {p} in {t} read this book?",
    ),
    "days_road": (
        "How many days does the road that the {w} {p} took by {t} cost the second traveller?",
        "In how many days is the whole way that the {w} {p} took by {t} done by the other one?",
        "So for how many days does the road of the {w} {p} by {t} keep the second traveller busy?",
    ),
    "eaten": (
        "How many buckets of hay do the {l} of {p} at {t} eat in this time?",
        "What amount of hay, in buckets, does {p} of {t} need for the {l}?",
        "So how many buckets must {p} of {t} carry to the {l}?",
    ),
    "fodder": (
        "How many buckets of hay does {p} in {t} have left for the {l}?",
        "What number of buckets of hay does {p} of {t} have left for the {l}?",
        "So how many buckets of hay can {p} of {t} still give to the {l}?",
    ),
    "age": (
        "How old is the {w} {p} from {t} by that time?",
        "What age in years does the {w} {p} have then in {t}?",
        "So how many years old will the {w} {p} of {t} be at that time?",
    ),
    "mean": (
        "How many {g} is that for {p} of {t} on an average day?",
        "What is the average number of {g} that {p} in {t} reaches a day?",
        "So how many {g} a day does {p} of {t} reach on average?",
    ),
    "more": (
        "How many more {g} than {q} of {t} does {p} have?",
        "By how many {g} is {p} ahead of {q} from {t}?",
        "So how many {g} is {q} of {t} behind {p}?",
    ),
    "each_child": (
        "How many {g} from {p} does each child of {t} take home?",
        "What number of {g} does {p} give in {t} to each child?",
        "So how many {g} does {p} of {t} give to every child?",
    ),
    "each_box": (
        "How many {g} of {p} in {t} does each {box} hold?",
        "What number of {g} lies in every {box} of {p} at {t}?",
        "So how many {g} did {p} of {t} have in one {box}?",
    ),
    "each_partner": (
        "How many coins from the {w} {p} of {t} does each one of them get?",
        "What is the share in coins that the {w} {p} of {t} gives to each of them?",
        "So how many coins from the {w} {p} in {t} does every one of them have?",
    ),
}
