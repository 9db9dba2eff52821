"""The page of the box itself: what it is, how it is doing, restarting it and switching it off, and its settings.

The facts come from ``appliance/system/box_info.py`` by way of ``workers/collect_box.py``; the operations are in
``appliance/system``: ``power.py``, ``set_host_name.py``, ``time_zone.py`` and ``time_servers.py``. It may import
``alerts``, ``inventory``, ``jobs`` and ``live``. Start at ``views``; the log is in ``log_views``, the support
bundle in ``support_views``.
"""
