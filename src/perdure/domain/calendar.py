"""Days of the Gregorian calendar as numbers: 0 is 1970-01-01. Weekdays count from Sunday, which is 0."""

DAY_S = 86_400
"""Seconds in a day of a wall clock."""

_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def day_number(year: int, month: int, day: int) -> int:
    """The number of a day. Months are counted from March, so that a leap day is the last of its year."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def year_month_day(number: int) -> tuple[int, int, int]:
    """The day of a number."""
    era, of_era = divmod(number + 719_468, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def days_in(year: int, month: int) -> int:
    """How many days a month has."""
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _LENGTHS[month - 1] + leap


def weekday(number: int) -> int:
    """The weekday of a day by its number: 0 for Sunday."""
    return (number + 4) % 7
