"""One run in order: options, inputs, measure, result."""
