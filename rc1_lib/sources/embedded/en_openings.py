"""English tellings of how the arithmetic stories begin, three of each kind.

{p} and {q} are people of the story, {t} is the town, {w} a trade; {g} and {h} are things, {l} animals, {box} and
{boxes} what things are packed in; {a} to {d} are numbers.
"""

from __future__ import annotations

TELLINGS: dict[str, tuple[tuple[str, ...], ...]] = {
    "crates": (
        ("{p} packed {a} {boxes} for the market of {t}.", "Each {box} holds {b} {g}."),
        ("In a store at {t} stand {a} {boxes} that belong to {p}.", "There are {b} {g} in every {box}."),
        ("{p} put {b} {g} into each {box}.", "By evening {a} {boxes} were full, so {p} went home to {t}."),
    ),
    "rows": (
        ("{p} planted {a} rows of {g} on a field near {t}.", "Every row has {b} {g}."),
        ("Behind the house of {p} in {t} there are {a} long rows.", "In each of them grow {b} {g}."),
        ("Because the soil at {t} is good, {p} planted {b} {g} in a row.", "The field has {a} such rows."),
    ),
    "daily": (
        ("{p} of {t} makes {b} {g} every day.", "This went on for {a} days."),
        ("For {a} days {p} worked in {t} without a rest.", "Each day brought {b} {g}."),
        ("If the weather is dry, {p} can make {b} {g} in a day.", "It stayed dry in {t} for {a} days."),
    ),
    "pair": (
        ("{p} of {t} made {a} {g}.", "In the same week {q} made {b} {g}."),
        ("{p} and {q} share a shop in {t}.", "{p} brought {a} {g} to it while {q} brought {b} {g}."),
        ("When {p} came to {t} with {a} {g}, {q} was already there.", "{q} had {b} {g} to show."),
    ),
    "given": (
        ("{p} had {a} {g} in a shed at {t}.", "{p} gave {b} of them to {q}."),
        ("There were {a} {g} in the cart of {p}.", "Then {q} of {t} took {b} away."),
        ("{p} came to {t} with {a} {g}, but {b} of these had to go to {q} as rent.",),
    ),
    "shared": (
        ("{p} has {a} {g} and wants to give them to {b} children of {t}.", "Every child gets the same number."),
        ("At the feast of {t}, {b} children came to {p}.", "{p} shared out {a} {g} evenly among them."),
        ("If {b} children of {t} help {p}, they share {a} {g} evenly.", "All {b} of them came."),
    ),
    "baked": (
        (
            "{p} bakes {g} in {t}.",
            "It takes {b} cups of flour for each one of the {g}.",
            "There are {a} cups of flour in the bin.",
        ),
        (
            "In the kitchen of {p} at {t} stand {a} cups of flour.",
            "One piece needs {b} cups, so {p} makes {g} until none is left.",
        ),
        ("{q} sold {a} cups of flour to {p} of {t}.", "{p} turns every {b} cups into one of the {g}."),
    ),
    "times": (
        ("{p} of {t} has {a} {g}.", "{q} has {b} times as many."),
        ("While {p} found {a} {g} near {t}, {q} found {b} times that number.",),
        ("{q} of {t} works fast and makes {b} {g} for every one of the {g} that {p} makes.", "{p} made {a} {g}."),
    ),
    "fewer": (
        ("{p} of {t} has {a} {g}.", "{q} has {b} {g} fewer than {p}."),
        ("{p} sold {a} {g} at {t}, but {q} sold {b} fewer.",),
        ("After a day in {t}, {p} counted {a} {g}.", "{q} was short of that number by {b}."),
    ),
    "spoiled": (
        ("{p} brought {a} {g} to {t}.", "On the way {b} percent of the {g} were spoiled."),
        ("A load of {a} {g} was sent to {p} in {t}.", "Because the box fell, {b} percent of them broke."),
        ("{p} of {t} made {a} {g}, but {b} percent of them were bad and had to be thrown away.",),
    ),
    "fraction": (
        ("{p} of {t} owned {a} {g}.", "One out of every {b} {g} was given to {q}."),
        ("After the harvest {p} counted {a} {g} in {t}.", "{q} took one of every {b} as payment."),
        ("{p} won {a} {g} at the fair of {t}.", "Since {q} had helped, {p} gave away one in {b}."),
    ),
    "wages": (
        ("{p} works as a {w} in {t} for {a} coins an hour.", "{p} works {b} hours a day for {c} days."),
        ("A {w} in {t} is paid {a} coins an hour.", "{p} did this work for {c} days, and each day had {b} hours."),
        (
            "For {c} days {p} did the work of a {w} in {t}.",
            "Each day {p} stayed {b} hours and got {a} coins for every hour.",
        ),
    ),
    "change": (
        ("{p} went to {t} with {a} coins.", "There {p} bought {b} {g} for {c} coins each."),
        ("In the purse of {p} were {a} coins.", "The {g} in {t} cost {c} coins each, and {p} took {b} of them."),
        ("One of the {g} costs {c} coins in {t}.", "{p} had {a} coins and paid for {b} {g}."),
    ),
    "profit": (
        ("{p} bought {a} {g} for {b} coins each.", "In {t} all of them were sold for {c} coins each."),
        (
            "At {t} {p} can sell {g} for {c} coins each.",
            "They cost {p} only {b} coins each, so {p} bought and sold {a} of them.",
        ),
        ("{q} sells {g} to {p} for {b} coins each.", "{p} sold {a} of them again in {t} and asked {c} coins for each."),
    ),
    "crew": (
        ("{p} leads {a} workers in {t}.", "Each of them makes {b} {g} an hour.", "They work for {c} hours."),
        ("In the shop of {p} at {t} a worker makes {b} {g} an hour.", "Today {a} workers stayed {c} hours."),
        ("For {c} hours {a} helpers of {p} were busy in {t}.", "Every hour each helper made {b} {g}."),
    ),
    "tank": (
        (
            "A pipe brings {a} jugs of water an hour into the tank of {p} in {t}.",
            "The tank leaks {b} jugs an hour.",
            "It was empty {c} hours ago.",
        ),
        ("{p} fills a tank in {t} with {a} jugs an hour, but {b} jugs an hour run out.", "This goes on for {c} hours."),
        (
            "Every hour {a} jugs of rain fall into the tank of {p} at {t} while {b} jugs leak away.",
            "It rains for {c} hours.",
        ),
    ),
    "ages": (
        ("{q} of {t} is {a} years old.", "{p} is {b} times as old.", "Now think of the time {c} years from now."),
        ("{p} is {b} times as old as {q}, who is {a} and lives in {t}.", "In {c} years there will be a feast for {p}."),
        ("When {q} of {t} turned {a}, {p} was {b} times as old.", "After that {c} years went by."),
    ),
    "fence": (
        ("The field of {p} near {t} is {a} paces long and {b} paces wide.", "{p} wants a fence all around it."),
        (
            "{p} owns a garden in {t}.",
            "Its long side is {a} paces and its short side {b} paces.",
            "A fence goes around all four sides.",
        ),
        ("A yard at {t} has sides of {a} and {b} paces, and every corner is square.", "{p} builds a fence around it."),
    ),
    "reading": (
        ("{p} of {t} reads a book of {a} pages.", "For {b} days {p} has read {c} pages a day."),
        ("The thick book of {p} has {a} pages.", "Each night in {t} {p} reads {c} pages, and {b} nights are over."),
        ("{q} of {t} lent {p} a book with {a} pages.", "So far {p} has read {c} pages on each of {b} days."),
    ),
    "fodder": (
        (
            "{p} keeps {a} {l} near {t}.",
            "Each of the {l} eats {b} buckets of hay a day.",
            "The winter storm lasts {c} days.",
        ),
        (
            "On the farm of {p} at {t} each of the {l} gets {b} buckets of hay a day.",
            "There are {a} {l}, and {c} days pass.",
        ),
        ("For {c} days {p} feeds {a} {l} in {t}.", "Every day each one of them needs {b} buckets of hay."),
    ),
    "average": (
        ("{p} of {t} sold {a} {g} on the first day.", "On the second day {p} sold {b}, and on the third {c}."),
        ("In three days {p} counted {g} on the bridge of {t}: first {a}, then {b}, and at last {c}.",),
        ("The shop of {p} in {t} made {a} {g} one day and {b} the next.", "After that came a day with {c} {g}."),
    ),
    "basket": (
        ("{p} bought {a} {g} for {b} coins each in {t}.", "Then {p} bought {c} {h} for {d} coins each."),
        ("At the market of {t} {g} cost {b} coins each and {h} cost {d} coins each.", "{p} took {a} {g} and {c} {h}."),
        (
            "{p} needs {a} {g} and {c} {h}.",
            "In {t} one pays {b} coins for each of the {g}, but {d} coins for each of the {h}.",
        ),
    ),
    "journey": (
        (
            "{p} left {t} and rode {a} miles an hour for {b} hours.",
            "Then {p} went on for {d} hours at {c} miles an hour.",
        ),
        (
            "For {b} hours the wagon of {p} made {a} miles an hour.",
            "After {t} the road was worse, so it made {c} miles an hour for {d} hours.",
        ),
        (
            "{p} rows {a} miles an hour down the river and does so for {b} hours.",
            "From {t} on {p} walks {c} miles an hour for {d} hours.",
        ),
    ),
    "rivals": (
        ("{p} of {t} makes {a} {g} a day and works {b} days.", "{q} makes {c} {g} a day but works only {d} days."),
        ("In {b} days {p} makes {a} {g} each day.", "In {d} days {q} of {t} makes {c} {g} each day."),
        ("{p} filled {a} {boxes} with {b} {g} each.", "{q} of {t} filled {c} {boxes} with {d} {g} each."),
    ),
}
