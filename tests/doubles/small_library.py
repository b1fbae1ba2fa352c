"""A library of four short texts, for tests that ask whole modes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shiguan.engine.ingested_file import IngestedFile
from shiguan.engine.library import Library

TEXTS = {
    "salt.txt": "The salt monopoly was set up by Diwu Qi in 758. It paid half of the state's income by 780.",
    "tax.txt": "Yang Yan proposed the two-tax reform in 780. It was collected in summer and autumn.",
    "wall.txt": "The wall of the capital was eight metres high. It was pulled down in 904.",
    "tang.txt": "天宝十四载十一月，安禄山在范阳起兵。次年六月潼关失守，玄宗奔蜀。",
}
TENANT = "a"


def ingest_small_library(folder: Path) -> Path:
    """Ingest the texts for the tenant `a` and one text of its own for `b`."""
    texts = folder / "texts"
    texts.mkdir()
    for name, text in TEXTS.items():
        (texts / name).write_text(text, encoding="utf-8")
    secret = folder / "secret.txt"
    secret.write_text("The two-tax reform of tenant b was proposed by Li Mi in 779.", encoding="utf-8")
    data = folder / "data"
    library = Library(data_dir=data)

    def ingest() -> list[IngestedFile]:
        return [
            *library.ingest(sorted(texts.iterdir()), tenant_id=TENANT),
            *library.ingest([secret], tenant_id="b"),
        ]

    # In a thread, since a fixture of an asynchronous test is set up inside its event loop.
    with ThreadPoolExecutor(1) as pool:
        results = pool.submit(ingest).result()
    assert [result.parents for result in results] == [1] * 5
    return data
