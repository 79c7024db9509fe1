"""Scheduled audits: a window of a lake explained, compared with a baseline, checked, kept."""
