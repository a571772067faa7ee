"""Order statistics: what `numpy` builds medians and quantiles of."""
from gradix._ops.ranked import ranked as ranked
