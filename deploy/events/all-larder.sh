#!/bin/sh
# ZED runs this for every event of ZFS (zed(8): zedlets named all-*). Configuration writes say nothing to a person.
[ "${ZEVENT_SUBCLASS:-}" = config_sync ] || exec /usr/local/lib/larder/spool
