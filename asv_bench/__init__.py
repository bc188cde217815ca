"""Benchmarks: detops over time (asv), and detops beside its peers (``peers.py``)."""
