"""How results look: the only place that formats for people."""
