"""A GPU made of gcc: Numba's real CUDA target on a machine without one.

The simulator of Numba runs kernels as Python functions on NumPy arrays, which take what device arrays refuse. Here
everything but the silicon is real: Numba compiles each kernel to PTX for a GPU, its arrays and launches call the
driver, and only the driver is a stand-in (``driver.c``), whose device memory is host memory and whose launches run
the PTX translated to C (``ptx.py``). ``machine.py`` joins them; it needs a process of its own, in which the stand-in
is found before a real driver and the simulator is off: ``process.py`` starts one.
"""
