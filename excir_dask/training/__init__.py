"""A model from a lake: XGBoost trained by a cluster on the lake's own rows."""
