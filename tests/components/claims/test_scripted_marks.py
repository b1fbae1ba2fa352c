"""Hundreds of answers with right, wrong, missing, swapped and invented marks: no shown mark is one that is not true."""

import gzip
import json
import random

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claim_kinds import stated_part
from shiguan.claims.claims import find_marks, split_claims
from shiguan.text.sentences import sentence_spans

MARKS = ("right", "wrong", "missing", "swapped", "invented", "with a wrong one")
SAMPLE = {
    "en": [
        "In the winter of 755 An Lushan rose against the court at Fanyang. He had 150,000 men under his command. Luoyang "
        "fell to his army within thirty-three days.",
        "The Salt Commission was set up in 758 under Diwu Qi. It sold salt to licensed merchants at ten times the price. "
        "The income paid for half of the army.",
        "Zhang Xun held the town of Suiyang for ten months. Its people ate bark, paper and horses. He was put to death "
        "when the town fell in the tenth month of 757.",
        "Guo Ziyi came from Zheng county in Huazhou. He won back Chang'an with the help of Uighur horsemen. The emperor "
        "gave him the title of prince of Fenyang.",
        "The poet Du Fu walked from the capital to Fengxiang in the summer of 757. He was made a reminder at the court. "
        "Later he lived in a thatched hut near Chengdu.",
    ],
    "zh": [
        "天宝十四载十一月，安禄山在范阳起兵反唐。他手下有十五万人马。叛军三十三天后攻下洛阳。",
        "乾元元年，朝廷设立盐铁使，由第五琦担任。官府把盐卖给有执照的商人。盐利占全国收入的一半。",
        "张巡坚守睢阳十个月。城中百姓以树皮和纸充饥。城破之后他被叛军杀害。",
        "郭子仪是华州郑县人。他借助回纥骑兵收复长安。皇帝封他为汾阳王。",
        "诗人杜甫从长安步行到凤翔投奔肃宗。他被任命为左拾遗。晚年他住在成都郊外的草堂。",
    ],
}


def passages_of(language, folder):
    if folder is None:
        return SAMPLE[language]
    with gzip.open(folder / "evidence_expmrc" / f"{language}.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = {json.loads(line)["source"] for line in lines}
    return sorted(text for text in texts if len(sentence_spans(text)) > 3)


def scripted(passages, chance):
    """One answer: what it says, with which marks, and the numbers of the passages that say it (none for a stranger)."""
    chosen = chance.sample(range(len(passages)), 5)
    shown, stranger = [passages[at] for at in chosen[:4]], passages[chosen[4]]
    said, homes = [], []
    for _ in range(chance.randint(1, 4)):
        home = chance.choice([1, 2, 3, 4, None])
        text = stranger if home is None else shown[home - 1]
        start, end = chance.choice(sentence_spans(text))
        sentence = " ".join(text[start:end].split())
        other = chance.choice([number for number in (1, 2, 3, 4) if number != home])
        mark = chance.choice(MARKS)
        numbers = {"right": [home or other], "missing": [], "invented": [9], "with a wrong one": [home or 9, other]}
        said.append([sentence, numbers.get(mark, [other])])
        homes.append(home)
    if len(said) > 1 and chance.random() < 0.2:
        said[0][1], said[1][1] = said[1][1], said[0][1]
    wide = ord(said[0][0][0]) > 0x2E80
    return ("" if wide else " ").join(f"{text}{''.join(f'[{n}]' for n in numbers)}" for text, numbers in said), shown


def false_marks(answer, shown):
    """Every mark that is shown and that the passage, read by itself or with the claim's others, does not support."""
    documents = [Document(content=text, meta={"number": at}) for at, text in enumerate(shown, start=1)]
    (found,) = CitationExtractor().run([ChatMessage.from_assistant(answer)], documents)["answers"]
    claims = found.meta["claims"]
    written = [number for mark in find_marks(found.data) for number in mark.numbers]
    assert set(written) == {number for one in claims for number in one["numbers"]}
    checker, wrong = ClaimChecker(dict(enumerate(shown, start=1))), []
    for one in claims:
        plain = stated_part(split_claims(one["text"].replace(" ⚠", "").replace("⚠", "")).text)
        for number in one["numbers"]:
            says = checker.relation(plain, number).verdict
            if says not in ("supported", "partial"):
                wrong.append((plain, number, says))
    return wrong, len(written)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_mark_of_thirty_answers_about_the_sample_is_false(language):
    chance, marks = random.Random(755), 0
    for _ in range(30):
        wrong, shown = false_marks(*scripted(SAMPLE[language], chance))
        assert wrong == []
        marks += shown
    assert marks > 30


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_mark_of_two_hundred_answers_about_real_passages_is_false(language, public_data):
    chance, marks, passages = random.Random(757), 0, passages_of(language, public_data)
    for _ in range(200):
        wrong, shown = false_marks(*scripted(passages, chance))
        assert wrong == []
        marks += shown
    assert marks > 200
