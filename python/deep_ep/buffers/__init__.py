"""Where DeepEP 2.x keeps its buffers."""
