"""The operations of XLA, which are strict in dtypes and shapes; control flow; collectives."""

# fmt: off
from gradix._base.lazy import on_demand

with on_demand(globals()):
    from gradix._core.dtypes import dtype as dtype
    from gradix._ops.accuracy import AccuracyMode as AccuracyMode, Tolerance as Tolerance
    from gradix._ops.arithmetic import (
        abs as abs, abs_p as abs_p, add as add, add_p as add_p, div as div, div_p as div_p,
        integer_pow as integer_pow, integer_pow_p as integer_pow_p, max as max, max_p as max_p, min as min,
        min_p as min_p, mul as mul, mul_p as mul_p, reciprocal as reciprocal, rem as rem, rem_p as rem_p,
        sign as sign, sign_p as sign_p, square as square, square_p as square_p, sub as sub, sub_p as sub_p,
    )
    from gradix._ops.rounding import (
        ceil as ceil, ceil_p as ceil_p, floor as floor, floor_p as floor_p, round as round, round_p as round_p,
        RoundingMethod as RoundingMethod,
    )
    from gradix._ops.sorting.approx_top_k import approx_max_k as approx_max_k, approx_min_k as approx_min_k
    from gradix._ops.basis import (
        add_any_p as add_any_p, broadcast_in_dim_p as broadcast_in_dim_p, reduce_sum as _sum,
        reduce_sum_p as reduce_sum_p, transpose_p as transpose_p,
    )
    from gradix._ops.bitwise import (
        and_p as and_p, bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or,
        bitwise_xor as bitwise_xor, clz as clz, clz_p as clz_p, mulhi as mulhi, mulhi_p as mulhi_p, not_p as not_p,
        or_p as or_p, population_count as population_count, population_count_p as population_count_p,
        shift_left as shift_left, shift_left_p as shift_left_p, shift_right_arithmetic as shift_right_arithmetic,
        shift_right_arithmetic_p as shift_right_arithmetic_p, shift_right_logical as shift_right_logical,
        shift_right_logical_p as shift_right_logical_p, xor_p as xor_p,
    )
    from gradix._ops.clamp import clamp as clamp, clamp_p as clamp_p
    from gradix._ops.collectives import (
        axis_index_p as axis_index_p, pmax_p as pmax_p, pmin_p as pmin_p, psum_p as psum_p,
    )
    from gradix._ops.collective_moves import (
        all_gather_p as all_gather_p, all_to_all_p as all_to_all_p, ppermute_p as ppermute_p,
        reduce_scatter_p as reduce_scatter_p,
    )
    from gradix._ops.comparison import (
        eq as eq, eq_p as eq_p, eq_to_p as eq_to_p, ge as ge, ge_p as ge_p, gt as gt, gt_p as gt_p,
        is_finite as is_finite, is_finite_p as is_finite_p, le as le, le_p as le_p, le_to_p as le_to_p, lt as lt,
        lt_p as lt_p, lt_to_p as lt_to_p, ne as ne, ne_p as ne_p,
    )
    from gradix._ops.conv.conv import (
        conv_general_dilated as conv_general_dilated, conv_general_dilated_p as conv_general_dilated_p,
    )
    from gradix._ops.conv.dimension_numbers import (
        conv_dimension_numbers as conv_dimension_numbers, conv_general_permutations as conv_general_permutations,
        ConvDimensionNumbers as ConvDimensionNumbers,
        ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
    )
    from gradix._ops.conv.variants import (
        conv as conv, conv_general_dilated_local as conv_general_dilated_local,
        conv_general_dilated_patches as conv_general_dilated_patches,
        conv_general_shape_tuple as conv_general_shape_tuple, conv_shape_tuple as conv_shape_tuple,
        conv_transpose as conv_transpose, conv_transpose_shape_tuple as conv_transpose_shape_tuple,
        conv_with_general_padding as conv_with_general_padding,
    )
    from gradix._ops.convert import convert as _convert_element_type
    from gradix._ops.convert import (
        bitcast_convert_type as bitcast_convert_type, bitcast_convert_type_p as bitcast_convert_type_p,
        convert_element_type as convert_element_type, convert_element_type_p as convert_element_type_p,
        reduce_precision as reduce_precision, reduce_precision_p as reduce_precision_p,
    )
    from gradix._ops.cumulative import (
        cumlogsumexp as cumlogsumexp, cumlogsumexp_p as cumlogsumexp_p, cummax as cummax, cummax_p as cummax_p,
        cummin as cummin, cummin_p as cummin_p, cumprod as cumprod, cumprod_p as cumprod_p, cumsum as cumsum,
        cumsum_p as cumsum_p, recurrence_p as recurrence_p,
    )
    from gradix._ops.dot import _bind_dot as _dot_general
    from gradix._ops.dot import (
        batch_matmul as batch_matmul, dot as dot, dot_general as dot_general, dot_general_p as dot_general_p,
        DotDimensionNumbers as DotDimensionNumbers,
    )
    from gradix._ops.indexing.dynamic_slicing import (
        dynamic_index_in_dim as dynamic_index_in_dim, dynamic_slice as dynamic_slice,
        dynamic_slice_in_dim as dynamic_slice_in_dim, dynamic_slice_p as dynamic_slice_p,
        dynamic_update_index_in_dim as dynamic_update_index_in_dim, dynamic_update_slice as dynamic_update_slice,
        dynamic_update_slice_in_dim as dynamic_update_slice_in_dim, dynamic_update_slice_p as dynamic_update_slice_p,
    )
    from gradix._ops.indexing.index_values import (
        fitted_index as _fitted_index, index_from_end as _index_from_end, wide_index as _wide_index,
    )
    from gradix._ops.reduction_identities import highest as _highest, lowest as _lowest
    from gradix._ops.fft import fft as fft, fft_p as fft_p, FftType as FftType
    from gradix._ops.indexing.gather import gather as gather, gather_p as gather_p, index_take as index_take
    from gradix._ops.markers import (
        copy_p as copy_p, dce_sink as dce_sink, dce_sink_p as dce_sink_p, device_put_p as device_put_p,
        after_p as after_p, name_p as name_p, separate as _separate, optimization_barrier as optimization_barrier,
        optimization_barrier_p as optimization_barrier_p, stop_gradient_p as stop_gradient_p,
    )
    from gradix._ops.sharding import sharding_constraint_p as sharding_constraint_p
    from gradix._ops.dimension_values import dim_as_value_p as dim_as_value_p
    from gradix._ops.creation import (
        broadcasted_iota as broadcasted_iota, empty as empty, empty_p as empty_p, full as full, full_like as full_like,
        iota as iota, iota_p as iota_p, stage as stage,
    )
    from gradix._ops.joining import (
        concatenate as concatenate, concatenate_p as concatenate_p, shape_as_value as shape_as_value, split as split,
        split_p as split_p, stack as stack,
        stack_p as stack_p, tile as tile, tile_p as tile_p, unstack as unstack, unstack_p as unstack_p,
    )
    from gradix._ops.complex_parts import (
        complex as complex, complex_p as complex_p, conj as conj, conj_p as conj_p, imag as imag, imag_p as imag_p,
        neg as neg, neg_p as neg_p, real as real, real_p as real_p,
    )
    from gradix._ops.window_padding import padtype_to_pads as padtype_to_pads, PaddingType as PaddingType
    from gradix._ops.precision import (
        DotAlgorithm as DotAlgorithm, DotAlgorithmPreset as DotAlgorithmPreset, Precision as Precision,
        PrecisionLike as PrecisionLike,
    )
    from gradix._ops.platform import platform_index_p as platform_index_p
    from gradix._ops.ragged_dot import (
        ragged_dot as ragged_dot, ragged_dot_general as ragged_dot_general,
        RaggedDotDimensionNumbers as RaggedDotDimensionNumbers, scaled_dot as scaled_dot,
    )
    from gradix._ops.random.random import (
        random_bits_p as random_bits_p, random_fold_in_p as random_fold_in_p, random_seed_p as random_seed_p,
        random_split_p as random_split_p, random_unwrap_p as random_unwrap_p, random_wrap_p as random_wrap_p,
        threefry2x32_p as threefry2x32_p,
    )
    from gradix._ops.windows.reduce_windows import (
        reduce_window_max_p as reduce_window_max_p, reduce_window_min_p as reduce_window_min_p,
        reduce_window_shape_tuple as reduce_window_shape_tuple, reduce_window_sum_p as reduce_window_sum_p,
        select_and_gather_add_p as select_and_gather_add_p, select_and_scatter_add_p as select_and_scatter_add_p,
    )
    from gradix._ops.reductions import (
        argmax as argmax, argmax_p as argmax_p, argmin as argmin, argmin_p as argmin_p,
        max_of_numbers as _max_of_numbers, reduce_and as reduce_and, reduce_and_p as reduce_and_p,
        reduce_max as reduce_max, reduce_max_p as reduce_max_p, reduce_min as reduce_min, reduce_min_p as reduce_min_p,
        reduce_or as reduce_or, reduce_or_p as reduce_or_p, reduce_prod as reduce_prod, reduce_prod_p as reduce_prod_p,
        reduce_sum as reduce_sum, reduce_xor as reduce_xor, reduce_xor_p as reduce_xor_p,
    )
    from gradix._ops.random.rng import (
        RandomAlgorithm as RandomAlgorithm, rng_bit_generator as rng_bit_generator,
        rng_bit_generator_p as rng_bit_generator_p, rng_uniform as rng_uniform, rng_uniform_p as rng_uniform_p,
    )
    from gradix._ops.indexing.scatter import (
        scatter as scatter, scatter_add as scatter_add, scatter_add_p as scatter_add_p, scatter_max as scatter_max,
        scatter_max_p as scatter_max_p, scatter_min as scatter_min, scatter_min_p as scatter_min_p,
        scatter_mul as scatter_mul, scatter_mul_p as scatter_mul_p, scatter_p as scatter_p, scatter_sub as scatter_sub,
        scatter_sub_p as scatter_sub_p,
    )
    from gradix._ops.select import choose as _choose
    from gradix._ops.select import select as select, select_n as select_n, select_n_p as select_n_p
    from gradix._ops.shape import (
        broadcast as broadcast, broadcast_in_dim as broadcast_in_dim, broadcast_like as broadcast_like,
        broadcast_shapes as broadcast_shapes, broadcast_to_rank as broadcast_to_rank, collapse as collapse,
        expand_dims as expand_dims, reshape as reshape, reshape_p as reshape_p, rev as rev, rev_p as rev_p,
        squeeze as squeeze, squeeze_p as squeeze_p, transpose as transpose,
    )
    from gradix._ops.indexing.slicing import (
        index_in_dim as index_in_dim, pad as pad, pad_p as pad_p, slice as slice, slice_in_dim as slice_in_dim,
        slice_p as slice_p,
    )
    from gradix._ops.sorting.sort import (
        sort as sort, sort_key_val as sort_key_val, sort_p as sort_p, top_k as top_k, top_k_p as top_k_p,
    )
    from gradix._ops.special.erf import (
        erf as erf, erf_inv as erf_inv, erf_inv_p as erf_inv_p, erf_p as erf_p, erfc as erfc, erfc_p as erfc_p,
        nextafter as nextafter, nextafter_p as nextafter_p,
    )
    from gradix._ops.special.beta import (
        betainc as betainc,
        regularized_incomplete_beta_p as regularized_incomplete_beta_p,
    )
    from gradix._ops.special.bessel import (
        bessel_i0e as bessel_i0e, bessel_i0e_p as bessel_i0e_p, bessel_i1e as bessel_i1e, bessel_i1e_p as bessel_i1e_p,
    )
    from gradix._ops.special.gamma import (
        digamma as digamma, digamma_p as digamma_p, lgamma as lgamma, lgamma_p as lgamma_p, polygamma as polygamma,
        polygamma_p as polygamma_p, zeta as zeta, zeta_p as zeta_p,
    )
    from gradix._ops.special.igamma import (
        igamma as igamma, igamma_grad_a as igamma_grad_a, igamma_grad_a_p as igamma_grad_a_p, igamma_p as igamma_p,
        igammac as igammac, igammac_p as igammac_p, random_gamma_grad as random_gamma_grad,
        random_gamma_grad_p as random_gamma_grad_p,
    )
    from gradix._ops.indexing.static_index import host_get as _host_get, host_update as _host_update
    from gradix._ops.transcendental import (
        cbrt as cbrt, cbrt_p as cbrt_p, exp as exp, exp2 as exp2, exp2_p as exp2_p, exp_p as exp_p, expm1 as expm1,
        expm1_p as expm1_p, log as log, log1p as log1p, log1p_p as log1p_p, log_p as log_p, logistic as logistic,
        logistic_p as logistic_p, pow as pow, pow_p as pow_p, rsqrt as rsqrt, rsqrt_p as rsqrt_p, sqrt as sqrt,
        sqrt_p as sqrt_p, tanh as tanh, tanh_p as tanh_p,
    )
    from gradix._ops.trigonometric import (
        acos as acos, acos_p as acos_p, acosh as acosh, acosh_p as acosh_p, asin as asin, asin_p as asin_p,
        asinh as asinh, asinh_p as asinh_p, atan as atan, atan2 as atan2, atan2_p as atan2_p, atan_p as atan_p,
        atanh as atanh, atanh_p as atanh_p, cos as cos, cos_p as cos_p, cosh as cosh, cosh_p as cosh_p, sin as sin,
        sin_p as sin_p, sinh as sinh, sinh_p as sinh_p, tan as tan, tan_p as tan_p,
    )
    from gradix._ops.indexing.gather_dimension_numbers import (
        GatherDimensionNumbers as GatherDimensionNumbers, GatherScatterMode as GatherScatterMode,
        ScatterDimensionNumbers as ScatterDimensionNumbers,
    )
    from gradix._control.call import jit_p as jit_p
    from gradix._control.callbacks import (
        debug_callback_p as debug_callback_p, io_callback_p as io_callback_p, pure_callback_p as pure_callback_p,
    )
    from gradix._control.composite import composite_p as composite_p
    from gradix._control.cond import cond_p as cond_p
    from gradix._control.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
    from gradix._control.custom_vjp import custom_lin_p as custom_lin_p, custom_vjp_call_p as custom_vjp_call_p
    from gradix._control.linear_solve import linear_solve_p as linear_solve_p
    from gradix._control.remat import remat_p as remat_p
    from gradix._control.reduce import reduce_p as reduce_p
    from gradix._control.reduce_window import reduce_window_p as reduce_window_p
    from gradix._control.scan import scan_p as scan_p
    from gradix._control.while_loop import while_p as while_p
    from gradix._api.associative import associative_scan as associative_scan
    from gradix._api.mapping.collectives import (
        axis_index as axis_index, axis_size as axis_size, pcast as pcast, pmax as pmax, pmean as pmean, pmin as pmin,
        psum as psum, pvary as pvary,
    )
    from gradix._api.mapping.collective_moves import (
        all_gather as all_gather, all_to_all as all_to_all, pbroadcast as pbroadcast, ppermute as ppermute,
        pshuffle as pshuffle, psum_scatter as psum_scatter, pswapaxes as pswapaxes,
    )
    from gradix._api.composite import composite as composite
    from gradix._api.constraints import with_sharding_constraint as with_sharding_constraint
    from gradix._api.control import cond as cond, switch as switch
    from gradix._api.derivatives.implicit import (
        custom_linear_solve as custom_linear_solve, custom_root as custom_root, stop_gradient as stop_gradient,
    )
    from gradix._api.loops import fori_loop as fori_loop, map as map, scan as scan, while_loop as while_loop
    from gradix._api.platform import platform_dependent as platform_dependent
    from gradix._api.mapping.ragged_all_to_all import ragged_all_to_all as ragged_all_to_all
    from gradix._api.reduce import reduce as reduce
    from gradix._api.reduce_window import reduce_window as reduce_window
    from gradix._api.scatter import scatter_apply as scatter_apply
    from gradix._api.tokens import after_all as after_all, create_token as create_token, precv as precv, psend as psend
    from gradix.lax import linalg as linalg
