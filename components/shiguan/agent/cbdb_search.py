"""Looks a person up in the China Biographical Database."""

from string import Formatter
from typing import Any

from haystack import Document, component

from shiguan.agent.tools import AgentTool, ToolError, WrongArgumentsError, fetch_json, found_outside
from shiguan.llm.calls import blocking
from shiguan.resources import read_texts

_MOST_PERSONS, _MOST_OF_EACH = 3, 12
_BETWEEN = " ·・.’'-,"
_UNKNOWN = ("", "0", "未詳", "[未詳]", "未知")


@component
class CBDBSearch(AgentTool):
    """
    Gives the model what the China Biographical Database has of a person: dates, home, names, kin, relations, offices.

    The tool `query_cbdb` of `ToolAgent`. It reaches out to a public service and is off unless a pipeline names it.
    Each person becomes one passage of plain sentences. The interface is described at
    https://input.cbdb.fas.harvard.edu/cbdbapi/index.html and https://projects.iq.harvard.edu/cbdb/cbdb-api; sections
    without records are empty texts, those with one record may hold no list. The data are under CC BY-NC-SA 4.0.
    """

    tool_name = "query_cbdb"

    def __init__(self, url: str = "https://cbdb.fas.harvard.edu/cbdbapi/person.php?o=json") -> None:
        """
        Set the service.

        :param url: Its address, with the parameters that make it answer in JSON.
        """
        self.url = url

    @component.output_types(documents=list[Document])
    async def run_async(self, person_name: str, language: str = "zh") -> dict[str, list[Document]]:
        """
        Look a person up.

        :param person_name: The name, in Chinese characters or Pinyin.
        :param language: The language of the passages, `en` or `zh`.
        :returns: `documents`, one for each of at most three persons of that name.
        :raises WrongArgumentsError: If it is not a name: wildcards would match everybody.
        :raises ToolError: If the service gives no usable reply.
        """
        name = " ".join(person_name.split())
        if len(name) < 2 or not all(letter.isalpha() or letter in _BETWEEN for letter in name):
            raise WrongArgumentsError("`person_name` must be a name of letters, without digits, signs and wildcards")
        persons = _persons(await fetch_json(self.url, {"name": name}))
        return {"documents": [found for person in persons if (found := self._passage(person, language))]}

    run = blocking(run_async)

    def _passage(self, person: dict[str, Any], language: str) -> Document | None:
        info = person.get("BasicInfo")
        basic = info if isinstance(info, dict) else {}
        lines: list[str] = []
        for template in read_texts("agent")["cbdb"]["zh" if language == "zh" else "en"]:
            if isinstance(template, str):
                lines += _filled(template, basic)
                continue
            section, _, record = template["each"].partition(".")
            of_section = person.get(section)
            records = _listed(of_section.get(record)) if isinstance(of_section, dict) else []
            written = [line for found in records for line in _filled(template["text"], {**basic, **found})]
            lines += list(dict.fromkeys(written))[:_MOST_OF_EACH]
        number = str(basic.get("PersonId", ""))
        address = f"{self.url.partition('?')[0]}?id={number}" if number.isdecimal() else self.url
        title = str(basic.get("ChName") or basic.get("EngName") or "")
        return found_outside(self.tool_name, "\n".join(lines), title=title, address=address) if lines else None


def _persons(reply: Any) -> list[dict[str, Any]]:
    if reply is None or (isinstance(reply, dict) and reply.get("error")):
        return []
    for key in ("Package", "PersonAuthority", "PersonInfo"):
        if not isinstance(reply, dict) or key not in reply:
            raise ToolError(f"the service sent a record without `{key}`")
        reply = reply[key]
    return _listed(reply.get("Person"))[:_MOST_PERSONS] if isinstance(reply, dict) else []


def _listed(value: Any) -> list[dict[str, Any]]:
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, dict)]


def _filled(template: str, record: dict[str, Any]) -> list[str]:
    """Fill in a sentence, if all its values are known."""
    names = [name for _, name, _, _ in Formatter().parse(template) if name]
    values = {name: " ".join(str(record.get(name) or "").split()) for name in names}
    return [] if any(value in _UNKNOWN for value in values.values()) else [template.format(**values)]
