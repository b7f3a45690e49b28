"""Rewrites checked-out vLLM trees so that no slot-mapping kernel compiles while serving."""
