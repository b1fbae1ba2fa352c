"""Tells a question that leans on the conversation from one that stands alone, by rules."""

import re

from shiguan.text.han import HAN
from shiguan.text.languages import detect_language

_POINTERS_EN = re.compile(
    r"\b(?:it|its|it's|itself|they|them|their|theirs|they're|themselves|he|him|his|himself|she|her|hers|herself|"
    r"this|these|those|"
    r"thereof|latter|former)\b"
    # "that" points back unless a clause or a noun's description follows it.
    r"|\bthat\b(?=\s*[?.!,]|\s*$|\s+(?:one|time|year|period|place|way|case|kind|happen\w*|mean\w*|work\w*|is|was|"
    r"did|does|do|for|to)\b)"
    r"|^(?:is|was|does|did|how|why|what|when|where|who)\s+(?:is\s+|was\s+|did\s+|does\s+)?that\b"
    r"|\bthere\b(?!\s+(?:is|are|was|were|any|a|an|be|been)\b)(?<!is there)(?<!are there)(?<!was there)(?<!were "
    r"there)",
    re.IGNORECASE,
)
_OPENERS_EN = re.compile(
    r"^(?:and|but|so|or|then|also|ok|okay|yes|no|what about|how about|what if|why not|really|which ones?|what "
    r"else|who else|"
    r"any others?|tell me more|more|another|others?|go on|continue|for example)\b",
    re.IGNORECASE,
)
_MISSING_EN = re.compile(
    r"\b(?:else|instead|the (?:first|second|third|last|other|others|rest|same|next|main ones?|previous) ?(?:one|"
    r"ones)?|"
    r"(?:other|another|each|both|any|either|neither) (?:one|ones|of)?|ones?|more about|too|as well|so far|again|"
    r"above|mentioned|"
    r"you (?:said|mentioned|told)|your (?:answer|list))\b(?=\W*(?:$|is|are|was|were|did|does|do|of them|types?|"
    r"kinds?|ways?|"
    r"examples?|options?|reasons?|places?|things?|symptoms?|\?))",
    re.IGNORECASE,
)
# Nouns that name a side of something: "What are the symptoms?" Of what?
_SIDES = (
    "symptoms?|causes?|effects?|side effects?|advantages?|disadvantages?|benefits?|risks?|costs?|prices?|"
    "treatments?|types?|"
    "origins?|history|purpose|meaning|significance|importance|differences?|similarities|results?|outcomes?|"
    "consequences?|"
    "reasons?|steps?|process|rules?|requirements?|ingredients|members?|features?|parts?|components?|signs?|"
    "impacts?|"
    "arguments?|alternatives?|examples?|exceptions?|options?|details?|names?|author|plot|ending|population|"
    "weather|capital|"
    "title|date|location|climate|average|cure|survivors?|goals?|responsibilities|stages|problems?|challenges|"
    "uses|best|most"
)
_BARE_SIDE_EN = re.compile(
    rf"^(?:so |and )?(?:what|which|who|how|tell me|describe|explain|list|when|where)\b[\w' ]{{0,24}}\b(?:the|some|"
    rf"any|all)(?: \w+){{0,2}}? "
    rf"(?:{_SIDES})(?: (?:involved|like|worth|today|now|then|available))?\W*$",
    re.IGNORECASE,
)
_POINTERS_ZH = re.compile(
    r"[他她它牠](?!们?[乡乡国杀])|他们|她们|它们|他們|她們|它們|其(?!他国|实|實|中最|次)|"
    r"这|這|那(?!么多|麼多)|此(?!外的|地无)|该(?=[\u4e00-\u9fff])(?<!应该)(?<!应該)(?<!活该)|該(?<!應該)|上述|前者|后者|後者|二者|两者|兩者|彼(?!得)|自己|"
    r"当时|當時|同年|次年|之后呢|之後呢"
)
_OPENERS_ZH = re.compile(
    r"^(?:那|那么|那麼|然后|然後|还有|還有|另外|除此|此外|为什么[？?]?$|為什麼[？?]?$|怎么说|例如|比如|继续|繼續|接着|接著|后来|後來|"
    r"结果|結果|所以|因此|可是|但是|不过|而|再|又|真的|是吗|具体|詳細|详细)"
)
_ENDING_ZH = re.compile(r"呢[？?]?$|^[^，。？?]{0,5}(?:吗|嗎)[？?]?$")
_SIDE_ZH = re.compile(
    r"^(?:主要|具体|一般|常见)?的?(?:有(?:哪些|什么|什麼))?(?:原因|影响|影響|结果|結果|后果|後果|意义|意義|症状|症狀|优点|優點|缺点|缺點|作者|"
    r"例子|区别|區別|背景|过程|過程|时间|時間|地点|地點|作用|目的|步骤|步驟|好处|坏处|风险|治疗|治療|费用|种类|内容)"
    r"(?:有|是|呢|包括|在|分别)?(?:哪些|什么|什麼|何|多少|呢|哪里|谁|如何|怎样|怎么样)?[？?]?$"
    r"|^(?:为什么|為什麼|为何|為何|何时|何時|何处|何處|谁|誰|多少|几时|哪里|哪裡|什么时候|如何|怎么样|怎样|怎么)(?:[^\u4e00-\u9fff]|$)"
)
_SHORT_ZH = 4
_QUOTED = re.compile(r"“[^”]*”|「[^」]*」|《[^》]*》|\"[^\"]*\"")
_ANTECEDENT_EN = re.compile(
    r"(?<!^)\b(?-i:[A-Z][a-z]+).*\b(?:his|her|he|she|him)\b|^(?:if|when) (?:you|a|an|one)\b.*\b(?:it|they|their|"
    r"them)\b|"
    r"^(?:what|who|tell me about) (?:(?:is|are|was|were) )?[A-Za-z -]{3,40} and (?:its|their|why (?:is|are)|how "
    r"(?:is|are))\b",
    re.IGNORECASE,
)
# Signs that a question names its own subject: a name inside the sentence, or a bare noun that is asked to be explained.
_NAME_EN = re.compile(r"(?<![.!?]\s)(?<!^)(?<!^[“\"'])\b(?!I\b|I'|OK\b)[A-Z][\w'’-]+")
_THE_ONE = re.compile(
    r"\bthe (?!(?:[a-z-]+ ){0,2}(?:of|in|on|for|to|between|who|that|which) )(?:[a-z-]+ ){0,2}[a-z-]+", re.ASCII
)
_EXPLAIN_EN = re.compile(
    r"^(?:what(?:'s| is| are| was| were)|who (?:is|are|was|were)|define|tell me about|explain|describe|let's talk "
    r"about)"
    rf" (?:(?:a|an) )?(?!the\b|some\b|any\b|other\b|common\b|main\b|good\b|important\b|best\b|different\b|"
    rf"(?:{_SIDES})\b)"
    rf"[\w'’-]+(?: (?!(?:{_SIDES})\b)[\w'’-]+){{0,2}}\W*$",
    re.IGNORECASE,
)


def needs_context(question: str, *, has_history: bool = True) -> bool:
    """
    Tell whether a question has to be read with the turns before it.

    Meant to save a call of a model, so it errs towards yes. A pronoun without a name before it, a word that opens an
    addition ("And…", "那…"), something left out ("the other one", "呢？"), a side of an unnamed thing ("What are the
    symptoms?") or next to no words are a yes. An English question is a no only if it names its own subject.
    """
    text = " ".join(question.split())
    if not has_history or not text:
        return False
    plain = _QUOTED.sub("“”", text)
    if detect_language(text) in ("zh", "ja"):
        return bool(
            _POINTERS_ZH.search(plain)
            or _OPENERS_ZH.search(plain)
            or _ENDING_ZH.search(plain)
            or _SIDE_ZH.search(plain)
            or len(re.findall(f"[{HAN}]", plain)) <= _SHORT_ZH
        )
    if _OPENERS_EN.search(plain) or _MISSING_EN.search(plain) or _BARE_SIDE_EN.search(plain):
        return True
    if _POINTERS_EN.search(plain) and not _ANTECEDENT_EN.search(plain):
        return True
    if _EXPLAIN_EN.search(plain) or _ANTECEDENT_EN.search(plain):
        return False
    return not _NAME_EN.search(plain) or bool(_THE_ONE.search(plain))
