"""A file of keys with one that a test chose."""

import json
from pathlib import Path

from shiguan.serving.keys import KeyRecord, hash_of


def key_file(folder: Path, key: str, tenant: str, role: str = "write") -> str:
    """Write it, and give the value of `SHIGUAN_KEYS_FILE`."""
    record = KeyRecord(id=hash_of(key)[:12], hash=hash_of(key), tenant=tenant, role=role)
    path = folder / "keys-of-the-test.json"
    path.write_text(json.dumps({"keys": [record.model_dump()]}))
    return str(path)
