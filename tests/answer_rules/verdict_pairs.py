"""Answers to a yes or no question in both languages that say yes, no, or neither."""

from __future__ import annotations

YES = r"""
@ English
Yes, because it is not X
yes it can
Yes. It has no wings.
Yes – a dog can swim
YES!!
**Yes**
The correct answer is: Yes.
I think yes
It's true
The statement is true
The sky is blue, so yes
It is bigger; therefore, yes.
\boxed{\text{Yes}}
Yes, it does not matter.
Yes because no one did.
yes, since he is not dead
Yes, no one has ever done it.
True. The other is false.
Yes, and it is big
YES
yes yes
yes
[yes]
'yes'
That's right
That is right
Absolutely
Indeed
Sure
It can
They would
Thus, yes
My answer is yes
Yes indeed
Affirmative
There is
That would be a yes
It's a yes
A: yes
answer = yes
ans: yes
The answer should be yes
Yea
The claim holds
The answer is 'yes'
Therefore, the answer is yes
Long story short, yes
Without a doubt
Undoubtedly
Certainly, yes
It is so
It is the case
Yes it does
Yes they do
Yes. They do.
Yes! It can.
yes -- it is bigger
Yes (it can)
It would be yes
Yes, that's correct
Correct!
Right
That is so
He could
She could have
It would have
It does
the answer's yes
Yes, it could not be otherwise
Yes, they are not extinct
Verdict: true
The correct answer is "yes".
t
Yes, both are mammals
Yes, it might be the tallest of them
Yes; some are likely bigger
@ Chinese
毫无疑问是
毫无疑问，是
是的，它可能更大
对的，没错
当然可以
答案是：是
答案：会
它会
能，因为它不重
对的
当然
是啊
正是
确实
真的
有的
行的
可以的
能的
對
對的
是的，沒錯
答案是是
答案为是
答案：是的
是这样的
没错，是的
对啊
會的
绝对可以
必须的
肯定的
是的，可以
可以，因为它够大
它可以
这是真的
这是对的
这是正确的
是真
是正确的
嗯，是的
能做到
当然能
当然有
有，但很少
存在
需要
所以答案是是
因此，是
结论：是
会，它会
成立
为真
True（真）
"""
NO = r"""
@ English
Again, no.
No, never.
no, it is not
It isn't
That is not true
It's not correct
This is incorrect.
They cannot
Not at all
The answer is: No
it won't
He did not
No, because yes-men are rare
No, but it is close
No. Yes would be wrong.
N
It is not
It's false
That is wrong
This is not true
Not really
I don't think so
Absolutely not
Certainly not
It can't
It does not
The statement is false
Thus, no
Hence no
In conclusion, no
Negative
No way
Never
It's a no
ans: no
Naw
Nay
The answer is 'no'
correct answer: no
Surely not
It couldn't
They couldn't have
He wouldn't
That is not the case
It is not the case
so, no.
Not correct
Verdict: false
False.
No, it isn't
no it cannot
No; it is bigger.
No - too small
No, since it is not big
The answer is no because it is small
The claim is not true
It is untrue
It isn't possible
That's not right
Isn't
They don't
They do not
She could not
It would not be possible
nope, never
f
Definitely no
Unfortunately not
Sadly, no
Of course it isn't
@ Chinese
决不
决不会
不，因为它更大
当然不是
答案是不对
所以不会
它不能
并没有
绝对不是
这是错误的
这个说法不正确
不对
没有的
不是的
并不
并非如此
不成立
错的
不会的
没
无
不可
假的
不需要
不對
錯
錯誤
沒
答案：不是
不行的
不能够
不可以的
确实不是
当然不
当然不会
绝对不
否定
不是，因为它很小
不，它不会
它不会
不能，太大了
没有，从来没有
所以不能
因此答案是否
答案为否
答案是否定的
这不对
这是假的
这是不对的
这不正确
那不可能
绝不会
从未
並非如此
不存在
為假
为假
不，不能
否。
无法
"""
NEITHER = r"""
@ English
<del>yes</del>
yes => no
yes, kind of
yes, lol
yes, just kidding
yes, I lied
yes, or it could be no
no; it could also be yes
Yes, I mean no
Yes yes no
It isn't yes
the answer isn't yes
Yes, it depends
Yes, not always
Yes, I do not know
yes, either
No, I am not sure
Yes or No
Yes, if he is tall
Yes, unless
not no
not false
No idea
no one
Yes men
true or false
Yes, no
no. yes.
I say yes and no
N/A
Both yes and no
neither yes nor no
I cannot say no
yes maybe
Yes, but I am not sure
yesno
Right side
true love
yes... no
There is no answer
The answer is not yes
Yes is not the answer
He said yes
Not yes but no
yes->no
noon
yessir ok
unknown
possible
I don't know
uncertain
It may or may not
Could be
could go either way
It might
Yes and no
yes, no, maybe
Sort of
kind of
not necessarily
Sometimes
in part
half true
partially true
mostly true
true and false
Yes, but no
No, but yes
not sure, yes
No comment
No data
No way to know
no such information
Nobody
Not known
nothing known
Now
Yet
Eyes
either
Yes or
or no
Is it yes
yes if possible
no unless
Only if
Y/N
T/F
@ Chinese
是的，才怪
是，开玩笑的
不但是
是吗
也许
是也不是
是一种鱼
对不起
没有答案
会不会
对，错
是的，也可能不是
可以，也可以不
是 否
可能
也许是
可能不
是与否
是或不是
yes或者不是yes
no或不是no
对或者不是对
真还是不真
行不行
可以也不可以
对也不对
是，但也不是
对吗
会吧
既是又不是
一半对
是？
是否
能否
不好说
不清楚
看情况
有时是
大概是
说不定
是和否
对与错
是，不是
不，是
对，不，错
会，或者不会
有或没有
没答案
没有人知道
无答案
无法确定
无可奉告
不知
是的，不过不一定
假如是
两者都是
真假难辨
能与不能
yes 是 no
是 no
yes 否
"""


def answers(block: str) -> list[str]:
    """The lines of a block without its headings."""
    return [line for line in block.splitlines() if line and not line.startswith("@ ")]
