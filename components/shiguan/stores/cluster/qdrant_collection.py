"""One collection of a Qdrant server, and how it is made."""

from typing import Any

from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse

from shiguan.errors import StoreError
from shiguan.stores.cluster.served_store import ServedStore

_CONFLICTS = (400, 409)


class QdrantCollection(ServedStore):
    """A store in a collection of Qdrant; `config` and `payload_indexes` say what the collection looks like."""

    config: dict[str, Any]
    payload_indexes: dict[str, Any]

    def _check(self, client: QdrantClient) -> None:
        if not client.collection_exists(self.index):
            raise self._missing("collection")
        differences = self._vector_differences(client.get_collection(self.index))
        if differences:
            raise StoreError(
                f"The collection {self.index} of {self.server.place} does not fit the deployment's files: "
                f"{'; '.join(differences)}. Vectors of another embedder are made anew: give the collection another "
                "name in the files, run `shiguan stores init`, then `shiguan ingest --resume`."
            )

    def _make(self, client: QdrantClient) -> list[str]:
        # Never deletes: Haystack's own way can remove what another process has just made.
        made = False
        try:
            made = not client.collection_exists(self.index) and client.create_collection(self.index, **self.config)
        except UnexpectedResponse as error:
            if error.status_code not in _CONFLICTS or not client.collection_exists(self.index):
                raise
        done = [f"collection {self.index} {'made' if made else 'was there'}"]
        info = client.get_collection(self.index)
        wanted = {field: schema for field, schema in self.payload_indexes.items() if field not in info.payload_schema}
        for field, schema in wanted.items():
            client.create_payload_index(self.index, field_name=field, field_schema=schema, wait=True)
        if wanted:
            done.append(f"payload indexes made: {', '.join(wanted)}")
        self._check(client)
        return done

    def _vector_differences(self, info: Any) -> list[str]:
        actual, expected = info.config.params.vectors, self.config["vectors_config"]
        if actual is None or isinstance(actual, dict):
            return ["it holds named vectors and was not made by `shiguan stores init`"]
        found = []
        if actual.size != expected.size:
            found.append(f"its vectors have {actual.size} dimensions, the embedder's {expected.size}")
        if actual.distance != expected.distance:
            found.append(f"its distance is {actual.distance.value}, expected {expected.distance.value}")
        return found
