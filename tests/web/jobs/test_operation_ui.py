"""The table of what pages know of operations is complete, and leads to pages that there are."""

from __future__ import annotations

from typing import get_args

import pytest
from django.urls import reverse

from appliance.agent.registry import Registered
from appliance.operation import Operation, kind_of
from web.jobs import operation_ui


def test_table_has_every_operation_and_no_other():
    assert set(operation_ui.UI) == set(get_args(Registered))


def test_tags_are_explicit_and_each_is_used_once():
    kinds = [kind_of(operation) for operation in get_args(Registered)]
    assert len(set(kinds)) == len(kinds)
    assert all(kind == kind.lower() and kind.replace("-", "").isalpha() for kind in kinds)


@pytest.mark.parametrize("operation", get_args(Registered), ids=kind_of)
def test_link_leads_to_a_page(operation):
    route, link = operation_ui.page_after(kind_of(operation))
    assert reverse(route)
    assert link


@pytest.mark.parametrize("operation", get_args(Registered), ids=kind_of)
def test_secret_is_asked_for_where_the_operation_may_want_one(operation):
    may_want = operation.wants_secret is not Operation.wants_secret
    assert (operation_ui.UI[operation].secret is not None) is may_want


def test_job_of_an_older_larder_leads_to_the_pools():
    assert operation_ui.page_after("SomethingOld") == ("pools", "See the pool")
