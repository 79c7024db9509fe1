"""What the model says about each row: columns of the lake that hold its outputs."""
