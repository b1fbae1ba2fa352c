"""Claims that a passage says in other words or another language, laid beside its sentences by the packaged embedder."""

import numpy as np
import pytest

from shiguan.claims.alignment import Alignment
from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claims import split_claims
from shiguan.errors import ModelMissingError
from shiguan.models.engine import engine

ZH = "在天宝十四载的十一月，安禄山在范阳起兵反叛了朝廷。第二年，将军郭子仪已经把长安收复了。"
RISE, TAKE = ZH[:25], ZH[25:]
SALT = "唐代的盐由国家专卖，商人须有许可。"


def support(claim, *passages):
    checker = ClaimChecker(dict(enumerate(passages or (ZH,), start=1)))
    (checked,) = checker.check(split_claims(claim))
    return checked.support, checked.quote


def read_as(monkeypatch, vectors):
    """Give the tokens of each text these vectors."""
    monkeypatch.setattr(
        "shiguan.claims.alignment._token_vectors",
        lambda text: ([(0, 1)] * len(vectors[text]), np.array(vectors[text], np.float16)),
    )


def missing(*_):
    raise ModelMissingError("no weights")


def test_the_share_is_the_mean_of_each_tokens_highest_cosine(monkeypatch):
    near = [[0, 1], [3 / 5, 4 / 5]]
    read_as(monkeypatch, {"claim": [[1, 0], [0, 1]], "near": near, "far": [[-1, 0]], "": np.zeros((0, 2))})
    alignment = Alignment()
    assert alignment.best("claim", ["far", "near"]) == (pytest.approx(0.8, abs=1e-3), 1)
    assert alignment.best("claim", ["far"]) == (pytest.approx(-0.5), 0)
    assert alignment.best("claim", []) == alignment.best("claim", [""]) == alignment.best("", ["near"]) == (0.0, 0)


def test_across_languages_texts_are_projected_and_tokens_weighted(monkeypatch):
    read_as(monkeypatch, {"claim": [[1, 0], [0, 1]], "text": [[1, 0]]})
    turned = {"text_in": [[1], [0]], "text_out": [[-1, 1]]}  # (1, 0) becomes (0, 1)
    alike = {"claim_in": [[0], [0]], "claim_out": [[0, 0]]}
    # Weights of ln(1 + 3) and ln(1 + 1): the first token counts twice as much.
    learned = {**turned, **alike, "weight": [np.log(3), 0], "bias": 0}
    monkeypatch.setattr("shiguan.claims.alignment._LEARNED", {name: np.array(part) for name, part in learned.items()})
    monkeypatch.setattr("shiguan.claims.alignment._LOWER", 0.25)
    assert Alignment().best("claim", ["text"], across=True) == (pytest.approx(1 / 3 + 0.25), 0)
    assert Alignment().best("claim", ["text"]) == (pytest.approx(1 / 2), 0)


def test_no_sentence_of_the_passages_is_read_for_each_claim_again(monkeypatch):
    read, texts = [], [f"text {at}" for at in range(600)]
    monkeypatch.setattr(
        "shiguan.claims.alignment._token_vectors", lambda text: read.append(text) or ([(0, 1)], np.ones((1, 2)))
    )
    alignment = Alignment()
    for claim in ("one", "two", "three"):
        alignment.best(claim, texts)
    assert len(read) == 603


def test_a_text_lies_wholly_beside_itself():
    assert Alignment().best("The kaghan sent him a horse.", ["The kaghan sent him a horse."])[0] > 0.999


def test_names_and_numbers_are_left_to_the_rules_that_compare_them():
    told, *invented = (
        Alignment().best(claim, [TAKE])[0]
        for claim in ("把长安夺回了。", "郭子仪把女儿卖给了商人。", "郭子仪把女儿卖给了商人，时在763年。")
    )
    assert max(invented) < told - 0.15


def test_every_token_of_a_long_text_has_a_vector_and_a_place():
    sentence = "He rode to the city and back again."
    places, vectors = engine().token_vectors(" ".join([sentence] * 100))
    once, _ = engine().token_vectors(sentence)
    assert len(places) == len(vectors) == 100 * len(once)
    assert places[: len(once)] == once
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0)
    assert len(engine().token_vectors("")[0]) == 0


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("An Lushan rebelled in the eleventh month of 755. [1]", RISE),
        ("The general Guo Ziyi had recovered the city. [1]", TAKE),
        ("郭子仪次年夺回了京师长安。[1]", TAKE),
    ],
)
def test_what_is_said_in_other_words_or_in_another_language_is_partial_with_its_place(claim, quote):
    found, place = support(claim)
    assert (found.verdict, place) == ("partial", quote)


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("An Lushan rebelled in the twelfth month of 755. [1]", "twelfth"),
        ("Guo Ziyi took the city in 763. [1]", "763"),
        ("Tian Chengsi rebelled in 755. [1]", "no passage has Tian Chengsi"),
        ("The general sold his daughter to a merchant. [1]", "nothing like it is there"),
        ("郭子仪把女儿卖给了商人。[1]", "the passages do not say so"),
    ],
)
def test_a_wrong_number_or_name_and_another_matter_stay_unsupported(claim, reason):
    found, _ = support(claim)
    assert found.verdict == "unsupported"
    assert reason in found.reason


def test_of_several_passages_in_another_language_the_one_that_says_it_counts():
    found, place = support("Salt was sold under licence [1][2].", ZH, SALT)
    assert (found.verdict, found.passage, place) == ("partial", 1, SALT)


@pytest.mark.parametrize(
    ("claim", "wrong", "passage"),
    [
        ("He wrote a four-note tune.", "He wrote a five-note tune.", "他写了四音符的主题曲。"),
        ("腓力二世下令攻打那座要塞。", "腓力三世下令攻打那座要塞。", "Philip II ordered an attack on the fort."),
        ("河因在五月发现而得名。", "河因在六月发现而得名。", "The river was named for its discovery in May."),
        ("头两条公路打开了森林。", "头三条公路打开了森林。", "The first two highways opened the forest."),
    ],
)
def test_a_number_that_the_other_language_writes_in_or_as_a_word_counts_as_said(claim, wrong, passage):
    assert support(f"{claim} [1]", passage)[0].verdict == "partial"
    assert support(f"{wrong} [1]", passage)[0].verdict == "unsupported"


def test_a_number_of_another_place_of_the_passage_does_not_stand_beside_a_claim_in_another_language():
    far = "".join(["这座城市有宽阔的街道。", "商人在市场上出售丝绸。", "农民在田里种植小麦。"])
    passage = f"他写了两部小说。{far}她养了九只猫。"
    assert support("He wrote two novels. [1]", passage)[0].verdict == "partial"
    found, _ = support("He wrote nine novels. [1]", passage)
    assert found.verdict == "unsupported"
    assert "nine" in found.reason


def test_without_the_model_words_names_and_numbers_decide(monkeypatch):
    monkeypatch.setattr("shiguan.claims.alignment.engine", missing)
    assert support("Guo Ziyi recovered the capital. [1]")[0].verdict == "partial"
    assert support("The general rebelled. [1]")[0].verdict == "unsupported"
    assert support("郭子仪次年夺回了京师长安。[1]")[0].verdict == "unsupported"


def test_no_claim_is_laid_beside_what_has_it_word_for_word(monkeypatch):
    monkeypatch.setattr("shiguan.claims.checker.Alignment.best", lambda *_: pytest.fail("was laid beside"))
    assert support("安禄山在范阳起兵反叛了朝廷。")[0].verdict == "supported"


PIER = (
    "The old pier had stood for ninety years when the ice of 1881 carried it off in a single night. Captain Hollis, who "
    "had tied his sloop to it that evening, woke adrift three miles down the estuary and rowed home to tell the harbour "
    "master. The town voted at once to build another of stone."
)


@pytest.mark.parametrize(
    ("told", "invented"),
    [
        ("Frozen water swept the landing stage away overnight.", "Captain Hollis asked the town to pay for his lost sloop."),
        ("He only noticed on waking that his boat had been carried away by the current.", "Hollis later married the harbour master's daughter."),
    ],
)  # fmt: skip
def test_what_is_told_in_other_words_is_likelier_than_what_is_invented_in_those_of_the_passage(told, invented):
    alignment = Alignment()
    alone = {claim: alignment.best(claim, [PIER])[0] for claim in (told, invented)}
    read = {claim: alignment.confirmed(claim, PIER, (0, len(PIER)), aligned) for claim, aligned in alone.items()}
    assert alone[told] < alone[invented]
    assert read[told] > read[invented]
    assert support(told, PIER)[0].verdict == "partial"


def test_the_judge_raises_and_lowers_an_alignment(monkeypatch):
    place = (0, len(PIER))
    found = []
    for odds in (-3.9, -1.9, 2.1):
        monkeypatch.setattr("shiguan.claims.alignment._log_odds", lambda *_, odds=odds: odds)
        found.append(Alignment().confirmed("The ice took it.", PIER, place, 0.5))
    assert found == [pytest.approx(one) for one in (0.37, 0.5, 0.76)]
    assert Alignment().confirmed("Das Eis nahm ihn mit sich fort.", PIER, place, 0.5) == 0.5


def test_without_the_judge_the_alignment_stays(monkeypatch):
    monkeypatch.setattr("shiguan.claims.alignment._log_odds", missing)
    assert Alignment().confirmed("The ice took it.", PIER, (0, len(PIER)), 0.5) == 0.5
