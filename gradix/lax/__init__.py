"""Operations on arrays as XLA has them, strict in dtypes and shapes; control flow; collectives."""
# fmt: off
from gradix._base.lazy import on_demand

with on_demand(globals()):
    from gradix._ops.accuracy import AccuracyMode, Tolerance
    from gradix._ops.arithmetic import (
        abs, abs_p, add, add_p, ceil, ceil_p, div, div_p, floor, floor_p, integer_pow, integer_pow_p, max, max_p, min,
        min_p, mul, mul_p, reciprocal, rem, rem_p, round, round_p, RoundingMethod, sign, sign_p, square, square_p, sub,
        sub_p,
    )
    from gradix._ops.sorting.approx_top_k import approx_max_k, approx_min_k
    from gradix._ops.basis import add_any_p, broadcast_in_dim_p, reduce_sum as _sum, reduce_sum_p, transpose_p
    from gradix._ops.bitwise import (
        and_p, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, clz, clz_p, mulhi, mulhi_p, not_p, or_p,
        population_count, population_count_p, shift_left, shift_left_p, shift_right_arithmetic, shift_right_arithmetic_p,
        shift_right_logical, shift_right_logical_p, xor_p,
    )
    from gradix._ops.clamp import clamp, clamp_p
    from gradix._ops.collectives import (
        all_gather_p, all_to_all_p, axis_index_p, pmax_p, pmin_p, ppermute_p, psum_p, reduce_scatter_p,
    )
    from gradix._ops.comparison import (
        eq, eq_p, eq_to_p, ge, ge_p, gt, gt_p, is_finite, is_finite_p, le, le_p, le_to_p, lt, lt_p, lt_to_p, ne, ne_p,
    )
    from gradix._ops.conv.conv import conv_general_dilated, conv_general_dilated_p
    from gradix._ops.conv.dimension_numbers import (
        conv_dimension_numbers, conv_general_permutations, ConvDimensionNumbers, ConvGeneralDilatedDimensionNumbers,
    )
    from gradix._ops.conv.variants import (
        conv, conv_general_dilated_local, conv_general_dilated_patches, conv_general_shape_tuple, conv_shape_tuple,
        conv_transpose, conv_transpose_shape_tuple, conv_with_general_padding,
    )
    from gradix._ops.convert import convert as _convert_element_type
    from gradix._ops.convert import (
        bitcast_convert_type, bitcast_convert_type_p, convert_element_type, convert_element_type_p, reduce_precision,
        reduce_precision_p,
    )
    from gradix._ops.cumulative import (
        cumlogsumexp, cumlogsumexp_p, cummax, cummax_p, cummin, cummin_p, cumprod, cumprod_p, cumsum, cumsum_p,
        recurrence_p,
    )
    from gradix._ops.dot import _bind_dot as _dot_general
    from gradix._ops.dot import batch_matmul, dot, dot_general, dot_general_p, DotDimensionNumbers
    from gradix._ops.indexing.dynamic_slicing import (
        dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim, dynamic_slice_p, dynamic_update_index_in_dim,
        dynamic_update_slice, dynamic_update_slice_in_dim, dynamic_update_slice_p,
    )
    from gradix._ops.fft import fft, fft_p, FftType
    from gradix._ops.indexing.gather import gather, gather_p, index_take
    from gradix._ops.markers import name_p, optimization_barrier, optimization_barrier_p, stop_gradient_p
    from gradix._ops.dimension_values import dim_as_value_p
    from gradix._ops.creation import broadcasted_iota, empty, empty_p, full, full_like, iota, iota_p, stage
    from gradix._ops.joining import (
        concatenate, concatenate_p, split, split_p, stack, stack_p, tile, tile_p, unstack, unstack_p,
    )
    from gradix._ops.complex_parts import complex, complex_p, conj, conj_p, imag, imag_p, neg, neg_p, real, real_p
    from gradix._ops.window_padding import padtype_to_pads, PaddingType
    from gradix._ops.precision import DotAlgorithm, DotAlgorithmPreset, Precision, PrecisionLike
    from gradix._ops.platform import platform_index_p
    from gradix._ops.ragged_dot import ragged_dot, ragged_dot_general, RaggedDotDimensionNumbers, scaled_dot
    from gradix._ops.random.random import (
        random_bits_p, random_fold_in_p, random_seed_p, random_split_p, random_unwrap_p, random_wrap_p, threefry2x32_p,
    )
    from gradix._ops.windows.reduce_windows import (
        reduce_window_max_p, reduce_window_min_p, reduce_window_shape_tuple, reduce_window_sum_p,
        select_and_gather_add_p, select_and_scatter_add_p,
    )
    from gradix._ops.reductions import (
        argmax, argmax_p, argmin, argmin_p, max_of_numbers as _max_of_numbers, reduce_and, reduce_and_p, reduce_max,
        reduce_max_p, reduce_min, reduce_min_p, reduce_or, reduce_or_p, reduce_prod, reduce_prod_p, reduce_sum, reduce_xor, reduce_xor_p,
    )
    from gradix._ops.random.rng import RandomAlgorithm, rng_bit_generator, rng_bit_generator_p, rng_uniform, rng_uniform_p
    from gradix._ops.indexing.scatter import (
        scatter, scatter_add, scatter_add_p, scatter_max, scatter_max_p, scatter_min, scatter_min_p, scatter_mul,
        scatter_mul_p, scatter_p, scatter_sub, scatter_sub_p,
    )
    from gradix._ops.select import choose as _choose
    from gradix._ops.select import select, select_n, select_n_p
    from gradix._ops.shape import (
        broadcast, broadcast_in_dim, broadcast_like, broadcast_shapes, broadcast_to_rank, collapse, expand_dims, reshape, reshape_p,
        rev, rev_p, squeeze, squeeze_p, transpose,
    )
    from gradix._ops.indexing.slicing import index_in_dim, pad, pad_p, slice, slice_in_dim, slice_p
    from gradix._ops.sorting.sort import sort, sort_key_val, sort_p, top_k, top_k_p
    from gradix._ops.special.erf import erf, erf_inv, erf_inv_p, erf_p, erfc, erfc_p, nextafter, nextafter_p
    from gradix._ops.special.beta import betainc, betainc_p as regularized_incomplete_beta_p
    from gradix._ops.special.bessel import bessel_i0e, bessel_i0e_p, bessel_i1e, bessel_i1e_p
    from gradix._ops.special.gamma import digamma, digamma_p, lgamma, lgamma_p, polygamma, polygamma_p, zeta, zeta_p
    from gradix._ops.special.igamma import (
        igamma, igamma_grad_a, igamma_grad_a_p, igamma_p, igammac, igammac_p, random_gamma_grad, random_gamma_grad_p,
    )
    from gradix._ops.indexing.static_index import host_get as _host_get, host_update as _host_update
    from gradix._ops.transcendental import (
        cbrt, cbrt_p, exp, exp2, exp2_p, exp_p, expm1, expm1_p, log, log1p, log1p_p, log_p, logistic, logistic_p, pow,
        pow_p, rsqrt, rsqrt_p, sqrt, sqrt_p, tanh, tanh_p,
    )
    from gradix._ops.trigonometric import (
        acos, acos_p, acosh, acosh_p, asin, asin_p, asinh, asinh_p, atan, atan2, atan2_p, atan_p, atanh, atanh_p, cos,
        cos_p, cosh, cosh_p, sin, sin_p, sinh, sinh_p, tan, tan_p,
    )
    from gradix._ops.indexing.gather_dimension_numbers import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
    from gradix._control.call import jit_p
    from gradix._control.callbacks import debug_callback_p, io_callback_p, pure_callback_p
    from gradix._control.composite import composite_p
    from gradix._control.cond import cond_p
    from gradix._control.custom_jvp import custom_jvp_call_p
    from gradix._control.custom_vjp import custom_lin_p, custom_vjp_call_p
    from gradix._control.linear_solve import linear_solve_p
    from gradix._control.remat import remat_p
    from gradix._control.reduce import reduce_p
    from gradix._control.reduce_window import reduce_window_p
    from gradix._control.scan import scan_p
    from gradix._control.while_loop import while_p
    from gradix._api.associative import associative_scan
    from gradix._api.mapping.collectives import (
        all_gather, all_to_all, axis_index, axis_size, pbroadcast, pcast, pmax, pmean, pmin, ppermute, pshuffle, psum,
        psum_scatter, pswapaxes, pvary,
    )
    from gradix._api.composite import composite
    from gradix._api.constraints import with_sharding_constraint
    from gradix._api.control import cond, switch
    from gradix._api.derivatives.implicit import custom_linear_solve, custom_root, stop_gradient
    from gradix._api.loops import fori_loop, map, scan, while_loop
    from gradix._api.platform import platform_dependent
    from gradix._api.mapping.ragged_all_to_all import ragged_all_to_all
    from gradix._api.reduce import reduce
    from gradix._api.reduce_window import reduce_window
    from gradix._api.scatter import scatter_apply
    from gradix._api.tokens import after_all, create_token, precv, psend
    from gradix.lax import linalg
