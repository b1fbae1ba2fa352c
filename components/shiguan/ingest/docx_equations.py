"""Writes the equations of Word files (OMML) in one line of text."""

from collections.abc import Callable

from shiguan.ingest.epub.trees import Element

# A script or a part of a fraction that is longer than this, or has an operator in it, is put in brackets.
_SIMPLE = 1


def equation_text(element: Element) -> str:
    """
    Return an equation in one line: `A=πr^2`, `(a+b)/2`, `∑_{i=1}^n x_i`, `√(x+1)`.

    The names are those of `parse_part`; what has no form of its own here is written part after part.
    """
    return " ".join(_written(element).split())


def _written(element: Element) -> str:
    name = str(element.tag)
    if name in ("m_t", "t"):
        return element.text or ""
    form = _FORMS.get(name)
    return form(element) if form else "".join(map(_written, element))


def _part(element: Element, name: str) -> str:
    found = element.find(name)
    return "" if found is None else _written(found).strip()


def _property(element: Element, name: str, default: str) -> str:
    found = element.find(f"{element.tag}Pr/{name}")
    values = [] if found is None else list(found.attrib.values())
    return str(values[0]) if values else default if found is None else ""


def _script(mark: str, text: str) -> str:
    if not text:
        return ""
    return f"{mark}{text}" if len(text) <= _SIMPLE else f"{mark}{{{text}}}"


def _scripts(element: Element) -> str:
    return _script("_", _part(element, "m_sub")) + _script("^", _part(element, "m_sup"))


def _grouped(text: str) -> str:
    return text if text.isalnum() else f"({text})"


def _fraction(element: Element) -> str:
    above, below = _part(element, "m_num"), _part(element, "m_den")
    if _property(element, "m_type", "bar") == "noBar":
        return f"({above}; {below})"  # a binomial coefficient, inside its brackets
    return f"{_grouped(above)}/{_grouped(below)}"


def _root(element: Element) -> str:
    degree = _part(element, "m_deg")
    sign = {"": "√", "2": "√", "3": "∛", "4": "∜"}.get(degree)
    return (sign or f"√[{degree}]") + _grouped(_part(element, "m_e"))


def _delimited(element: Element) -> str:
    opens, between, closes = (
        _property(element, name, default) for name, default in (("m_begChr", "("), ("m_sepChr", "|"), ("m_endChr", ")"))
    )
    return opens + between.join(_written(part).strip() for part in element.findall("m_e")) + closes


def _lines(element: Element) -> str:
    """Write a matrix or a list of equations: `1, 0; 0, 1`."""
    rows = element.findall("m_mr") or element.findall("m_e")
    cells = [[_written(cell).strip() for cell in (row.findall("m_e") or [row])] for row in rows]
    return "; ".join(", ".join(row) for row in cells)


_FORMS: dict[str, Callable[[Element], str]] = {
    "m_f": _fraction,
    "m_rad": _root,
    "m_d": _delimited,
    "m_m": _lines,
    "m_eqArr": _lines,
    "m_sSup": lambda element: _part(element, "m_e") + _scripts(element),
    "m_sSub": lambda element: _part(element, "m_e") + _scripts(element),
    "m_sSubSup": lambda element: _part(element, "m_e") + _scripts(element),
    "m_sPre": lambda element: _scripts(element) + _part(element, "m_e"),
    "m_nary": lambda element: f"{_property(element, 'm_chr', '∫')}{_scripts(element)} {_part(element, 'm_e')}",
    "m_func": lambda element: f"{_part(element, 'm_fName')} {_part(element, 'm_e')}",
    "m_limLow": lambda element: _part(element, "m_e") + _script("_", _part(element, "m_lim")),
    "m_limUpp": lambda element: _part(element, "m_e") + _script("^", _part(element, "m_lim")),
}
