"""`tf.contrib.learn.preprocessing`: converts texts to rows of integers."""

from __future__ import annotations

import collections
import json
import math
import re
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator

import numpy as np

from compat.errors import UserError

_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)
_UNKNOWN = "<UNK>"


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """Yields the words of each text."""
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Ids of words; 0 stands for unknown words."""

    def __init__(self, unknown_token: str = _UNKNOWN, support_reverse: bool = True) -> None:
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._counts: collections.Counter[Any] = collections.Counter()
        self._unknown = unknown_token
        self._frozen = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Stops adding unknown words."""
        self._frozen = freeze

    def get(self, category: Any) -> int:
        """Returns the id of a word."""
        if self._frozen:
            return self._mapping.get(category, 0)
        return self._mapping.setdefault(category, len(self._mapping))

    def add(self, category: Any, count: int = 1) -> None:
        """Counts a word."""
        if self.get(category) or not self._frozen:
            self._counts[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Removes words that are too rare or too frequent; orders the others by frequency."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], str(item)))
        bound = max_frequency if max_frequency > 0 else math.inf
        kept = [word for word, count in ordered if min_frequency < count < bound]
        self._mapping = {word: number for number, word in enumerate([self._unknown, *kept])}

    def reverse(self, class_id: int) -> Any:
        """Returns the word with an id."""
        return list(self._mapping)[class_id]

    def state(self) -> dict[str, Any]:
        """Returns the vocabulary as JSON-serializable values."""
        counts = list(self._counts.items())
        return {"words": list(self._mapping), "counts": counts, "frozen": self._frozen}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> CategoricalVocabulary:
        """Returns the vocabulary with a `state`."""
        vocabulary = cls(state["words"][0])
        for word in state["words"]:
            vocabulary.get(word)
        vocabulary._counts.update(dict(state["counts"]))
        vocabulary._frozen = bool(state["frozen"])
        return vocabulary


class VocabularyProcessor:
    """Converts each text to a row of `max_document_length` word ids, padded with zeros.

    Words must occur more than `min_frequency` times to get an id.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterator[Any]] | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the vocabulary; returns the processor."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def transform(self, raw_documents: Iterable[str]) -> Iterator[Any]:
        """Yields a row for each text, int64 `[max_document_length]`."""
        for words in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            for place, word in enumerate(list(words)[: self.max_document_length]):
                row[place] = self.vocabulary_.get(word)
            yield row

    def fit_transform(self, raw_documents: Iterable[str], unused_y: Any = None) -> Iterator[Any]:
        """Learns the vocabulary and yields a row for each text."""
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """Yields the text of each row."""
        for row in documents:
            yield " ".join(str(self.vocabulary_.reverse(number)) for number in row)

    def save(self, filename: str) -> None:
        """Saves the processor as JSON; contrib's pickles could run code when loaded."""
        if self._tokenizer is not tokenizer:
            raise UserError(
                f"a VocabularyProcessor with a tokenizer_fn of its own cannot be saved to "
                f"{filename!r}, expected the default one; fit a new one where you need it"
            )
        state = {
            "max_document_length": self.max_document_length,
            "min_frequency": self.min_frequency,
            "vocabulary": self.vocabulary_.state(),
        }
        with open(filename, "w", encoding="utf-8") as file:
            json.dump(state, file)

    @classmethod
    def restore(cls, filename: str) -> Any:
        """Returns the processor that `save` wrote; refuses pickles of earlier TensorFlow."""
        content = Path(filename).read_bytes()
        try:
            state = json.loads(content.decode("utf-8"))
            vocabulary = CategoricalVocabulary.of_state(state["vocabulary"])
            return cls(state["max_document_length"], state["min_frequency"], vocabulary)
        except (ValueError, LookupError, TypeError, RecursionError):
            raise UserError(
                f"{filename!r} does not hold a VocabularyProcessor, expected JSON (pickles are "
                "never loaded); fit it again and save it"
            ) from None


class ByteProcessor:
    """Converts each text to a row of its bytes."""

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> ByteProcessor:
        """Returns the processor; there is nothing to learn."""
        return self

    def transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """Yields a row for each text, uint8 `[max_document_length]`."""
        for text in x:
            raw = text.encode("utf-8") if isinstance(text, str) else bytes(text)
            padded = raw[: self.max_document_length].ljust(self.max_document_length, b"\0")
            yield np.frombuffer(padded, np.uint8).copy()

    fit_transform = transform
