"""English wordings of the yes/no questions, by kind."""

from __future__ import annotations

ASKS: dict[str, tuple[str, ...]] = {
    "met": (
        "Could {a} from {x} ever have met {b} from {y}?",
        "Was it possible for {a}, who lived in {x}, to shake hands with {b}, who came to {y}?",
        "If {a} of {x} had looked for {b} of {y}, would they have lived in the same years?",
    ),
    "standing": (
        "Was the tower {a} in {x} already there when {y} finished the mill {b}?",
        "When the workers of {y} finished the mill {b}, did the tower {a} of {x} stand already?",
        "Did people see the tower {a} above {x} before they saw the mill {b} near {y}?",
    ),
    "grown": (
        "Was {p} of {x} more than {n} years old when the tower {w} in {y} was finished?",
        "When {y} finished the tower {w}, had {p}, who lives in {x}, lived for more than {n} years?",
        "Because {p} from {x} came to see the tower {w} in {y} on its first day, was this a guest of more than {n} "
        "years?",
    ),
    "jubilee": (
        "Did the guild {g}, now under {p}, turn {n} years old before the ship {s} of {q} was launched?",
        "When {q} watched the launch of the ship {s}, had the guild {g} of {p} existed for more than {n} years?",
        "Could the guild {g}, led by {p}, hold its feast of {n} years before {q} launched the ship {s}?",
    ),
    "childhood": (
        "Could {p} of {x} have read the book {b}, kept by {q}, before turning {n}?",
        "Before the age of {n}, was it possible for {p} from {x} to open the book {b} that {q} keeps?",
        "If {p} of {x} loved the book {b} of {q}, could that love have begun before the age of {n}?",
    ),
    "outlived": (
        "Did {a} of {x} reach a greater age than {b} of {y}?",
        "Was the life of {a}, at home in {x}, longer than the life of {b}, at home in {y}?",
        "If both lives are counted in years, did {a} from {x} live longer than {b} from {y}?",
    ),
    "same_fair": (
        "Could one day be spent at the fair of {x}, founded by {p}, and at that of {y}, founded by {q}?",
        "Is there a day when both {x}, the town of {p}, and {y}, the town of {q}, hold their fair?",
        "If the heirs of {p} open the fair of {x} and those of {q} the fair of {y}, do the two fairs overlap?",
    ),
    "under_bridge": (
        "Could captain {p} steer the ship {s} under the bridge {w} in {y}?",
        "If {p} brings the ship {s} to {y}, will its mast pass below the bridge {w}?",
        "Does the bridge {w} of {y} leave room for the ship {s} when {p} is at the wheel?",
    ),
    "carry_bell": (
        "Could the cart of {p} from {x} carry the bell of the tower {w} in {y}?",
        "If {y} sells the bell of the tower {w}, can {p} take it to {x} on one cart?",
        "Would the bell that hangs in the tower {w} of {y} be light enough for the cart {p} drives in {x}?",
    ),
    "seated": (
        "Could all members of the guild {g}, led by {p}, sit down in the hall {w} of {y}?",
        "If {p} brings the whole guild {g} to {y}, will each member find a seat in the hall {w}?",
        "Does the hall {w} in {y} have more seats than {p} has members in the guild {g}?",
    ),
    "ride": (
        "Could {p} of {z} ride from {x} to {y} in less than {n} days?",
        "If {p}, whose home is {z}, leaves {x} on horseback, can {y} be reached before {n} full days are over?",
        "Are {n} days more than enough for {p} from {z} to ride the road between {x} and {y}?",
    ),
    "afford": (
        "Could {p} of {x} buy the book {b} from {q} with the wages of {n} weeks and have coins left?",
        "If {p} works {n} weeks in {x}, is that more than {q} must be paid for the book {b}?",
        "After {n} weeks of work in {x}, would {p} have more coins than the book {b} of {q} costs?",
    ),
    "feed": (
        "Would the grain of {x}, the town of {p}, feed {y} for {n} days with some left over?",
        "If {p} had sent all the grain of {x} to {y}, would any be left after {n} days?",
        "Does {x}, founded by {p}, store more grain than {y} eats in {n} days?",
    ),
    "shortened": (
        "If the tower {a} of {x} lost {n} feet, would it still be taller than the tower {b} of {y}?",
        "Would the tower {a} in {x} still look down on the tower {b} in {y} after a storm took {n} feet?",
        "When {x} takes {n} feet from the tower {a}, does {y} still have the lower tower in {b}?",
    ),
    "aboard": (
        "May {p} of {x} go aboard the ship {s} in the port of {t}?",
        "If {p} travels from {x} to {t}, will the crew let this traveller board the ship {s}?",
        "Would the ship {s}, which leaves from {t}, take {p} from {x} as a passenger?",
    ),
    "raft": (
        "Could a raft go from {x}, founded by {p}, to {y}, founded by {q}, on one and the same river?",
        "If the heirs of {p} leave {x} by boat, can they visit the heirs of {q} in {y} and never change the river?",
        "Do {x}, the town of {p}, and {y}, the town of {q}, drink from the same river?",
    ),
    "vote": (
        "Is {p}, the spouse of {q}, allowed to vote in {y}?",
        "If {p} and {q} move to {y}, may the former of the two cast a vote there?",
        "When {y} holds a vote, does the law let {p}, who is married to {q}, take part?",
    ),
    "home_river": (
        "Does the river {r} run past the place where the captain of the ship {s}, owned by {q}, was born?",
        "Is it a town on the river {r} where the captain to whom {q} gave the ship {s} was born?",
        "If the captain of the ship {s} leaves the service of {q} for the place of birth, is the river {r} found "
        "there?",
    ),
    "same_teacher": (
        "Did the builder of the tower {w} in {y} and the author of the book {b} of {q} have the same teacher?",
        "Was the person who taught the builder of the tower {w} in {y} also the teacher of the author of the book {b} "
        "that {q} keeps?",
        "If the builder of the tower {w} of {y} met the author of the book {b} of {q}, could they talk of one teacher?",
    ),
}
