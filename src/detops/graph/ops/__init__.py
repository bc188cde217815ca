"""What operators of ONNX and TensorFlow do to symbols and to arrays."""
