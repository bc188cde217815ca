"""The comparisons with peers: a module per operator family.

A module has ``rows()``, a generator of :class:`asv_bench.peer.Row` (inputs made there are freed once the row is
measured), or a list ``ROWS``. A peer that needs a package imports it when it is called, or is made by a helper of
``asv_bench.onnx_session`` that does: what is not installed is then skipped with a line that says so.
"""
