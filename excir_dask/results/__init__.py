"""Results and how they are stored."""
