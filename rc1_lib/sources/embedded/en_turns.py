"""English tellings of how the arithmetic stories go on.

{r} is somebody who comes in now, {k} and {n} are numbers, {cost} and {loss} what coins and things go for;
the other blanks are those of `en_openings`.
"""

from __future__ import annotations

TELLINGS: dict[str, tuple[tuple[str, ...], ...]] = {
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
