"""What `triton.language` has, in any of the releases named here.

A kernel that calls anything else does not compile. A test holds the list to the Triton that is
installed, so that a newer Triton's names are added.
"""

from __future__ import annotations

RELEASES = "3.1 to 3.9"
_TEXT = """
    PropagateNan TRITON_MAX_TENSOR_NUMEL abs add advance aggregate_replace arange argmax argmin
    associative_scan assume async_task atomic_add atomic_and atomic_cas atomic_load atomic_max
    atomic_min atomic_or atomic_poll atomic_store atomic_xchg atomic_xor bfloat16 bitonic_merge
    block_type broadcast broadcast_to cast cat cdiv ceil clamp condition const
    const_pointer_type constexpr constexpr_function constexpr_type core cos cumprod cumsum
    debug_barrier device_assert device_print div_rn dot dot_scaled dtype erf exp exp2
    expand_dims expect_zero extra fdiv flip float16 float32 float64 float8e4b15 float8e4b8
    float8e4nv float8e5 float8e5b16 floor fma full function_type gather histogram
    inline_asm_elementwise int1 int16 int32 int64 int8 interleave join load
    load_tensor_descriptor log log2 make_block_ptr make_tensor_descriptor map_elementwise math
    max max_constancy max_contiguous maximum min minimum mul multiple_of num_programs
    nv_tma_desc_type pair_uniform_to_normal permute philox philox_impl pi32_t pointer_type
    program_id rand rand4x randint randint4x randn randn4x random range ravel reduce reduce_or
    reshape rsqrt sigmoid sin slice softmax sort split sqrt sqrt_rn squeeze standard
    static_assert static_print static_range store store_tensor_descriptor str_to_ty sub sum
    swizzle2d target_info tensor tensor_descriptor tensor_descriptor_type to_tensor topk trans
    tuple tuple_type uint16 uint32 uint64 uint8 uint_to_uniform_float umulhi unsqueeze view void
    where xor_sum zeros zeros_like
"""
# What a hardware vendor's Triton adds, as far as we know: compiled there.
_OF_VENDORS = """
    compile_hint custom_op extract_slice fixpipe gather_out_to_ub get_element index_put index_select
    index_select_simd insert_slice multibuffer parallel scatter_ub_to_out sub_vec_id sub_vec_num
    sync_block_all sync_block_set sync_block_wait
"""
NAMES = frozenset(f"{_TEXT} {_OF_VENDORS}".split())
