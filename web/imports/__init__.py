"""Pages of imports of files from another NAS: setting one up, counting, copying, the report."""
