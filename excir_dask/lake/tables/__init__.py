"""Table formats: Delta Lake and Iceberg."""
