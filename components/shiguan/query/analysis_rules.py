"""
What gives a question away: tables of cues for Chinese and English, as data.

Each row is a cue's name, its weight and its pattern. In the patterns a line break and the white space around it
separate alternatives, and an underscore is a space. A type's weight is that of its heaviest cue; the heaviest type
wins. A question without cues is a simple fact.
"""

import re
from typing import NamedTuple


class Cue(NamedTuple):
    """
    One sign of a type: its name (for the reasons that are reported), weight and pattern.

    A name in brackets marks words that a question about a plain fact may contain as well: "which king was influenced
    by…" asks for a king. Such a cue is passed over where `PLAIN_ASK` finds what is asked for.
    """

    name: str
    weight: float
    pattern: re.Pattern[str]

    @property
    def is_mention(self) -> bool:
        """Whether the words may as well be part of a question about a plain fact."""
        return self.name.startswith("(")


def _cues(*rows: tuple[str, float, str]) -> tuple[Cue, ...]:
    return tuple(
        Cue(name, weight, re.compile("|".join(pattern.split()).replace("_", " "), re.IGNORECASE))
        for name, weight, pattern in rows
    )


# Nouns for someone or something that a description stands for, so that "the general who took Caizhou" is one hop.
_KIN_EN = (
    "father|mother|parents?|son|sons|daughter|brother|sister|wife|husband|spouse|widow|grandfather|grandmother|"
    "grandson|"
    "granddaughter|uncle|nephew|cousin|successor|predecessor|teacher|tutor|mentor|student|pupil|disciple|deputy|"
    "lieutenant|patron|rival|partner|birthplace|hometown|nationality|alma_mater|employer|founder|author|director|"
    "inventor|capital|leader|owner|composer|president|killer|murderer|conqueror|defender"
)
_ENTITY_ZH = (
    "父亲|母亲|父母|儿子|长子|次子|女儿|孙女|孙子|外孙|妻子|丈夫|夫人|皇后|哥哥|弟弟|兄长|姐姐|妹妹|祖父|叔父|侄子|岳父|女婿|"
    "老师|弟子|学生|门生|继任者|继承者|前任|后任|部下|部将|副将|上司|对手|合伙人|创始人|母校|负责人|作者|主角|主演|导演|发明者|"
    "将领|将军|大将|皇帝|君主|国王|宰相|大臣|官员|节度使|刺史|太守|宦官|妃子|贵妃|太子|公主|使者|谋士|史家|史学家|书法家|诗人|"
    "文人|画家|作家|[学术想业乐治事]家|工程师|发明家|医生|演员|歌手|总统|首相|教授|律师|法官|人(?!口|物|数|员|民)|城市|国家|驿站|战役|公司|大学|电影|小说|"
    "父親|母親|兒子|女兒|孫女|孫子|將領|將軍|節度使|詩人|發明家|總統|國家|驛站|公司|"
    "养父|养母|养子|义父|义子|堂兄|堂弟|表兄|表弟|叔叔|伯父|舅舅|祖母|外祖父|曾祖父|恩师|同僚|盟友|监军|宰辅|丞相|首领|领袖|律所|事务所|"
    "企业|机构|学校|医院|银行|球队|乐队|出版社|歌曲|歌手|[\u4e00-\u9fff](?:者|师|師|官|帅|帥|员|員|臣|妻|徒)(?!的原因|的影响|的看法)"
)
_ASK_ZH = "谁|誰|哪|何(?!以)|什么|什麼|甚麼|多少|几(?!乎)|幾(?!乎)"

CUES: dict[str, dict[str, tuple[Cue, ...]]] = {
    "zh": {
        "comparison": _cues(
            (
                "(compare)",
                6,
                r"(?:^|请|請|试|試|，|来|來|作|做|相|把[^，。？?]{2,20})(?:一个|一個|个|個)?(?:比较|比較)(?![多少好大长小高])|对比|對比|对照|對照|相较|相較|"
                r"相比(?![邻鄰拚拼擬])|比较一下|加以比较",
            ),
            (
                "difference",
                6,
                r"(?:区别|區別|差别|差別|差异|差異|(?<!的)不同(?!的)|不同之处|不同点|异同|異同|同异)(?!的(?:城|人|州|国|时|地方))|孰[\u4e00-\u9fff]孰",
            ),
            ("distinguish", 5.5, r"如何区分|怎样区分|怎么区分|如何區分|优劣|優劣|优缺点|優缺點|优点和缺点|利弊"),
            (
                "which is more",
                5.5,
                r"(?:和|与|與|跟|同|还是|還是)[^，。？?]{1,20}(?:谁|誰|哪个|哪個|哪一(?:个|個|场|場|座|种|種|位)|哪条|哪種|哪种|何者|孰)_?(?:更|较|較|的|在|"
                r"最|早|晚|先|大|小|长|多|少)"
                r"""
                (?:哪一(?:场|場|个|個|座|种|種)|哪个|哪個|哪条|谁|誰|何者|孰)[^，。？?]{0,8}更
                比[^，。？?]{1,16}(?:早|晚|多(?!少)|少|长|大|小|高|低|快|慢|强|弱)(?:几|幾|多少|吗|嗎|了)""",
            ),
            (
                "what sets apart",
                5.5,
                r"(?:什么|什麼|何|哪些)(?:分别|分別|出入|差距|悬殊|懸殊)|高下|强弱|優劣|有别于|有別於|哪[种種]更|更[\u4e00-\u9fff]{1,2}(?:的是|一些)",
            ),
            ("same or not", 5, r"一样吗|一樣嗎|一回事|是否相同|相同吗"),
            ("(both alike)", 5, r"相似|相同(?:之处|之處|点|點)|共同点|共同點|共同之处|类似之处"),
        ),
        "complex_reasoning": _cues(
            (
                "why",
                5,
                r"(?<![称稱作成认認名分定改化变變视視译譯因])(?:为|為)(?:什么|什麼|甚么|甚麼|何)(?!名)|何以|因何(?![罪事案])|缘何|怎么会|怎麼會|凭什么",
            ),
            (
                "(cause)",
                4.8,
                r"原因|缘故|緣故|缘由|根源|起因|成因|动机|動機|背景是|因果|何在|导致|導致|造成|引起|引发|引發|促使|使得",
            ),
            (
                "(effect)",
                4.8,
                r"影响|影響|后果|後果|结果是|(?<!副)作用|意味着|意味著|改变了|改變了|带来了?(?:什么|哪些|怎样)|機制|机制|必然",
            ),
            (
                "how it came",
                4.5,
                r"(?:是|是如何|如何|怎样|怎樣|怎么|怎麼)[^，。？?]{0,16}(?:形成|产生|產生|发生|發生|激化|演变|演變|发展|崩溃|瓦解|兴起|衰落|运作|工作|实现|防止|避免|"
                r"改变|让|使得)",
            ),
            ("analyse", 5.6, r"^(?:请|請|试|試)?(?:分析|论述|論述|阐述|闡述|阐明|解释|解釋|剖析)"),
            ("understand", 5, r"怎么理解|如何理解|怎样理解|怎麼理解"),
            (
                "factors",
                5,
                r"(?:哪些|什么|什麼|何种)(?:因素|原因|条件|條件|缘由|背景|动机)|(?:什么|何|哪些|多大)(?:影响|后果|作用|变化)",
            ),
            ("(analyse)", 4.8, r"分析|论述|論述|阐述|闡述|阐明|解释|解釋|说明(?!书)|說明(?!書)|剖析|探讨"),
            ("if", 5.5, r"如果|假如|倘若|要是|假使|若非|^若|，若"),
            ("how", 3, r"如何|怎样|怎樣|怎么(?!样|写|读|念|称呼|叫|拼)|怎麼(?!樣|寫|讀)"),
        ),
        "multi_hop": _cues(
            (
                "described person",
                4.6,
                rf"[^，。？?的]{{2,}}(?<![他她它其己目])的(?:[^，。？?的]{{0,6}}的)?[^，。？?的]{{0,5}}(?:{_ENTITY_ZH})"
                rf"(?!有?(?:哪|多少|谁|誰|几|幾|什么|什麼|何))(?:，_?其)?[^，。？?]{{1,16}}(?:{_ASK_ZH})",
            ),
            (
                "follows up itself",
                4.6,
                r"(?:谁|誰|哪位|什么人)[^？?]{1,12}，_?(?:那个人|那人|此人|他|她|其)[^？?]{0,10}(?:何|谁|哪|什么)",
            ),
        ),
        "aggregation": _cues(
            (
                "(list)",
                5.2,
                r"列出|列明|逐条|逐一|一一说明|列举|列舉|罗列|羅列|枚举|举出|舉出|统计|統計|清单|清單|名单|名單|年表|一览|按时间顺序|按時間順序|盘点",
            ),
            (
                "which ones",
                4.2,
                r"哪些|哪几|哪幾|有哪[一两三四五六七八九]|哪[两二三四五六七八九]|都有(?:谁|誰|什么|哪|些)|都是谁|有什么(?:人物|人|书|地方)",
            ),
            (
                "respectively",
                4.4,
                r"分别(?:是|有|为|叫|在|担任)|分別(?:是|有|為)|包括(?:哪|什么|什麼)|依次|先后|先後|历任|歷任|各章|各有",
            ),
            (
                "count",
                4.4,
                r"一共|总共|總共|总计|總計|共有|合计|合計|几次|幾次|多少次|多少(?:个|個|种|種|处|處|位|名|座|场|場|项|項|条|條)|[几幾](?:处|處|种|種|场|場|位|项)",
            ),
            ("all of them", 4.2, r"都(?:有|是)?(?:哪|谁|誰)|哪[几幾]位"),
            (
                "so many in all",
                4.3,
                r"共[^，。？?]{0,6}(?:多少|[几幾])|(?:几|幾)个(?!月|小时|小時|人|星期|百分)[\u4e00-\u9fff]{2,}[？?]?$|(?:说出|写出|说说|举|依次|"
                r"分别)[^，。？?]{0,4}[一二两三四五六七八九十几]个|依次(?:写|列|说|举)",
            ),
            ("(all)", 3.8, r"所有|全部|全书|全書|每一|每个|各个|历次|歷次"),
        ),
        "open_ended": _cues(
            (
                "summarise",
                6.4,
                r"总结|總結|概括|概述|归纳|歸納|摘要|综述|綜述|提要|梗概|大意|主要内容|主要內容|缩写成|縮寫成|提炼|要点",
            ),
            (
                "opinion",
                6.2,
                r"怎么看|怎麼看|如何看待|怎么看待|看法(?!有|上)|如何评价|如何評價|怎样评价|怎么评价|评价一下|谈谈|談談|聊聊|说说|你认为|你覺得|你觉得|建议|建議|启示|啟示|功过|"
                r"认识[。？?]?$|展望|想象|想像|设想|畅谈|价值何在|怎样才能|如何才能|怎么才能|算是?一?个?好|心得|感想",
            ),
            (
                "(survey)",
                5.4,
                r"介绍|介紹|讲讲|講講|讲述|講述|描述|描绘|来龙去脉|來龍去脈|关于[^？?]{1,20}(?:说了|讲了|提到)些?(?:什么|什麼)|說了些什麼",
            ),
            ("(write)", 6.6, r"写(?:一)?(?:篇|段|个|個|首|封|份)|寫(?:一)?(?:篇|段|個|首|封|份)|帮我写|起草|撰写"),
            (
                "(meaning)",
                5.2,
                r"(?:历史|歷史|重大|深远)?意义|意義|风格|風格|形象|主题是|主題|^论(?!述)|^論(?!述)|^试论",
            ),
            (
                "request",
                3.4,
                r"^(?:请你?|請你?|麻烦|能不能|能否|可以|试|試)?(?:帮我|给我|给大家|为我|替我|向我|用[^，。？?]{1,12})?"
                r"(?:简|細|细|详细|詳細|大致|好好|再)?(?:谈|談|说一|说说|讲|講|述|聊|写|寫|画|畫|编|拟|描|评|評|论(?!述)|介绍|刻画|"
                r"叙述|敘述|梳理|回顾|展示|设计|策划|改写|翻译|赏析|鉴赏|点评|推荐)(?!入|出)"
                r"(?![^，。？?]{0,30}(?:谁|誰|哪|多少|几|何时|何年))",
            ),
            (
                "future",
                5.4,
                r"会怎样|會怎樣|将如何|將如何|会如何|应该(?:怎样|如何|怎么)|應該(?:怎樣|如何)|怎么样[？?]?$",
            ),
        ),
    },
    "en": {
        "comparison": _cues(
            ("(compare)", 6, r"\bcompar(?:e|ed|es|ing|ison|isons)\b \bcontrast(?:s|ed|ing)?\b \bversus\b \bvs\b"),
            (
                "(difference)",
                6,
                r"\bdiffer(?:s|ed|ence|ences|ently)?\b (?<!many_)\bdifferent(?:_from|_to|_than)\b "
                r"\bdistinguish(?:es|ed)?\b \bdistinctions?_between\b \bchanged_between\b "
                r"\bset(?:s)?_[^?]{2,40}_apart\b",
            ),
            (
                "balance",
                6,
                r"\badvantages?_(?:and|or)_disadvantages?\b \bpros_and_cons\b \bstrengths_and_weaknesses\b "
                r"\btrade-?offs?\b",
            ),
            (
                "(alike)",
                5.5,
                r"\bresembl\w+\b \bin_common\b \bsimilarit(?:y|ies)\b \bhow_(?:similar|alike)\b \bsimilar_to\b "
                r"\bsame_as\b \b(?:share|bear|have|follow|obey)_the_same\b \balike\b",
            ),
            (
                "which is more",
                5,
                r"\b(?!other|rather|whether|either|neither|further|another|later)\w+er_than\b \b(?:more|less|"
                r"fewer|better|worse)_(?:\w+_)?than\b(?!_(?:how|one|\$?\d)) "
                r"^which\b.{1,40}\b(?:\w+er|more|most|better|best|first)\b.*\bor\b ^who\b.{1,40}\b(?:\w+er|more|"
                r"better|first)\b.*\bor\b",
            ),
            (
                "one or the other",
                4.6,
                r"^(?:did|do|does|is|are|was|were|should|can|could|has|"
                r"have)\b[^?]{2,80}\b(?<!whether_)or_(?!not\b)(?:a_|an_|the_)?\w+ ^between_[^?]{2,40}_and\b",
            ),
        ),
        "complex_reasoning": _cues(
            ("why", 5, r"\bwhy\b \bhow_come\b \bfor_what_reasons?\b \bwhat_for\b"),
            (
                "(cause)",
                4.8,
                r"\bcauses?\b \bcaused\b \breasons?\b \bled_to\b ^what_(?:led|drove|made|makes|prompted|explains|"
                r"explained|motivated|prevented|prevents|accounts|accounted|enabled|enables|allowed|triggered|"
                r"triggers|drives|"
                r"keeps|kept|stopped|stops|contributed|contributes)\b \bmotives?\b \bfactors\b \borigins?_of_the\b",
            ),
            (
                "(effect)",
                4.8,
                r"\b(?:consequences?|implications?|impacts?|influences?|affect(?:s|ed)?|outcome|ramifications)\b "
                r"(?<!side_)\beffects?_(?:of|on)\b "
                r"\b(?:role|importance)_of\b \bto_what_extent\b \bin_what_ways?\b \bwhat_would_(?:have_)?happen",
            ),
            (
                "(analyse)",
                4.8,
                r"\banaly[sz](?:e|es|ing)\b \banalysis\b \bexplain(?:s|ing)?\b \bexamine\b "
                r"\bunder_what_(?:circumstances|conditions)\b \bmechanisms?\b",
            ),
            ("analyse", 5.2, r"^(?:please_)?(?:analy[sz]e|explain|examine|account_for)\b"),
            (
                "what effect",
                5,
                r"\bwhat_(?:\w+_)?(?:effects?|impact|influence|consequences|role|difference)_(?:did|does|do|has|"
                r"have|had|would|will)\b",
            ),
            ("if", 5, r"^if_\w+.*\b(?:would|could|might)\b \bwould_[^?]{2,40}_have_\w+"),
            ("(how)", 3.6, r"\bhow_(?:did|does|do|was|were|is|are|has|have|had|can|could|would)\b \bhow_to\b"),
        ),
        "multi_hop": _cues(
            (
                "described thing",
                4.2,
                r"\bthe_(?:[\w'’-]+_){1,4}?(?:who|whom|that|which|whose|where|in_which|to_which|at_which|"
                r"with_whom)_(?:\w+)",
            ),
            (
                "kin of the described",
                4.2,
                rf"\b(?:{_KIN_EN})_of_the_(?:[\w-]+_){{0,2}}?[\w-]+_(?:of|who|that|which|whose|in|when|at|from)\b",
            ),
            (
                "kin and its fate",
                4.0,
                rf"\bthe_(?:first_|last_|elder_|younger_)?(?:{_KIN_EN})_of_(?!the_(?:book|novel|"
                rf"{_KIN_EN})\?)[^?]{{2,60}}\b(?:when|come_from|born|die[ds]?|hold|held|live[ds]?|buried)\b",
            ),
            (
                "chain of possessives",
                4.2,
                rf"\w+['’]s_(?:[\w-]+_)?(?:{_KIN_EN})_(?:['’]s|was|is|went|came|died|born|attend)",
            ),
            (
                "made by someone described",
                4.1,
                r"^(?!(?:what|which|who)_(?:is|was|were|are)_the_(?:name_of_the_)?[\w-]+_(?:\w+ed|written|built|"
                r"led)_by\b)"
                r".*\bthe_(?:[\w-]+_){1,2}(?:designed|written|founded|built|directed|led|composed|created|"
                r"discovered|invented|"
                r"published|owned|commanded|appointed|painted|produced|established|signed)_by_the\b",
            ),
            (
                "the best of something asked something",
                4.1,
                r"\bthe_[\w-]+_of_the_(?:\w+est|first|last|second|third|most_\w+)_[\w-]+_(?:in|of|on|at|to)\b",
            ),
            (
                "kin asked something",
                4.0,
                rf"^(?=.*\b(?:who|what|which|whom|whose|where|when|how)\b)(?!(?:who|what|which|whom)_(?:is|was|are|"
                rf"were)_(?:the_)?(?:\w+_)?(?:{_KIN_EN})_(?:of|in)_[^?]+\??$).*\b(?:the_|"
                rf"['’]s_)(?:\w+_)?(?:{_KIN_EN}|city_of_birth|place_of_birth|birth_place|owner|creator|designer|"
                rf"performer|screenwriter|producer|writer|compiler|editor|translator|commander|general|minister|"
                rf"governor|"
                rf"envoy|painter|architect|builder|discoverer|sponsor|supplier|landlord|plaintiff|defendant)_(?:of|"
                rf"for|to)_[^?]+",
            ),
            (
                "possessed kin asked something",
                4.0,
                rf"\w['’]s_(?:\w+_)?(?:{_KIN_EN}|city_of_birth|place_of_birth)\b(?!\W*$) "
                rf"\bin_[^?]+['’]s_(?:birthplace|hometown|city_of_birth)",
            ),
            ("chain of of", 4.2, rf"\b(?:{_KIN_EN})_of_the_[^?]*\b(?:{_KIN_EN})_of\b"),
        ),
        "aggregation": _cues(
            (
                "list",
                5.2,
                r"^(?:please_)?(?:list|name(?!_of\b)|enumerate|count|tabulate|catalogue)\b \b(?:give|make|draw_up|"
                r"compile)_(?:me_)?(?:a|an|the)_(?:full_|complete_)?(?:list|chronology|timeline|table|"
                r"inventory)\b \bchronolog\w+\b \btimeline\b",
            ),
            (
                "which ones",
                4.1,
                r"\b(?:which|what)_(?:(?:side|main|other|different|major|three|two|four|five|types?_of|"
                r"kinds?_of)_)*(?!is\b|was\b|does\b|has\b|causes\b|makes\b|this\b|distinguishes\b|accounts\b|"
                r"drives\b|keeps\b|explains\b|"
                r"happens\b|consequences\b|reasons\b|implications\b|causes\b|factors\b|us\b|means\b|class\b|"
                r"series\b|species\b)[a-z]+(?<![suiao])s\b(?!_(?:the|a|an|in_the)\b) \bwhich_of_the\b "
                r"\bwho_(?:were|are)_the\b \bwhat_are_(?:all_)?the\b \bwhich_of_(?:these|those)\b \b(?:table|list|"
                r"inventory|catalogue)_of\b",
            ),
            (
                "count",
                4.4,
                r"\bhow_many_(?:times|chapters|different|of_the|battles|occasions|places)\b "
                r"\bhow_many_[^?]{2,40}_(?:between|throughout|during|over_the|in_the_(?:book|text|novel|whole|"
                r"course))\b "
                r" \btotal_number\b "
                r"\baltogether\b \bin_total\b \bhow_often\b",
            ),
            (
                "all of them",
                4.6,
                r"\b(?:are|were)_all\b ^give_me_(?:every|all)\b \bevery_[a-z]+_(?:mentioned|named|listed)\b",
            ),
            ("(all)", 4.0, r"\ball_(?:the_|of_the_)?[a-z]+s\b \bevery\b \beach_of\b \bsteps_(?:to|for|of)\b"),
        ),
        "open_ended": _cues(
            (
                "summarise",
                6.4,
                r"\bsummar(?:y|ies|ise|ises|ize|izes|ising|izing)\b \boverview\b \btl;?dr\b \bsum_up\b "
                r"\bcondense\b \bbullet_points\b \bgist\b \bsynopsis\b "
                r"\boutline_of\b \bmain_points\b",
            ),
            (
                "(opinion)",
                6.2,
                r"\b(?:do|would)_you_think\b \byour_(?:opinion|view|views|assessment|thoughts|take)\b \b(?:how|"
                r"what)_should\b \bhow_(?:might|would_you)\b \badvice\b \bideas\b \brecommend\w*\b "
                r"\bcan_we_learn\b \bthoughts\b \bimagine\b \bbrainstorm\b \blessons?\b \bwhat_can_be_learn",
            ),
            (
                "survey",
                5.4,
                r"^(?:please_|can_you_|could_you_)?(?:discuss|describe|elaborate|evaluate|assess|reflect|"
                r"introduce|narrate|recount)\b \b(?:brief|short|full|detailed)_account_of\b "
                r"\bgive_an_account_of\b \btell_me_(?:more_)?(?:about|the_story)\b \bwhat_(?:does|"
                r"do)_[^?]{2,40}_say_(?:about|on)\b",
            ),
            (
                "(write)",
                6.6,
                r"\bwrite_(?:me_)?(?:an?|the|some)\b \bdraft_(?:an?|the)\b \bessay\b \bcompose_an?\b ^(?:fix|"
                r"debug|refactor|implement)\b",
            ),
            ("judgement", 4.7, r"^should\b(?!.*\bor\b) \bmake_of\b \bwas_it_(?:right|wise|fair|just|worth)\b"),
            (
                "request",
                3.4,
                r"^(?:please_|can_you_|could_you_|would_you_|kindly_|now_|i_want_you_to_|"
                r"help_me_(?:to_)?)?(?:write|paint|draw|sketch|"
                r"tell_me_(?!the_(?:date|name|year|number|time|place)|who|when|where|what|which|how)|"
                r"give_(?:me_)?(?!the_)|"
                r"show_me|share|talk|walk_me|teach|review|rewrite|rephrase|paraphrase|translate|design|plan|"
                r"propose|suggest|outline|"
                r"explore|comment|critique|consider|offer|provide|create|produce|prepare|present|portray|depict|"
                r"argue|defend|"
                r"illustrate|trace|sum|shorten|condense|expand|develop|formulate|speculate|interpret|retell|"
                r"relate)\b",
            ),
            ("(meaning)", 5.2, r"\b(?:significance|legacy|themes?|symbolism)\b"),
        ),
    },
}

# What a question about a plain fact asks for, by its interrogative word.
PLAIN_ASK: dict[str, re.Pattern[str]] = {
    "zh": re.compile(
        r"谁|誰|哪(?:一|个|個|位|里|裡|裏|儿|年|天|座|本|名|部|家|国|國|省|市|首|条|條|级|款)|多少|几(?!乎)|幾(?!乎)|何时|何時|何地|何处|何處|何年|何人|"
        r"(?:什么|什麼|甚麼)(?:时候|時候|地方|人|名|国家|國家|城市|罪|书|書|职|職|官|年|节|節|颜色|样|樣|类型|類型|奖|獎|公司|大学|学校|组织|机构|称)"
    ),
    "en": re.compile(
        r"\b(?:who|whom|whose|when|where|how_(?:many|much|long|far|old|tall|large|big|high|deep|often))\b"
        r"|\b(?:what|which)_(?!(?:ways?|extent|circumstances|conditions|reasons?|effects?|impacts?|consequences?|"
        r"roles?|causes?|"
        r"factors?|differences?|respects?|implications?|lessons?|advice|advantages?|is|was|are|were|does|did|do|"
        r"led|made|explains?|explained|"
        r"caused|drove|prompted|motivated|happens?|happened|would|should|can|could|might|will|prevented|accounts|"
        r"accounted|enabled|triggered|drives|keeps|kept|stopped|changed|changes|sets|separates|distinguishes|the|"
        r"a|"
        r"an|if|about|"
        r"makes?|constitutes?|has|have|had|you|we)\b)[a-z]+".replace("_", " "),
        re.IGNORECASE,
    ),
}

# What makes a question harder than others of its type: one point each.
HARDER: dict[str, tuple[Cue, ...]] = {
    "zh": _cues(
        (
            "two questions in one",
            1,
            r"[？?].*[？?] "
            r"，(?:并|並|又|以及|那个人|那人|此人|其|这|這|为什么|為什麼|原因何在)[^？?]*[？?]?$ 以及 经过与影响",
        ),
        ("supposes what did not happen", 1, r"如果 假如 倘若 要是"),
        ("asks for a relation", 1, r"因果 之间的关系 之間的關係 机制 機制 必然 根源 矛盾"),
    ),
    "en": _cues(
        ("two questions in one", 1, r"\?.*\? ,_and_(?:why|how|with|what) \band_(?:why|with_what|how|what)\b"),
        ("supposes what did not happen", 1, r"\bwould_have\b \bif_\w+_had\b \bhad_not\b"),
        (
            "asks for a relation",
            1,
            r"\brelation(?:s|ship)?_between\b \bto_what_extent\b \bimplications\b \bdespite\b \bmechanisms?\b",
        ),
    ),
}

# A choice between two has a name or a number for its answer, whatever the reasons are.
CHOICE: dict[str, re.Pattern[str]] = {
    "zh": re.compile(
        r"(?:谁|誰|哪个|哪個|哪条|哪一个|哪座|何者|孰)[^，。？?]{0,12}[^，。？?]{0,2}(?:更|较|較|最)[多少大小长長短早晚高低快慢久]"
        r"|比[^，。？?]{1,16}[早晚多少长大小高低快慢](?:几|幾|多少|吗|嗎)"
    ),
    "en": re.compile(
        r"^(?:which|who)\b.{0,50}\b(?:larger|bigger|smaller|older|younger|longer|shorter|earlier|later|higher|"
        r"lower|"
        r"faster|more_(?:\w+s|people|money|men|time)|fewer|first|taller|most)\b|^(?:did|is|are|was|were|has|have|"
        r"do|"
        r"does)\b(?!.*\bdifferen).*(?:\bor\b|(?:larger|bigger|smaller|older|younger|longer|shorter|earlier|later|"
        r"higher|lower|faster|taller|stricter|heavier|cheaper)_than\b)".replace("_", " "),
        re.IGNORECASE,
    ),
}

# A question that asks who or what a description stands for, and nothing further about it: one hop, not two.
IDENTITY: dict[str, re.Pattern[str]] = {
    "zh": re.compile(
        r"(?:是|叫|为|為|有)+(?:谁|誰|什么人|什麼人|哪一?[位部个個座本首条條家]|哪[些几幾][位个個]?|何人|什么名字|什么|什麼)[？?。]?$"
    ),
    "en": re.compile(
        r"^(?:who|what|which)_(?:is|was|were|are)_(?:all_)?(?:the_name_of_)?the_(?:[\w'’-]+_){1,3}?(?:who|that|"
        r"which|whose)_[^?]{2,50}\??$".replace("_", " "),
        re.IGNORECASE,
    ),
}

CODE = re.compile(
    r"(?:用|in|using|with)[ _]*(?:python|sql|javascript|typescript|java|rust|golang|c\+\+|bash)"
    r"[ ，,]*(?:写|寫|编写|实现|"
    r"實現|开发)|"
    r"(?:\b(?:write|fix|debug|implement|refactor|code|program|generate|convert|optimi[sz]e)\b|写|寫|实现|實現|修复|修改|调试|"
    r"编写|生成)"
    r".{0,60}(?:\b(?:python|sql|javascript|typescript|java|rust|golang|c\+\+|bash|shell|html|css|regex|regular "
    r"expression|"
    r"function|script|code|query|class|program|unit test)\b|函数|函數|代码|代碼|脚本|程序|正则|正則|查询语句)|```",
    re.IGNORECASE | re.DOTALL,
)
SUMMARISE = re.compile(
    r"\bsummar(?:y|ise|ize)|\boverview\b|\btl;?dr\b|\bsynopsis\b|\bgist\b|\bsum up\b|\bcondense\b|\bin a "
    r"nutshell\b|总结|總結|概括|概述|归纳|歸納|摘要|提要|梗概|大意|缩写成|縮寫成",
    re.IGNORECASE,
)
# The summary of a whole text has no topic of its own to imagine a passage about.
WHOLE_TEXT = re.compile(
    r"(?:\b(?:the|this|that|my)_(?:whole_|entire_)?(?:book|contract|document|text|article|file|paper|report|"
    r"chapter|novel|section|judgment|judgement|ruling|decision|letter|story|passage)\b(?:_in_.*)?"
    r"|\bchapter_\w+)\W*$|(?:这|這|那)(?:篇|本|份|部)[^，。？?]{0,6}|(?:全书|全書|本书|本書|这本书|全文|本文|这份合同|合同|文档|文章|章|节|文件|"
    r"报告)(?:的)?(?:主要)?(?:内容|內容|观点|觀點|大意|摘要|梗概)".replace("_", " "),
    re.IGNORECASE,
)
