"""Ways to look at an explanation: plots, and the picture of the README."""
