"""Which rows and columns to read: where the files are, what they hold, how they are cut into slices, and how a slice is read."""
