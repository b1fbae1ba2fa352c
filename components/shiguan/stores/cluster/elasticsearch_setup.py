"""Makes and inspects an index, apart from what reads and writes it."""

from typing import Any

from elasticsearch import BadRequestError, ConflictError, Elasticsearch, NotFoundError

from shiguan.errors import StoreError
from shiguan.stores.cluster.elasticsearch_schema import ElasticsearchSchema

_TRIES = 3


def make_index(client: Elasticsearch, index: str, schema: ElasticsearchSchema) -> list[str]:
    """
    Make the template and then the index, where they are not there yet.

    Runs as often as one likes, also at once from several machines: whoever comes second finds the work done.
    """
    template = schema.template(index)
    # Two processes that write the same template at once: one gets a conflict, and finds it written the next time.
    for attempt in range(1, _TRIES + 1):
        try:
            client.indices.put_index_template(name=index, create=False, **_arguments(template))
            break
        except (ConflictError, BadRequestError):
            if attempt == _TRIES:
                raise
    done = [f"template {index} written"]
    if client.indices.exists(index=index):
        mappings = client.indices.get_mapping(index=index)[index]["mappings"]
        differences = schema.differences(mappings)
        if differences:
            raise StoreError(
                f"The index {index} is there and differs from the deployment's files: {'; '.join(differences)}. "
                "Fields of an index cannot be changed: give the index another name in the files, run "
                "`shiguan stores init` and copy, as docs/deploy.md describes."
            )
        return [*done, f"index {index} was there"]
    try:
        client.indices.create(index=index)
    except (BadRequestError, ConflictError) as error:
        if error.error != "resource_already_exists_exception":
            raise
        return [*done, f"index {index} was there"]
    return [*done, f"index {index} made"]


def inspect_index(client: Elasticsearch, index: str, schema: ElasticsearchSchema) -> dict[str, Any]:
    """Tell how an index does."""
    version = client.info()["version"]["number"]
    problems = []
    try:
        stored = client.indices.get_index_template(name=index)["index_templates"][0]["index_template"]
        expected = schema.mappings()["_meta"]
        if stored["template"].get("mappings", {}).get("_meta") != expected:
            problems.append(f"the template {index} is that of another version; `shiguan stores init` writes it")
    except NotFoundError:
        problems.append(f"the template {index} is missing; `shiguan stores init` writes it")
    if not client.indices.exists(index=index):
        problems.append(f"the index {index} is missing; `shiguan stores init` makes it")
        return {"version": version, "health": "missing", "documents": None, "problems": problems}
    mappings = client.indices.get_mapping(index=index)[index]["mappings"]
    problems += [f"index {index}: {difference}" for difference in schema.differences(mappings)]
    health = client.cluster.health(index=index, timeout="1s")["status"]
    if health == "red":
        problems.append(f"a shard of {index} is not there; see the server's log and its disks")
    documents = client.count(index=index)["count"] if health != "red" else None
    return {"version": version, "health": health, "documents": documents, "problems": problems}


def _arguments(template: dict[str, Any]) -> dict[str, Any]:
    # The client calls `_meta` by another name, for a leading underscore is private in Python.
    return {key.removeprefix("_"): value for key, value in template.items()}
