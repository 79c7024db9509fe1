"""Scheduled audits: explain a window of a lake, compare it with a baseline, run checks, and keep the results."""
