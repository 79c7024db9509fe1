"""The evidence for and against the score: a module per section of docs/EVIDENCE.md, which jobs/reproduce.py writes."""
