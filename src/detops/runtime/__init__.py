"""Which kernels run, on how many threads, with which settings."""
