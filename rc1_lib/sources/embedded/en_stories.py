"""English wordings of the arithmetic stories: openings, turns, and the questions by what is counted.

{p} and {q} are people of the story and {r} one who comes in later, {t} the town, {w} a trade; {g} and {h} are things,
{l} animals, {box} and {boxes} what things are packed in; {a} to {d}, {k} and {n} are numbers.
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
        ("{p} bakes {g} in {t}.", "It takes {b} cups of flour for each one of the {g}.", "There are {a} cups of flour in the bin."),
        ("In the kitchen of {p} at {t} stand {a} cups of flour.", "One piece needs {b} cups, so {p} makes {g} until none is left."),
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
        ("For {c} days {p} helped the {w} of {t}.", "Each day {p} stayed {b} hours and got {a} coins for every hour."),
    ),
    "change": (
        ("{p} went to {t} with {a} coins.", "There {p} bought {b} {g} for {c} coins each."),
        ("In the purse of {p} were {a} coins.", "The {g} in {t} cost {c} coins each, and {p} took {b} of them."),
        ("One of the {g} costs {c} coins in {t}.", "{p} had {a} coins and paid for {b} {g}."),
    ),
    "profit": (
        ("{p} bought {a} {g} for {b} coins each.", "In {t} all of them were sold for {c} coins each."),
        ("At {t} {p} can sell {g} for {c} coins each.", "They cost {p} only {b} coins each, so {p} bought and sold {a} of them."),
        ("{q} sells {g} to {p} for {b} coins each.", "{p} sold {a} of them again in {t} and asked {c} coins for each."),
    ),
    "crew": (
        ("{p} leads {a} workers in {t}.", "Each of them makes {b} {g} an hour.", "They work for {c} hours."),
        ("In the shop of {p} at {t} a worker makes {b} {g} an hour.", "Today {a} workers stayed {c} hours."),
        ("For {c} hours {a} helpers of {p} were busy in {t}.", "Every hour each helper made {b} {g}."),
    ),
    "tank": (
        ("A pipe brings {a} jugs of water an hour into the tank of {p} in {t}.", "The tank leaks {b} jugs an hour.", "It was empty {c} hours ago."),
        ("{p} fills a tank in {t} with {a} jugs an hour, but {b} jugs an hour run out.", "This goes on for {c} hours."),
        ("Every hour {a} jugs of rain fall into the tank of {p} at {t} while {b} jugs leak away.", "It rains for {c} hours."),
    ),
    "ages": (
        ("{q} of {t} is {a} years old.", "{p} is {b} times as old.", "Now think of the time {c} years from now."),
        ("{p} is {b} times as old as {q}, who is {a} and lives in {t}.", "In {c} years there will be a feast for {p}."),
        ("When {q} of {t} turned {a}, {p} was {b} times as old.", "After that {c} years went by."),
    ),
    "fence": (
        ("The field of {p} near {t} is {a} paces long and {b} paces wide.", "{p} wants a fence all around it."),
        ("{p} owns a garden in {t}.", "Its long side is {a} paces and its short side {b} paces.", "A fence goes around all four sides."),
        ("A yard at {t} has sides of {a} and {b} paces, and every corner is square.", "{p} builds a fence around it."),
    ),
    "reading": (
        ("{p} of {t} reads a book of {a} pages.", "For {b} days {p} has read {c} pages a day."),
        ("The thick book of {p} has {a} pages.", "Each night in {t} {p} reads {c} pages, and {b} nights are over."),
        ("{q} of {t} lent {p} a book with {a} pages.", "So far {p} has read {c} pages on each of {b} days."),
    ),
    "fodder": (
        ("{p} keeps {a} {l} near {t}.", "Each of the {l} eats {b} buckets of hay a day.", "The winter storm lasts {c} days."),
        ("On the farm of {p} at {t} each of the {l} gets {b} buckets of hay a day.", "There are {a} {l}, and {c} days pass."),
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
        ("{p} needs {a} {g} and {c} {h}.", "In {t} one pays {b} coins for each of the {g}, but {d} coins for each of the {h}."),
    ),
    "journey": (
        ("{p} left {t} and rode {a} miles an hour for {b} hours.", "Then {p} went on for {d} hours at {c} miles an hour."),
        ("For {b} hours the wagon of {p} made {a} miles an hour.", "After {t} the road was worse, so it made {c} miles an hour for {d} hours."),
        ("{p} rows {a} miles an hour down the river and does so for {b} hours.", "From {t} on {p} walks {c} miles an hour for {d} hours."),
    ),
    "rivals": (
        ("{p} of {t} makes {a} {g} a day and works {b} days.", "{q} makes {c} {g} a day but works only {d} days."),
        ("In {b} days {p} makes {a} {g} each day.", "In {d} days {q} of {t} makes {c} {g} each day."),
        ("{p} filled {a} {boxes} with {b} {g} each.", "{q} of {t} filled {c} {boxes} with {d} {g} each."),
    ),
    "gain": (
        ("Then {r} brought {k} more {g}.",),
        ("After a while another {k} {g} came from {r}.",),
        ("Because {r} owed a favour, {k} {g} were added.",),
        ("Later {r} left {k} further {g} at the door.",),
    ),
    "lose": (
        ("But {k} of the {g} were lost {loss}.",),
        ("Then {k} of the {g} got broken {loss}.",),
        ("So {k} of the {g} had to be given to {r}.",),
        ("Later {r} borrowed {k} of the {g} and never came back.",),
    ),
    "grow": (
        ("Then the number of {g} grew to {k} times what it was.",),
        ("After a good month there were {k} times as many {g} as before.",),
        ("With the help of {r} the stock rose to {k} times its size.",),
    ),
    "sell": (
        ("Then all these {g} were sold for {k} coins each.",),
        ("After that {r} bought every one of the {g} for {k} coins each.",),
        ("So each of the {g} brought {k} coins at the market.",),
    ),
    "delivery": (
        ("Then {r} sent {k} {boxes} with {n} {g} in each.",),
        ("After that {k} more {boxes} came from {r}, and every {box} held {n} {g}.",),
        ("Later {r} added {n} {g} on each of {k} days.",),
    ),
    "debt": (
        ("Then {r} paid back an old debt of {k} coins.",),
        ("After that {r} gave {p} another {k} coins.",),
        ("Later {p} found {k} coins in a coat.",),
    ),
    "pay": (
        ("But {k} coins had to be paid for {cost}.",),
        ("Then {p} spent {k} coins on {cost}.",),
        ("So {k} coins went to {r} for {cost}.",),
    ),
    "bills": (
        ("Then {p} paid {k} helpers {n} coins each.",),
        ("But on each of {k} days {n} coins were spent on food.",),
        ("After that {p} bought {k} tickets for {n} coins each.",),
    ),
    "fee": (
        ("Then {p} had to pay {k} more coins for {cost}.",),
        ("After that another {k} coins were spent on {cost}.",),
        ("Because {r} carried it all home, {p} also paid {k} coins for the help.",),
    ),
    "purse": (
        ("{p} paid all this from a purse of {k} coins.",),
        ("Before that {p} had {k} coins, and nothing else was spent.",),
        ("To pay for it {r} had lent {p} {k} coins.",),
    ),
    "walk": (
        ("Then {p} walked {k} more miles.",),
        ("After a rest with {r} another {k} miles were done.",),
        ("But the inn was full, so {p} went on for {k} miles.",),
    ),
    "detour": (
        ("In the whole year {p} made this same trip {k} times.",),
        ("Then {p} did the same again, until it had been done {k} times in all.",),
        ("Because {r} needed help, {p} made the whole way {k} times.",),
    ),
    "posts": (
        ("Each pace of the fence costs {k} coins.",),
        ("The carpenter {r} asks {k} coins for every pace.",),
        ("Then {p} pays {r} {k} coins for each pace of it.",),
    ),
    "rain": (
        ("Then a storm added {k} jugs.",),
        ("After that {r} poured in {k} more jugs.",),
        ("Later {k} jugs from another well were added.",),
    ),
    "drink": (
        ("Then the horses of {r} drank {k} jugs.",),
        ("But {k} jugs were used to put out a fire.",),
        ("After that {r} carried {k} jugs away.",),
    ),
    "notes": (
        ("But {r} added a new part of {k} pages at the end.",),
        ("Then {p} found {k} loose pages that have to be read too.",),
        ("After that {p} went {k} pages back in order to read them again.",),
    ),
    "stock": (
        ("At first there were {k} buckets of hay in the barn.",),
        ("Before all this {p} had stored {k} buckets of hay.",),
        ("In autumn {r} had sold {k} buckets of hay to {p}.",),
    ),
    "spill": (
        ("Then {k} buckets of hay got wet and were thrown away.",),
        ("But {k} buckets of hay had to be given to {r}.",),
        ("After that {k} buckets of hay burned in a fire.",),
    ),
    "pack": (
        ("Then all of them were packed evenly into {k} {boxes}.",),
        ("So the {g} were split evenly between {k} {boxes}.",),
        ("After that {r} spread the {g} evenly over {k} {boxes}.",),
    ),
    "partners": (
        ("Then the coins were shared evenly among {k} partners.",),
        ("Because {k} partners had a right to the money, it was split evenly.",),
        ("So {p} divided the money evenly among {k} friends, with nothing left over.",),
    ),
    "finish": (
        ("From now on {p} reads {k} pages a day.",),
        ("If {p} wants to finish it, {k} pages can be read each day.",),
        ("After this {p} reads {k} pages every single day.",),
    ),
    "days_walk": (
        ("The letter carrier {r} does the same way at {k} miles a day.",),
        ("Later {r} goes the same way, but makes only {k} miles a day.",),
        ("If {r} follows with a slow cart, the cart makes {k} miles a day.",),
    ),
}

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
    "wages": (("a", "what {p} is paid for an hour"), ("b", "how many hours a day {p} works"), ("c", "how many days {p} works")),
    "change": (("a", "how many coins {p} had"), ("b", "how many {g} {p} bought"), ("c", "what one of the {g} costs")),
    "profit": (("a", "how many {g} {p} bought"), ("b", "for how much {p} bought the {g}"), ("c", "for how much {p} sold the {g}")),
    "crew": (("a", "how many people worked for {p}"), ("b", "how many {g} one makes in an hour"), ("c", "how many hours they worked")),
    "tank": (("a", "how much water comes in each hour"), ("b", "how much water leaks each hour"), ("c", "how many hours it took")),
    "ages": (("a", "how old {q} is"), ("b", "how many times as old {p} is"), ("c", "how many years are to be added")),
    "fence": (("a", "how long the longer side named first is"), ("b", "how long the side named second is")),
    "reading": (("a", "how many pages the book has"), ("b", "how many days {p} has read"), ("c", "how many pages {p} reads in a day")),
    "fodder": (("a", "how many {l} {p} keeps"), ("b", "how much hay one animal eats in a day"), ("c", "how many days it lasts")),
    "average": (("a", "the number of the first day"), ("b", "the number of the second day"), ("c", "the number of the third day")),
    "basket": (("a", "how many {g} {p} bought"), ("b", "what one of the {g} costs"), ("c", "how many {h} {p} bought"), ("d", "what one of the {h} costs")),
    "journey": (("a", "how fast {p} was at first"), ("b", "how many hours the first part took"), ("c", "how fast {p} was later"), ("d", "how many hours the second part took")),
    "rivals": (("a", "the first number told of {p}"), ("b", "the second number told of {p}"), ("c", "the first number told of {q}"), ("d", "the second number told of {q}")),
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
        "How many coins does {p} of {t} have from all this?",
        "In the end, how many coins does {p} of {t} still hold?",
        "So how many coins does {p} of {t} have after all this?",
    ),
    "cost": (
        "How many coins did {p} of {t} spend in all?",
        "What does all this cost {p} of {t} in coins?",
        "So how many coins must {p} pay in {t} for everything?",
    ),
    "miles": (
        "How many miles did the traveller {p} who passed {t} cover in all?",
        "How many miles does {p} cover when the way by {t} is counted too?",
        "So what distance in miles did {p} travel on the road by {t} in all?",
    ),
    "paces": (
        "How many paces of fence does {p} need in {t}?",
        "What is the length of the fence of {p} at {t} in paces?",
        "So how many paces long is the fence that {p} of {t} builds?",
    ),
    "jugs": (
        "How many jugs of water are in the tank of {p} at {t} now?",
        "What amount of water, in jugs, does the tank of {p} at {t} have inside?",
        "So how many jugs does the tank of {p} in {t} hold at the end?",
    ),
    "pages": (
        "How many pages does {p} of {t} still have to read?",
        "What number of pages is left for {p} in {t}?",
        "So how many pages of the book has {p} of {t} still to go?",
    ),
    "days_book": (
        "How many days does {p} of {t} still need for the book?",
        "In how many days will {p} of {t} be through with the book?",
        "So for how many more days will {p} in {t} read this book?",
    ),
    "days_road": (
        "How many days does the road that {p} took by {t} cost the second traveller?",
        "In how many days is the whole way that {p} took by {t} done by the other one?",
        "So for how many days does the road of {p} by {t} keep the second traveller busy?",
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
        "How old is {p}, the friend from {t}, by that time?",
        "What age in years does {p} have then in {t}?",
        "So how many years old will {p} of {t} be at that time?",
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
        "How many coins from {p} of {t} does each one of them get?",
        "What is the share in coins that {p} of {t} gives to each of them?",
        "So how many coins from {p} in {t} does every one of them have?",
    ),
}
