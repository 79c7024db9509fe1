"""How few rows give the ranking of all."""
