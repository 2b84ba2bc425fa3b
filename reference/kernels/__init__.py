"""Fast backup and load with the meanings of `reference.transfer`: `torch_copy`, and `triton_copy` where triton is.

Both have one function, `copy(dst, dst_indices, src, src_indices)`, on the planes of `reference.kernels.planes`.
"""
