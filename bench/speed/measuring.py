"""Clocks, memory, and the name of the machine."""

import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def resident_mib() -> float:
    """Give the memory that this process holds now, in MiB; its peak where the system does not tell."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def timed(action: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Run something once; CPU time counts every thread of the process."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = action()
    return result, {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def medians(times: list[dict[str, float]]) -> dict[str, float]:
    """Give the median wall and CPU time in milliseconds, and the slowest of twenty (p95) wall time."""
    walls = sorted(entry["wall_s"] for entry in times)
    return {
        "cpu_ms": statistics.median(entry["cpu_s"] for entry in times) * 1000,
        "wall_ms": statistics.median(walls) * 1000,
        "wall_p95_ms": walls[min(len(walls) - 1, int(len(walls) * 0.95))] * 1000,
    }


def machine() -> dict[str, Any]:
    """Name the processor, its cores and the memory; nothing that names the computer itself."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = models[0] if models else cpu
    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_gib": memory, "python": platform.python_version()}


def name_machine(result: dict[str, Any]) -> str:
    """Say on what machine and day a result was measured."""
    about = result["machine"]
    parts = (about["cpu"], f"{about['cores']} cores", f"{about['memory_gib']} GiB", f"Python {about['python']}")
    return f"{', '.join(parts)}, {result['date']}."


def versions(*packages: str) -> dict[str, str]:
    """Give the installed versions."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
