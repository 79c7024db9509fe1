"""Model outputs: columns of the lake, or a model that scores blocks of rows."""
