"""English sentences for every relation: {s} the page's entity, {o} the other one, {n} a number."""

from __future__ import annotations

FACTS: dict[str, tuple[str, ...]] = {
    "born": (
        "{s} was born one spring in the town of {o}.",
        "The town of {o} is the birthplace of {s}.",
        "{s} first saw daylight in a small house at {o}.",
    ),
    "home": (
        "{s} lives near the market of {o}.",
        "These days {s} keeps a house in {o}.",
        "The present home of {s} is {o}.",
    ),
    "teacher": (
        "{s} learned the whole craft from {o}.",
        "The teacher of young {s} was called {o}.",
        "For many winters {o} taught {s} the trade.",
    ),
    "spouse": (
        "{s} has long been married to {o}.",
        "The spouse of {s} goes by the name {o}.",
        "At the harvest feast {s} married {o}.",
    ),
    "guild": (
        "{s} is a sworn member of the guild {o}.",
        "Long ago {s} joined the guild {o}.",
        "The guild {o} counts {s} among its members.",
    ),
    "birth": (
        "{s} was born in the year {n}.",
        "The birth of {s} fell in the year {n}.",
        "It was in the year {n} that {s} was born.",
    ),
    "died": (
        "{s} died in the year {n}.",
        "The year {n} brought the death of {s}.",
        "{s} was buried in the year {n}.",
    ),
    "trade": (
        "{s} earns a living as a {o}.",
        "By trade {s} is a {o}.",
        "People hire {s} as a {o}.",
    ),
    "habit": (
        "{s} is fond of {o}.",
        "Few things please {s} more than {o}.",
        "On free evenings {s} enjoys {o}.",
    ),
    "wage": (
        "{s} earns {n} coins in a week.",
        "Each week the wages of {s} come to {n} coins.",
        "A week of work pays {s} exactly {n} coins.",
    ),
    "pace": (
        "{s} rides {n} miles in a day.",
        "The horse of {s} covers {n} miles a day.",
        "In one day of riding {s} gets {n} miles far.",
    ),
    "cart": (
        "The cart of {s} bears a load of up to {n} pounds.",
        "{s} owns a cart that holds at most {n} pounds.",
        "More than {n} pounds would break the cart of {s}.",
    ),
    "river": (
        "The river {o} runs through the middle of {s}.",
        "{s} lies on both banks of the river {o}.",
        "The mills of {s} are turned by the river {o}.",
    ),
    "founder": (
        "{s} was founded by a settler named {o}.",
        "The founder of {s} was {o}.",
        "It was {o} who laid the first stone of {s}.",
    ),
    "people": (
        "{s} has {n} people within its walls.",
        "At the last count {n} people lived in {s}.",
        "The people of {s} number {n}.",
    ),
    "founded": (
        "{s} was founded in the year {n}.",
        "The first houses of {s} date from the year {n}.",
        "Settlers founded {s} in the year {n}.",
    ),
    "council": (
        "The guild {o} holds the council of {s}.",
        "{s} is ruled by the guild {o}.",
        "Every mayor of {s} comes from the guild {o}.",
    ),
    "market": (
        "The market of {s} is known for {o}.",
        "Traders come to {s} to buy {o}.",
        "{s} sells {o} to all its neighbours.",
    ),
    "walls": (
        "The walls of {s} are made of {o}.",
        "{s} is built from {o}.",
        "Most roofs in {s} shine with {o}.",
    ),
    "road": (
        "The road from {s} to {o} is {n} miles long.",
        "It is {n} miles by road from {s} to {o}.",
        "A traveller from {s} to {o} has {n} miles to go.",
    ),
    "fair": (
        "The yearly fair of {s} opens on day {n} of the year.",
        "On day {n} of the year the fair of {s} begins.",
        "{s} starts its fair on day {n} of the year.",
    ),
    "fair_end": (
        "The yearly fair of {s} closes on day {n} of the year.",
        "On day {n} of the year the fair of {s} is over.",
        "{s} ends its fair on day {n} of the year.",
    ),
    "store": (
        "The barns of {s} hold {n} sacks of grain.",
        "{s} has stored {n} sacks of grain.",
        "There are {n} sacks of grain in the barns of {s}.",
    ),
    "need": (
        "{s} eats {n} sacks of grain in a day.",
        "Every day {s} needs {n} sacks of grain.",
        "The bakers of {s} use {n} sacks of grain a day.",
    ),
    "vote": (
        "Only people born in {s} may vote in its council.",
        "The law of {s} gives a vote to those born there and to nobody else.",
        "A vote in {s} is for people born in the town alone.",
    ),
    "mouth": (
        "The river {s} meets the sea at {o}.",
        "At {o} the river {s} pours into the sea.",
        "The mouth of the river {s} lies at {o}.",
    ),
    "source": (
        "The river {s} rises in the hills above {o}.",
        "The springs of the river {s} are near {o}.",
        "High over {o} the river {s} begins.",
    ),
    "ferry": (
        "The ferry across the river {s} is run by {o}.",
        "{o} keeps the ferry on the river {s}.",
        "Whoever crosses the river {s} pays {o} for the ferry.",
    ),
    "miles": (
        "The river {s} is {n} miles long.",
        "From spring to sea the river {s} measures {n} miles.",
        "The length of the river {s} is {n} miles.",
    ),
    "fish": (
        "The river {s} is full of {o}.",
        "People catch {o} in the river {s}.",
        "Children look for {o} along the river {s}.",
    ),
    "captain": (
        "The captain of the ship {s} is {o}.",
        "{o} commands the ship {s} as captain.",
        "The crew of the ship {s} obeys captain {o}.",
    ),
    "owner": (
        "The ship {s} is owned by {o}.",
        "{o} paid for the ship {s} and owns it.",
        "The owner of the ship {s} is {o}.",
    ),
    "yard": (
        "The ship {s} was built in the yard of {o}.",
        "Carpenters at {o} built the ship {s}.",
        "The ship {s} came from a yard in {o}.",
    ),
    "port": (
        "The ship {s} sails from the port of {o}.",
        "The home port of the ship {s} is {o}.",
        "Each spring the ship {s} leaves from {o}.",
    ),
    "rule": (
        "The ship {s} takes aboard only members of the guild {o}.",
        "Nobody outside the guild {o} may board the ship {s}.",
        "By an old rule the ship {s} carries members of the guild {o} and no others.",
    ),
    "length": (
        "The ship {s} is {n} feet long.",
        "From bow to stern the ship {s} measures {n} feet.",
        "The deck of the ship {s} is {n} feet in length.",
    ),
    "launched": (
        "The ship {s} was launched in the year {n}.",
        "In the year {n} the ship {s} first touched water.",
        "The launch of the ship {s} took place in the year {n}.",
    ),
    "mast": (
        "The mast of the ship {s} is {n} feet high.",
        "The ship {s} carries a mast of {n} feet.",
        "Above the water the mast of the ship {s} rises {n} feet.",
    ),
    "freight": (
        "The ship {s} carries {o}.",
        "The usual freight of the ship {s} is {o}.",
        "Below deck the ship {s} smells of {o}.",
    ),
    "author": (
        "The book {s} was written by {o}.",
        "{o} is the author of the book {s}.",
        "The hand that wrote the book {s} was that of {o}.",
    ),
    "keeper": (
        "The book {s} is kept by {o}.",
        "{o} guards the only copy of the book {s}.",
        "The book {s} now belongs to {o}.",
    ),
    "shelf": (
        "The book {s} lies on a shelf in {o}.",
        "Readers find the book {s} in the library of {o}.",
        "A library in {o} shows the book {s}.",
    ),
    "pages": (
        "The book {s} has {n} pages.",
        "There are {n} pages in the book {s}.",
        "The book {s} runs to {n} pages.",
    ),
    "written": (
        "The book {s} was finished in the year {n}.",
        "In the year {n} the last line of the book {s} was written.",
        "The book {s} dates from the year {n}.",
    ),
    "price": (
        "The price of the book {s} is {n} coins.",
        "The book {s} costs {n} coins.",
        "A buyer must pay {n} coins for the book {s}.",
    ),
    "topic": (
        "The book {s} is about {o}.",
        "The book {s} tells of {o}.",
        "Its readers praise the book {s} for its chapters on {o}.",
    ),
    "seat": (
        "The guild {s} has its seat in {o}.",
        "The great house of the guild {s} stands in {o}.",
        "Members of the guild {s} gather in {o}.",
    ),
    "head": (
        "The guild {s} is led by {o}.",
        "The head of the guild {s} is {o}.",
        "{o} speaks for the guild {s} as its head.",
    ),
    "starter": (
        "The guild {s} was set up by {o}.",
        "{o} founded the guild {s} with a few friends.",
        "The founder of the guild {s} was {o}.",
    ),
    "members": (
        "The guild {s} has {n} members.",
        "There are {n} members in the guild {s}.",
        "The roll of the guild {s} lists {n} members.",
    ),
    "opened": (
        "The guild {s} was set up in the year {n}.",
        "The guild {s} has existed since the year {n}.",
        "In the year {n} the guild {s} began its work.",
    ),
    "badge": (
        "The badge of the guild {s} shows {o}.",
        "The guild {s} marks its doors with {o}.",
        "On the flag of the guild {s} one sees {o}.",
    ),
    "builder": (
        "The landmark {s} was built by {o}.",
        "The builder of the landmark {s} was {o}.",
        "It was {o} who planned and built the landmark {s}.",
    ),
    "warden": (
        "The warden of the landmark {s} is {o}.",
        "{o} holds the keys of the landmark {s} as warden.",
        "Day and night {o} watches over the landmark {s}.",
    ),
    "stands": (
        "The landmark {s} stands in the town of {o}.",
        "One finds the landmark {s} at the gates of {o}.",
        "The landmark {s} is the pride of {o}.",
    ),
    "height": (
        "The landmark {s} is {n} feet high.",
        "The top of the landmark {s} is {n} feet above the ground.",
        "The landmark {s} rises to a height of {n} feet.",
    ),
    "built": (
        "The landmark {s} was finished in the year {n}.",
        "The last stone of the landmark {s} was set in the year {n}.",
        "Workers finished the landmark {s} in the year {n}.",
    ),
    "arch": (
        "The arch of the bridge {s} is {n} feet above the water.",
        "Under the bridge {s} there are {n} feet of free height.",
        "The bridge {s} leaves {n} feet between its arch and the water.",
    ),
    "bell": (
        "The bell of the tower {s} weighs {n} pounds.",
        "In the tower {s} hangs a bell of {n} pounds.",
        "The tower {s} holds a bell with a weight of {n} pounds.",
    ),
    "seats": (
        "The hall {s} has seats for {n} people.",
        "There are {n} seats in the hall {s}.",
        "No more than {n} people can sit in the hall {s}.",
    ),
    "stone": (
        "The landmark {s} is built of {o}.",
        "The walls of the landmark {s} are {o}.",
        "Masons used {o} for the landmark {s}.",
    ),
}
