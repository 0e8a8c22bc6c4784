"""Training items that are stored, as arrays: from ClickHouse, Parquet files and JSON lines."""
