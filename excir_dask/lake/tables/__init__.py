"""Table formats: which files a Delta or Iceberg log says are live."""
