"""Order statistics: what `numpy` builds medians and quantiles of."""

from gradix._ops.sorting.ranked import ranked as ranked
