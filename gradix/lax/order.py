"""Order statistics, of which `numpy` computes medians and quantiles."""

from gradix._ops.sorting.ranked import ranked as ranked
