"""What the catalog shows of a model can be sent back as a job's model."""

import json

import pytest

from app.catalog.routes import record_view
from app.catalog.shipped import shipped_models
from app.estimates.model_schemas import Model
from app.estimates.models import choose_model
from tests.estimates.conftest import body, inference, training

MODELS = shipped_models()


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_transformer_shown_is_the_transformer_read(name):
    shown = json.loads(json.dumps(record_view(MODELS[name])))
    model = Model.model_validate({"transformer": shown})
    again = Model.model_validate(json.loads(model.model_dump_json(exclude_unset=True)))
    assert choose_model(None, model, "").transformer == MODELS[name]
    assert choose_model(None, again, "").transformer == MODELS[name]


@pytest.mark.parametrize("make", [training, inference], ids=["training", "inference"])
def test_a_job_with_the_pasted_transformer_costs_what_the_named_one_does(seeded_client, make):
    shown = seeded_client.get("/v1/catalog/models/llama3-70b").json()["transformer"]
    named = seeded_client.post("/v1/estimates", json=body(make(model={"ref": "llama3-70b"}))).json()
    pasted = seeded_client.post("/v1/estimates", json=body(make(model={"transformer": shown}))).json()
    options = [[{**option, "id": None} for option in answer["items"][0]["options"]] for answer in (named, pasted)]
    assert options[0]
    assert [option["cost"] for option in options[0]] == [option["cost"] for option in options[1]]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"groups": []}, "/model/transformer/groups"),
        ({"hidden": 0}, "/model/transformer/hidden"),
        ({"colour": "red"}, "/model/transformer/colour"),
        ({"groups/mixer": {"kv_heads": 7}}, "/model/transformer/groups/0/mixer"),
        ({"groups/mixer": {"heads": 0}}, "/model/transformer/groups/0/mixer/heads"),
        ({"groups/mixer": {"type": "Attention"}}, "/model/transformer/groups/0/mixer/type"),
        ({"groups": {"count": 20_000}}, "/model/transformer/groups"),
    ],
)
def test_a_wrong_architecture_is_refused_where_it_is_wrong(seeded_client, change, pointer):
    shown = seeded_client.get("/v1/catalog/models/llama3-70b").json()["transformer"]
    ((place, value),) = change.items()
    if place == "groups/mixer":
        shown["groups"][0]["mixer"].update(value)
    elif place == "groups" and value:
        shown["groups"][0].update(value)
    else:
        shown[place] = value
    answer = seeded_client.post("/v1/estimates", json=body(training(model={"transformer": shown})))
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [f"/items/0/job{pointer}"]


def test_an_unknown_model_names_the_nearest(seeded_client):
    answer = seeded_client.get("/v1/catalog/models/llama3-70")
    assert (answer.status_code, "llama3-70b" in answer.json()["nearest"]) == (404, True)
