"""A runner is let go of wherever its last user stands, also inside an event loop of its own."""

import asyncio

from tests.doubles.small_library import TENANT, small_library

from shiguan.engine.runner import Runner


async def test_a_runner_that_searched_in_a_thread_is_closed_inside_a_running_loop(tmp_path):
    runner = Runner("embedded", "simple", data_dir=small_library(tmp_path), retrieval_only=True)
    found, _ = await asyncio.to_thread(runner.search, "Who proposed the two-tax reform?", tenant_id=TENANT)
    assert found[0].meta["source"] == "tax.txt"
    runner.close()
    runner.close()
