"""What carries over from one explanation to another: how far two agree, and how few rows give the ranking of all."""
