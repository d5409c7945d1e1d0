"""Every room that has routes is served: ``app.main`` names them one by one, and none is forgotten."""

import importlib
import importlib.util
import pkgutil

import app
from app.main import ROUTERS


def test_every_room_with_a_router_is_served() -> None:
    rooms = [room.name for room in pkgutil.iter_modules(app.__path__, "app.") if room.ispkg]
    with_routes = [name for name in rooms if importlib.util.find_spec(f"{name}.routes") is not None]
    assert len(with_routes) >= 6
    forgotten = [name for name in with_routes if importlib.import_module(f"{name}.routes").router not in ROUTERS]
    assert forgotten == [], "name their routers in app/main.py"
