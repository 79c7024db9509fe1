"""What the model says about each row: columns of the lake that hold it, or a model that scores each block."""
