"""Rewrites vLLM trees so that Triton kernels are compiled at start-up, before the first request."""
