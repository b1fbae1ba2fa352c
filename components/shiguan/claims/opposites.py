"""Words that say the opposite of each other, in Chinese and English."""

from functools import cache

from shiguan.text.terms import terms

# Pairs of whole words or characters. Only words whose exchange turns a statement round are here.
_ENGLISH = """
increase decrease|rise fall|rose fell|risen fallen|grow shrink|grew shrank|gain lose|gained lost|win lose|won lost
victory defeat|before after|earlier later|first last|early late|more less|more fewer|most least|higher lower|high low
highest lowest|larger smaller|large small|largest smallest|longer shorter|older younger|oldest youngest|north south
northern southern|east west|eastern western|left right|inside outside|above below|upper lower|male female|man woman
men women|father mother|son daughter|brother sister|husband wife|king queen|born died|birth death|alive dead
accept reject|accepted rejected|allow forbid|allowed forbidden|support oppose|supported opposed|begin end|began ended
start end|started ended|open closed|opened closed|enter leave|arrive depart|success failure|succeeded failed
positive negative|maximum minimum|always never|all none|true false|legal illegal|possible impossible|public private
friend enemy|winter summer|spring autumn|spring fall|spring summer|summer autumn|autumn winter|spring winter
"""
_HAN = """
增加 减少|上升 下降|提高 降低|扩大 缩小|胜 败|胜利 失败|成功 失败|之前 之后|以前 以后|前 后|先 后|最早 最晚|最初 最后
多 少|最多 最少
高 低|最高 最低|大 小|最大 最小|长 短|南 北|东 西|南方 北方|东方 西方|左 右|内 外|上 下|男 女|父 母|父亲 母亲|子 女
兄 弟|兄 妹|夫 妻|生 死|出生 去世
接受 拒绝|允许 禁止|支持 反对|开始 结束|开放 关闭|进入 离开|到达 离开|友 敌|正 负|合法 非法
公 私|公立 私立|总是 从不|全部 没有|升 降|攻 守|春 夏|春 秋|春 冬|夏 秋|夏 冬|秋 冬
"""


@cache
def _pairs() -> frozenset[tuple[str, str]]:
    pairs = set()
    for pair in f"{_ENGLISH}|{_HAN}".replace("\n", "|").split("|"):
        words = pair.split()
        if len(words) == 2:
            one, other = (" ".join(terms(word)) or word for word in words)
            pairs |= {(one, other), (other, one)}
    return frozenset(pairs)


def are_opposites(one: str, other: str) -> bool:
    """Tell whether two short runs of words are opposites, whatever their inflection."""
    first, second = " ".join(terms(one)), " ".join(terms(other))
    if (first, second) in _pairs():
        return True
    ours, others = set(first.split()), set(second.split())
    mine, theirs = ours - others, others - ours
    return len(mine) == len(theirs) == 1 and (mine.pop(), theirs.pop()) in _pairs()
