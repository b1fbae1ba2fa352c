"""Writes the equations of Word files (OMML, and those of fields) in one line of text, and characters of its fonts."""

import re

from shiguan.ingest.docx_labels import DELETED, value
from shiguan.ingest.epub.trees import Element

_FRACTION, _SCRIPTS = "{m_num/}/{m_den/}", "{m_e}{_m_sub}{^m_sup}"
# How each element is written: a part as it is, in brackets unless it is one word (`/`), or as a script (`_`, `^`).
_FORMS = {
    "m_f": _FRACTION, "m_sSup": _SCRIPTS, "m_sSub": _SCRIPTS, "m_sSubSup": _SCRIPTS, "m_sPre": "{_m_sub}{^m_sup}{m_e}",
    "m_nary": "∫{_m_sub}{^m_sup} {m_e}", "m_func": "{m_fName} {m_e}", "m_limLow": "{m_e}{_m_lim}",
    "m_limUpp": "{m_e}{^m_lim}", "m_rad": "√{m_e/}",
}  # fmt: skip
_PART = re.compile(r"\{([_^]?)(m_\w+)(/?)\}")
# Within an `EQ` field: what is set as `\* hps10`, and a form with options and the parts in its brackets.
_SETTING = re.compile(r'\\\*\s*(?:"[^"]*"|\w+)')
_FORM = re.compile(r"\\([a-z]{1,9})(?:\s{0,9}\\[a-z]{1,9}\s{0,9}\d{0,9}){0,4}+\s{0,9}\(([^()]*)\)", re.IGNORECASE)
_DEEPEST = 8
# Of a `SYMBOL` field: the code, and the font.
_SYMBOL, _FONT = re.compile(r"0x([0-9a-f]{1,6})|(\d{1,7})", re.IGNORECASE), re.compile(r'\\f\s*(?:"([^"]*)"|(\S+))')
_OWN_PLACES = re.compile("symbol$|wingdings|webdings|mt extra", re.IGNORECASE)
_PRIVATE = 0xF000
PRIVATE_USE, _UNKNOWN = re.compile("[\uf000-\uf0ff]"), "\uf000"
# The characters of fonts in which they stand in place of others; spaces are those that no other font has.
_CHARACTERS = {
    "Symbol": {
        0xF021: "!∀#∃%&∋()∗+,−./0123456789:;<=>?≅", 0xF05B: "[∴]⊥_", 0xF07B: "{|}∼",
        0xF041: "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ", 0xF061: "αβχδεφγηιϕκλμνοπθρστυϖωξψζ",
        0xF0A1: "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…|—↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓",
    },
    "Wingdings": {
        0xF022: "✂✁", 0xF028: "☎✆✉", 0xF036: "⌛", 0xF03F: "✍ ✌", 0xF045: "☜☞☝☟", 0xF04A: "☺ ☹", 0xF051: "✈☼ ❄ ✞",
        0xF058: "✠✡☪☯ॐ☸♈♉♊♋♌♍♎♏♐♑♒♓", 0xF06C: "● ■□ ❑❒", 0xF075: "◆❖ ⌧", 0xF080: "⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿",
        0xF09E: "·•▪○  ◉◎ ▪□ ✦★✶✴✹✵", 0xF0D8: "➢", 0xF0DC: "➲  ←→↑↓↖↗↙↘← ↑↓➔", 0xF0EF: "⇦⇨⇧⇩", 0xF0FB: "✗✓☒☑",
    },
    "Wingdings 2": {0xF04F: "✗✓☒☑☒☒", 0xF0A3: "□"},
}  # fmt: skip
_FONTS = {
    font: {"\uf020": " "}
    | {chr(at): each for first, some in ranges.items() for at, each in enumerate(some, first) if each != " "}
    for font, ranges in _CHARACTERS.items()
}
_WITHOUT_FONT = _FONTS["Wingdings"] | {"\uf0b7": "•"}
_ROOTS = {"": "√", "2": "√", "3": "∛", "4": "∜"}


def equation_text(element: Element) -> str:
    """
    Return an equation in one line: `A=πr^2`, `(a+b)/2`, `∑_{i=1}^n x_i`, `√(x+1)`.

    The names are those of `parse_part`; what has no form of its own here is written part after part.
    """
    return " ".join(_written(element).split())


def field_text(instruction: str) -> str:
    r"""Return what a field without a result shows, if it does: `1/3` of `EQ \f(1,3)`, α of `SYMBOL 97 \f Symbol`."""
    name, _, text = instruction.strip().partition(" ")
    if name.upper() == "SYMBOL" and (code := _SYMBOL.match(text.lstrip())):
        number, font = int(code[1], 16) if code[1] else int(code[2]), _FONT.search(text)
        if number in range(0x80, 0x100) and "\\u" not in text.lower():
            number = ord(bytes([number]).decode("cp1252", "replace"))
        return symbol_text(f"{number:x}", (font[1] or font[2] or "") if font else "")
    if name.upper() == "QUOTE":
        return text.strip().strip('"')
    if name.upper() in ("MACROBUTTON", "GOTOBUTTON"):  # behind what a click does
        return text.strip().partition(" ")[2]
    if name.upper() != "EQ":
        return ""
    text = _SETTING.sub("", text)
    for _ in range(_DEEPEST):
        text = _FORM.sub(_field_form, text)
    return text.strip()


def symbol_text(code: str, font: str) -> str:
    """Return a character by its hexadecimal code; one of `PRIVATE_USE` where only its font knows it."""
    number = int(code, 16) if re.fullmatch("[0-9A-Fa-f]{1,5}", code) else 0
    own_places = number < 0x100 and _OWN_PLACES.match(font)
    symbol = text_in(font, chr(number + _PRIVATE if own_places else number))
    return symbol if symbol.isprintable() else _UNKNOWN


def text_in(font: str, text: str) -> str:
    """Return a text as a font shows it, of those that have characters of their own in place of others: αβ for `ab`."""
    own_places = _OWN_PLACES.match(font)
    if text.isascii() and not own_places:
        return text
    last = ("~" if font == "Symbol" else "\xff") if own_places else ""  # of the characters that it shows as others
    places = (chr(ord(each) + _PRIVATE) if each <= last and not each.isspace() else each for each in text)
    known = _FONTS.get(font, {}) if own_places else _WITHOUT_FONT
    return "".join(known.get(place, place) for place in places)


def _field_form(form: re.Match[str]) -> str:
    name, parts = form[1].lower(), re.split("[,;，；]", form[2])
    if name == "f" and len(parts) == 2:
        return "/".join(parts)
    if name == "r":
        return f"√{parts[-1]}"
    # What is written over another is its reading, or a ring around it.
    return parts[-1] if name == "o" else "".join(parts)


def _written(element: Element) -> str:
    name = str(element.tag)
    if name in ("m_t", "t"):
        return element.text or ""
    if name == "sym":
        return symbol_text(value(element, "char"), value(element, "font"))
    if name in DELETED:
        return ""
    if name == "m_d":
        given = zip(("m_begChr", "m_sepChr", "m_endChr"), "(|)", strict=True)
        opens, between, closes = (_property(element, name, default) for name, default in given)
        return opens + between.join(_written(part).strip() for part in element.findall("m_e")) + closes
    if name in ("m_m", "m_eqArr"):  # a matrix or a list of equations: `1, 0; 0, 1`
        rows = element.findall("m_mr") or element.findall("m_e")
        cells = [[_written(cell).strip() for cell in (row.findall("m_e") or [row])] for row in rows]
        return "; ".join(", ".join(row) for row in cells)
    form = _FORMS.get(name, "")
    if name == "m_f" and _property(element, "m_type", "bar") == "noBar":
        form = "({m_num}; {m_den})"  # a binomial coefficient, inside its brackets
    elif name == "m_nary":
        form = _property(element, "m_chr", "∫") + form[1:]
    elif name == "m_rad":
        degree = _part(element, "m_deg")
        form = _ROOTS.get(degree, f"√[{degree}]") + form[1:]
    return _PART.sub(lambda part: _formed(_part(element, part[2]), part[1], part[3]), form) or "".join(
        map(_written, element)
    )


def _formed(text: str, script: str, bracket: str) -> str:
    if script:
        return f"{script}{text}" if len(text) == 1 else f"{script}{{{text}}}" if text else ""
    return f"({text})" if bracket and not text.isalnum() else text


def _part(element: Element, name: str) -> str:
    found = element.find(name)
    return "" if found is None else _written(found).strip()


def _property(element: Element, name: str, default: str) -> str:
    found = element.find(f"{element.tag}Pr/{name}")
    values = [] if found is None else list(found.attrib.values())
    return str(values[0]) if values else default if found is None else ""
