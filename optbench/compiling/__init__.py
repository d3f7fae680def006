"""Compilation of kernels: decorators, the cache folder, the table of kernels to warm up and the
clock of compiling.
"""
