"""NumPy's functions on arrays that trace, differentiate, compile and run on accelerators."""
# fmt: off
from gradix._base.lazy import on_demand

with on_demand(globals()):
    from gradix.numpy.arithmetic import (
        abs, absolute, divide, divmod, fabs, float_power, floor_divide, fmax, fmin, fmod, gcd, lcm, mod, positive, pow,
        power, reciprocal, remainder, sign, square, true_divide,
    )
    from gradix.numpy.bits import (
        packbits, unpackbits,
    )
    from gradix.numpy.calculus import (
        convolve, correlate, diff, ediff1d, gradient, interp, trapezoid, unwrap,
    )
    from gradix.numpy.constants import (
        e, euler_gamma, inf, nan, newaxis, pi,
    )
    from gradix.numpy.contraction import (
        einsum, einsum_path,
    )
    from gradix.numpy.conversion import (
        array, asarray, astype, copy, from_dlpack, frombuffer, fromfile, fromiter, fromstring,
    )
    from gradix.numpy.creation import (
        empty, empty_like, fromfunction, full, full_like, indices, meshgrid, ones, ones_like, zeros, zeros_like,
    )
    from gradix.numpy.cumulative import (
        cumprod, cumsum, cumulative_prod, cumulative_sum, nancumprod, nancumsum,
    )
    from gradix.numpy.elementary import (
        acos, acosh, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, asin, asinh, atan, atan2, atanh, cbrt,
        cos, cosh, deg2rad, degrees, exp, exp2, expm1, hypot, i0, log, log10, log1p, log2, rad2deg, radians, sin, sinc,
        sinh, sqrt, tan, tanh,
    )
    from gradix.numpy.files import (
        load, save, savez,
    )
    from gradix.numpy.histograms import (
        bincount, digitize, histogram, histogram2d, histogram_bin_edges, histogramdd,
    )
    from gradix.numpy.index_tricks import (
        c_, index_exp, ix_, mgrid, ogrid, r_, s_,
    )
    from gradix.numpy.joining import (
        append, array_split, block, column_stack, concat, concatenate, dsplit, dstack, hsplit, hstack, repeat, split,
        stack, tile, unstack, vsplit, vstack,
    )
    from gradix.numpy.logic import (
        allclose, array_equal, array_equiv, bitwise_count, bitwise_invert, bitwise_left_shift, bitwise_not,
        bitwise_right_shift, equal, greater, greater_equal, invert, isclose, iscomplex, iscomplexobj, isfinite, isinf,
        isnan, isneginf, isposinf, isreal, isrealobj, left_shift, less, less_equal, logical_not, not_equal, right_shift,
    )
    from gradix.numpy.along_axes import (
        apply_along_axis, apply_over_axes,
    )
    from gradix.numpy.matrices import (
        bartlett, blackman, diag, diag_indices, diag_indices_from, diagflat, diagonal, eye, hamming, hanning, identity,
        kaiser, trace, tri, tril, tril_indices, tril_indices_from, triu, triu_indices, triu_indices_from, vander,
    )
    from gradix.numpy.moments import (
        average, corrcoef, cov, mean, std, var,
    )
    from gradix.numpy.namespace_info import (
        API_VERSION as __array_api_version__, __array_namespace_info__,
    )
    from gradix.numpy.nanreductions import (
        nanargmax, nanargmin, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar,
    )
    from gradix.numpy.padding import (
        pad,
    )
    from gradix.numpy.rounding_and_parts import (
        angle, around, ceil, conj, conjugate, copysign, floor, frexp, heaviside, imag, ldexp, modf, nan_to_num, nextafter,
        real, rint, round, signbit, spacing, trunc,
    )
    from gradix.numpy.fitting import polyfit, roots
    from gradix.numpy.polynomials import (
        poly, polyadd, polyder, polydiv, polyint, polymul, polysub, polyval,
    )
    from gradix.numpy.printing import (
        array_repr, array_str, get_printoptions, printoptions, set_printoptions,
    )
    from gradix.numpy.products import (
        cross, dot, inner, kron, matmul, matvec, outer, tensordot, vdot, vecdot, vecmat,
    )
    from gradix.numpy.quantiles import (
        median, nanmedian, nanpercentile, nanquantile, percentile, quantile,
    )
    from gradix.numpy.ranges import (
        arange, geomspace, linspace, logspace,
    )
    from gradix.numpy.rearrangement import (
        delete, insert, resize, roll, trim_zeros,
    )
    from gradix.numpy.reductions import (
        all, amax, amin, any, argmax, argmin, count_nonzero, max, min, prod, ptp, sum,
    )
    from gradix.numpy.scalar_types import (
        bfloat16, bool_, can_cast, cdouble, character, complex128, complex64, complex_, complexfloating, ComplexWarning,
        csingle, double, dtype, finfo, flexible, float16, float32, float4_e2m1fn, float64, float8_e3m4, float8_e4m3,
        float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, float_,
        floating, generic, iinfo, inexact, int16, int2, int32, int4, int64, int8, int_, integer, isdtype, isscalar,
        issubdtype, iterable, number, object_, promote_types, result_type, signedinteger, single, uint, uint16, uint2,
        uint32, uint4, uint64, uint8, unsignedinteger,
    )
    from gradix.numpy.searching import (
        argwhere, flatnonzero, mask_indices, nonzero, ravel_multi_index, searchsorted, unravel_index,
    )
    from gradix.numpy.selection import (
        clip, piecewise, select, where,
    )
    from gradix.numpy.sets import (
        intersect1d, isin, setdiff1d, setxor1d, union1d, unique, unique_all, unique_counts, unique_inverse, unique_values,
    )
    from gradix.numpy.shapes import (
        atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_shapes, broadcast_to, expand_dims, flip, fliplr,
        flipud, matrix_transpose, moveaxis, ndim, permute_dims, ravel, reshape, rollaxis, rot90, shape, size, squeeze,
        swapaxes, transpose,
    )
    from gradix.numpy.sorting import (
        argpartition, argsort, lexsort, partition, sort, sort_complex,
    )
    from gradix.numpy.taking import (
        choose, compress, extract, fill_diagonal, place, put, put_along_axis, take, take_along_axis,
    )
    from gradix.numpy.universal import (
        ufunc,
    )
    from gradix.numpy.ufuncs import (
        add, bitwise_and, bitwise_or, bitwise_xor, frompyfunc, logaddexp, logaddexp2, logical_and, logical_or,
        logical_xor, maximum, minimum, multiply, negative, subtract,
    )
    from gradix.numpy.vectorization import (
        vectorize,
    )
    from gradix._core.operators import Array as ndarray
    from gradix.numpy.scalar_types import bool_ as bool
    from gradix.numpy import fft, linalg

import gradix.numpy.methods
