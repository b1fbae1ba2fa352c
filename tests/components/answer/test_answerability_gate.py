"""The gate: what goes on to a model, what is refused, and how likely the passages answer."""

import pytest
from haystack import Document
from tests.doubles.found_passage import QUERY, passage

from shiguan.answer.answerability_gate import (
    CLOSEST_BELOW,
    AnswerabilityGate,
    Calibration,
    Signals,
    near_names,
    signals_of,
)
from shiguan.llm.calls import Outcome


def near(cosine, parent="p1", language="en", **meta):
    meta = {"parent_id": parent, "language": language, **meta}
    return Document(id=f"c{parent}{cosine}", score=cosine, meta=meta)


def run(documents, query=QUERY, *, cosines=(0.93, 0.8), needs_documents=True, **more):
    gate = AnswerabilityGate(needs_documents=needs_documents)
    return gate.run(documents, query, nearest=[near(one) for one in cosines], **more)


def likely(nearest, query=QUERY, read=None):
    return AnswerabilityGate().run([read or passage()], query, nearest=nearest)["confidence"]


def test_what_was_found_goes_on_and_is_told_how_likely_it_answers():
    documents = [passage()]
    near_it, far = run(documents), run(documents, "What is the capital of France?", cosines=(0.76, 0.75))
    assert (near_it["documents"], far["documents"]) == (documents, documents)
    assert "outcome" not in near_it.keys() | far.keys()
    assert far["confidence"] < 0.15 < 0.5 < near_it["confidence"]


def test_where_nothing_was_found_no_model_is_asked_unless_the_mode_can_ask_elsewhere():
    told = run([])
    assert (told["outcome"], told["confidence"]) == (Outcome("not_found", "nothing_found"), 0.0)
    assert "documents" not in told
    told = run([], needs_documents=False)
    assert (told["documents"], told["confidence"]) == ([], 0.0)
    assert "outcome" not in told


@pytest.mark.parametrize(("question", "said", "there"), [
    ("What did taking Chang'an back cost in modern dollars?", "It cost a million strings of cash.", False),
    ("What did taking Chang'an back cost in modern dollars?", "It cost $3.", True),
    ("How many dollars did taking Chang'an back cost?", "It cost a dollar.", True),
    ("How many dollars did taking Chang'an back cost?", "It cost a million euros.", False),
    ("收復長安花了多少億美元？", "收复长安，费钱百万贯。", False), ("收復長安折合多少歐元？", "收复长安，费€300。", True),
    ("How many won when Chang'an was taken back?", "They win.", True),
    ("Who took Chang'an back for a dollar?", "It cost a million strings of cash.", True),
    ("What did taking Chang'an back cost in strings of cash?", "It cost a million.", True),
])  # fmt: skip
def test_an_amount_in_money_that_no_passage_names_is_not_there(question, said, there):
    text = f"In 757 Guo Ziyi took Chang'an back 收复长安. {said}"
    confidence = run([passage(text, sentence=said)], question)["confidence"]
    assert (confidence > 0) is there


@pytest.mark.parametrize("nearest", [[], [near(0.8, "another")]])
def test_where_no_vector_tells_of_the_passages_their_words_decide(nearest):
    assert likely(nearest) == pytest.approx(0.5, abs=0.2)
    assert likely(nearest, "What is the capital of France?") < 0.15


def test_a_passage_that_is_not_among_the_nearest_is_far_once_every_passage_has_its_vector():
    """With its words alone it may be likely; that its vector is farther than fifty others says that it is not."""
    waiting = likely([near(0.82, "another")])
    assert likely([near(0.82, "another", all_embedded=True)]) < 0.3 < waiting == likely([])


@pytest.mark.parametrize(("question", "said", "denied"), [
    ("Who did not take Chang'an back in 757?", "In 757 Guo Ziyi took Chang'an back.", False),
    ("Who didn’t take Chang'an back in 757?", "In 757 Guo Ziyi took Chang'an back.", False),
    ("Which non-Tang army took Chang'an back in 757?", "In 757 Guo Ziyi took Chang'an back.", False),
    ("Who did not take Chang'an back in 757?", "In 757 Guo Ziyi failed to take Chang'an back.", True),
    ("Who did not take Chang'an back in 757?", "757年郭子仪没有收复长安。", True),
    ("Who took Chang'an back in 757?", "In 757 Guo Ziyi took Chang'an back.", True),
    ("Note: who took Chang'an back in 757?", "In 757 Guo Ziyi took Chang'an back.", True),
])  # fmt: skip
def test_a_question_that_denies_is_hardly_answered_by_a_sentence_that_does_not(question, said, denied):
    text = f"The city was large. {said} He had horsemen. The rebels never rested."
    found = likely([near(0.95)], question, passage(text, sentence=said))
    assert found > 0.3 if denied else found == 0.1


def test_a_question_that_denies_of_a_passage_without_sentences_is_hardly_answered():
    assert run([Document(id="p1", content="", meta={"language": "en"})], "Who was not there?")["confidence"] <= 0.1


def test_a_cosine_that_was_scaled_counts_as_it_was():
    scaled = [Document(id="c", score=1.0, meta={"parent_id": "p1", "language": "en", "raw_score": 0.93}), near(0.8)]
    assert likely(scaled) == likely([near(0.93), near(0.8)])


@pytest.mark.parametrize(("threshold", "goes_on"), [(0.0, True), (1.0, False), (None, True)])
def test_a_caller_may_ask_for_answers_above_a_threshold_alone(threshold, goes_on):
    told = run([passage(number=None)], confidence_threshold=threshold)
    assert 0.5 < told["confidence"] < 1
    assert ("documents" in told, "outcome" in told) == (goes_on, not goes_on)
    # What came through once has a number, and comes through in later rounds.
    assert "documents" in run([passage(number=1)], confidence_threshold=threshold)


def test_the_inputs_stay_as_they_are():
    documents, nearest = [passage()], [near(0.9)]
    before = [one.to_dict() for one in (*documents, *nearest)]
    AnswerabilityGate().run(documents, QUERY, nearest=nearest)
    assert [one.to_dict() for one in (*documents, *nearest)] == before


def test_signals_are_what_they_are_called():
    found = signals_of(QUERY, [passage()], [near(0.9), near(0.7), near(0.8, "p2")])
    assert (found.cosine, found.agreement, found.chinese, found.same_language) == (0.9, 1.0, 0.0, 1.0)
    # "take" is not "took"; Guo, Ziyi and Chang'an are there and weigh more.
    assert 0.7 < found.coverage < 1


def test_what_stands_behind_the_first_passage_in_another_language_changes_nothing_of_the_languages():
    other = passage("南海有鲸。", sentence="南海有鲸。", language="zh")
    found = [signals_of(QUERY, some, [near(0.9)]) for some in ([passage()], [passage(), other, other], [other])]
    assert [one.same_language for one in found] == [1.0, 1.0, 0.0]


def test_the_cosine_is_of_the_first_passages_language_and_more_in_another_than_the_questions():
    chinese = passage("南海有鲸。", sentence="南海有鲸。", language="zh")
    found = [Document(id="c", score=0.8, meta={"parent_id": "p1", "language": "zh"}), near(0.9, "p2")]
    assert signals_of(QUERY, [chinese], found).cosine == pytest.approx(0.87)
    assert signals_of("鲸在哪里？", [chinese], found).cosine == 0.8
    assert signals_of(QUERY, [chinese], [near(0.9, "p2")]).cosine == pytest.approx(0.97)
    assert signals_of(QUERY, [chinese], []).cosine == 0.0


def test_the_gap_is_what_another_language_has_nearer_than_that_of_the_first_passage():
    found = [near(0.9, "p2", "zh"), near(0.8)]
    assert signals_of(QUERY, [passage()], found).language_gap == pytest.approx(0.1)
    assert signals_of(QUERY, [passage()], [near(0.9), near(0.8, "p2", "zh")]).language_gap == 0.0
    assert signals_of(QUERY, [passage()], [near(0.9, "p2", "zh")]).language_gap == 0.0
    assert likely([near(0.93), near(0.8)]) - likely([near(0.96, "p2", "zh"), near(0.93)]) > 0.1


def test_words_are_covered_in_translation_too():
    chinese = passage("安禄山反。南海有鲸。", sentence="南海有鲸。", language="zh")
    assert signals_of("Where are whales?", [chinese], [near(0.9)]).coverage == 1.0
    assert signals_of("Where are elephants?", [chinese], [near(0.9)]).coverage == 0.0
    assert signals_of("鲸在哪里？", [passage("A whale.", sentence="A whale.")], [near(0.9)]).coverage == 1.0


def test_in_one_language_nothing_counts_of_what_is_for_passages_in_another():
    found = signals_of(QUERY, [passage()], [near(0.9), near(0.5, "p2")])
    assert (found.matched_coverage, found.lead) == (0.0, 0.0)


def test_across_languages_only_the_words_of_the_first_passages_matched_places_count():
    whale = passage("安禄山反。南海有鲸。", sentence="南海有鲸。", language="zh")
    rebel = passage("安禄山反。南海有鲸。", sentence="安禄山反。", language="zh")
    cut = passage("南海有鲸。", sentence="南海有鲸。", language="zh", cut=[5, 10])
    cut.meta["matches"] = whale.meta["matches"]
    unmatched = Document(id="p1", content=whale.content, meta={"language": "zh"})
    for read, share in (([whale, rebel], 1.0), ([rebel, whale], 0.0), ([cut], 1.0), ([unmatched], 1.0)):
        found = signals_of("Where are whales?", read, [near(0.9, language="zh")])
        assert (found.coverage, found.matched_coverage) == (1.0, share)


def test_across_languages_a_name_is_one_of_the_words_by_its_sound():
    rebels = passage("史朝义自缢，李怀仙传首京师。", sentence="史朝义自缢", language="zh")
    assert signals_of("Who was Shi Chaoyi?", [rebels], []).matched_coverage == 1.0
    assert signals_of("Who was Shi Siming?", [rebels], []).matched_coverage < 0.5


def test_the_lead_is_over_the_five_next_passages_of_the_same_language():
    chinese = passage("南海有鲸。", sentence="南海有鲸。", language="zh")
    behind = [near(cosine, f"z{at}", "zh") for at, cosine in enumerate((0.8, 0.8, 0.7, 0.6, 0.6, 0.1))]
    again = [near(0.85, "p1", "zh"), near(0.95, "e1")]
    found = signals_of(QUERY, [chinese], [near(0.9, "p1", "zh"), *behind, *again])
    assert found.lead == pytest.approx(0.2)
    assert signals_of(QUERY, [chinese], [near(0.9, "p1", "zh"), *again]).lead == 0.0
    assert signals_of(QUERY, [chinese], []).lead == 0.0


def across(question, said, *cosines, language="zh"):
    nearest = [near(cosine, f"p{at}", language) for at, cosine in enumerate(cosines, start=1)]
    return likely(nearest, question, passage(said, sentence=said, language=language))


def test_a_passage_in_another_language_answers_likely_by_its_words_or_where_it_stands_out():
    level, ahead = (0.85, 0.845, 0.84), (0.85, 0.78, 0.77)
    assert across("Who invented the telephone?", "王武俊称赵王。", *level) < CLOSEST_BELOW
    assert across("Who invented the telephone?", "贝尔发明了电话。", *level) > CLOSEST_BELOW
    assert across("Who was the king of Zhao?", "王武俊称赵王。", *ahead) > CLOSEST_BELOW


def test_between_languages_without_a_dictionary_nothing_was_measured_and_the_cosine_decides():
    for cosine, likely in ((0.85, True), (0.78, False)):
        told = across("Who invented the telephone?", "Nichts davon.", cosine, cosine, language="de")
        assert (told >= CLOSEST_BELOW) is likely


def test_the_probability_is_the_logistic_of_the_weighted_signals():
    model = Calibration(-1.0, Signals(2.0, 0.0, 0.0, 0.0, 0.0))
    assert model.probability(Signals(0.5, 1, 1, 1, 1)) == 0.5


# -- names that no passage has ---------------------------------------------------------------------------------------

ENGLISH = "Call me Ishmael. Some years ago Queequeg and Captain Ahab sailed."
CHINESE = "安祿山反於范陽，郭子儀收長安。"


@pytest.mark.parametrize(("question", "passage", "offered"), [
    ("Who was Ismael?", ENGLISH, [("Ismael", "Ishmael")]),
    ("What did Quequeg and Ahab do?", ENGLISH, [("Quequeg", "Queequeg")]),
    ("Who was Ishmael?", ENGLISH, []), ("What is Ishmael's ship?", ENGLISH, []), ("Who was Napoleon?", ENGLISH, []),
    ("安路山是谁？", CHINESE, [("安路山", "安禄山")]), ("安禄山是谁？", CHINESE, []), ("李林甫是谁？", CHINESE, []),
    ("安禄山以后谁收复长安？", CHINESE, []),
    ("Who was the African chief?", "He went to Africa.", []),
    ("", ENGLISH, []), ("Who was Ismael?", "", []),
])  # fmt: skip
def test_the_nearest_name_is_offered(question, passage, offered):
    chinese = any("一" <= character <= "鿿" for character in question)
    note = "没有一段提到“{}”。是否指“{}”？" if chinese else "No passage has “{}”. Did you mean “{}”?"
    said = [note.format(*pair) for pair in offered]
    assert near_names(question, [Document(content=passage)]) == said


def test_the_gate_warns_of_a_name_whether_it_answers_or_not():
    document = Document(id="p", content=ENGLISH, meta={})
    for threshold in (None, 1.0):
        told = AnswerabilityGate().run([document], "Who was Ismael?", confidence_threshold=threshold)
        assert ("outcome" in told) == (threshold is not None)
        assert told["warnings"] == ["No passage has “Ismael”. Did you mean “Ishmael”?"]


def test_a_date_of_the_question_that_does_not_exist_is_named():
    document = Document(id="p", content=CHINESE, meta={})
    warned = AnswerabilityGate().run([document], "天宝十六载发生了什么？")["warnings"]
    assert warned == ["天宝十六载 does not exist: 天寶 has 15 years and no year 16."]
    assert AnswerabilityGate().run([document], "天宝十五载发生了什么？")["warnings"] == []
