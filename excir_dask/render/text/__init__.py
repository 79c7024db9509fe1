"""Results as text for a terminal, and as small fragments of HTML for a notebook."""
