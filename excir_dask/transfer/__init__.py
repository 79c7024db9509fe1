"""Transfer: how far two explanations agree, and how few rows give the ranking of all of them."""
