"""The name under which an upload is known, from whatever a client calls it."""

import unicodedata

from shiguan.engine.library import SUFFIXES
from shiguan.serving.error_replies import ApiError

_LONGEST = 200


def source_name(given: str | None) -> str:
    """
    Make a name out of what a client sent, or refuse it.

    Folders before the name are dropped, as are characters that do not show or turn the direction of writing: what a
    person reads in a list is what is there. The name is never used as a path.
    """
    text = unicodedata.normalize("NFC", (given or "").encode("utf-8", "replace").decode("utf-8"))
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
    name = text.replace("\\", "/").rsplit("/", 1)[-1].strip().lstrip(".").strip()
    if not name:
        raise _refused("the upload has no file name")
    if len(name.encode()) > _LONGEST:
        raise _refused(f"the file name has more than {_LONGEST} bytes")
    if not name.lower().endswith(SUFFIXES) or name.lower() in SUFFIXES:
        raise _refused(f"its name must end with one of {', '.join(SUFFIXES)}")
    return name


def _refused(problem: str) -> ApiError:
    return ApiError(
        "invalid_request", message=f"The upload was refused: {problem}.", fields=[{"field": "file", "problem": problem}]
    )
