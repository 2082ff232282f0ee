"""Fits revocation and lifetime models to data, scores them and shows them."""
