"""The tool that searches the library: the mode's own search, under the question's filters."""

from haystack import Document, component

from shiguan.agent.library_search import LibrarySearch

FILTERS = {"field": "meta.tenant_id", "operator": "==", "value": "a"}


@component
class Search:
    """Finds what it was asked for."""

    @component.output_types(documents=list[Document], nearest=list[Document], warnings=list[str])
    async def run_async(self, query: str, filters: dict | None = None):
        return {"documents": [Document(content=query, meta=filters)], "nearest": [], "warnings": ["slow"]}

    @component.output_types(documents=list[Document], nearest=list[Document], warnings=list[str])
    def run(self, query: str, filters: dict | None = None):
        raise AssertionError("a search that can be awaited is awaited")


async def test_it_finds_what_the_modes_search_finds_under_the_filters_of_the_question():
    tool = LibrarySearch(Search())
    found = {"documents": [Document(content="salt tax", meta=FILTERS)], "warnings": ["slow"]}
    assert await tool.run_async("salt tax", filters=FILTERS) == found
    for language in ("en", "zh"):  # the model is told of a query and of nothing else
        definition = tool.definition(language)
        assert (definition.name, list(definition.parameters["properties"])) == ("search_library", ["query"])
