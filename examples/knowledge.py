"""A knowledge base of two layers: L0 are articles that a question names, L1 are articles that resemble it."""

from dataclasses import dataclass

from ramet.recorder import note_retrieval, record_tool

SHOWN_CHARACTERS = 600
"""What a model is shown of what was found."""
_NEAR = 0.25

_ARTICLES = {
    "重启 checkout": "Restart checkout: drain one pod at a time, wait for readiness, 再继续下一个。Never all at once.",
    "p99": "Latency p99 of checkout: first the pool of database connections, then slow queries, then the cache. " * 6,
    "DB_CHARSET": "A connection of latin1 on a table of utf8mb4 makes indexes useless: every query scans the table.",
    "cache TTL": "Cache misses that rise after a deploy: compare the TTL of the deploy before. 缓存过期时间。",
}


@dataclass(frozen=True)
class Found:
    """What a lookup found."""

    text: str
    named: tuple[str, ...]
    near: tuple[tuple[str, float], ...]


def search(query: str) -> Found:
    """Looks through both layers."""
    words = set(query.lower().split())
    named = [title for title in _ARTICLES if title.lower() in query.lower()]
    scores = {title: len(words & set(text.lower().split())) / len(words) for title, text in _ARTICLES.items()}
    near = [(title, round(score, 3)) for title, score in scores.items() if score >= _NEAR and title not in named]
    text = "\n\n".join(_ARTICLES[title] for title in [*named, *(title for title, _ in near)])
    return Found(text or "Nothing found.", tuple(named), tuple(near))


@record_tool(max_output=SHOWN_CHARACTERS)
def lookup_knowledge(query: str) -> str:
    """A tool: what the knowledge base says of a question."""
    found = search(query)
    note_retrieval(
        l0_match_count=len(found.named),
        l1_match_count=len(found.near),
        l0_titles=found.named,
        l1_titles=[title for title, _ in found.near],
        l1_scores=[score for _, score in found.near],
        has_supplement=bool(found.named and found.near),
    )
    return found.text
