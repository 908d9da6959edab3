"""Values that Python has no class for. Their attributes are those of the classes with the same names in the stock driver."""

from __future__ import annotations

import datetime
import enum
import functools
from typing import Any, NoReturn, Union

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_SECOND = 1_000_000_000
_DAY = 86_400 * _SECOND


class _Unset(enum.Enum):
    UNSET_VALUE = "UNSET_VALUE"

    def __repr__(self) -> str:
        return self.value

    def __bool__(self) -> bool:
        return False


#: The parameter that leaves a column as it is; None deletes its value.
UNSET_VALUE = _Unset.UNSET_VALUE


@functools.total_ordering
class Date:
    """A day: of a wider range than datetime.date. Made of a date, a text (2026-11-27), or the number of days since 1970."""

    __slots__ = ("days_from_epoch",)

    def __init__(self, value: Union[int, str, datetime.date]) -> None:
        if isinstance(value, str):
            value = datetime.date.fromisoformat(value)
        if isinstance(value, datetime.date):
            value = value.toordinal() - _EPOCH
        elif not isinstance(value, int):
            raise TypeError(f"a Date is made of a date, a text, or a number of days, not {type(value).__name__}")
        self.days_from_epoch: int = value

    @property
    def seconds(self) -> int:
        """Seconds since 1970."""
        return self.days_from_epoch * 86_400

    def date(self) -> datetime.date:
        """The date of Python; ValueError if that has no such year."""
        try:
            return datetime.date.fromordinal(self.days_from_epoch + _EPOCH)
        except (OverflowError, ValueError):
            raise ValueError(f"{self!r} is out of the range of datetime.date") from None

    def __eq__(self, other: object) -> bool:
        days = getattr(other, "days_from_epoch", other)
        if isinstance(days, datetime.date):
            return type(days) is datetime.date and days.toordinal() - _EPOCH == self.days_from_epoch
        return days == self.days_from_epoch if isinstance(days, int) else NotImplemented

    def __lt__(self, other: object) -> bool:
        days = getattr(other, "days_from_epoch", None)
        return NotImplemented if days is None else self.days_from_epoch < days

    def __hash__(self) -> int:
        return hash(self.days_from_epoch)

    def __repr__(self) -> str:
        return f"Date({self.days_from_epoch})"

    def __str__(self) -> str:
        try:
            return str(self.date())
        except ValueError:
            return str(self.days_from_epoch)


@functools.total_ordering
class Time:
    """A time of the day in nanoseconds. Made of a time, a text (13:30:54.234), or the number of nanoseconds since midnight."""

    __slots__ = ("nanosecond_time",)

    def __init__(self, value: Union[int, str, datetime.time]) -> None:
        if isinstance(value, str):
            value = _nanos_of_text(value)
        elif isinstance(value, datetime.time):
            seconds = (value.hour * 60 + value.minute) * 60 + value.second
            value = seconds * _SECOND + value.microsecond * 1000
        elif not isinstance(value, int):
            raise TypeError(f"a Time is made of a time, a text, or a number of nanoseconds, not {type(value).__name__}")
        if not 0 <= value < _DAY:
            raise ValueError(f"{value} ns are not in a day")
        self.nanosecond_time: int = value

    @property
    def hour(self) -> int:
        return self.nanosecond_time // (3600 * _SECOND)

    @property
    def minute(self) -> int:
        return self.nanosecond_time // (60 * _SECOND) % 60

    @property
    def second(self) -> int:
        return self.nanosecond_time // _SECOND % 60

    @property
    def nanosecond(self) -> int:
        """The part below a second."""
        return self.nanosecond_time % _SECOND

    def time(self) -> datetime.time:
        """The time of Python, in microseconds; the rest is cut off."""
        return datetime.time(self.hour, self.minute, self.second, self.nanosecond // 1000)

    def __eq__(self, other: object) -> bool:
        nanos = getattr(other, "nanosecond_time", other)
        if isinstance(nanos, datetime.time):
            return nanos.tzinfo is None and Time(nanos).nanosecond_time == self.nanosecond_time
        return nanos == self.nanosecond_time if isinstance(nanos, int) else NotImplemented

    def __lt__(self, other: object) -> bool:
        nanos = getattr(other, "nanosecond_time", None)
        return NotImplemented if nanos is None else self.nanosecond_time < nanos

    def __hash__(self) -> int:
        return hash(self.nanosecond_time)

    def __repr__(self) -> str:
        return f"Time({self.nanosecond_time})"

    def __str__(self) -> str:
        return f"{self.hour:02}:{self.minute:02}:{self.second:02}.{self.nanosecond:09}"


def _nanos_of_text(text: str) -> int:
    clock, _, fraction = text.partition(".")
    try:
        time = datetime.datetime.strptime(clock, "%H:%M:%S")
    except ValueError:
        raise ValueError(f"{text!r} is no time: write 13:30:54 or 13:30:54.234") from None
    if fraction and not (fraction.isascii() and fraction.isdigit() and len(fraction) <= 9):
        raise ValueError(f"{text!r} is no time: a second has up to nine digits after the point")
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return seconds * _SECOND + int(fraction.ljust(9, "0") or 0)


class Duration:
    """Months, days and nanoseconds, which cannot be converted into each other. All are >= 0, or all are <= 0."""

    __slots__ = ("months", "days", "nanoseconds")

    def __init__(self, months: int = 0, days: int = 0, nanoseconds: int = 0) -> None:
        self.months = months
        self.days = days
        self.nanoseconds = nanoseconds

    def _parts(self) -> tuple[int, int, int]:
        return self.months, self.days, self.nanoseconds

    def __eq__(self, other: object) -> bool:
        try:
            return self._parts() == (other.months, other.days, other.nanoseconds)  # type: ignore[attr-defined]
        except AttributeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        return f"Duration({self.months}, {self.days}, {self.nanoseconds})"

    def __str__(self) -> str:
        sign = "-" if min(self._parts()) < 0 else ""
        return f"{sign}{abs(self.months)}mo{abs(self.days)}d{abs(self.nanoseconds)}ns"


class FrozenMap(dict):  # type: ignore[type-arg]
    """A map that is an element of a set or a key of a map: a dict that has a hash and does not change."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a FrozenMap does not change: make a dict of it")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse
