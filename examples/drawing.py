"""Draws a forest as lines of text."""

from collections.abc import Iterator, Mapping, Sequence

from ramet import TreeNode


def draw(roots: Sequence[TreeNode], records: Mapping[str, int]) -> Iterator[str]:
    """Yields a line per node, with the branches that lead to it; ``records`` counts each session's records."""
    waiting = [(root, "", "", "") for root in reversed(roots)]
    while waiting:
        node, lead, branch, below = waiting.pop()
        yield f"{lead}{branch}{_words(node, records[node.id])}"
        for child in reversed(node.children):
            last = child is node.children[-1]
            waiting.append((child, lead + below, "└─ " if last else "├─ ", "   " if last else "│  "))


def _words(node: TreeNode, records: int) -> str:
    status = "" if node.status is None or node.status == "active" else f", {node.status}"
    refs = "".join(f" → {target}" for target in node.node.refs)
    sizes = f"{_count(records, 'record')}, {_count(node.turn_count or 0, 'turn')}"
    return f"{node.node.label} ({node.id}): {sizes}{status}{refs}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
