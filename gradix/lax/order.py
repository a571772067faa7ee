"""Places and elements by their order, of which `numpy` computes masks, medians and quantiles."""

from gradix._ops.indexing.true_places import true_places as true_places
from gradix._ops.sorting.ranked import ranked as ranked
