"""English wordings of the multi-hop questions: {a} (and {b}) to look up, {x} and {y} told beside them."""

from __future__ import annotations

ASKS: dict[str, tuple[str, ...]] = {
    "birth_river": (
        "Which river runs through the town where {a}, who lives in {x} with {y}, was born?",
        "The spouse of {y} is {a}, who settled in {x}; what river flows past the birthplace of this person?",
        "If {a} of {x}, who married {y}, went back to the place of birth, which river would be there?",
    ),
    "author_birth": (
        "In which town was the author of the book {a}, kept by {x} and counting {y} pages, born?",
        "The book {a} has {y} pages and belongs to {x}, but where was its author born?",
        "As it is {x} who keeps the book {a} of {y} pages, can you name the birthplace of its author?",
    ),
    "captain_guild": (
        "Which guild does the captain of the ship {a}, launched in {y} for {x}, belong to?",
        "The ship {a} left the yard in {y} and is owned by {x}; of what guild is its captain a member?",
        "Since it is {x} who owns the ship {a} of the year {y}, which guild counts its captain among the members?",
    ),
    "yard_founder": (
        "Who founded the town where the ship {a} of {x}, which sails from {y}, was built?",
        "The ship {a} sails from {y} for {x}, but who was the founder of the town that built it?",
        "The ship {a} was built in a town before {x} took it to {y}; who laid the first stone of that town?",
    ),
    "guild_river": (
        "Which river runs through the seat of the guild {a}, led by {x} and {y} members strong?",
        "With its {y} members under {x}, the guild {a} meets in one town; on what river does this town lie?",
        "If one of the {y} members follows {x} to the seat of the guild {a}, which river is found there?",
    ),
    "builder_teacher": (
        "Who taught the builder of the tower {a}, which was finished in {y} and has {x} as warden?",
        "The tower {a} was finished in {y} and {x} holds its keys; from whom did its builder learn?",
        "When the warden {x} shows the tower {a} of the year {y}, who is named as the teacher of its builder?",
    ),
    "author_teacher_birth": (
        "Where was the person born who taught the author of the book {a}, which dates from {y} and which {x} keeps "
        "today?",
        "The book {a} of {y} belongs to {x}; in which town was the person who taught its author born?",
        "If one day {x} asks about the book {a} from {y}, what is the birthplace of the teacher of its author?",
    ),
    "captain_town_year": (
        "In what year did people found the birthplace of the captain whom {x} gave the ship {a}, which is {y} feet "
        "long?",
        "The captain of the ship {a}, which measures {y} feet and serves {x}, comes from a town; when was it founded?",
        "The ship {a} of {y} feet belongs to {x}, but its captain was born elsewhere; in which year was that town "
        "founded?",
    ),
    "founder_birth_river": (
        "What river flows through the birthplace of the person who in {y} set up the guild {a} that {x} leads today?",
        "The guild {a} began in {y} and {x} leads it; which river runs through the town where its founder was born?",
        "Long before the days of {x}, a settler set up the guild {a} in {y}; what river passes the birthplace of that "
        "founder?",
    ),
    "mouth_founder": (
        "Who founded the town where the river {a}, rising near {y} and crossed by the ferry of {x}, meets the sea?",
        "From the hills of {y} the river {a} flows past the ferry of {x} to the sea; who founded the town there?",
        "If a raft leaves the ferry of {x} and follows the river {a} from {y} to its mouth, who founded the town "
        "reached there?",
    ),
    "tower_people": (
        "How many people live in the town where {x} watches over the tower {a}, which is {y} feet high?",
        "The warden {x} guards the tower {a} of {y} feet; what is the number of people in its town?",
        "When the warden {x} looks down {y} feet from the tower {a}, how many people does the town below have?",
    ),
    "teacher_guild_river": (
        "Which river runs through the seat of the guild of the person who taught {a} of {x}, born in {y}?",
        "Born in the year {y}, {a} of {x} had a teacher; what river flows past the seat of the guild of that teacher?",
        "If {a}, who came to {x} and was born in {y}, visits the seat of the guild of the teacher, which river is "
        "there?",
    ),
    "author_guild_year": (
        "In which year was the guild of the author of the book {a}, {y} pages long and kept by {x}, set up?",
        "The author of the book {a}, whose {y} pages are kept by {x}, joined a guild; when did that guild begin?",
        "As the book {a} of {x} fills {y} pages, can you say since which year the guild of its author exists?",
    ),
    "mouth_teacher_birth": (
        "Where was the teacher of the founder of the town, where the river {a} of {y} with the ferry of {x} meets the "
        "sea, born?",
        "The river {a} comes from {y} and {x} runs its ferry; who founded the town at its mouth, and where was the "
        "teacher of this founder born?",
        "If the founder of the town where the river {a} of {y}, the river with the ferry of {x}, meets the sea had a "
        "teacher, in which town was the teacher born?",
    ),
    "spouse_guild_head": (
        "Who leads the guild of the person married to {a} of {x}, who was born in {y}?",
        "The spouse of {a}, born in {y} and living in {x}, joined a guild; who is its head?",
        "Because {a} of {x} was born in {y}, people know the spouse too; who is the head of the guild of that spouse?",
    ),
    "builder_home_council": (
        "Which guild rules the town where the builder of the tower {a}, which {x} watches and which dates from {y}, "
        "now lives?",
        "The tower {a} dates from {y} and its warden is {x}; what guild holds the council in the home town of its "
        "builder?",
        "If the warden {x} left the tower {a} of {y} to visit its builder at home, which guild would rule the town "
        "there?",
    ),
    "older": (
        "Who is older, {a} from the town of {x} or {b} from {y}?",
        "Between {a}, who lives in {x}, and {b}, whose home is {y}, which person was born first?",
        "If {a} of {x} and {b} of {y} compare their years of birth, who turns out to be the older one?",
    ),
    "longer_ship": (
        "Which ship is longer, the ship {a} built in {x} or the ship {b} built in {y}?",
        "The yard of {x} built the ship {a} while {y} built the ship {b}; which of them has the greater length?",
        "If the ship {a} from {x} lies beside the ship {b} from {y}, which one is the longer?",
    ),
    "thicker_book": (
        "Which book has more pages, the book {a} kept by {x} or the book {b} kept by {y}?",
        "When {x} opens the book {a} and {y} opens the book {b}, which of the two is thicker?",
        "Does the book {a} of {x} or the book {b} of {y} run to more pages?",
    ),
    "longer_river": (
        "Which is longer, the river {a} with the ferry of {x} or the river {b} with the ferry of {y}?",
        "Since {x} crosses the river {a} and {y} crosses the river {b}, which of these rivers is the longer one?",
        "Of the river {a}, served by {x}, and the river {b}, served by {y}, which measures more miles?",
    ),
    "older_town": (
        "Which town is older, {a}, begun by {x}, or {b}, begun by {y}?",
        "While {x} founded {a}, it was {y} who founded {b}; which of these towns came first?",
        "Was it {a} of the settler {x} or {b} of the settler {y} that was founded earlier?",
    ),
    "taller_tower": (
        "Which tower is taller, the tower {a} in {x} or the tower {b} in {y}?",
        "If one climbs the tower {a} of {x} and then the tower {b} of {y}, which of them is higher?",
        "Between the tower {a}, the pride of {x}, and the tower {b}, the pride of {y}, which rises more feet?",
    ),
    "bigger_guild": (
        "Which guild is larger, the guild {a} led by {x} or the guild {b} led by {y}?",
        "As {x} leads the guild {a} and {y} leads the guild {b}, which of the two has more members?",
        "Does the guild {a} under {x} or the guild {b} under {y} list more members?",
    ),
    "older_author": (
        "Whose author is older, that of the book {a}, now with {x}, or that of the book {b}, now with {y}?",
        "The book {a} is kept by {x} and the book {b} by {y}; which of the two authors was born first?",
        "If the writers of the book {a} of {x} and of the book {b} of {y} met, who would be the older one?",
    ),
    "older_captain": (
        "Which captain is older, the one on the ship {a} of {x} or the one on the ship {b} of {y}?",
        "While {x} owns the ship {a} and {y} owns the ship {b}, which of their captains was born first?",
        "When the captains of the ship {a}, sent by {x}, and the ship {b}, sent by {y}, meet, who is older?",
    ),
    "bigger_yard": (
        "Which town has more people, the one that built the ship {a} for {x} or the one that built the ship {b} for "
        "{y}?",
        "The ship {a} of {x} and the ship {b} of {y} come from different yards; which yard lies in the larger town?",
        "If {x} sends the ship {a} back to its yard and {y} does so with the ship {b}, which ship reaches the town "
        "with "
        "more people, and what town is that?",
    ),
    "age_gap": (
        "How many years lie between the births of {a} from {x} and {b} from {y}?",
        "If {a} of {x} and {b} of {y} compare their years of birth, what is the difference?",
        "By how many years do {a}, at home in {x}, and {b}, at home in {y}, differ in age?",
    ),
    "page_gap": (
        "By how many pages do the book {a} of {x} and the book {b} of {y} differ?",
        "When {x} counts the pages of the book {a} and {y} those of the book {b}, what is the difference?",
        "What is the difference in pages between the book {a}, kept by {x}, and the book {b}, kept by {y}?",
    ),
    "people_gap": (
        "By how many people do {a}, founded by {x}, and {b}, founded by {y}, differ?",
        "If {x} had counted the people of {a} and {y} those of {b}, how far apart would the numbers be?",
        "What is the difference in people between {a} of the founder {x} and {b} of the founder {y}?",
    ),
}
