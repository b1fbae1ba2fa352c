"""Searches Wikipedia."""

from typing import Any

from haystack import Document, component

from shiguan.agent.tools import AgentTool, ToolError, fetch_json, found_outside
from shiguan.llm.calls import blocking

_PARAMETERS = {
    "action": "query", "format": "json", "formatversion": 2, "generator": "search", "gsrlimit": 3,
    "prop": "extracts|info", "exintro": 1, "explaintext": 1, "exchars": 1200, "exlimit": "max", "inprop": "url",
    "redirects": 1,
}  # fmt: skip


@component
class WikipediaSearch(AgentTool):
    """
    Gives the model the beginnings of the three articles that fit best.

    The tool `search_wikipedia` of `ToolAgent`. It reaches out to a public service and is off unless a pipeline names
    it. It asks the MediaWiki API (https://www.mediawiki.org/wiki/API:Search) for the plain text before the first
    heading (https://www.mediawiki.org/wiki/Extension:TextExtracts#API). Errors come with status 200 and `error` in the
    body; no result is a reply without `query`.
    """

    tool_name = "search_wikipedia"

    def __init__(self, url: str = "https://{language}.wikipedia.org/w/api.php") -> None:
        """
        Set the service.

        :param url: Its address; `{language}` becomes that of the question.
        """
        self.url = url

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str, language: str = "en") -> dict[str, list[Document]]:
        """
        Search.

        :param query: What to search for.
        :param language: The question's language, `en` or `zh`.
        :returns: `documents`, one for each article, best first.
        :raises ToolError: If the service gives no usable reply.
        """
        url = self.url.replace("{language}", "zh" if language == "zh" else "en")
        reply = await fetch_json(url, {**_PARAMETERS, "gsrsearch": query})
        if not isinstance(reply, dict) or "error" in reply:
            raise ToolError("the service sent an error" if reply else "there is no such service")
        found = reply.get("query")
        pages = found.get("pages") if isinstance(found, dict) else []
        articles = [page for page in pages if isinstance(page, dict)] if isinstance(pages, list) else []
        articles.sort(key=lambda page: page["index"] if isinstance(page.get("index"), int) else len(articles))
        return {"documents": [self._passage(page, url) for page in articles if isinstance(page.get("extract"), str)]}

    run = blocking(run_async)

    def _passage(self, page: dict[str, Any], url: str) -> Document:
        given = str(page.get("fullurl") or "")
        address = given if given.startswith(("https://", "http://")) and len(given) < 500 else url
        return found_outside(self.tool_name, page["extract"], title=str(page.get("title") or "")[:200], address=address)
