"""The tool that searches the library: the mode's own search, under the question's filters."""

from haystack import Document, component

from shiguan.agent.library_search import LibrarySearch

FILTERS = {"field": "meta.tenant_id", "operator": "==", "value": "a"}


@component
class Search:
    """Notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list = []
        self.warm = 0

    def warm_up(self) -> None:
        self.warm += 1

    @component.output_types(documents=list[Document], nearest=list[Document], warnings=list[str])
    async def run_async(self, query: str, filters: dict | None = None, top_k: int | None = None):
        self.asked.append((query, filters, top_k))
        return {"documents": [Document(id="p", content="Salt.")], "nearest": [Document(id="c")], "warnings": ["slow"]}

    @component.output_types(documents=list[Document], nearest=list[Document], warnings=list[str])
    def run(self, query: str, filters: dict | None = None, top_k: int | None = None):
        raise AssertionError("a search that can be awaited is awaited")


async def test_it_finds_what_the_modes_search_finds_under_the_filters_of_the_question():
    search = Search()
    tool = LibrarySearch(search)
    found = {"documents": [Document(id="p", content="Salt.")], "warnings": ["slow"]}
    assert await tool.run_async("salt tax", filters=FILTERS) == found
    assert search.asked == [("salt tax", FILTERS, None)]
    tool.warm_up()
    assert search.warm == 1

    for language in ("en", "zh"):  # the model is told of a query and of nothing else
        definition = tool.definition(language)
        assert (definition.name, list(definition.parameters["properties"])) == ("search_library", ["query"])
