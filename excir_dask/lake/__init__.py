"""Which rows and columns to read: where files are, what they hold, how they are cut, how a slice is read."""
