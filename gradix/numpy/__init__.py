"""NumPy's functions on arrays that trace, differentiate, compile and run on accelerators."""

# fmt: off
from gradix._base.lazy import on_demand

with on_demand(globals()):
    from gradix.numpy.arithmetic import (
        abs as abs, absolute as absolute, fabs as fabs, float_power as float_power, fmax as fmax, fmin as fmin,
        gcd as gcd, lcm as lcm, positive as positive, pow as pow, power as power, sign as sign, square as square,
    )
    from gradix.numpy.division import (
        divide as divide, divmod as divmod, floor_divide as floor_divide, fmod as fmod, mod as mod,
        reciprocal as reciprocal, remainder as remainder, true_divide as true_divide,
    )
    from gradix.numpy.bits import packbits as packbits, unpackbits as unpackbits
    from gradix.numpy.calculus import (
        diff as diff, ediff1d as ediff1d, gradient as gradient, interp as interp, trapezoid as trapezoid,
        unwrap as unwrap,
    )
    from gradix.numpy.convolution import convolve as convolve, correlate as correlate
    from gradix.numpy.constants import (
        e as e, euler_gamma as euler_gamma, inf as inf, nan as nan, newaxis as newaxis, pi as pi,
    )
    from gradix.numpy.contraction import einsum as einsum, einsum_path as einsum_path
    from gradix.numpy.conversion import array as array, asarray as asarray, astype as astype, copy as copy
    from gradix.numpy.buffers import (
        from_dlpack as from_dlpack, frombuffer as frombuffer, fromfile as fromfile, fromiter as fromiter,
        fromstring as fromstring,
    )
    from gradix.numpy.creation import (
        empty as empty, empty_like as empty_like, fromfunction as fromfunction, full as full, full_like as full_like,
        indices as indices, meshgrid as meshgrid, ones as ones, ones_like as ones_like, zeros as zeros,
        zeros_like as zeros_like,
    )
    from gradix.numpy.cumulative import (
        cumprod as cumprod, cumsum as cumsum, cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum,
        nancumprod as nancumprod, nancumsum as nancumsum,
    )
    from gradix.numpy.elementary import (
        acos as acos, acosh as acosh, arccos as arccos, arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh,
        arctan as arctan, arctan2 as arctan2, arctanh as arctanh, asin as asin, asinh as asinh, atan as atan,
        atan2 as atan2, atanh as atanh, cbrt as cbrt, cos as cos, cosh as cosh, deg2rad as deg2rad, degrees as degrees,
        exp as exp, exp2 as exp2, expm1 as expm1, hypot as hypot, i0 as i0, log as log, log10 as log10, log1p as log1p,
        log2 as log2, rad2deg as rad2deg, radians as radians, sin as sin, sinc as sinc, sinh as sinh, sqrt as sqrt,
        tan as tan, tanh as tanh,
    )
    from gradix.numpy.files import load as load, save as save, savez as savez
    from gradix.numpy.histograms import (
        bincount as bincount, digitize as digitize, histogram as histogram, histogram2d as histogram2d,
        histogram_bin_edges as histogram_bin_edges, histogramdd as histogramdd,
    )
    from gradix.numpy.index_tricks import (
        c_ as c_, index_exp as index_exp, ix_ as ix_, mgrid as mgrid, ogrid as ogrid, r_ as r_, s_ as s_,
    )
    from gradix.numpy.joining import (
        append as append, block as block, column_stack as column_stack, concat as concat, concatenate as concatenate,
        dstack as dstack, hstack as hstack, repeat as repeat, stack as stack, tile as tile, vstack as vstack,
    )
    from gradix.numpy.splitting import (
        array_split as array_split, dsplit as dsplit, hsplit as hsplit, split as split, unstack as unstack,
        vsplit as vsplit,
    )
    from gradix.numpy.logic import (
        bitwise_count as bitwise_count, bitwise_invert as bitwise_invert, bitwise_left_shift as bitwise_left_shift,
        bitwise_not as bitwise_not, bitwise_right_shift as bitwise_right_shift, equal as equal, greater as greater,
        greater_equal as greater_equal, invert as invert, iscomplex as iscomplex, iscomplexobj as iscomplexobj,
        isfinite as isfinite, isinf as isinf, isnan as isnan, isneginf as isneginf, isposinf as isposinf,
        isreal as isreal, isrealobj as isrealobj, left_shift as left_shift, less as less, less_equal as less_equal,
        logical_not as logical_not, not_equal as not_equal, right_shift as right_shift,
    )
    from gradix.numpy.closeness import (
        allclose as allclose, array_equal as array_equal, array_equiv as array_equiv, isclose as isclose,
    )
    from gradix.numpy.along_axes import apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes
    from gradix.numpy.matrices import (
        diag as diag, diag_indices as diag_indices, diag_indices_from as diag_indices_from, diagflat as diagflat,
        diagonal as diagonal, eye as eye, identity as identity, trace as trace, tri as tri, tril as tril,
        tril_indices as tril_indices, tril_indices_from as tril_indices_from, triu as triu,
        triu_indices as triu_indices, triu_indices_from as triu_indices_from, vander as vander,
    )
    from gradix.numpy.moments import average as average, mean as mean, std as std, var as var
    from gradix.numpy.covariance import corrcoef as corrcoef, cov as cov
    from gradix.numpy.namespace_info import (
        API_VERSION as __array_api_version__, __array_namespace_info__,
    )
    from gradix.numpy.nanreductions import (
        nanargmax as nanargmax, nanargmin as nanargmin, nanmax as nanmax, nanmean as nanmean, nanmin as nanmin,
        nanprod as nanprod, nanstd as nanstd, nansum as nansum, nanvar as nanvar,
    )
    from gradix.numpy.padding import pad as pad
    from gradix.numpy.rounding_and_parts import (
        angle as angle, around as around, ceil as ceil, conj as conj, conjugate as conjugate, copysign as copysign,
        floor as floor, frexp as frexp, heaviside as heaviside, imag as imag, ldexp as ldexp, modf as modf,
        nan_to_num as nan_to_num, nextafter as nextafter, real as real, rint as rint, round as round,
        signbit as signbit, spacing as spacing, trunc as trunc,
    )
    from gradix.numpy.fitting import polyfit as polyfit, roots as roots
    from gradix.numpy.polynomials import (
        poly as poly, polyadd as polyadd, polyder as polyder, polydiv as polydiv, polyint as polyint,
        polymul as polymul, polysub as polysub, polyval as polyval,
    )
    from gradix.numpy.printing import (
        array_repr as array_repr, array_str as array_str, get_printoptions as get_printoptions,
        printoptions as printoptions, set_printoptions as set_printoptions,
    )
    from gradix.numpy.products import (
        cross as cross, dot as dot, inner as inner, kron as kron, matmul as matmul, matvec as matvec, outer as outer,
        tensordot as tensordot, vdot as vdot, vecdot as vecdot, vecmat as vecmat,
    )
    from gradix.numpy.quantiles import (
        median as median, nanmedian as nanmedian, nanpercentile as nanpercentile, nanquantile as nanquantile,
        percentile as percentile, quantile as quantile,
    )
    from gradix.numpy.ranges import (
        arange as arange, geomspace as geomspace, linspace as linspace, logspace as logspace,
    )
    from gradix.numpy.rearrangement import (
        delete as delete, insert as insert, resize as resize, roll as roll, trim_zeros as trim_zeros,
    )
    from gradix.numpy.reductions import (
        all as all, any as any, count_nonzero as count_nonzero, prod as prod, sum as sum,
    )
    from gradix.numpy.extremes import (
        amax as amax, amin as amin, argmax as argmax, argmin as argmin, max as max, min as min, ptp as ptp,
    )
    from gradix.numpy.scalar_types import (
        bfloat16 as bfloat16, bool_ as bool_, can_cast as can_cast, cdouble as cdouble, character as character,
        complex128 as complex128, complex64 as complex64, complex_ as complex_, complexfloating as complexfloating,
        ComplexWarning as ComplexWarning, csingle as csingle, double as double, dtype as dtype, finfo as finfo,
        flexible as flexible, float16 as float16, float32 as float32, float4_e2m1fn as float4_e2m1fn,
        float64 as float64, float8_e3m4 as float8_e3m4, float8_e4m3 as float8_e4m3,
        float8_e4m3b11fnuz as float8_e4m3b11fnuz, float8_e4m3fn as float8_e4m3fn, float8_e4m3fnuz as float8_e4m3fnuz,
        float8_e5m2 as float8_e5m2, float8_e5m2fnuz as float8_e5m2fnuz, float8_e8m0fnu as float8_e8m0fnu,
        float_ as float_, floating as floating, generic as generic, iinfo as iinfo, inexact as inexact, int16 as int16,
        int2 as int2, int32 as int32, int4 as int4, int64 as int64, int8 as int8, int_ as int_, integer as integer,
        isdtype as isdtype, isscalar as isscalar, issubdtype as issubdtype, iterable as iterable, number as number,
        object_ as object_, promote_types as promote_types, result_type as result_type, signedinteger as signedinteger,
        single as single, uint as uint, uint16 as uint16, uint2 as uint2, uint32 as uint32, uint4 as uint4,
        uint64 as uint64, uint8 as uint8, unsignedinteger as unsignedinteger,
    )
    from gradix.numpy.searching import (
        argwhere as argwhere, flatnonzero as flatnonzero, mask_indices as mask_indices, nonzero as nonzero,
        ravel_multi_index as ravel_multi_index, searchsorted as searchsorted, unravel_index as unravel_index,
    )
    from gradix.numpy.selection import clip as clip, piecewise as piecewise, select as select, where as where
    from gradix.numpy.sets import (
        unique as unique, unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse,
        unique_values as unique_values,
    )
    from gradix.numpy.set_operations import (
        intersect1d as intersect1d, isin as isin, setdiff1d as setdiff1d, setxor1d as setxor1d, union1d as union1d,
    )
    from gradix.numpy.shapes import (
        expand_dims as expand_dims, flip as flip, fliplr as fliplr, flipud as flipud,
        matrix_transpose as matrix_transpose, moveaxis as moveaxis, ndim as ndim, permute_dims as permute_dims,
        ravel as ravel, reshape as reshape, rollaxis as rollaxis, rot90 as rot90, shape as shape, size as size,
        squeeze as squeeze, swapaxes as swapaxes, transpose as transpose,
    )
    from gradix.numpy.broadcasting import (
        atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d,
        broadcast_arrays as broadcast_arrays, broadcast_shapes as broadcast_shapes, broadcast_to as broadcast_to,
    )
    from gradix.numpy.signal_windows import (
        bartlett as bartlett, blackman as blackman, hamming as hamming, hanning as hanning, kaiser as kaiser,
    )
    from gradix.numpy.sorting import (
        argpartition as argpartition, argsort as argsort, lexsort as lexsort, partition as partition, sort as sort,
        sort_complex as sort_complex,
    )
    from gradix.numpy.taking import (
        choose as choose, compress as compress, extract as extract, take as take, take_along_axis as take_along_axis,
    )
    from gradix.numpy.putting import (
        fill_diagonal as fill_diagonal, place as place, put as put, put_along_axis as put_along_axis,
    )
    from gradix.numpy.universal import ufunc as ufunc
    from gradix.numpy.ufuncs import (
        add as add, bitwise_and as bitwise_and, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor,
        frompyfunc as frompyfunc, logaddexp as logaddexp, logaddexp2 as logaddexp2, logical_and as logical_and,
        logical_or as logical_or, logical_xor as logical_xor, maximum as maximum, minimum as minimum,
        multiply as multiply, negative as negative, subtract as subtract,
    )
    from gradix.numpy.vectorization import vectorize as vectorize
    from gradix.numpy.other_names import bool as bool, ndarray as ndarray
    from gradix.numpy import fft as fft, linalg as linalg

import gradix.numpy.methods
