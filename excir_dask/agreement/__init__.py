"""How far two explanations agree."""
