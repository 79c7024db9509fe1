"""Pure numpy: column summaries, centres, co-movement sums, scores and group algebra. No dask, no I/O."""
