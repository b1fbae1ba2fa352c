"""Offers one operation of an HTTP interface that is described by OpenAPI to the model."""

from typing import Any
from urllib.parse import quote

from haystack import Document, component
from haystack.tools import Tool
from haystack.utils import Secret

from shiguan.agent.tools import AgentTool, ToolError, fetch_json, foreign_tool, found_outside, object_schema


@component
class OpenAPILookup(AgentTool):
    """
    Lets the model call one GET operation of a service, which the pipeline names with its address.

    Only parameters of the path and the query are filled in, and only at the address that the file has, wherever the
    description (OpenAPI 3, https://spec.openapis.org/oas/v3.1.0, in JSON) would send us: a tool looks things up and
    changes nothing. Haystack's own connector has no limit of time and size, which a tool for a model needs.
    """

    def __init__(self, url: str, *, tool_name: str, description_url: str, token: Secret | None = None) -> None:
        """
        Name the service and its operation.

        :param url: The service's address, before the paths of its operations.
        :param tool_name: The operation, by its `operationId`.
        :param description_url: Where its OpenAPI description is.
        :param token: Sent as a bearer token; None for none.
        """
        self.url = url
        self.tool_name = tool_name
        self.description_url = description_url
        self.token = token
        self._operation: tuple[str, dict[str, Any]] | None = None

    def definition(self, language: str) -> Tool:  # noqa: ARG002  # a service has one language
        """Read from the service's description what the operation does and takes."""
        _, operation = self._found()
        told = str(operation.get("description") or operation.get("summary") or self.tool_name)
        parameters = operation["parameters"]
        types = {one["name"]: {"type": (one.get("schema") or {}).get("type", "string")} for one in parameters}
        required = [one["name"] for one in parameters if one.get("required")]
        return foreign_tool(self.tool_name, told, object_schema(types, required))

    @component.output_types(documents=list[Document])
    def run(self, **arguments: Any) -> dict[str, list[Document]]:
        """
        Call the operation.

        :param arguments: Its parameters by name.
        :returns: `documents`, one with what the reply says, line by line; none if it says nothing.
        :raises ToolError: If the service gives nothing that can be used.
        """
        path, operation = self._found()
        query = dict(arguments)
        for one in operation["parameters"]:
            if one.get("in") == "path":
                path = path.replace(f"{{{one['name']}}}", quote(str(query.pop(one["name"], "")), safe=""))
        address = self.url.rstrip("/") + path
        text = "\n".join(_lines(fetch_json(address, query, self._headers())))
        return {"documents": [found_outside(self.tool_name, text, title="", address=address)] if text else []}

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token.resolve_value()}"} if self.token is not None else {}

    def _found(self) -> tuple[str, dict[str, Any]]:
        if self._operation is None:
            described = fetch_json(self.description_url, {})
            try:
                for path, item in described["paths"].items():
                    operation = item.get("get") or {}
                    if operation.get("operationId") == self.tool_name:
                        given = [*(item.get("parameters") or []), *(operation.get("parameters") or [])]
                        parameters = [one for one in given if one.get("in") in ("path", "query") and one["name"]]
                        self._operation = (path, {**operation, "parameters": parameters})
            except (AttributeError, KeyError, TypeError) as error:
                raise ToolError("the description of the service is no OpenAPI") from error
        if self._operation is None:
            raise ToolError(f"the service describes no GET operation `{self.tool_name}`")
        return self._operation


def _lines(value: Any, name: str = "") -> list[str]:
    """Write JSON for a reader: a line for each value, named by its key."""
    if isinstance(value, dict):
        return [line for key, inner in value.items() for line in _lines(inner, str(key))]
    if isinstance(value, list):
        return [line for inner in value for line in _lines(inner, name)]
    text = " ".join(str(value).split()) if value not in (None, "") else ""
    return [f"{name}: {text}" if name else text] if text else []
