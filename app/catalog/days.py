"""The days a price can be asked for: one rule for every endpoint."""

from datetime import date, timedelta

from app.foundation.problems import FieldError, Problem

# A year before the first accelerator of the catalog was sold is a typing error; a day without an observation after it
# is answered offer by offer as an unknown price.
EARLIEST = date(2000, 1, 1)
# Somewhere it is already tomorrow.
TIME_ZONES = timedelta(days=1)


def check_day(day: date, today: date, *, pointer: str | None = None, parameter: str | None = None) -> date:
    """The day itself, where prices can be asked for it.

    Raises
    ------
    Problem
        ``as-of-out-of-range`` with the nearest day: before the catalog begins, or in the future.
    """
    if EARLIEST <= day <= today + TIME_ZONES:
        return day
    late = day > today
    nearest = today if late else EARLIEST
    reason = (
        f"as_of {day} lies in the future; prices are known up to {today}. Leave it out for today's prices."
        if late
        else f"as_of {day} is before {EARLIEST}, where the catalog begins. Leave it out for today's prices."
    )
    raise Problem(
        "as-of-out-of-range",
        reason,
        errors=[FieldError(code="as_of", message=reason, pointer=pointer, parameter=parameter)],
        nearest={pointer or parameter or "as_of": nearest.isoformat()},
    )
