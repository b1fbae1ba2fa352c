from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.text.names import heard_names, names_in_pinyin, sounds_of_names, sounds_of_text, written_in_han


@pytest.mark.parametrize(
    ("text", "sounds"),
    [
        ("安禄山反，范阳", ["an lu", "lu shan", "shan fan", "fan yang"]),
        ("郭子儀", ["guo zi", "zi yi"]),
        ("郭子仪", ["guo zi", "zi yi"]),
    ],
)
def test_neighbouring_characters_sound_together_and_not_across_marks(text, sounds):
    assert list(sounds_of_text(text)) == sounds


@pytest.mark.parametrize(
    ("question", "sounds"),
    [
        ("When did An Lushan rebel?", ["an lu", "lu shan"]), ("Was Guo Zi-yi older?", ["guo zi", "zi yi"]),
        ("Where is Xi'an?", ["xi an"]), ("What was Li Shimin's plan for Luoyang?", ["li shi", "shi min", "luo yang"]),
        ("Who was Lü Dongbin?", ["lu dong", "dong bin"]),
        ("Who was Guō Zǐyí?", ["guo zi", "zi yi"]),  # tones are left out
        ("Who was Guo\u0304 Zi\u030cyi\u0301?", ["guo zi", "zi yi"]), ("Who was Guo1 Zi3yi2?", ["guo zi", "zi yi"]),
        ("How did Ahab die?", []), ("who was an lushan?", []), ("安禄山是谁？", []),
    ],
)  # fmt: skip
def test_names_in_pinyin_sound_as_their_characters(question, sounds):
    assert list(sounds_of_names(question)) == sounds


@given(st.text())
def test_any_text_is_read(text):
    assert all(len(sound.split(" ")) == 2 for sound in [*sounds_of_names(text), *sounds_of_text(text)])


def test_a_word_too_long_for_a_name_is_none():
    assert not list(sounds_of_names("Xian" + "xian" * 100_000))


WADE_GILES = """
Kuo Tzu-i: guo zi yi; An Lu-shan: an lu shan; Ch'ang-an: chang an; T'ai-tsung: tai zong; Chu Ch'üan-chung: zhu quan
zhong; Hsüan-tsung: xuan zong; Shih Ssu-ming: shi si ming; Po Chü-i: bo ju yi; Tu Fu: du fu; Ou-yang Hsiu: ou yang
xiu; Ssu-ma Kuang: si ma guang; Ssu-ma Ch'ien: si ma qian; Mao Tse-tung: mao ze dong; Chou En-lai: zhou en lai; Teng
Hsiao-p'ing: deng xiao ping; Chang Hsüeh-liang: zhang xue liang; Lin Piao: lin biao; Chu Te: zhu de; Hua Kuo-feng: hua
guo feng; Chiang Ch'ing: jiang qing; Liu Shao-ch'i: liu shao qi; P'eng Te-huai: peng de huai; Yüan Shih-k'ai: yuan shi
kai; K'ang Yu-wei: kang you wei; Liang Ch'i-ch'ao: liang qi chao; Tz'u-hsi: ci xi; Ch'ien-lung: qian long; K'ang-hsi:
kang xi; Yung-cheng: yong zheng; Chia-ch'ing: jia qing; Tseng Kuo-fan: zeng guo fan; Tso Tsung-t'ang: zuo zong tang;
Li Hung-chang: li hong zhang; Hung Hsiu-ch'üan: hong xiu quan; Ts'ao Ts'ao: cao cao; Chu-ko Liang: zhu ge liang; Sun
Ch'üan: sun quan; Liu Pei: liu bei; Wang An-shih: wang an shi; Su Shih: su shi; Chu Hsi: zhu xi; Han Yü: han yu; Liu
Tsung-yüan: liu zong yuan; Yüan Chen: yuan zhen; Yen Chen-ch'ing: yan zhen qing; Wu Tse-t'ien: wu ze tian; Kao-tsung:
gao zong; Te-tsung: de zong; Huang Ch'ao: huang chao; Ko-shu Han: ge shu han; T'ien Ch'eng-ssu: tian cheng si; P'ei
Tu: pei du; Li Te-yü: li de yu; Lao Tzu: lao zi; Chuang Tzu: zhuang zi; Meng-tzu: meng zi; Hsün-tzu: xun zi; Ch'in
Shih-huang: qin shi huang; Hsiung-nu: xiong nu; Lo-yang: luo yang; Hang-chou: hang zhou; Su-chou: su zhou; K'ai-feng:
kai feng; Yün-nan: yun nan; Kuei-chou: gui zhou; Ssu-ch'uan: si chuan; Chiang-hsi: jiang xi; Shan-hsi: shan xi;
Hu-pei: hu bei; Kuang-tung: guang dong; Jen-tsung: ren zong; Hsiao-wen: xiao wen; Erh-chu Jung: er zhu rong; Yang
Kuei-fei: yang gui fei; Ch'ü Yüan: qu yuan; Lü Pu: lu bu; Hsi-yu Chi: xi you ji; I-tsung: yi zong; Shui-hu Chuan: shui
hu zhuan; Hung-lou Meng: hong lou meng; Chin P'ing Mei: jin ping mei; Jih-chih Lu: ri zhi lu
"""


@pytest.mark.parametrize("row", WADE_GILES.replace("\n", " ").split(";"))
def test_names_in_wade_giles_sound_as_their_characters(row):
    name, _, pinyin = row.partition(":")
    assert {" ".join(pair) for pair in pairwise(pinyin.split())} <= set(sounds_of_names(f"Who knew {name.strip()}?"))


@pytest.mark.parametrize(
    ("name", "sounds"),
    [
        ("Chu Ch'üan-chung", ["chu quan", "zhu quan", "quan zhong"]),  # it writes its breaths, so chung is not chong
        ("Tu Fu", ["tu fu", "du fu"]),
        ("Tang Taizong", ["tang tai", "tai zong"]),  # Taizong is pinyin, and so is Tang
        ("Kuo Ziyi", ["kuo zi", "zi yi"]),
        ("T‘ang T‘ai-tsung", ["tang tai", "tai zong"]),
        ("Hong Kong", ["hong kong"]),
        ("China", ["chi na"]),
    ],
)
def test_what_may_be_read_in_two_ways_is_with_pinyin_first(name, sounds):
    assert list(sounds_of_names(name)) == sounds


@pytest.mark.parametrize(
    "question",
    [
        "To Ono no Komachi it may be.",
        "No, I'm sure. So why?",
        "Was Hitchin near Stevenage?",
        "Young Jenson met Yvonne.",
    ],
)
def test_english_words_are_not_read_as_wade_giles(question):
    assert not list(sounds_of_names(question)) and not names_in_pinyin(question)


def test_a_name_in_wade_giles_is_written_in_pinyin_for_texts_in_latin_letters():
    assert names_in_pinyin("Did Chu Ch'üan-chung flee?") == ["chu", "zhu", "quanzhong"]
    assert names_in_pinyin("Did Guo Zi-yi flee?") == ["guo", "ziyi"]


def test_a_name_is_heard_where_a_text_has_all_its_sounds_in_one_reading():
    sounds = set(sounds_of_text("郭子仪，张巡"))
    assert heard_names("Did Kuo Tzu-i or Zhang Xun or Kuo Wei write?", sounds) == ["Kuo Tzu-i", "Zhang Xun"]


@pytest.mark.parametrize(
    ("question", "name", "found"),
    [
        ("Who was An Lushan?", "An Lushan", {"安禄山"}),
        ("Who was An Lushan?", "Lushan", {"安禄山"}),  # an article to whoever took it apart
        ("Who was An Lu-shan?", "An Lu-shan", {"安禄山"}), ("Who was Ān Lùshān?", "Ān Lùshān", {"安禄山"}),
        ("Who was An Lushang?", "An Lushang", set()), ("Who was An?", "An", set()),
        ("Who was the father of An Lushan?", "father of An Lushan", set()),
        ("Who was An Lushan or Zhang Xun?", "Zhang Xun", set()), ("谁是安禄山？", "安禄山", set()),
    ],
)  # fmt: skip
def test_the_characters_of_a_name_are_those_that_are_read_so(question, name, found):
    assert written_in_han(question, name, ["十四载，安禄山反。", "张巡守睢阳。"]) == found
