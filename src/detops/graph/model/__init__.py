"""Models as a graph: readers of ONNX and TensorFlow, shapes, and what is written back."""
