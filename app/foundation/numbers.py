"""Numbers and flags as clients write them: a JSON number, ``true`` or ``false``.

Pydantic would also read ``true`` as 1, ``"5"`` as 5 and ``"no"`` as false, which the API document does not promise.
"""

from typing import Annotated

from pydantic import Strict

# What is above zero is at least this: a figure below it is a typing error, and what is divided by it no number holds.
LEAST = 1e-9

Number = Annotated[float, Strict()]
Count = Annotated[int, Strict()]
Flag = Annotated[bool, Strict()]
