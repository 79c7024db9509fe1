"""What carries over from one explanation to another: how far two of them agree."""
