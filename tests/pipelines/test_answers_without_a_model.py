"""Every mode says the same about the same library where no model writes the answer, and why none does."""

import pytest
from examples.build_book import build_book
from tests.doubles.small_library import TENANT

from shiguan.engine.library import Library
from shiguan.engine.runner import Runner
from shiguan.text.languages import detect_language

MODES = ("simple", "advanced", "precise", "agent")
QUESTIONS = [
    "How many people did the census of 755 count?", "What did the An Lushan rebellion cost in modern dollars?",
    "Why did the emperor flee to Fengtian in 783?", "Who held Suiyang in 757?", "Who was Guo Ziyi?",
    "who proposed the two-tax reform", "When did An Lushan die?", "How did Yang Guifei die?",
    "What is a fanzhen?", "What happened at Tong Pass?", "Who was Napoleon?", "What is the capital of France?",
    "Did the rebellion end in 763?", "元和國計簿總計天下有多少方鎮？", "安史之乱何时爆发？", "安祿山是誰？",
    "誰守睢陽？", "郭子儀收復長安在哪一年？", "拿破崙何時出生？", "珠穆朗玛峰有多高？",
]  # fmt: skip
ASKED = {"en": "Who proposed the two-tax reform?", "zh": "安禄山何时起兵？"}
SENTENCES = {
    "no_model": ("No language model is configured", "没有设置语言模型"),
    "unreachable": ("its server could not be reached", "连接不上服务器"),
    "refused_key": ("The language model refused its API key", "语言模型不接受所设的 API 密钥"),
    "budget": ("budget was spent before the language model could answer", "本题的预算已经用完"),
}


@pytest.fixture(scope="module")
def sample_book(tmp_path_factory):
    """The library of the sample book."""
    folder = tmp_path_factory.mktemp("sample-book")
    book = build_book(folder / "an-lushan-rebellion.epub")
    (result,) = Library(data_dir=folder / "library").ingest([book], tenant_id=TENANT)
    assert result.parents > 60
    return folder / "library"


@pytest.mark.slow
def test_twenty_questions_get_the_same_kind_of_answer_for_the_same_reasons_in_every_mode(sample_book):
    told = {}
    for mode in MODES:
        with Runner("embedded", mode, data_dir=sample_book) as runner:
            for question in QUESTIONS:
                answer = runner.ask(question, tenant_id=TENANT)
                reasons = [answer["metadata"][name] for name in ("reason", "absent", "waiting")]
                told.setdefault(question, []).append((answer["status"], reasons))
    assert {question: seen for question, seen in told.items() if any(one != seen[0] for one in seen)} == {}
    assert {seen[0][0] for seen in told.values()} == {"quoted", "closest", "not_found"}


@pytest.fixture(params=SENTENCES)
def cause(request, stand_in_llm, monkeypatch, waits):
    """A reason why no model answers, set up: its name and the options with which a question meets it."""
    if request.param != "no_model":
        monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
    if request.param == "unreachable":
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    if request.param == "refused_key":
        stand_in_llm.next(times=99, status=401)
    return request.param, {"budget": {"calls": 0}} if request.param == "budget" else {}


@pytest.mark.parametrize("mode", MODES)
def test_each_cause_has_its_own_true_sentence_in_two_languages(cause, opened, mode):
    (name, options), runner = cause, opened(mode)
    for place, question in enumerate(ASKED.values()):
        answer = runner.ask(question, tenant_id=TENANT, **options)
        assert answer["metadata"]["reason"] == name
        assert [cause for cause, sentences in SENTENCES.items() if sentences[place] in answer["answer"]] == [name]


# -- a bilingual library whose closest passages are in the other language ----------------------------------------------

DOUBT = {"en": "No passage clearly answers this question.", "zh": "没有哪一段明确回答这个问题。"}


@pytest.fixture(scope="module")
def simple(sample_book):
    with Runner("embedded", "simple", data_dir=sample_book) as runner:
        yield runner


@pytest.mark.slow
@pytest.mark.parametrize(("question", "status"), [
    ("Who invented the telephone?", "closest"), ("谁发明了电话？", "not_found"),
    ("Who won the battle of Hastings?", "not_found"),
    ("How many strings of cash did the rich merchants of Chang'an lend?", "quoted"),
    ("盐的专卖是哪一年由谁创立的？", "quoted"), ("李愬雪夜入蔡州时带了多少人？", "quoted"),
])  # fmt: skip
def test_what_answers_nothing_is_not_an_answer_in_the_other_language(simple, question, status):
    told = simple.ask(question, tenant_id=TENANT)
    language = detect_language(question)
    assert told["status"] == status
    shown = {"zh", "en"} - {language} if status != "not_found" else set()
    assert {detect_language(source["content"]) for source in told["sources"][:1]} == shown
    assert told["answer"].startswith(DOUBT[language]) is (status == "closest")
