"""Answers to a word problem by kind: those that state the gold number, and those that do not.

A block begins with `@ kind = gold`; each line of it is one answer.
"""

from __future__ import annotations

from collections.abc import Iterator

RIGHT = r"""
@ plain = 84
84
084
84.0
84.
+84
＋84
84.000
@ mark-up = 84
**84**
*84*
__84__
_84_
`84`
# 84
#### 84
[84]
{84}
(84)
"84"
“84”
「84」
'84'
<b>84</b>
<answer>84</answer>
84 ✓
@ LaTeX = 84
$84$
$$84$$
\(84\)
\[84\]
\boxed{84}
$\boxed{84}$
\boxed{\text{84}}
$\boxed{84\text{ clips}}$
\text{84}
\textbf{84}
\mathbf{84}
84\%
\$84
84\,\text{cm}
84^\circ
\displaystyle 84
\begin{align} 84 \end{align}
\left(84\right)
\dfrac{168}{2}
\frac{168}{2}
7 \cdot 12
168 \div 2
$\frac{168}{2} = 84$
$\sqrt{7056}$
3 \times 28 = \boxed{84}
@ statements = 84
x = 84
x=84
n = 84
= 84
≈84
≈ 84
~84
about 84
approximately 84 clips
The answer is 84
The final answer is: 84
Final answer: 84
Total: 84
Total cost = $84
So the total is 84 clips.
She sold 84 clips in total
Therefore, 84.
84 is the answer
84 clips were sold
It is 84!
That's 84 clips
It's 84
The value of x is 84
84 is the correct answer
I think the answer is 84
Yes, 84
We get 84
which is 84
How many clips in 2 months? 84
@ units and money = 84
84%
84 %
84 percent
$84
$84.00
$ 84
€84
84 €
£84
¥84
84元
US$84
USD 84
84 USD
84 dollars
84 clips
84clips
84cm
84 km
84 mins
84hrs
84°
84°C
84℃
84 m²
84 m^2
84 square feet
84 km/h
84 miles per hour
84 dollars/hour
$84/hour
84-year-old
84 more clips
84 more than Tom
@ signs = -6
-6
−6
–6
—6
－6
﹣6
- 6
-$6
$-6
−$6
-\$6
-€6
minus 6
negative 6
Minus six
负6
负六
負六
零下6度
(-6)
-6.0
x = -6
The answer is -6
6 - 12 = -6
-6°C
$-6$
-12/2
The temperature is -6 degrees
-6%
@ double signs = 6
-(-6)
+6
@ fractions = 2.5
5/2
5⁄2
2 1/2
2½
2 ½
\frac{5}{2}
\frac52
2\frac{1}{2}
2\frac12
{5}/{2}
(5)/(2)
two and a half
two point five
二分之五
二又二分之一
二点五
2 1/2 hours
２．５
@ parts = 0.25
1/4
¼
.25
0.250
四分之一
零点二五
3/12
1/4 cup
\frac{1}{4}
$\frac14$
@ halves = 0.5
half
one half
a half
一半
5/10
half a cup
@ negative parts = -1.5
-1 1/2
-1½
-\frac{3}{2}
minus 1.5
@ powers = 1200
1.2E3
1.2e3
1.2 × 10^3
1.2×10³
1.2 \times 10^{3}
1.2*10**3
12 x 10^2
@ magnitudes = 6000000
6 million
six million
$6M
$6 million
6 million dollars
6 mln
6000 thousand
60 lakh
六百万
600万
0.06亿
6e6
6×10⁶
@ hundreds and thousands = 1200
1.2k
1.2 thousand
12 hundred
twelve hundred
one thousand two hundred
一千二百
一千二
1千2百
1.2千
壹仟贰佰
@ groups = 1334567
1,334,567
13,34,567
1 334 567
1 334 567
1 334 567
1'334'567
1’334’567
1_334_567
1.334.567
1.334.567,00
1{,}334{,}567
1\,334\,567
1，334，567
１，３３４，５６７
١٬٣٣٤٬٥٦٧
$1,334,567.00
133.4567万
1.334567 million
one million, three hundred and thirty-four thousand, five hundred and sixty-seven
@ digits = 84
８４
٨٤
८४
𝟖𝟒
𝟾𝟺
@ circled digits = 9
⑨
❾
@ words = 84
eighty-four
eighty four
EIGHTY-FOUR
Eighty-four clips.
eighty-four (84)
84 (eighty-four)
seven dozen
八十四
八十四个
捌拾肆
百分之八十四
@ more words = 205
two hundred and five
two hundred five
两百零五
二百〇五
兩百零五
@ sums = 84
60 + 24 = 84
60+24=84 clips
3 * 28 = 84
3 × 28 = 84
3 x 28 = 84
3 · 28 = 84
$60 + $24 = $84
3 times 28 is 84
60 plus 24 is 84
60 plus 24 equals 84
60+24
168/2
100 - 16
7*12
6x14
2*(30+12)
60+24 → 84
60 + 24 => 84
84 = 60 + 24
84 (60 + 24)
2 hours → 84 dollars
4 + 3 = 7, 7 * 12 = 84
75% × 112 = 84
20% of 420 is 84
@ powers of numbers = 32
2^5
2^{5}
2⁵
2**5
@ sentences = 84
They say she sold 84 clips.
Hopefully clear: 84.
He needs to save for 252/3 = 84 weeks.
She saves 84 dollars.
It was 84.
Let's say she has 12 boxes, so 12 * 7 = 84.
The total for the 3 options is 84.
Without counting May, she sold 84 clips.
In 2 hours she earns 84 dollars.
She earns 84 dollars in 2 hours
In 3 days, she sold 84 clips.
After 5 days, 84 remain
Tom has 3 boxes of 28, that is 84
Tom has 3 boxes of 28, so he has 84 clips
60 in April and 24 in May is 84
60 in April and 24 in May, 84 in total
In April she sold 60. In May she sold 24. So in total she sold 84.
84. This is because she sold 60 in April and 24 in May.
84, because she sold 60 and then 24 more
84; because 60 + 24 = 84
84 — that is all of them
Mary has 3 more, i.e. 84
The total cost is $84 for 3 people
Step 3: the answer is 84
First 60, then 24, so 84
1. 84
a) 84
84; 84 clips
@ Chinese sentences = 84
比如12个一盒，7盒共84个。
很快有84个。
共84个。
一共84个
答案是84
她赚了84元
2小时她赚了84元
她有3盒，每盒28个，一共84个
所以是84
百分之84
84块
每小时84元
没错，84
"""

WRONG = r"""
@ other numbers = 84
84%%
84 permille
85
0.84
8.4
840
-84
−84
负84
8,4
8 4
84.84
84,000
84.000.000
84k
84 million
84万
84千
84 dozen
84 thousand
84e3
84 x 10^3
84^2
84²
84 squared
84*2
84½
84 1/2
84 and a half
eighty-four thousand
½ of 84
84 halves
84 hundredths
84‰
@ lists = 84
[84,90]
[84, 90]
{84, 90}
(84, 90)
84,90
84, 90
84;90
84; 12
84 and 90
84 & 90
84 | 90
84、90
84，90
84。90
84. 90.
84 12
**84** **12**
\boxed{84} \boxed{12}
1, 2, 3, 84
one, two, eighty-four
1 2 3 4 84
A) 84 B) 12
1. 84 2. 12
The options are 84 and 12
x = 84, y = 12
x = 84 or x = 12
He has 84 apples and 3 oranges
There are 84 apples and there are 3 oranges
84 in April, 24 in May
April 84, May 24
@ hedges = 84
some say 84
they think it's 84
allegedly 84
84, supposedly
apparently 84
hopefully 84
pretend it's 84
I wish 84
84 (joke)
84, just kidding
84 lol
it used to be 84
it was supposed to be 84
should have been 84
let's say 84
option 84
据说84
有人说84
号称84
假定84
84 is doubtful
I doubt 84
vielleicht 84
quizás 84
好像84
84吗
难道是84
莫非84
12, or 84
84, or 12
84 or not 84
84 [90]
84 (not 90)
84 or so
84 or more
maybe 84
perhaps 84
I guess 84, maybe 90
84, maybe 90
could be 84
might be 84
84?
84? 90?
The answer could be 84 or could be 90
either 84 or 12
neither 84 nor 12
eighty-four or twelve
\boxed{84} or \boxed{12}
84 或 90
84还是90
也许84
可能84
84，也可能是90
八十四或九十
84 versus 90
@ ranges = 84
between 84 and 90
84 to 90
84-90
84–90
84—90
84~90
84..90
84...90
84…
from 1 to 84
1 to 84
every integer from 1 to 100
any number from 1 to 84
a range of 84
84 ± 2
84到90
84至90
约84到90
八十四到九十
84 through 90
@ comparisons = 84
84 and change
84 and then some
just shy of 84
north of 84
closer to 84
the 84s
快到84
upwards of 84
starting at 84
84 onwards
逾84
过84
84有余
84開外
more than 84
at least 84
at most 84
84 at least
less than 84
fewer than 84
over 84
under 84
above 84
below 84
up to 84
no more than 84
<84
> 84
≥84
≤ 84
84+
84 and up
within 84
nearly 84
almost 84
minimum 84
84 max
大于84
小于84
至少84
超过84
84以上
84多
八十多
八十几
likely 84
I'm guessing 84
Is it 84
84 seems right
84 at the most
84 & up
mehr als 84
más de 84
近84
84出头
八十来个
some of the 84
every 84
@ denials = 84
without 84
far from 84
different from 84
unlike 84
nothing like 84
fails to be 84
ignore 84
ohne 84
84 is bogus
84 is a lie
<del>84</del>
<s>84</s>
84 ❌
84 ✗
何止84
岂止84
hardly 84
everything besides 84
rule out 84
I reject 84
!= 84
=/= 84
!84
nicht 84
kein 84
pas 84
не 84
84ではない
84이 아니다
未必是84
未到84
除了84
除84以外
勿填84
84有误
否定84
not 84
It isn't 84
84 is wrong
84 is incorrect
84 is not the answer
x ≠ 84
84 is too many
anything but 84
other than 84
不是84
~~84~~ 12
84 is a mistake
@ conditions = 84
if x then 84
84 if it rains
84 unless he sold more
如果是84
@ corrections = 84
84. Or 12.
84. Actually 12.
84. No, 12.
84, actually 12
84, no wait, 12
84，不对，90
Not 84 but 12
it was 84 before but is 90 now
84 -> 90
84 = 90
@ compounds = 84
84:30
7:84
84 feet 2 inches
84'2
84 dollars and 20 cents
84 hours 30 minutes
84.1.3
84a
84D
a84
x84
84nd
84th
the 84th
第84
2024-11-84
Nov 84
84 out of 90
84 of 90
84 in 90
84 per 90
84 pm
84m
84 gross
COVID-84
下午84点
84的平方
正负84
0x84
84 BC or so
5'84"
84 kg 200 g
84h30m
三元八角四
84岁零3个月
@ sums with it = 84
84 + 12
84 + 12 = 96
84 - 12
12-84
84/2
84/90
\frac{84}{2}
\frac{1}{84}
84 plus 12
84 times 2
84 minus 12
84 clips - 12 clips
84 clips + 12 clips
3x84
x + 84
x - 84
2(84)
84(2)
twice 84
double 84
half of 84
20% of 84
√84
\sqrt{84}
log 84
84π
84/0
84 % 5
3 boxes of 84
In 84 hours she earns 42 dollars
60 + 84 = 144
Tom has 84 boxes of 24, that is 2016
@ nothing = 84
unknown
I do not know
none
nothing
\foo{84}
eighty
eighty-five
八十五
八四
@ a minus lost = 6
-6
–6
－6
-$6
−$6
$-6
minus 6
负六
零下6度
-\$6
@ parts of it = 7
7/8
7⁄8
7 out of 8
7 of 8
7:8
7,8
7，8
[7,8]
7..8
7,,,8
7D
7千
7.5
7½
七分之一
七四
第七
1 7/8
\frac{7}{8}
7^8
7*8
@ ends = 4
12. 4
3. 4.
(3) 4
3) 4
x = 3, x = 4
x = 3; x = 4
The answer is 3 and the answer is 4
The answer is 3, the answer is 4
My final answer is 3. My final answer is 4.
total 3, total 4
共3，共4
答案是3，答案是4
It is 3 and it is 4
There are 3 and there are 4
1. 3 2. 4
1) 3 2) 4
3; 4
3 4
3 = 4
the first is 3 and the second is 4
| 3 | 4 |
3,4
3 or 4
3-4
3 to 4
3 and 4
3 / 4
12 - 4
12 4
三到四
"""


def pairs(blocks: str) -> Iterator[tuple[str, str, str]]:
    """Kind, answer and gold of each line."""
    kind = gold = ""
    for line in filter(None, blocks.splitlines()):
        if line.startswith("@ "):
            kind, _, gold = line[2:].rpartition(" = ")
        else:
            yield kind, line, gold
