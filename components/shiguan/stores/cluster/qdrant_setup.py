"""Makes and inspects a collection, apart from what reads and writes it."""

from typing import Any

from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse

_CONFLICTS = (400, 409)


def make_collection(
    client: QdrantClient, collection: str, config: dict[str, Any], payload_indexes: dict[str, Any]
) -> list[str]:
    """
    Make the collection and its payload indexes, where they are not there yet.

    Never deletes: Haystack's own way removes a collection that another process made in between. Runs as often as one
    likes, also at once from several machines.
    """
    done = [f"collection {collection} was there"]
    if not client.collection_exists(collection):
        try:
            client.create_collection(collection, **config)
            done = [f"collection {collection} made"]
        except UnexpectedResponse as error:
            if error.status_code not in _CONFLICTS or not client.collection_exists(collection):
                raise
    existing = client.get_collection(collection).payload_schema
    missing = {field: schema for field, schema in payload_indexes.items() if field not in existing}
    for field, schema in missing.items():
        client.create_payload_index(collection, field_name=field, field_schema=schema, wait=True)
    if missing:
        done.append(f"payload indexes made: {', '.join(missing)}")
    return done


def inspect_collection(
    client: QdrantClient, collection: str, config: dict[str, Any], payload_indexes: dict[str, Any]
) -> dict[str, Any]:
    """Tell how a collection does."""
    version = client.info().version
    if not client.collection_exists(collection):
        return {
            "version": version,
            "health": "missing",
            "documents": None,
            "problems": [f"the collection {collection} is missing; `shiguan stores init` makes it"],
        }
    info = client.get_collection(collection)
    missing = [field for field in payload_indexes if field not in info.payload_schema]
    problems = [f"{collection}: {difference}" for difference in vector_differences(info, config["vectors_config"])]
    if missing:
        problems.append(f"payload indexes are missing: {', '.join(missing)}; `shiguan stores init` makes them")
    if str(info.status.value) == "red":
        problems.append(f"an optimisation of {collection} failed; see the server's log and its disks")
    return {
        "version": version,
        "health": str(info.status.value),
        "documents": client.count(collection, exact=True).count,
        "indexed": info.indexed_vectors_count or 0,
        "problems": problems,
    }


def vector_differences(info: Any, expected: Any) -> list[str]:
    """Compare a collection's vectors with what they should be."""
    actual = info.config.params.vectors
    if actual is None or isinstance(actual, dict):
        return ["it holds named vectors and was not made by `shiguan stores init`"]
    found = []
    if actual.size != expected.size:
        found.append(f"its vectors have {actual.size} dimensions, the embedder's {expected.size}")
    if actual.distance != expected.distance:
        found.append(f"its distance is {actual.distance.value}, expected {expected.distance.value}")
    return found
