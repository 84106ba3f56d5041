"""Which vector is added to a token where it stands? That of its part: how many marks came before.

`SegmentVectors` counts marks such as "+" and "=" in the tokens. In a layout whose marks stand in
segments of their own, one position each, and which the circuit never writes, the number depends on
the segment alone, at every scale.
"""

from __future__ import annotations

from lgcourse.certify.signatures import MalformedError, Setting
from lgcourse.embeddings.base import PositionEmbedding
from lgcourse.embeddings.learned_relation import LearnedRelation
from lgcourse.embeddings.segments import PARTS, SegmentVectors


def adds_nothing_unknown(embedding) -> bool:
    """Return whether an embedding adds to tokens nothing, or vectors of their parts only.

    >>> adds_nothing_unknown(PositionEmbedding())
    True
    """
    if type(embedding).embed is PositionEmbedding.embed:
        return True
    known = type(embedding).embed is LearnedRelation.embed
    return known and (embedding.segments is None or type(embedding.segments) is SegmentVectors)


def marks_counted(embedding) -> list[int]:
    """Return the marks whose number decides what is added to a token; none where nothing is."""
    vectors = getattr(embedding, "segments", None)
    return [] if vectors is None else vectors.marks.tolist()


def parts(setting: Setting, embedding) -> list[int]:
    """Return the part of each segment of a layout, all 0 where no vectors are added.

    Raises:
        MalformedError: the part of a token does not depend on its segment alone.

    >>> from lgcourse import embeddings, tasks
    >>> task = tasks.get("addition")
    >>> pe = embeddings.build("lbpe-sh", task, width=8, heads=1)
    >>> parts(Setting.of(task, []), pe)  # a + b = s
    [0, 0, 1, 1, 2]
    """
    marks, before, found = set(marks_counted(embedding)), 0, []
    outputs = {v for family in setting.families for v in family.operator.table.values()}
    if marks & outputs:
        raise MalformedError("the circuit writes marks, which the embedding counts")
    for segment in setting.segments:
        found.append(min(before, PARTS - 1))
        held = marks & set(segment.tokens)
        if not held:
            continue
        one = segment.length.is_constant and segment.length.constant == 1 and not segment.where
        if held != set(segment.tokens) or not one:
            raise MalformedError(f"segment '{segment.letter}' does not hold just one mark")
        before += 1
    return found
