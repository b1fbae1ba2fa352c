"""Text files of unknown encoding: UTF-8 first, then what libraries hold, and no guess where two would do."""

import codecs
import re
from typing import NamedTuple

from charset_normalizer import from_bytes

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# The detector reads so many bytes; the chosen encoding must then decode the whole.
_SAMPLE = 60_000
_EAST_ASIAN = ("gb18030", "big5hkscs", "euc_jis_2004", "shift_jis_2004", "cp949")
# Other names of the same, which are never left to the detector.
_MULTIBYTE = (
    "gb2312", "gbk", "hz", "big5", "cp950", "cp932", "euc_jp", "euc_jisx0213", "euc_kr", "johab", "shift_jis",
    "shift_jisx0213", "iso2022_jp", "iso2022_kr",
)  # fmt: skip
# Characters that make up a third or more of any Chinese text, both scripts, and the Japanese and Korean letters: in
# a wrong East Asian encoding they become rare, so their share tells the right one.
_COMMON = re.compile(
    r"[的一是不了人我在有他这這中大来來上国國个個到说說们們为為子和你地出道也时時年得就那要下以生会會自着著去之过過家学學"
    r"对對可她里裡后後小么麼心多天而能好都然没沒日于於起还還发發成事只作当當想看文无無开開手用主行方又如前所本见見经經头頭面"
    r"公同三已老从從动動两兩长長知民样樣现現分将將外但身些与與高意进進把法此实實回二理美点點月明其种種聲声全工己话話儿兒者向"
    r"情部正名定女问問力机機给給等几幾很业業最间間新什打便位因重被走电電四第门門相次东東政海口使教西再平真听聽世气氣信北少关關"
    r"并內内加化由却卻代军軍产產入先山五太水万萬市眼体體别別处處总總才场場师師书書比住员員九笑性通目华華报報立马馬命张張活难難"
    r"神数數件安表原车車白应應路期叫死常提感金何更反合放做系係计計或司利受光王果亲親界及今京务務制解各任至清物台象记記边邊共风"
    r"風战戰干接它许許八特觉覺望直服毛林题題建南度统統色字请請交爱愛让讓认認算论論百吃义義科怎元社术術结結六功指思非流每青管夫"
    r"曰乃遂卒帝臣诏詔兵州刺史ぁ-んァ-ヶ이다는을를에가의하고은지사한로서도기시어인그나리대자있수해일과。，、；：「」『』？！]"
)
_LEAST_SHARE = 0.25
# The detector's measure of disorder, 0 to 1: what is readable at all, and what is as good as the best.
_MOST_CHAOS = 0.1
_TIE = 0.02
_LEAD = 0.08
# A decoded text with more of these than one in a thousand is no text.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd\ue000-\uf8ff]")


class DecodedText(NamedTuple):
    """A text and the encoding it was in."""

    text: str
    encoding: str


def decode_text(data: bytes, declared: str | None = None) -> DecodedText | None:
    """Decode a file's bytes."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _strict(data, encoding, "utf-8" if encoding == "utf-8-sig" else encoding)
    if b"\0" in data:
        return _wide(data)
    likely = ["utf-8", *([superset(declared)] if declared else [])]
    # What switches by escapes is valid UTF-8, too.
    for encoding in reversed(likely) if b"\x1b" in data else likely:
        if (decoded := _strict(data, encoding, encoding)) is not None:
            return decoded
    return _east_asian(data) or _detected(data)


def _strict(data: bytes, encoding: str, name: str) -> DecodedText | None:
    try:
        return DecodedText(data.decode(encoding), name)
    except (UnicodeDecodeError, LookupError):
        return None


def superset(name: str) -> str:
    """Name the encoding that a file which states another really uses: who says GB2312 or Big5 uses the larger set."""
    lower = name.lower().replace("_", "-")
    return {"gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "big5": "big5hkscs"}.get(lower, lower)


def _wide(data: bytes) -> DecodedText | None:
    """Read UTF-16 without a mark: the right byte order gives Latin letters or common characters."""
    if len(data) % 2:
        return None
    for encoding in ("utf-16-le", "utf-16-be"):
        decoded = _strict(data, encoding, encoding)
        if decoded is not None and _is_text(decoded.text):
            sample = decoded.text[:_SAMPLE]
            latin = sum(character < "\u0250" for character in sample)
            rest = len(sample) - latin
            if latin > 0.7 * len(sample) or len(_COMMON.findall(sample)) > _LEAST_SHARE * rest:
                return decoded
    return None


def _east_asian(data: bytes) -> DecodedText | None:
    """Choose among the East Asian encodings by the share of common characters; None where two come close."""
    scores = []
    for encoding in _EAST_ASIAN:
        decoded = _strict(data, encoding, encoding)
        if decoded is not None and _is_text(decoded.text):
            letters = [character for character in decoded.text[:_SAMPLE] if character > "\u02ff"]
            scores.append((len(_COMMON.findall("".join(letters))) / max(len(letters), 1), decoded))
    scores.sort(key=lambda score: -score[0])
    if not scores or scores[0][0] < _LEAST_SHARE:
        return None
    if len(scores) > 1 and scores[0][0] - scores[1][0] < _LEAD and scores[0][1].text != scores[1][1].text:
        return None
    return scores[0][1]


def _detected(data: bytes) -> DecodedText | None:
    """Ask the detector, for the single-byte encodings; the ones it knows too well to be wrong about are few."""
    found = from_bytes(data[:_SAMPLE], cp_exclusion=[*_EAST_ASIAN, *_MULTIBYTE])
    best = found.best()
    if best is None or best.chaos > _MOST_CHAOS:
        return None
    # Western European is by far the commonest of the encodings that differ in a few accents.
    for encoding in ("cp1252", best.encoding):
        match = next((match for match in found if encoding in match.could_be_from_charset), None)
        if match is not None and match.chaos <= best.chaos + _TIE:
            decoded = _strict(data, encoding, encoding)
            if decoded is not None and _is_text(decoded.text):
                return decoded
    return None


def _is_text(text: str) -> bool:
    return len(_CONTROL.findall(text)) * 1000 <= len(text)
