"""How to start or reach a cluster."""
