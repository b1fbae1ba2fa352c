"""More of a book around a passage, for the tenant who asks and nobody else."""

import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from shiguan.agent.passage_reader import PassageReader
from shiguan.agent.tools import WrongArgumentsError
from shiguan.errors import RefusedError
from shiguan.tenants import of_tenant


def passage(tenant, position, **more):
    meta = {"tenant_id": tenant, "source_id": "book", "position": position, **more}
    return Document(id=f"{tenant}-{position}", content=f"Passage {position} of {tenant}.", meta=meta)


@pytest.fixture
def reader():
    store = InMemoryDocumentStore()
    store.write_documents([passage(tenant, position) for tenant in ("a", "b") for position in range(6)])
    return PassageReader(store)


def test_it_gives_the_passage_and_its_neighbours_in_the_order_of_the_book(reader):
    shown = [passage("a", 3, number=2)]
    found = reader.run(2, passages=shown, filters=of_tenant("a"))["documents"]
    assert [one.content for one in found] == ["Passage 2 of a.", "Passage 3 of a.", "Passage 4 of a."]


def test_the_filters_decide_whose_passages_are_read(reader):
    found = reader.run(2, passages=[passage("a", 3, number=2)], filters=of_tenant("nobody"))["documents"]
    assert found == []
    with pytest.raises(RefusedError, match="without `filters`"):
        reader.run(2, passages=[passage("a", 3, number=2)])


@pytest.mark.parametrize("number", [0, 7, -1])
def test_a_number_that_there_is_not_is_a_wrong_argument(reader, number):
    shown = [passage("a", 3, number=2), Document(content="x", meta={"number": 7, "origin": "tool"})]
    told = rf"\[{number}\] is not a passage of the library; its passages are: \[2\]"
    with pytest.raises(WrongArgumentsError, match=told):
        reader.run(number, passages=shown, filters=of_tenant("a"))
