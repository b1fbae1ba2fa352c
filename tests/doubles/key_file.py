"""A file of keys with one that a test chose."""

import json
from pathlib import Path

from shiguan.resources import text_hash
from shiguan.serving.keys import KeyRecord


def key_file(folder: Path, key: str, tenant: str, role: str = "write") -> str:
    """Write it, and give the value of `SHIGUAN_KEYS_FILE`."""
    record = KeyRecord(id=text_hash(key)[:12], hash=text_hash(key), tenant=tenant, role=role)
    path = folder / "keys-of-the-test.json"
    path.write_text(json.dumps({"keys": [record.model_dump()]}))
    return str(path)
