"""Reading of lines of whole numbers; errors name the line."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Sequence

from optbench.errors import FileFormatError

# Times are floats that are summed as 64-bit integers: this is far above the numbers of any
# published instance, and far below an overflow.
MAX_NUMBER = 10**9
# Every pair of pools has a transfer row, so their number bounds the memory of an instance.
MAX_POOLS = 4096

# Depth of a text whose header can be read and whose number of lines is wrong.
HEADER_ONLY = 1.5

Row = tuple[int, list[int]]


class MisfitError(FileFormatError):
    """The text is not in this format: the first line where that shows, and why.

    ``depth`` measures how far the text agrees with the format; by default it is the line.
    """

    def __init__(self, line: int, why: str, depth: float | None = None) -> None:
        super().__init__(f"line {line}: {why}")
        self.depth = line if depth is None else depth


def content_lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines without comments (``# ...``) and without empty lines."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line:
            content = line.split("#", 1)[0].strip()
            if content:
                yield number, content


def header_and_lines(
    lines: Iterable[tuple[int, str]],
) -> tuple[int, list[str], list[tuple[int, str]]]:
    """The first line's number and tokens, and the lines after it."""
    found = list(lines)
    if not found:
        raise MisfitError(1, "no numbers, only text, comments or empty lines")
    line, content = found[0]
    return line, content.split(), found[1:]


def number_row(line: int, content: str) -> list[int]:
    return [parse_whole_number(line, token) for token in content.split()]


def parse_whole_number(line: int, token: str, lowest: int = 0) -> int:
    """Return a token as an integer from ``lowest`` to MAX_NUMBER; otherwise raise MisfitError with
    the line.
    """
    digits = token.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise MisfitError(line, f"{shorten(token)} is not a whole number")
    value = int(token) if len(digits) <= 20 else MAX_NUMBER + 1
    if token.startswith("-") or value < lowest:
        raise MisfitError(line, f"{shorten(token)} is below {lowest}")
    if value > MAX_NUMBER:
        raise MisfitError(
            line, f"{shorten(token)} is above {MAX_NUMBER:,}, the largest number allowed"
        )
    return value


def shorten(token: str) -> str:
    """Shorten a token for a message."""
    return repr(token if len(token) <= 40 else token[:37] + "...")


def jobs_and_machines(line: int, tokens: Sequence[str]) -> tuple[int, int]:
    """The leading two numbers of a header."""
    counts = [parse_whole_number(line, token) for token in tokens[:2]]
    for name, value in zip(("jobs", "machines"), counts, strict=True):
        if value < 1:
            raise MisfitError(line, f"number of {name} is {value}; at least 1 is needed")
    check_pools(line, "machines", counts[1])
    return counts[0], counts[1]


def check_size(line: int, tokens: Sequence[object], allowed: Container[int], what: str) -> None:
    """Check how many numbers stand in a line."""
    if len(tokens) not in allowed:
        raise MisfitError(line, f"{len(tokens)} numbers; {what}")


def check_length(lines: Sequence[tuple[int, str]], expected: int, what: str) -> None:
    """Check the number of lines that the header promises."""
    if len(lines) < expected:
        at = lines[-1][0] if lines else 1
        why = (
            f"the file ends after {len(lines):,} of {expected:,} lines; the header promises {what}"
        )
        raise MisfitError(at, why, HEADER_ONLY)
    if len(lines) > expected:
        raise MisfitError(
            lines[expected][0], f"one line too many; the header promises {what}", HEADER_ONLY
        )


def check_pools(line: int, what: str, count: int) -> None:
    if count > MAX_POOLS:
        raise MisfitError(line, f"number of {what} is {count:,}; at most {MAX_POOLS:,} are allowed")


class Numbers:
    """Reads whole numbers one by one from a text in which line breaks have no meaning."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        # The line of each token; a list would take more memory than the tokens.
        self._lines = array("I")
        self._next = 0
        for number, line in content_lines(text):
            tokens = line.split()
            self._tokens += tokens
            self._lines.extend([number] * len(tokens))

    @property
    def line(self) -> int:
        """Line of the number to be taken next, or of the last one."""
        return self._lines[min(self._next, len(self._lines) - 1)] if self._lines else 1

    @property
    def left(self) -> int:
        return len(self._tokens) - self._next

    def take(self, what: str, lowest: int = 0) -> int:
        if self._next >= len(self._tokens):
            raise MisfitError(self.line, f"the file ends where {what} should stand")
        line, token = self._lines[self._next], self._tokens[self._next]
        self._next += 1
        return parse_whole_number(line, token, lowest)

    def take_row(self, count: int, what: str) -> list[int]:
        """Take ``count`` numbers; more than the rest of the file holds are refused first."""
        if count > self.left:
            raise MisfitError(
                self.line,
                f"{count:,} numbers should follow for {what}, the file holds {self.left:,} more",
            )
        return [self.take(what) for _ in range(count)]
