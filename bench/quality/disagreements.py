"""
Measures how well sources that disagree are found: 200 pairs that do and 400 that only look so, made from one seed.

    python -m bench.quality.disagreements --show 20

Half of the pairs are made from topics that may be looked at while the rule is changed (`looked_at` in
`disagreements.yaml`). The other half has topics of its own; its numbers are printed and its pairs are not.

Below stands what becomes of them in `precise`, where the grader's model judges the pairs: an answer says both
sentences, and a scripted judge is right in so many of ten cases. It is asked where the rule reports a pair, or where
something else has to be judged as well; then it is asked about pairs of which the rule is not sure, too.
"""

import argparse
import json
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from haystack import Document
from haystack.dataclasses import ChatMessage
from opencc import OpenCC

from shiguan.claims.disagreements import disagreements
from shiguan.grading.answer_grader import check_answer, read_grade

SEED = 20261123
HALVES = ("looked_at", "held")
TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
# How many pairs of each kind a half has.
WANTED = {"number": 34, "date": 33, "name": 33}
ALIKE = {
    "rounding": 25, "units": 25, "reign": 25, "spelling": 25, "script": 20, "transliteration": 20,
    "other_things": 20, "other_times": 20, "other_matters": 20,
}  # fmt: skip
LANGUAGES = (("en", "en"), ("zh", "zh"), ("en", "zh"))
ERAS = {
    "贞观": (627, 649), "开元": (713, 741), "天宝": (742, 755), "元和": (806, 820), "洪武": (1368, 1398),
    "永乐": (1403, 1424), "嘉靖": (1522, 1566), "康熙": (1662, 1722), "乾隆": (1736, 1795), "光绪": (1875, 1908),
}  # fmt: skip
HAN = "零一二三四五六七八九"
ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()  # noqa: E501
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
# How the Wade-Giles system writes what pinyin writes.
WADE_GILES = [
    ("^zh", "ch"), ("^j", "ch"), ("^q", "ch'"), ("^x", "hs"), ("^b", "p"), ("^d", "t"), ("^g", "k"), ("^z(?!h)", "ts"),
    ("^r", "j"), ("ong$", "ung"), ("ian$", "ien"), ("^yan$", "yen"), ("^yi$", "i"), ("e$", "eh"),
]  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """Two quotations, and whether they disagree about something."""

    half: str
    kind: str
    languages: tuple[str, str]
    texts: tuple[str, str]
    disagrees: bool


def han(number: int) -> str:
    """Write a number below a hundred million in Han characters."""
    if number >= 10_000:
        rest = number % 10_000
        return han(number // 10_000) + "万" + ("零" if 0 < rest < 1000 else "") + (han(rest) if rest else "")
    text, gap = "", False
    for size, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, size)
        if digit:
            text += ("零" if gap and text else "") + HAN[digit] + unit
        gap = not digit
    return text.removeprefix("一") if text.startswith("一十") else text


def english(number: int) -> str:
    """Write a number below a hundred in words."""
    if number < 20:
        return ONES[number]
    return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")


def wade_giles(name: str) -> str:
    """Write a name that pinyin writes with its second word in two syllables."""
    surname, given = name.split(" ")
    cut = re.match(r"(.[^aeiou]*[aeiou]+(?:ng|n(?![aeiou]))?)(.+)", given)
    parts = [surname, *(cut.groups() if cut else (given,))]
    for number, part in enumerate(parts):
        word = part.lower()
        for pinyin, written in WADE_GILES:
            word = re.sub(pinyin, written, word)
        parts[number] = word
    return f"{parts[0].capitalize()} {'-'.join(parts[1:]).capitalize()}"


class Maker:
    """Makes the pairs of one half."""

    def __init__(self, half: str) -> None:
        """Take the topics of the half."""
        self.draw = random.Random(f"{SEED}-{half}")
        self.half = half
        self.topics = TABLE[half]

    def pairs(self) -> Iterator[Pair]:
        """Make all pairs of the half, the languages in turn."""
        for kind, count in WANTED.items():
            for number in range(count):
                languages = LANGUAGES[number % 3]
                yield self.pair(kind, languages, self.differing(kind, languages), disagrees=True)
        for kind, count in ALIKE.items():
            make: Callable[[tuple[str, str]], tuple[str, str]] = getattr(self, kind)
            for number in range(count):
                languages = LANGUAGES[number % 3]
                if kind == "script":
                    languages = ("zh", "zh")
                elif kind == "reign":
                    languages = LANGUAGES[1 + number % 2]
                elif kind == "transliteration":
                    languages = LANGUAGES[2 * (number % 2)]
                elif kind.startswith("other"):
                    languages = LANGUAGES[number % 2]
                yield self.pair(kind, languages, make(languages), disagrees=False)

    def pair(self, kind: str, languages: tuple[str, str], texts: tuple[str, str], *, disagrees: bool) -> Pair:
        """Put each sentence among others, as it stands in a quotation."""
        quoted = []
        for language, text in zip(languages, texts, strict=True):
            more = self.draw.choice(self.topics["fillers"][language])
            gap = " " if language == "en" else ""
            quoted.append(self.draw.choice([text, f"{text}{gap}{more}", f"{more}{gap}{text}"]))
        order = self.draw.choice([1, -1])
        return Pair(self.half, kind, languages[::order], (quoted[0], quoted[1])[::order], disagrees)

    def slots(self, languages: tuple[str, str]) -> list[dict[str, str]]:
        """Draw the people and places that a pair speaks of, as each language writes them."""
        western = languages == ("en", "en") and self.draw.random() < 0.5
        people = self.draw.sample(TABLE["westerners" if western else "people"], 4)
        places = self.draw.sample(TABLE["towns" if western else "places"], 4)
        y, z = (str(year) for year in sorted(self.draw.sample(range(1300, 1900), 2)))
        return [
            {
                "n": people[0][at], "m": people[1][at], "v_person": people[2][at], "w_person": people[3][at],
                "p": places[0][at], "o": places[1][at], "v_place": places[2][at], "w_place": places[3][at],
                "y": y, "z": z,
            }
            for at in (int(language == "zh") for language in languages)
        ]  # fmt: skip

    def sentences(self, topic: dict[str, Any], languages: tuple[str, str], *slots: dict[str, str]) -> tuple[str, str]:
        """Fill two wordings of a topic."""
        one, other = (
            self.draw.choice(topic[language]).format(**own) for language, own in zip(languages, slots, strict=True)
        )
        return one, other

    def number(self, value: int, language: str) -> str:
        """Write a number in one of the ways of a language."""
        ways = [str(value), f"{value:,}"] if language == "en" else [str(value), han(value)]
        if language == "en" and value < 100:
            ways.append(english(value))
        return self.draw.choice(ways)

    def year(self, value: int, language: str, *, reign: bool | None = None) -> str:
        """Write a year, in Chinese in digits or, where there is one, by its reign."""
        eras = [(name, value - first + 1) for name, (first, last) in ERAS.items() if first <= value <= last]
        if language == "zh" and eras and (reign or (reign is None and self.draw.random() < 0.4)):
            name, count = eras[0]
            return name + ("元" if count == 1 else han(count))
        plain = str(value)
        return plain if language == "en" else self.draw.choice([plain, "".join(HAN[int(digit)] for digit in plain)])

    def differing(self, kind: str, languages: tuple[str, str]) -> tuple[str, str]:
        """Write two sentences that give different numbers, dates or names."""
        topic = self.draw.choice(self.topics[kind])
        one, other = self.slots(languages)
        if kind == "name":
            return self.sentences(
                topic, languages, one | {"v": one[f"v_{topic['of']}"]}, other | {"v": other[f"w_{topic['of']}"]}
            )
        if kind == "date":
            first = self.a_year()
            second = first + self.draw.choice([-20, -10, -5, -3, -2, 2, 3, 4, 7, 10, 30])
            written = [self.year(year, language) for year, language in zip((first, second), languages, strict=True)]
        else:
            first = second = self.draw.randint(topic["low"], topic["high"])
            while abs(first - second) < 0.12 * max(first, second):
                second = self.draw.randint(topic["low"], topic["high"])
            written = [self.number(value, language) for value, language in zip((first, second), languages, strict=True)]
        return self.sentences(topic, languages, one | {"v": written[0]}, other | {"v": written[1]})

    def a_year(self) -> int:
        """Draw a year, mostly one of a reign."""
        first, last = self.draw.choice([*ERAS.values(), (1300, 1900)])
        return self.draw.randint(first, last)

    def same(self, languages: tuple[str, str], kind: str, written: tuple[str, str]) -> tuple[str, str]:
        """Write two sentences with what is the same in other words."""
        topic = self.draw.choice(self.topics[kind])
        one, other = self.slots(languages)
        return self.sentences(topic, languages, one | {"v": written[0]}, other | {"v": written[1]})

    def rounding(self, languages: tuple[str, str]) -> tuple[str, str]:
        """Say the same number exactly and round."""
        exact = self.draw.randint(1010, 9990) if self.draw.random() < 0.5 else self.draw.randint(103, 990)
        size = 100 if exact > 1000 else 10
        rounded = round(exact / size) * size
        words = {"en": ["about", "some", "roughly"], "zh": ["约", "大约"]}
        if rounded < exact:
            words["en"] += ["more than", "over"]
        elif rounded > exact:
            words = {"en": [*words["en"], "nearly", "almost"], "zh": [*words["zh"], "近", "将近"]}
        hedge = self.draw.choice(words[languages[1]])
        number = self.number(rounded, languages[1])
        if languages[1] == "zh" and rounded < exact and number[-1] in "百千十":
            number, hedge = f"{number}余", ""
        gap = " " if languages[1] == "en" else ""
        if exact > 1000 and self.draw.random() < 0.25:
            hedge = gap = ""
        return self.same(languages, "number", (self.number(exact, languages[0]), f"{hedge}{gap}{number}"))

    def units(self, languages: tuple[str, str]) -> tuple[str, str]:
        """Say the same length in two units."""
        kilometres = self.draw.randint(2, 60)
        ways = {
            "en": [f"{kilometres} kilometres", f"{kilometres * 1000:,} metres",
                   f"{kilometres * 0.6214:.1f} miles", f"{kilometres} km"],
            "zh": [f"{kilometres}公里", f"{kilometres * 2}里", f"{han(kilometres * 2)}里", f"{kilometres * 1000}米",
                   f"{kilometres}千米"],
        }  # fmt: skip
        one, other = self.draw.choice(ways[languages[0]]), self.draw.choice(ways[languages[1]])
        while one == other:
            other = self.draw.choice(ways[languages[1]])
        slots = self.slots(languages)
        return self.sentences(self.topics["lengths"], languages, slots[0] | {"v": one}, slots[1] | {"v": other})

    def reign(self, languages: tuple[str, str]) -> tuple[str, str]:
        """Say the same year as a year of a reign and as a Western one."""
        first, last = self.draw.choice(list(ERAS.values()))
        year = self.draw.randint(first, last)
        return self.same(
            languages, "date", (self.year(year, languages[0], reign=False), self.year(year, "zh", reign=True))
        )

    def spelling(self, languages: tuple[str, str]) -> tuple[str, str]:
        """Write the same number in two ways."""
        value = self.draw.choice(
            [self.draw.randint(2, 99), self.draw.randint(2, 9) * 10_000, self.draw.randint(11, 99) * 1000]
        )
        ways = {"en": [str(value), f"{value:,}"], "zh": [str(value), han(value)]}
        if value < 100:
            ways["en"].append(english(value))
        elif not value % 10_000:
            ways["zh"].append(f"{value // 10_000}万")
        else:
            ways["en"].append(f"{english(value // 1000)} thousand")
            ways["zh"].append(f"{value / 10_000:g}万")
        one, other = self.draw.choice(ways[languages[0]]), self.draw.choice(ways[languages[1]])
        return self.same(languages, "number", (one, other))

    def script(self, languages: tuple[str, str]) -> tuple[str, str]:
        """Write the same in simplified and in traditional characters."""
        kind = self.draw.choice(["number", "date", "name"])
        topic = self.draw.choice(self.topics[kind])
        slots = self.slots(languages)[0]
        value = {"number": han(self.draw.randint(3, 900)), "date": str(self.a_year())}.get(kind) or slots[
            f"v_{topic['of']}"
        ]
        one, other = self.sentences(topic, languages, slots | {"v": value}, slots | {"v": value})
        return one, OpenCC(self.draw.choice(["s2t", "s2tw", "s2hk"])).convert(other)

    def transliteration(self, languages: tuple[str, str]) -> tuple[str, str]:
        """Write the same names in two ways."""
        topic = self.draw.choice(self.topics["name"])
        one, other = self.slots(languages) if languages[1] == "zh" else [self.slots(("en", "zh"))[0]] * 2
        one, other = one | {"v": one[f"v_{topic['of']}"]}, other | {"v": other[f"v_{topic['of']}"]}
        if languages[1] == "en":
            other = {name: wade_giles(text) if " " in text else text for name, text in other.items()}
        return self.sentences(topic, languages, one, other)

    def other_things(self, languages: tuple[str, str]) -> tuple[str, str]:
        """Count different things."""
        return self.template("other_things", languages)

    def other_times(self, languages: tuple[str, str]) -> tuple[str, str]:
        """Count the same things at different times."""
        return self.template("other_times", languages)

    def other_matters(self, languages: tuple[str, str]) -> tuple[str, str]:
        """Speak of different events or people."""
        return self.template("other_matters", languages)

    def template(self, name: str, languages: tuple[str, str]) -> tuple[str, str]:
        """Fill both sentences of a pair of templates."""
        one, other = self.draw.choice(self.topics[name][languages[0]])
        slots = self.slots(languages)[0]
        numbers = {letter: self.number(self.draw.randint(20, 900), languages[0]) for letter in "vw"}
        return one.format(**slots, **numbers), other.format(**slots, **numbers)


def pairs() -> list[Pair]:
    """Make all pairs."""
    return [pair for half in HALVES for pair in Maker(half).pairs()]


@dataclass(frozen=True)
class Judge:
    """A scripted judge of pairs: how often it is right, and whether something else has to be judged in its call."""

    right: float
    asked_anyway: bool

    def reports(self, pair: Pair) -> bool:
        """Let the grader judge an answer that says what both quotations of a pair say."""
        draw = random.Random(f"{SEED}-{pair.texts}")
        numbered = list(enumerate(pair.texts, start=1))
        documents = [Document(id=f"p{number}", content=text, meta={"number": number}) for number, text in numbered]
        reply = ChatMessage.from_assistant("\n\n".join(f"{text} [{number}]" for number, text in numbered))
        checked = check_answer(reply, documents, "", pair.languages[0])
        if self.asked_anyway or any(one["disagree"] for one in checked.pairs):
            said = [pair.disagrees == (draw.random() < self.right) for _ in checked.pairs]
            pairs = [{"id": number, "disagree": one} for number, one in enumerate(said, start=1)]
            marks = dict.fromkeys(("support", "relevance", "completeness", "clarity"), 9)
            checked = read_grade(json.dumps({**marks, "pairs": pairs}), checked) or checked
        return any(one["disagree"] for one in checked.pairs)


def print_judges() -> None:
    """Print what is found and what is a false alarm with judges that are right more or less often."""
    made = pairs()
    for asked_anyway in (False, True):
        print("judged anyway" if asked_anyway else "judged where the rule reports a pair")
        for right in (1.0, 0.9, 0.7, 0.5):
            judge = Judge(right, asked_anyway)
            reported = [(pair, judge.reports(pair)) for pair in made]
            shares = [
                statistics.mean(hit for pair, hit in reported if (pair.half, pair.disagrees) == (half, disagrees))
                for half in HALVES
                for disagrees in (True, False)
            ]
            print(
                f"  right in {right:.1f}: found {shares[0]:.3f} {shares[2]:.3f}, alarms {shares[1]:.3f} {shares[3]:.3f}"
            )


def main() -> None:
    """Print what is found and what is a false alarm, and pairs of the half that may be looked at which are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, default=0, help="how many wrong pairs of the first half to print")
    options = parser.parse_args()
    counts: Counter[tuple[str, str, bool]] = Counter()
    wrong, times = [], []
    for pair in pairs():
        began = time.process_time()
        found = disagreements(pair.texts)
        times.append(1000 * (time.process_time() - began))
        hit = any(one.kind == pair.kind for one in found) if pair.disagrees else bool(found)
        for kind in (pair.kind, "all that disagree" if pair.disagrees else "all that look so"):
            counts[pair.half, kind, True] += 1
            counts[pair.half, kind, False] += hit
        if hit != pair.disagrees and pair.half == "looked_at":
            wrong.append((pair, found))
    for half in HALVES:
        print(half)
        for kind in [*WANTED, "all that disagree", *ALIKE, "all that look so"]:
            said, made = counts[half, kind, False], counts[half, kind, True]
            print(f"  {kind:18} {said:4} of {made:4} = {said / made:.3f}")
    p95 = statistics.quantiles(times, n=20)[18]
    print(f"ms of processor a pair: median {statistics.median(times):.2f}, p95 {p95:.2f}")
    print_judges()
    for pair, found in wrong[: options.show]:
        print(pair.kind, *pair.texts, *((one.kind, one.values) for one in found), sep="\n    ")


if __name__ == "__main__":
    main()
