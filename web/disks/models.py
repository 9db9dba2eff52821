"""What the owner says of the bays, and the replacements that are under way. Both belong to the box, not to a pool."""

from __future__ import annotations

from django.db import models


class BayRow(models.Model):
    """A bay, known by the port behind it. Made when a disk is first seen there; the owner may label and order it."""

    port = models.CharField(max_length=200, unique=True)
    position = models.PositiveSmallIntegerField()
    label = models.CharField(max_length=20, blank=True, default="")

    class Meta:
        ordering = ("position", "pk")

    def __str__(self) -> str:
        return self.label or str(self.position)


class Replacement(models.Model):
    """A disk that is being replaced. Where it stands is read from the facts; here is only what they cannot tell later:
    which disk it was, where it sat, and which disks and vdevs were there when it began. Guids are text: they have 64
    bits without a sign.
    """

    pool = models.CharField(max_length=255)
    pool_guid = models.CharField(max_length=20, db_index=True)
    vdev_guid = models.CharField(max_length=20)
    disk = models.CharField(max_length=300)
    serial = models.CharField(max_length=300, blank=True, default="")
    model = models.CharField(max_length=300, blank=True, default="")
    bay = models.CharField(max_length=40, blank=True, default="")
    known = models.JSONField(default=dict)  # {disk key: "bay 2 (model, serial)"} of disks that pools use
    guids = models.JSONField(default=list)  # of every device of the pool
    begun = models.DateTimeField(auto_now_add=True)
    begun_by = models.CharField(max_length=150)
    closed = models.DateTimeField(null=True)
    report = models.TextField(default="")

    class Meta:
        ordering = ("-begun",)
        constraints = (
            models.UniqueConstraint(
                fields=["pool_guid", "vdev_guid"], condition=models.Q(closed=None), name="one_open_replacement"
            ),
        )

    def __str__(self) -> str:
        return f"{self.disk} of {self.pool}"

    @property
    def name(self) -> str:
        """``bay 3 (WDC WD20EARS, serial WD-1)``."""
        what = ", ".join(filter(None, [self.model, f"serial {self.serial}" if self.serial else ""])) or self.disk
        return f"{self.bay} ({what})" if self.bay else what
