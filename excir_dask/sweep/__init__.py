"""Sweeps: how few rows give the same ranking as all rows."""
