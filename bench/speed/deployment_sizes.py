"""
Work out how much the deployment `elasticsearch_qdrant` takes, and print the tables of docs/deploy.md and README.md.

    python bench/speed/deployment_sizes.py

What a passage takes was measured on an English novel and a Chinese history with the index pipeline's own splitter; how
the servers keep it follows their documentation. Numbers are for planning: a factor of 1.3 either way is normal.
"""

from dataclasses import dataclass
from math import ceil

GIB = 2**30

CHILDREN_OF_A_PARENT = 5.7
"""Mean of *Moby-Dick* (5.55) and a part of the *Old Book of Tang* (5.90)."""

CHILD_BYTES = 910
"""A child as JSON, text and meta: 953 and 862 bytes."""

CHILD_PACKED_BYTES = 250
"""The same, compressed: 278 and 227 bytes."""

CHILD_TEXT_BYTES = 330
"""Its text alone: 388 and 267 bytes."""

PARENT_PACKED_BYTES = 1_110
"""A parent as JSON, compressed: 1,228 and 998 bytes."""

DIMENSIONS = 1_024
M = 16
INDEXES_IN_MEMORY = 5
INDEXES_ON_DISK = 9
RESERVE = 4 / 3
STEP = 100_000

NODE_MEMORY = 64 * GIB
"""Of one machine of a large cluster: of more, Elasticsearch has no use for its heap."""

NUMBER_CHARACTERS = 12
"""A number of a vector in a request, as JSON has it with its comma."""

MEMORY_PRICE, DISK_PRICE = 4.0, 0.1
"""What a GiB costs in a month: an assumption to be replaced by one's own."""

EMBEDDED_A_SECOND = 500
"""Children, by one graphics card: an assumption as well; `shiguan ingest` shows one's own rate."""


@dataclass(frozen=True)
class Sizes:
    """What one copy of a library takes, in bytes."""

    qdrant_memory: float
    qdrant_disk: float
    elasticsearch_memory: float
    elasticsearch_disk: float


def sizes(children: int, bits: int = 8) -> Sizes:
    """Work out the sizes for one copy, without replicas."""
    quantised = children * DIMENSIONS * bits / 8
    # Each point has 2 m links of 4 bytes on the lowest layer and about a tenth more above, in the graph of its tenant
    # (`payload_m`) alone: there is none over all tenants (`m: 0`), and none for the other indexed fields.
    graph = children * 2 * M * 4 * 1.1
    # Lists of points for each value, and values for each point; texts are stored once.
    payload_index = children * INDEXES_IN_MEMORY * 24
    payload_index_on_disk = children * INDEXES_ON_DISK * 60
    ids = children * 40  # between our ids and the server's, and versions
    vectors = children * DIMENSIONS * 4
    payload = children * CHILD_BYTES * 1.2
    # While segments are merged, the largest ones are there twice.
    qdrant_disk = 1.5 * (vectors + quantised + graph + payload_index + payload_index_on_disk + payload)

    parents = children / CHILDREN_OF_A_PARENT
    sources = children * CHILD_PACKED_BYTES + parents * PARENT_PACKED_BYTES
    # Words, single characters and pairs of them with their positions; then ids and keywords, column-wise.
    postings = children * CHILD_TEXT_BYTES * 1.6
    columns = (children + parents) * 160
    index = sources + postings + columns
    # Half of what is searched (postings) in the page cache, beside a heap of 2 GiB and 1 GiB more for every 2 million.
    heap = 2 * GIB + children / 2_000_000 * GIB
    return Sizes(
        qdrant_memory=(quantised + graph + payload_index + ids) * 1.1 + 0.3 * GIB,
        qdrant_disk=qdrant_disk,
        elasticsearch_memory=heap + 0.5 * (postings + columns),
        elasticsearch_disk=1.4 * index,
    )


def shards(disk: float) -> int:
    """Give the number of primary shards: one up to 30 GiB, and one more for every 30 GiB."""
    return 1 + int(disk // (30 * GIB))


def children_within(memory: float) -> int:
    """Give how many children both servers hold in so much memory each, with a third in reserve."""
    children = 0
    while RESERVE * max(sizes(children + STEP).qdrant_memory, sizes(children + STEP).elasticsearch_memory) <= memory:
        children += STEP
    return children


def table() -> str:
    """Write the table."""
    lines = [
        "| children | parents | Qdrant memory | Qdrant disk | Elasticsearch memory | Elasticsearch disk | shards |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for children in (100_000, 1_000_000, 3_000_000, 10_000_000):
        found = sizes(children)
        cells = [
            f"{children:,}",
            f"{round(children / CHILDREN_OF_A_PARENT, -3):,.0f}",
            *(
                f"{value / GIB:.1f} GiB"
                for value in (
                    found.qdrant_memory,
                    found.qdrant_disk,
                    found.elasticsearch_memory,
                    found.elasticsearch_disk,
                )
            ),
            str(shards(found.elasticsearch_disk)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def large_table() -> str:
    """Write the table of large clusters: one copy, with a third in reserve."""
    libraries = [(children, bits) for children in (10_000_000, 100_000_000) for bits in (8, 1)]
    rows: dict[str, list[str]] = {
        "children": [f"{children / 1e6:.0f} million" for children, _ in libraries],
        "quantisation": [{8: "int8", 1: "binary"}[bits] for _, bits in libraries],
    }
    for children, bits in libraries:
        found = sizes(children, bits)
        memory = RESERVE * (found.qdrant_memory + found.elasticsearch_memory) / GIB
        disk = RESERVE * (found.qdrant_disk + found.elasticsearch_disk) / GIB
        nodes = [ceil(RESERVE * size / NODE_MEMORY) for size in (found.qdrant_memory, found.elasticsearch_memory)]
        cells = {
            "Qdrant: memory": f"{RESERVE * found.qdrant_memory / GIB:.0f} GiB",
            "Qdrant: disk": f"{RESERVE * found.qdrant_disk / GIB:,.0f} GiB",
            "Qdrant: nodes of 64 GiB": str(nodes[0]),
            "Qdrant: `shard_number`": str(1 if nodes[0] == 1 else 2 * nodes[0]),
            "Elasticsearch: memory": f"{RESERVE * found.elasticsearch_memory / GIB:.0f} GiB",
            "Elasticsearch: disk": f"{RESERVE * found.elasticsearch_disk / GIB:,.0f} GiB",
            "Elasticsearch: nodes of 64 GiB": str(nodes[1]),
            "Elasticsearch: `shards`": str(shards(found.elasticsearch_disk)),
            "vectors sent, as JSON": f"{children * DIMENSIONS * NUMBER_CHARACTERS / GIB:,.0f} GiB",
            "embedding on one card": f"{children / EMBEDDED_A_SECOND / 3600:.0f} hours",
            "a month": f"{memory * MEMORY_PRICE + disk * DISK_PRICE:,.0f} €",
        }
        for name, cell in cells.items():
            rows.setdefault(name, []).append(cell)
    lines = [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    return "\n".join([lines[0], f"|---|{'---:|' * len(libraries)}", *lines[1:]])


def main() -> None:
    """Print the tables, and what fits the limits of docker-compose.yml."""
    print(table())
    print(large_table())
    print(f"4 GiB each, a third in reserve: {children_within(4 * GIB):,} children")


if __name__ == "__main__":
    main()
