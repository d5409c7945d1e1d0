"""The catalog room: hardware, models, offers and dated prices, published as immutable, numbered revisions."""
