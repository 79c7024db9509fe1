"""Results: what they hold, and how they are saved and loaded."""
