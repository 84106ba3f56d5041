"""What if a token is more than one character? Tokens are words; text has spaces between them."""

from __future__ import annotations

from collections.abc import Sequence

from lgcourse.tasks.base import Task


class Words(Task):
    """Base class of tasks whose vocabulary is a tuple of words, one of them ``"="``.

    Only what depends on the text of a token differs from `Task`.
    """

    vocabulary: Sequence[str]

    def encode(self, text):
        """Return the tokens of a text: words with spaces between them; ``=`` needs none."""
        words = text.replace("=", " = ").split()
        ids = {word: id for id, word in enumerate(self.vocabulary)}
        wrong = next((word for word in words if word not in ids), None)
        if wrong is not None:
            raise self.not_mine(text, f"the word '{wrong[:20]}' is not {self.word_form()}")
        return [ids[word] for word in words]

    def word_form(self) -> str:
        """Return what words look like, for messages."""
        return f"one of {', '.join(self.vocabulary)}"

    def decode(self, ids):
        """Return the text of tokens, with spaces between the words."""
        super().decode(ids)  # refuses ids that are no tokens
        return " ".join(self.vocabulary[int(id)] for id in ids)
