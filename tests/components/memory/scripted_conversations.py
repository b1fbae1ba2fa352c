"""Conversations of ten to twenty turns put together from tests/data/conversations.yml, each turn with its route."""

import random
from dataclasses import dataclass
from pathlib import Path

import yaml

DATA = Path(__file__).parents[2] / "data" / "conversations.yml"
CONVERSATIONS = 48


@dataclass(frozen=True)
class ScriptedTurn:
    question: str
    answer: str
    source: str


@dataclass(frozen=True)
class ScriptedConversation:
    id: str
    language: str
    held_out: bool
    turns: tuple[ScriptedTurn, ...]
    contradiction: tuple[str, str]


def scripted_conversations() -> list[ScriptedConversation]:
    data = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return [_conversation(number, data) for number in range(CONVERSATIONS)]


def _conversation(number: int, data: dict) -> ScriptedConversation:
    chance = random.Random(755 + number)
    language, half = ("en", "zh")[number % 2], number // 2 % 2
    table = data[language]
    topics = table["topics"][half::2]
    first, second, third = chance.sample(topics, 3)

    def phrase(kind: str, topic: dict) -> str:
        return chance.choice(table[kind][half::2]).format(**topic)

    def block(topic: dict, follows: int) -> list[tuple[str, str, str]]:
        chosen = [(chance.choice(topic["asks"]), "database")]
        chosen += [(one, "both") for one in chance.sample(topic["follows"], follows)]
        return [(*one.split(" | "), source) for one, source in chosen]

    turns = block(first, chance.randint(2, 4))
    turns[-1] = (turns[-1][0], f"{turns[-1][1]} {first['wrong']}", turns[-1][2])
    turns.append((phrase("doubts", first), first["truth"], "both"))
    turns += block(second, chance.randint(1, 3))
    turns.append((phrase("talk", second), first["name"], "history"))
    turns += block(third, chance.randint(1, 3))
    turns.append((phrase("returns", first), first["truth"], "both"))
    turns.append((phrase("talk", first), second["name"], "history"))
    return ScriptedConversation(
        f"{language}-{number:02}",
        language,
        bool(half),
        tuple(ScriptedTurn(*turn) for turn in turns),
        (first["wrong"], first["truth"]),
    )
