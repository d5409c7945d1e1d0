"""The seeded service and its desk, as the tests of quotes have them."""

from tests.quotes.conftest import (  # noqa: F401
    as_person,
    database_url,
    desk,
    seeded_file,
    seeded_postgres,
    settings,
)
