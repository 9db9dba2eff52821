#!/bin/sh
# ZED runs this for every event of ZFS (zed(8): zedlets named all-*). Configuration writes say nothing to a person.
case "${ZEVENT_SUBCLASS:-}" in config_sync) exit 0 ;; esac
exec /usr/local/lib/larder/spool
