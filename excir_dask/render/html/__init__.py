"""Reports as single HTML files that work offline, and fragments of HTML for notebooks."""
