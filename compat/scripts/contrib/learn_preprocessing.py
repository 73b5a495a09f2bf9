"""`tf.contrib.learn.preprocessing`: texts as rows of numbers."""

from __future__ import annotations

import collections
import json
import re
from typing import Any, Callable, Iterable, Iterator

import numpy as np

from compat.errors import UserError

_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """Yields the words of each text."""
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Numbers of words; 0 is for those that are not known."""

    def __init__(
        self,
        unknown_token: str = "<UNK>",  # noqa: S107 - A word, not a secret.
        support_reverse: bool = True,
    ) -> None:
        del support_reverse
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._counts: collections.Counter[Any] = collections.Counter()
        self._unknown = unknown_token
        self._frozen = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Has words that are not known stay so."""
        self._frozen = freeze

    def get(self, category: Any) -> int:
        """Returns a word's number."""
        if category not in self._mapping:
            if self._frozen:
                return 0
            self._mapping[category] = len(self._mapping)
        return self._mapping[category]

    def add(self, category: Any, count: int = 1) -> None:
        """Counts a word."""
        if self.get(category) or not self._frozen:
            self._counts[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Forgets words that are too rare or too frequent; numbers the others by frequency."""
        ordered = sorted(sorted(self._counts.items(), key=str), key=lambda item: -item[1])
        kept = [
            word
            for word, count in ordered
            if count > min_frequency and (max_frequency <= 0 or count < max_frequency)
        ]
        self._mapping = {word: number for number, word in enumerate([self._unknown, *kept])}

    def reverse(self, class_id: int) -> Any:
        """Returns the word of a number."""
        return list(self._mapping)[class_id]

    def state(self) -> dict[str, Any]:
        """Returns all of it as JSON can hold it."""
        counts = list(self._counts.items())
        return {"words": list(self._mapping), "counts": counts, "frozen": self._frozen}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> CategoricalVocabulary:
        """Returns the one whose `state` this is."""
        made = cls(state["words"][0])
        made._mapping = {word: number for number, word in enumerate(state["words"])}
        made._counts.update(dict(state["counts"]))
        made._frozen = bool(state["frozen"])
        return made


class VocabularyProcessor:
    """Makes each text a row of `max_document_length` numbers, with zeros at its end.

    Args:
      max_document_length: words of a text that count.
      min_frequency: what a word must be more frequent than.
      vocabulary: one that is there; None for a new one.
      tokenizer_fn: splits texts; None for words.
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
        """Learns the words; returns itself."""
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
        """Learns the words, and yields a row for each text."""
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """Yields the text of each row."""
        for row in documents:
            yield " ".join(str(self.vocabulary_.reverse(number)) for number in row)

    def save(self, filename: str) -> None:
        """Writes itself into a file, as JSON: a pickle, as it was, can do anything when it is read.

        Raises:
          UserError: texts are split by a function of the script, which JSON cannot hold.
        """
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
        """Returns what `save` wrote.

        Raises:
          UserError: the file holds something else, such as the pickle of an earlier TensorFlow.
        """
        with open(filename, "rb") as file:
            text = file.read()
        try:
            state = json.loads(text.decode("utf-8"))
            vocabulary = CategoricalVocabulary.of_state(state["vocabulary"])
            return cls(state["max_document_length"], state["min_frequency"], vocabulary)
        except (ValueError, LookupError, TypeError, RecursionError):
            raise UserError(
                f"{filename!r} holds no VocabularyProcessor of ours, expected JSON (pickles are "
                "never loaded); fit it again and save it"
            ) from None


class ByteProcessor:
    """Makes each text a row of the numbers of its bytes."""

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> ByteProcessor:
        """Has nothing to learn; returns itself."""
        del x
        return self

    def transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """Yields a row for each text, uint8 `[max_document_length]`."""
        for text in x:
            raw = text.encode("utf-8") if isinstance(text, str) else bytes(text)
            row = np.zeros(self.max_document_length, np.uint8)
            head = np.frombuffer(raw[: self.max_document_length], np.uint8)
            row[: len(head)] = head
            yield row

    fit_transform = transform
