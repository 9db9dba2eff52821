"""Rows of an earlier version get the columns that were only in their JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from appliance.facts import user_properties
from appliance.facts.datasets import Property
from tests.unit.made import dataset
from tests.web.migrating import former_database
from web.inventory.dataset_models import DatasetRow

PLAIN = dataset("tank/photos")
COPY = replace(dataset("attic/copy"), copy_of="{}", key_status="unavailable", encryption_root="attic/copy")
VOLUME = replace(
    dataset("tank/disk"), kind="volume", share_source="local", policy_source="inherited", backup_source="received"
)
TEST = replace(dataset("attic/drill-0123abcd"), properties={user_properties.DRILL: Property("0123abcd", "local")})


@pytest.fixture
def unblocked(django_db_blocker: Any) -> Any:
    with django_db_blocker.unblock():
        yield


@pytest.mark.parametrize("fact", [PLAIN, COPY, VOLUME, TEST], ids=lambda fact: fact.name)
def test_columns_of_a_dataset_are_as_they_would_be_stored_today(unblocked, tmp_path, fact):
    with former_database(tmp_path, "inventory") as migrate:
        table = migrate(("inventory", "0022_progress_waits")).get_model("inventory", "DatasetRow").objects
        facts = msgspec.json.encode(fact).decode()
        table.using("inventory").create(key="1", name=fact.name, pool=fact.pool, facts=facts)
        table.using("inventory").create(key="2", name="tank/odd", pool="tank", facts="{")
        table = migrate(("inventory", "0023_dataset_columns")).get_model("inventory", "DatasetRow").objects
        row = table.using("inventory").get(key="1")
        assert {name: getattr(row, name) for name in DatasetRow.columns} == {
            name: value(fact) for name, value in DatasetRow.columns.items()
        }
        assert table.using("inventory").get(key="2").facts == "{"


@pytest.mark.parametrize(
    ("kind", "backup"), [("run-backup", "0123abcd"), ("drill-remote", "0123abcd"), ("create-dataset", "")]
)
def test_jobs_of_a_backup_have_its_key(unblocked, tmp_path, kind, backup):
    with former_database(tmp_path) as migrate:
        table = migrate(("jobs", "0005_plan_seen")).get_model("jobs", "Job").objects
        said = json.dumps({"kind": kind, "key": "0123abcd"})
        row = table.create(kind=kind, title="t", subject="tank/photos", operation=said, digest="", created_by="admin")
        table = migrate(("jobs", "0006_backup")).get_model("jobs", "Job").objects
        assert table.get(pk=row.pk).backup == backup


def test_benchmark_cases_have_their_workload_and_pool(unblocked, tmp_path):
    with former_database(tmp_path) as migrate:
        apps = migrate(("sweeps", "0005_said"))
        sweep = apps.get_model("sweeps", "SweepRow").objects.create()
        table = apps.get_model("sweeps", "CaseRow").objects
        table.create(sweep=sweep, number=1, spec=json.dumps({"workload": "seq-read", "pool": "tank"}))
        table.create(sweep=sweep, number=2, spec=json.dumps({"workload": "random-read"}))
        table = migrate(("sweeps", "0006_case_columns")).get_model("sweeps", "CaseRow").objects
        assert list(table.order_by("number").values_list("workload", "pool")) == [
            ("seq-read", "tank"),
            ("random-read", ""),
        ]
