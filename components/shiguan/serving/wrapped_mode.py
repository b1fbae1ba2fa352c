"""What the Hayhooks wrappers of the modes have in common; only the wrappers themselves know Hayhooks."""

from typing import Any, ClassVar

from haystack import AsyncPipeline
from pydantic import ValidationError

from shiguan.serving.answer_request import AnswerRequest
from shiguan.serving.engine import current_engine
from shiguan.serving.error_replies import ApiError, as_api_error
from shiguan.serving.invalid_fields import invalid_fields
from shiguan.serving.principal import check_tenant, principal_of_request


class WrappedMode:
    """
    A mode at Hayhooks' own routes: `/simple/run`, `/draw/simple`, `/status/simple`.

    A wrapper names its mode and stands this class before Hayhooks' own:

        class PipelineWrapper(WrappedMode, BasePipelineWrapper):
            mode = "simple"

    The pipeline is the engine's, so that it is loaded once, and the tenant is that of the caller's key.
    """

    mode: ClassVar[str] = ""
    # A tool call of MCP or A2A has no API key, and so no tenant.
    skip_mcp: bool = True
    skip_a2a: bool = True
    pipeline: AsyncPipeline

    def setup(self) -> None:
        """Take the mode's pipeline from the engine."""
        self.pipeline = current_engine().runner(self.mode).pipeline

    async def run_api_async(
        self,
        *,
        query: str,
        top_k: int | None = None,
        temperature: float | None = None,
        filters: dict[str, Any] | None = None,
        conversation_id: str | None = None,
        history: list[dict[str, Any]] | None = None,
        include_sources: bool = True,
        task: str | None = None,
        profile: str | None = None,
        language: str | None = None,
        tenant_id: str | None = None,
    ) -> dict[str, Any]:
        """Answer a question from the caller's documents."""
        principal = principal_of_request.get()
        if principal is None:
            raise ApiError("unauthenticated")
        try:
            request = AnswerRequest.model_validate(
                {
                    "mode": self.mode,
                    "query": query,
                    "top_k": top_k,
                    "temperature": temperature,
                    "filters": filters,
                    "conversation_id": conversation_id,
                    "history": history,
                    "include_sources": include_sources,
                    "task": task,
                    "profile": profile,
                    "language": language,
                    "tenant_id": tenant_id,
                }
            )
            check_tenant(principal, request.tenant_id)
            return await current_engine().ask(request, principal.tenant_id)
        except ValidationError as error:
            raise invalid_fields(error) from error
        except Exception as error:
            raise as_api_error(error) from error
