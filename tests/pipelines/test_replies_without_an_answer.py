"""A reply that holds nothing to show is a failure of the model, whatever the mode and however it is asked."""

import pytest

from shiguan.errors import EndpointError
from shiguan.serving.error_replies import as_api_error

QUESTION = "Who proposed the two-tax reform?"
CALLS = {"tool_calls": [{"name": "search", "arguments": {}}]}


@pytest.mark.parametrize("streamed", [False, True], ids=["asked", "streamed"])
@pytest.mark.parametrize("reply", ["", " \n", CALLS], ids=["empty", "blank", "tools alone"])
@pytest.mark.parametrize("mode", ["simple", "precise"])
def test_it_is_an_error_of_the_model(endpoint, opened, library, mode, reply, streamed):
    endpoint.default = reply
    runner = opened(mode, library)

    async def last_event():
        return [event async for event in runner.stream(QUESTION, tenant_id="a")][-1]

    if streamed:
        error = runner._loop.run(last_event()).error
    else:
        with pytest.raises(EndpointError) as caught:
            runner.ask(QUESTION, tenant_id="a")
        error = caught.value
    told = as_api_error(error)
    assert (told.kind, told.status_code, told.stage) == ("upstream_unavailable", 503, "generator")
