"""Reasons that several operations on datasets share."""

from __future__ import annotations

from appliance.errors import Reason


def dataset_missing(dataset: str) -> Reason:
    return Reason("folder-missing", "The folder {folder} is no longer there.", folder=dataset)


def dataset_locked(dataset: str) -> Reason:
    return Reason("dataset-locked", "{dataset} is locked. Unlock it first.", dataset=dataset)


def dataset_read_only(dataset: str) -> Reason:
    return Reason("dataset-read-only", "{dataset} is read-only. Change that in its settings first.", dataset=dataset)


def dataset_exists(dataset: str) -> Reason:
    return Reason("dataset-exists", "{dataset} already exists. Choose another name.", field="name", dataset=dataset)


def name_too_long() -> Reason:
    return Reason("dataset-name-too-long", "The full name is too long for ZFS. Choose a shorter name.", field="name")


def dataset_is_pool() -> Reason:
    return Reason("dataset-is-pool", "This is the pool itself. Use the pool's page instead.")


def size_malformed(field: str) -> Reason:
    return Reason("size-malformed", "Give a size, for example 100 GB.", field=field)


def snapshot_name_not_before() -> Reason:
    """The name of the snapshot to take first is not one that Larder gives."""
    return Reason("snapshot-name-not-before", "That is not the name of such a snapshot.", field="before")


def user_missing(user: str) -> Reason:
    return Reason("user-missing", "There is no user {user}.", user=user)


def group_missing(group: str) -> Reason:
    return Reason("group-missing", "There is no group {group}.", group=group)
