import pytest

from shiguan.text.languages import detect_language, search_weights


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("安禄山何时起兵？", "zh"), ("安祿山何時起兵？", "zh"),
        ("十一月，安祿山反於范陽，矯稱奉恩命以兵討逆賊楊國忠。", "zh"),
        ("Who was Guo Ziyi?", "en"), ("Guo Ziyi", "en"), ("Who was 郭子仪?", "en"),
        ("Who was Guo Ziyi (郭子仪), and when did he die?", "en"),
        ("什么是 machine learning", "zh"), ("M1911在哪一年被美国陆军采用成制式武器？", "zh"),
        ("《The Old Man and the Sea》是谁写的？", "zh"), ("《The Old Man and the Sea》", "en"),
        ("“To be or not to be” 是什么意思？", "zh"),
        ("安禄山 (An Lushan, the governor of Fanyang) 何时起兵？", "zh"),
        ("Who said “天下大勢，分久必合，合久必分”?", "en"), ("Who wrote 《资治通鉴》 and 《旧唐书》?", "en"),
        ("《资治通鉴》（旧本）", "zh"), ('Who wrote "Le Petit Prince" and "La Peste"?', "en"),
        ('Wer schrieb "The Old Man and the Sea"?', "de"), ("(755) “安禄山”", "zh"),
        ("山路を登りながら、こう考えた。", "ja"), ("草枕はどんな本ですか", "ja"), ("한국어 문장입니다", "ko"),
        ("ما هو النظام الغذائي", "ar"), ("Кто написал эту книгу?", "ru"),
        ("Qui était le général qui a repris la capitale ?", "fr"),
        ("Wann wurde die Stadt von dem General erobert?", "de"), ("¿Quién fue el general que tomó la ciudad?", "es"),
        ("", "und"), ("755?!", "und"),
        ("日本作家夏目漱石的《草枕》（くさまくら）写一个画家到山中的温泉去，他想离开人情世界，" * 2, "zh"),
        ("“安祿山反於范陽，”" * 40 + " he said to me.", "zh"),  # quotations of a longer text count
        ("安祿山" * 2000 + "the " * 100_000, "zh"),  # a long text is judged by its beginning
    ],
    ids=lambda given: given[:40],
)  # fmt: skip
def test_the_language_of_a_text_is_recognised(text, language):
    assert detect_language(text) == language


@pytest.mark.parametrize(
    ("question", "weights"),
    [
        ("勤奋將軍", {"勤": 1, "奋": 1, "将": 1, "军": 1, "勤奋": 0.5, "奋将": 0.5, "将军": 0.5}),
        ("这书，這書", {"这": 0.3, "书": 1, "这书": 0.15}),
        ("rivers and a river", {"river": 1}),
        ("かな", {"か": 1, "な": 1, "かな": 1}),
        ("？", {}),
        ("郭過世", {"郭": 1, "过": 1, "世": 1, "郭过": 0.5, "过世": 0.5, "卒": 1, "薨": 1, "崩": 1, "殁": 1}),
        ("地震", {"地": 1, "震": 1, "地震": 0.5, "动": 1, "地动": 0.5}),
    ],
)
def test_terms_of_a_question_count_once_pairs_less_and_modern_grammar_least(question, weights):
    assert search_weights(question) == pytest.approx(weights)
