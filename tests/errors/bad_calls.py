# ruff: noqa: E501 - one call per line
"""Calls that must fail: each with the error's type and what its message must say.

A call is an expression in the scope of `scope(ns)`. A type is the name of a builtin exception, or of one in
`errors` of the implementation; of several, any will do. The pattern is searched in the message, case ignored.
"""

import dataclasses
import importlib

import numpy as np

from tests.errors import programs


@dataclasses.dataclass(frozen=True)
class BadCall:
    """One entry: a name, the expression, the names of allowed exception types, the pattern of the message."""

    id: str
    text: str
    types: tuple[str, ...]
    pattern: str


def scope(ns):
    """Names the expressions use: the modules, some arrays, and the longer programs of `programs`."""
    jnp = ns.jnp
    return {
        "jax": ns.jax,
        "jnp": jnp,
        "lax": ns.lax,
        "random": ns.random,
        "np": np,
        "nn": ns.nn,
        "P": programs.Programs(ns),
        "x": jnp.arange(3.0),
        "y": jnp.arange(4.0),
        "m": jnp.ones((2, 3)),
        "n": jnp.arange(3),
        "b": jnp.array([True, False, True]),
        "key": ns.random.key(0),
        "load": lambda name: importlib.import_module(ns.name + "." + name),
    }


SHAPES = """
add | x + y | TypeError ValueError | \\(3,\\).*\\(4,\\)
add in jit | jax.jit(lambda a, b: a + b)(x, y) | TypeError ValueError | \\(3,\\).*\\(4,\\)
where | jnp.where(b, x, y) | ValueError TypeError | \\(3,\\).*\\(4,\\)
matmul | m @ m | TypeError ValueError | (\\(2, 3\\).*\\(2, 3\\))|(3.*2)
matmul scalar | jnp.matmul(x, 2.0) | ValueError TypeError | matmul|scalar|dimension|ndim|rank
dot | jnp.dot(x, y) | TypeError ValueError | \\(3,\\).*\\(4,\\)|3.*4
vdot | jnp.vdot(x, y) | TypeError ValueError | 3.*4
tensordot | jnp.tensordot(m, m, axes=1) | TypeError ValueError | 3.*2|shape
tensordot axes | jnp.tensordot(m, m, axes=5) | TypeError ValueError IndexError | ax[ie]s
broadcast_to | jnp.broadcast_to(x, (2, 4)) | ValueError | \\(3,\\).*\\(2, 4\\)
broadcast_to fewer | jnp.broadcast_to(m, (3,)) | ValueError | \\(2, 3\\).*\\(3,\\)
broadcast_arrays | jnp.broadcast_arrays(x, y) | ValueError TypeError | \\(3,\\).*\\(4,\\)
broadcast_shapes | jnp.broadcast_shapes((2,), (3,)) | ValueError TypeError | \\(2,\\).*\\(3,\\)
reshape size | m.reshape(4, 2) | TypeError ValueError | \\(2, 3\\).*\\(4, 2\\)|\\(4, 2\\).*\\(2, 3\\)|6.*8
reshape unknown twice | m.reshape(-1, -1) | ValueError TypeError | -1
reshape not a divisor | m.reshape(4, -1) | TypeError ValueError | \\(2, 3\\)|6.*4|divide
reshape float | m.reshape(2.0, 3) | TypeError | 2\\.0|integer|float
reshape string | m.reshape("abc") | TypeError ValueError | integer|shape|str
concatenate sizes | jnp.concatenate([m, jnp.ones((2, 4))]) | TypeError ValueError | \\(2, 3\\).*\\(2, 4\\)|3.*4
concatenate ranks | jnp.concatenate([m, x]) | TypeError ValueError | dimension|rank|ndim
concatenate nothing | jnp.concatenate([]) | ValueError | at least one|need
concatenate scalars | jnp.concatenate([1.0, 2.0]) | ValueError TypeError | scalar|zero-dim|0-dim|dimension|axis
concatenate one array | jnp.concatenate(3.0) | TypeError ValueError | sequence|array|concatenate|iterate
stack shapes | jnp.stack([x, y]) | ValueError TypeError | shape
stack nothing | jnp.stack([]) | ValueError | at least one|need
split uneven | jnp.split(x, 2) | ValueError TypeError | equal|divid|3.*2
hsplit scalar | jnp.hsplit(jnp.asarray(1.0), 1) | ValueError TypeError IndexError | axis|dimension|rank|scalar
squeeze | jnp.squeeze(m, 0) | ValueError | size|one|\\(2, 3\\)
pad negative | jnp.pad(x, -1) | ValueError | negative|pad
pad widths | jnp.pad(x, (1, 2, 3)) | ValueError TypeError | pad_width|\\(3,\\)|broadcast|shape
pad mode | jnp.pad(x, 1, mode="nonsense") | NotImplementedError ValueError | nonsense
repeat lengths | jnp.repeat(x, jnp.array([1, 2])) | ValueError TypeError | repeat|shape|2.*3|\\(2,\\)
einsum sizes | jnp.einsum("ij,jk->ik", m, m) | ValueError TypeError | j|size|dimension|shape
einsum operands | jnp.einsum("ij,jk->ik", m) | ValueError TypeError | operand|number|2
einsum ranks | jnp.einsum("ijk->i", m) | ValueError TypeError | ijk|3|dimension|subscript|operand
einsum output | jnp.einsum("ij->iz", m) | ValueError TypeError | z|output
einsum arrows | jnp.einsum("ij->i->j", m) | ValueError TypeError | ->|arrow|subscript|output
einsum output twice | jnp.einsum("ij->ii", m) | ValueError TypeError NotImplementedError | i
lax add shapes | lax.add(x, y) | TypeError | add.*\\(3,\\).*\\(4,\\)
lax does not broadcast | lax.add(m, x) | TypeError ValueError | \\(2, 3\\).*\\(3,\\)|rank|ndim|broadcast
lax select | lax.select(b, x, y) | TypeError ValueError | select|shape
lax clamp | lax.clamp(y, x, y) | TypeError ValueError | clamp|shape
lax reshape | lax.reshape(m, (4,)) | TypeError ValueError | reshape|\\(2, 3\\).*\\(4,\\)
lax transpose | lax.transpose(m, (0, 0)) | TypeError ValueError | permutation
lax broadcast_in_dim | lax.broadcast_in_dim(x, (2, 4), (1,)) | TypeError ValueError | broadcast_in_dim|3.*4
lax slice | lax.slice(x, (0,), (9,)) | TypeError ValueError | slice|limit|9
lax dynamic_slice | lax.dynamic_slice(x, (0,), (9,)) | TypeError ValueError | slice|9|size
lax dynamic_slice starts | lax.dynamic_slice(m, (0,), (1, 1)) | TypeError ValueError | start|indices|1.*2
lax dynamic_update_slice | lax.dynamic_update_slice(x, y, (0,)) | TypeError ValueError | update|\\(4,\\)|shape
lax pad | lax.pad(x, 0.0, [(0, 0, 0), (0, 0, 0)]) | TypeError ValueError | pad
lax dot_general | lax.dot_general(m, m, (((1,), (0,)), ((), ()))) | TypeError ValueError | dot_general|contract
lax conv | lax.conv(jnp.ones((1, 2, 4, 4)), jnp.ones((1, 3, 2, 2)), (1, 1), "SAME") | TypeError ValueError | conv|feature|channel|2.*3
lax conv ranks | lax.conv(m, m, (1,), "SAME") | TypeError ValueError IndexError | conv|dimension|rank
lax conv padding | lax.conv(jnp.ones((1, 1, 4, 4)), jnp.ones((1, 1, 2, 2)), (1, 1), "NO") | ValueError RuntimeError TypeError | NO|padding
lax top_k | lax.top_k(x, 9) | ValueError TypeError | k|9.*3|3.*9
lax split | lax.split(x, (1, 1)) | TypeError ValueError | split|size|sum
lax iota | lax.broadcasted_iota("int32", (2,), 3) | ValueError TypeError | dimension|3
concatenate without brackets | jnp.concatenate(x, x) | TypeError | concatenate.*brackets: concatenate\\(\\[a, b\\]\\)
stack without brackets | jnp.stack(x, x) | TypeError | stack.*\\(3,\\).*brackets: stack\\(\\[a, b\\]\\)
hstack without brackets | jnp.hstack(x, x) | TypeError ValueError | hstack.*brackets: hstack\\(\\[a, b\\]\\)
zeros without brackets | jnp.zeros(2, 3) | TypeError | 3.*brackets.*\\(2, 3\\)
normal without brackets | random.normal(key, 3, 4) | TypeError | 4.*brackets.*\\(2, 4\\)
shape of an array | jnp.zeros(x) | TypeError | x\\.shape
key in place of the shape | nn.initializers.normal()((3, 3), key) | TypeError | the key comes first
view of sizes | x.view(3, 1) | TypeError | \\(3, 1\\).*x\\.reshape\\(3, 1\\)
features last | lax.conv_general_dilated(jnp.ones((1, 4, 4, 3)), jnp.ones((2, 2, 3, 8)), (1, 1), "SAME") | ValueError TypeError | 'NHWC', 'HWIO', 'NHWC'
struct of a number | jax.ShapeDtypeStruct(3, "float32") | TypeError | \\(3,\\)
start of a slice as a number | lax.dynamic_slice(x, 0, (2,)) | TypeError | start_indices.*0
mesh of a number | jax.make_mesh(1, "d") | TypeError | axis_shapes.*\\(1,\\)
"""

DTYPES = """
string | jnp.array("abc") | TypeError | str|dtype|<U3|not a valid
list of strings | jnp.array(["a", "b"]) | TypeError | str|dtype|<U1|not a valid
none | jnp.array(None) | TypeError ValueError | None
list with none | jnp.array([1, None]) | TypeError ValueError | None|object
object array | jnp.asarray(np.array([{}, 1], object)) | TypeError | object
dict | jnp.array({"a": 1}) | TypeError | dict|\\{.a.: 1\\}
set | jnp.array({1, 2}) | TypeError | set|\\{1, 2\\}
ragged | jnp.array([[1, 2], [3]]) | TypeError ValueError | shape|inhomogeneous|ragged|length
dtype unknown | jnp.zeros(3, "nonsense") | TypeError | nonsense
dtype object | jnp.zeros(3, object) | TypeError | object
int too large | jnp.array(2**70) | OverflowError TypeError | large|overflow|1180591620717411303424|int|object
int too large to add | n + 2**40 | OverflowError | 1099511627776|large|int32
uint8 out of range | jnp.array([300], "uint8") | OverflowError | 300|bounds|range|uint8
sin of string | jnp.sin("a") | TypeError | sin.*str|str
sin of list | jnp.sin([1.0, 2.0]) | TypeError | sin|list|array
sin of none | jnp.sin(None) | TypeError | None
add string | x + "a" | TypeError | str
add none | x + None | TypeError | None
add dict | jnp.add(x, {}) | TypeError | dict
sum of list | jnp.sum([1, 2]) | TypeError | list|sum
floor of complex | jnp.floor(1j) | TypeError ValueError | floor.*complex|complex
bitwise of float | jnp.bitwise_and(x, x) | TypeError | float32.*|bitwise_and|and
shift of float | x << 1 | TypeError | float32|shift
invert of float | ~x | TypeError | float32|not
subtract bool | jnp.subtract(b, b) | TypeError | bool|sub
negative bool | -b | TypeError | bool|neg
lax dtypes | lax.add(x, n) | TypeError | add.*float32.*int32
lax compare dtypes | lax.lt(x, n) | TypeError | lt.*float32.*int32
lax sin of int | lax.sin(n) | TypeError | sin.*int32
lax not of float | lax.bitwise_not(x) | TypeError | not.*float32
lax select condition | lax.select(x, x, x) | TypeError ValueError | select|bool|float32
lax clamp dtypes | lax.clamp(0, x, 1.0) | TypeError | clamp|dtype|int32
lax concatenate dtypes | lax.concatenate([x, n], 0) | TypeError | concatenate.*float32.*int32|concatenate
lax pad dtypes | lax.pad(x, np.int32(0), [(0, 0, 0)]) | TypeError | pad.*float32.*int32|pad
lax reduce_and of float | lax.reduce_and(x, (0,)) | TypeError | and.*float32|reduce_and
lax bitcast | lax.bitcast_convert_type(jnp.ones(3), "int16x") | TypeError | int16x
lax gather floats | lax.dynamic_slice(x, (0.5,), (1,)) | TypeError | int|float
lax dynamic update dtype | lax.dynamic_update_slice(x, n, (0,)) | TypeError | dynamic_update_slice|float32.*int32|int32.*float32
argmax dtype | lax.argmax(x, 0, "float32") | TypeError | float32|integer|index
prng dtype | random.uniform(key, (2,), "int32") | ValueError TypeError | int32|float
randint dtype | random.randint(key, (2,), 0, 5, "float32") | TypeError ValueError | float32|int
normal dtype | random.normal(key, (2,), "int8") | ValueError TypeError | int8|float
view sizes | jnp.ones(3, "int8").view("int32") | ValueError TypeError | int8|int32|divi|size
iota dtype | lax.iota("nonsense", 3) | TypeError | nonsense
dtype misspelt | jnp.zeros(3, "flaot32") | TypeError | flaot32.*mean 'float32'
generator | jnp.array(i for i in range(3)) | TypeError | generator.*list\\(
dict names | jnp.array({"a": 1}) | TypeError | tree\\.map.*\\['a'\\]
ragged rows | jnp.array([[1, 2, 3], [4, 5]]) | ValueError TypeError | \\[0\\] is a list of 3.*\\[1\\] is a list of 2.*Ragged
ragged rows further inside | jnp.array([[[1], [2]], [[3], [4, 5]]]) | ValueError TypeError | \\[1\\]\\[0\\] is a list of 1.*\\[1\\]\\[1\\] is a list of 2
ragged rows and numbers | jnp.array([1, [2]]) | ValueError TypeError | \\[0\\] is a number.*\\[1\\] is a list of 1
"""

AXES = """
sum axis | x.sum(axis=1) | ValueError | axis 1
sum axis negative | x.sum(axis=-2) | ValueError | axis -2
sum axis twice | m.sum(axis=(0, 0)) | ValueError | duplicate|repeated|unique
sum axis float | m.sum(axis=1.0) | TypeError | float|integer
sum axis text | m.sum(axis="a") | * | axis|a
argmax axes | m.argmax(axis=(0, 1)) | TypeError ValueError | axis|int|tuple
argmax of empty | jnp.argmax(jnp.zeros(0)) | ValueError | empty
max of empty | jnp.max(jnp.zeros(0)) | ValueError | zero-size|empty|identity
transpose axes | m.transpose(0, 2) | ValueError TypeError | ax[ie]s|permutation|\\(0, 2\\)
transpose repeated | m.transpose(0, 0) | ValueError TypeError | ax[ie]s|permutation|repeat|\\(0, 0\\)
transpose count | jnp.transpose(m, (0,)) | ValueError TypeError | ax[ie]s|permutation|length|\\(0,\\)
expand_dims | jnp.expand_dims(x, 5) | ValueError | axis 5|5
swapaxes | jnp.swapaxes(m, 0, 3) | ValueError IndexError | axis 3|3
moveaxis | jnp.moveaxis(m, (0, 1), 0) | ValueError | source|destination|same|number
concatenate axis | jnp.concatenate([m, m], axis=2) | ValueError | axis 2|2
stack axis | jnp.stack([m, m], axis=5) | ValueError | axis 5|5
flip axis | jnp.flip(x, 1) | ValueError | axis 1|1
roll axis | jnp.roll(x, 1, axis=3) | ValueError | axis 3|3
sort axis | jnp.sort(x, axis=1) | ValueError | axis 1|1
cumsum axis | jnp.cumsum(m, axis=2) | ValueError | axis 2|2
take axis | jnp.take(x, n, axis=1) | ValueError IndexError | axis 1|1
squeeze axis | jnp.squeeze(x, 1) | ValueError | axis 1|1
split axis | jnp.split(x, 3, axis=1) | ValueError IndexError | axis 1|1|axis
diagonal | jnp.diagonal(x) | ValueError | two|2|dimension
tril | jnp.tril(x) | ValueError TypeError | two|2|dimension
lax reduce axis | lax.reduce_sum(x, (1,)) | ValueError TypeError | ax[ie]s|1
lax reduce repeated | lax.reduce_sum(m, (0, 0)) | ValueError TypeError | duplicate|repeat|uniq
lax cumsum axis | lax.cumsum(x, axis=1) | ValueError | axis|1
lax concatenate axis | lax.concatenate([x, x], 1) | ValueError TypeError | dimension|axis|1
lax rev | lax.rev(x, (1,)) | ValueError TypeError | 1|dimension
axis traced | jax.jit(lambda v, a: v.sum(a))(x, 0) | ConcretizationTypeError TypeError | axis
softmax axis | nn.softmax(x, axis=3) | ValueError | axis 3|3
"""

INDEXING = """
too many | x[0, 0] | IndexError | too many.*1.*2|too many|2.*1
too many at | x.at[0, 0].set(1) | IndexError | too many|2.*1
float | x[1.5] | TypeError IndexError | float|integer
float array | x[jnp.array([0.5])] | TypeError IndexError | float32|integer
string | x["a"] | TypeError IndexError | str|integer
complex | x[1j] | TypeError IndexError | complex|integer
ellipsis twice | m[..., 0, ...] | IndexError | ellips
mask length | x[jnp.array([True, False])] | IndexError | bool.*(3|shape)|mask
mask rank | x[jnp.ones((3, 2), bool)] | IndexError | too many|bool|shape|mask
index arrays do not broadcast | m[jnp.array([0, 1]), jnp.array([0, 1, 2])] | IndexError ValueError TypeError | \\(2,\\).*\\(3,\\)|broadcast|shape
slice float | x[0:1.5] | TypeError IndexError | slice|integer|float
slice step zero | x[::0] | ValueError | step|zero
slice traced | jax.jit(lambda i: x[:i])(2) | IndexError TypeError | slice|static|dynamic_slice
list index | x[[0, [1]]] | TypeError ValueError | shape|inhomogeneous|sequence|list
assignment | x.__setitem__(0, 1.0) | TypeError | immutable(.|\\n)*\\.at\\[
assignment in jit | jax.jit(lambda v: v.__setitem__(0, 1.0))(x) | TypeError | immutable(.|\\n)*\\.at\\[
in place operator on slice | P.assign_slice() | TypeError | immutable(.|\\n)*\\.at\\[
deletion | x.__delitem__(0) | TypeError AttributeError | immutable|delet|__delitem__
at without index | x.at(0) | TypeError | callable|at\\[
at mode | x.at[0].get(mode="nonsense") | ValueError | nonsense
at value shape | x.at[:2].set(y) | ValueError TypeError | \\(4,\\).*\\(2,\\)|broadcast|shape
at unknown method | x.at[0].append(1) | AttributeError | append
at dtype | x.at[0].set("a") | TypeError ValueError | str|a
item of many | x.item() | ValueError TypeError | size 1|one element|scalar|\\(3,\\)|size
item out of range | x.item(7) | IndexError ValueError | 7|range|bounds
tuple of arrays in list | [1, 2][x] | TypeError | integer|scalar|index
take mode raise | jnp.take(x, n, mode="raise") | NotImplementedError ValueError | raise
take_along_axis | jnp.take_along_axis(m, n, axis=1) | ValueError | dimension|rank|ndim
choose range | jnp.choose(n, [x, x], mode="nonsense") | ValueError | nonsense|mode
iterate scalar | list(jnp.asarray(1.0)) | TypeError | 0-d|iterat|scalar
len of scalar | len(jnp.asarray(1.0)) | TypeError | unsized|0-d|len|scalar
at assigned | x.at.__setitem__(0, 1.0) | TypeError AttributeError | x\\.at\\[index\\]\\.set\\(
at added in place | x.at[0].__iadd__(1.0) | TypeError AttributeError | \\.add\\(
at called | x.at(0).set(1.0) | TypeError | square brackets|callable
slice traced says static | jax.jit(lambda v, k: v[:k])(x, 2) | IndexError TypeError | static_argnums.*where: .*argument k
"""

VALUES = """
histogram of less than no bins | jnp.histogram(x, bins=-1) | ValueError IndexError | bins.*-1
lexsort of a number | jnp.lexsort(5) | TypeError | sequence of keys.*5
gather without dimension numbers | lax.gather(x, n[:, None], None, (1,)) | TypeError AttributeError | GatherDimensionNumbers.*None
conv of vectors | lax.conv(x, x, (1,), "SAME") | TypeError ValueError IndexError | batch.*\\(3,\\)
unknown update | x.at[0].increment(1) | AttributeError | increment.*\\.add
trapezoid of other places | jnp.trapezoid(m, jnp.ones((4, 5))) | ValueError TypeError | \\(4, 4\\).*\\(2, 2\\)
bool of many | bool(x) | ValueError | ambiguous|any|truth
bool of none | bool(jnp.zeros(0)) | ValueError | empty|ambiguous
int of many | int(x) | TypeError ValueError | scalar|size|one|0-dim
float of many | float(x) | TypeError ValueError | scalar|size|one|0-dim
complex to float | float(jnp.asarray(1j)) | TypeError ValueError | complex
hash | hash(x) | TypeError | unhashable|hash
in a set | {x} | TypeError | unhashable|hash
as a key | {x: 1} | TypeError | unhashable|hash
attribute | x.nothing | AttributeError | nothing
setting attributes | P.set_shape() | AttributeError TypeError | shape|attribute|read-only|setter
deleted | P.deleted() | RuntimeError ValueError | deleted
donated | P.deleted() | RuntimeError ValueError | deleted
writing through numpy | P.write_numpy() | ValueError | read-only
linspace count | jnp.linspace(0, 1, -1) | ValueError | -1|negative
arange text | jnp.arange("a") | TypeError ValueError | a|str|arange
arange step | jnp.arange(0, 1, 0) | ZeroDivisionError ValueError | zero|step
negative dimension | jnp.zeros((-1,)) | ValueError TypeError | -1|negative
shape float | jnp.zeros((1.5,)) | TypeError | 1\\.5|integer|float
shape text | jnp.zeros("ab") | TypeError ValueError | integer|shape|str
shape traced | jax.jit(lambda k: jnp.zeros(k))(3) | TypeError ConcretizationTypeError | concrete|static
full shape | jnp.full((2,), x) | ValueError TypeError | \\(3,\\).*\\(2,\\)
histogram | jnp.histogram(x, bins="nonsense") | * | bins|nonsense|a
norm order | jnp.linalg.norm(m, ord="bad") | ValueError | ord|bad
percentile method | jnp.percentile(x, 50, method="nonsense") | ValueError | nonsense|method
searchsorted side | jnp.searchsorted(x, 1.0, side="middle") | ValueError | side|middle
clip inverted types | jnp.clip(1j, 0, 1) | ValueError TypeError | complex
gather huge | jnp.zeros((10**12, 10**12)) | * | .
huge in jit | jax.jit(lambda: jnp.zeros((10**12, 10**12)))() | * | .
huge product | jnp.ones((10**7, 1)) @ jnp.ones((1, 10**7)) | * | .
huge broadcast | jnp.broadcast_to(x[0], (2**40, 2**30)) + 1 | * | .
huge repeat | jnp.tile(x, 10**14) | * | .
huge arange | jnp.arange(10**14) | * | .
huge random | random.normal(key, (10**8, 10**8)) | * | .
huge dimension | jnp.zeros(2**63) | * | .
arange step zero | jnp.arange(0, 1, step=0) | ZeroDivisionError ValueError | step, which must not be zero.*stop=1
linspace count float | jnp.linspace(0, 1, 3.5) | TypeError | num.*3\\.5.*float
eye traced | jax.jit(lambda k: jnp.eye(k))(3) | TypeError ConcretizationTypeError | static_argnums.*where: .*argument k
device as text | jax.device_put(x, "cpu:0") | ValueError | cpu:0.*gradix\\.devices\\('cpu'\\)\\[0\\]
unknown platform | jax.devices("abacus") | RuntimeError | abacus.*doctor
out | jnp.add(x, 1, out=np.zeros(3)) | NotImplementedError TypeError | result = jnp\\.add
not a file of arrays | P.wrong_file() | ValueError | neither.*\\.npy.*pickle\\.load
scalar iterated in jit | jax.jit(lambda k: list(k))(3) | TypeError | range\\(int\\(x\\)\\)
"""

TRANSFORMS = """
jit not callable | jax.jit(3) | TypeError | callable|function
jit of a string argument | jax.jit(lambda v: v)("a") | TypeError | str
jit of none of a dict of strings | jax.jit(lambda d: d)({"a": "b"}) | TypeError | str(.|\\n)*|\\['a'\\]
jit returns a string | jax.jit(lambda v: "a")(x) | TypeError | str
jit too many arguments | jax.jit(lambda v: v)(x, x) | TypeError | 2|argument
jit static out of range | jax.jit(lambda v: v, static_argnums=(3,))(x) | ValueError TypeError | static_argnums
jit static name | jax.jit(lambda v: v, static_argnames=("w",))(x) | ValueError TypeError | static_argnames|w
jit static type | jax.jit(lambda v: v, static_argnums="a") | TypeError ValueError | static_argnums
jit donate out of range | jax.jit(lambda v: v, donate_argnums=(7,))(x) | ValueError TypeError | donate_argnums
jit if | jax.jit(lambda v: v if v[0] > 0 else -v)(x) | TracerBoolConversionError | bool(.|\\n)*(cond|where)
jit while | P.while_on_tracer() | TracerBoolConversionError | bool
jit int | jax.jit(lambda v: int(v[0]))(x) | ConcretizationTypeError | int|concrete
jit float | jax.jit(lambda v: float(v[0]))(x) | ConcretizationTypeError | float|concrete
jit range | jax.jit(lambda k: list(range(k)))(3) | TracerIntegerConversionError | integer|index
jit numpy | jax.jit(lambda v: np.sin(v))(x) | TracerArrayConversionError | numpy(.|\\n)*|array
jit list index | jax.jit(lambda i: [1, 2][i])(0) | TracerIntegerConversionError | integer|index
jit item | jax.jit(lambda v: v[0].item())(x) | ConcretizationTypeError AttributeError | concrete|item
jit tolist | jax.jit(lambda v: v.tolist())(x) | ConcretizationTypeError AttributeError | concrete|tolist
jit hash of tracer | jax.jit(lambda v: hash(v))(x) | TypeError | hash
leaked from jit | P.leak_jit() | UnexpectedTracerError | leak|jit|side effect
leaked from grad | P.leak_grad() | UnexpectedTracerError | leak|side effect
leaked from vmap | P.leak_vmap() | UnexpectedTracerError | leak|side effect
leaked from scan | P.leak_scan() | UnexpectedTracerError | leak|scan|side effect
leaked into a global list | P.leak_list() | UnexpectedTracerError | leak|side effect
leaked through an attribute | P.leak_attribute() | UnexpectedTracerError | leak|side effect
grad of a vector | jax.grad(lambda v: v * 2)(x) | TypeError | scalar(.|\\n)*\\(3,\\)
grad of a tuple | jax.grad(lambda v: (v.sum(), v))(x) | TypeError | scalar(.|\\n)*|has_aux|tuple
grad of an int | jax.grad(lambda v: v * 2.0)(3) | TypeError | float(.|\\n)*int
grad of an int array | jax.grad(lambda v: v.sum() * 2.0)(n) | TypeError | (float|inexact)(.|\\n)*int32
grad to an int | jax.grad(lambda v: v.astype(int).sum())(x) | TypeError | int32|float
grad to a complex | jax.grad(lambda v: v * 1j)(1.0) | TypeError | complex|holomorphic
grad of a string | jax.grad(lambda v: v)("a") | TypeError | str
grad of none out | jax.grad(lambda v: None)(1.0) | TypeError | None|scalar
grad argnums | jax.grad(lambda v: v, argnums=2)(1.0) | ValueError TypeError | argnums(.|\\n)*|2
grad argnums type | jax.grad(lambda v: v, argnums="a")(1.0) | TypeError | argnums
grad without arguments | jax.grad(lambda: 1.0)() | TypeError ValueError | argument
grad not callable | jax.grad(1.0) | TypeError | callable|function
grad aux | jax.grad(lambda v: v.sum(), has_aux=True)(x) | TypeError | has_aux|pair|tuple
holomorphic real | jax.grad(lambda v: v, holomorphic=True)(1.0) | TypeError | complex|holomorphic
jvp shapes | jax.jvp(jnp.sin, (x,), (y,)) | ValueError TypeError | \\(3,\\).*\\(4,\\)|shape
jvp dtypes | jax.jvp(jnp.sin, (x,), (n,)) | TypeError | float32.*int32|int32|float0
jvp counts | jax.jvp(jnp.add, (x, x), (x,)) | TypeError ValueError | tangent|primal|structure|length
jvp not tuples | jax.jvp(jnp.sin, x, x) | TypeError | tuple|list
vjp cotangent shape | jax.vjp(jnp.sin, x)[1](y) | ValueError TypeError | \\(3,\\)(.|\\n)*\\(4,\\)|\\(4,\\)(.|\\n)*\\(3,\\)|\\[4\\](.|\\n)*\\[3\\]|\\[3\\](.|\\n)*\\[4\\]
vjp cotangent tree | jax.vjp(jnp.sin, x)[1]((x, x)) | TypeError ValueError | tree|structure
linear_transpose | jax.linear_transpose(jnp.sin, x)(x) | * | linear|transpos
custom_jvp without rule | jax.grad(jax.custom_jvp(lambda v: v))(1.0) | AttributeError TypeError | defjvp
custom_vjp without rule | jax.grad(jax.custom_vjp(lambda v: v))(1.0) | AttributeError TypeError | defvjp
custom_vjp tree | P.custom_vjp_tree() | TypeError | tree|structure|bwd|tuple
custom_vjp shape | P.custom_vjp_shape() | ValueError TypeError | shape|\\(3,\\)|\\[3\\]
custom_vjp pair | P.custom_vjp_pair() | TypeError | pair|two|tuple
custom_jvp tangent | P.custom_jvp_tangent() | TypeError ValueError | tangent|shape|\\[3\\]|\\(3,\\)
vmap sizes | jax.vmap(jnp.add)(x, y) | ValueError | 3(.|\\n)*4|size
vmap scalar | jax.vmap(jnp.sin)(1.0) | ValueError | rank|axis|dimension
vmap axis | jax.vmap(jnp.sin, in_axes=2)(x) | ValueError | 2|axis
vmap axis text | jax.vmap(jnp.sin, in_axes="a")(x) | TypeError ValueError | in_axes
vmap axis float | jax.vmap(jnp.sin, in_axes=0.5)(x) | TypeError | in_axes
vmap axes count | jax.vmap(jnp.sin, in_axes=(0, 0))(x) | ValueError | in_axes(.|\\n)*|tree|length
vmap all none | jax.vmap(jnp.sin, in_axes=None)(x) | ValueError | in_axes|None
vmap no arguments | jax.vmap(lambda: 1)() | ValueError | argument|axis|in_axes
vmap out none | jax.vmap(jnp.sin, out_axes=None)(x) | ValueError | out_axes|None|batched
vmap out tree | jax.vmap(jnp.sin, out_axes=(0, 0))(x) | ValueError | out_axes|tree|prefix
vmap tree of axes | jax.vmap(lambda d: d["a"], in_axes=({"b": 0},))({"a": x}) | ValueError | in_axes|key|tree|prefix
vmap not callable | jax.vmap(1.0) | TypeError | callable|function
vmap string | jax.vmap(lambda v: v)("abc") | TypeError ValueError | str|rank|array
vmap axis_size | jax.vmap(jnp.sin, axis_size=5)(x) | ValueError | 5|3|size
unknown axis name | lax.psum(x, "i") | NameError | i
unknown axis name in vmap | jax.vmap(lambda v: lax.psum(v, "j"), axis_name="i")(x) | NameError | j
checkpoint not callable | jax.checkpoint(3)(x) | TypeError | callable|function
eval_shape string | jax.eval_shape(lambda v: v, "a") | TypeError | str
make_jaxpr not callable | jax.make_jaxpr(3) | TypeError | callable|function
struct without dtype | jax.ShapeDtypeStruct((3,), None) | ValueError TypeError | dtype
primitive without rules | P.primitive_evaluated() | NotImplementedError | evaluat|impl|lower
primitive without abstract rule | P.primitive_traced() | NotImplementedError | abstract
primitive without jvp | P.primitive_jvp() | NotImplementedError | differentiat|jvp
primitive without batching | P.primitive_vmap() | NotImplementedError | batch
own class that is callable | jax.grad(lambda f: f.w)(P.Callable()) | TypeError | Callable.*register_dataclass
aux array | jax.grad(lambda v: v.sum(), has_aux=True)(x) | TypeError | pair.*float32\\[\\]
jit returns words | jax.jit(lambda v: (v, "done"))(x) | TypeError | result\\[1\\].*'done'.*arrays and numbers only
checkpoint policy | jax.checkpoint(jnp.sin, policy="dots_savable")(1.0) | TypeError | dots_savable.*mean 'dots_saveable'
custom_vjp arguments of bwd | P.custom_vjp_bwd_arguments() | TypeError | \\(residuals, cotangent\\).*\\(g\\)
custom_jvp arguments of the rule | P.custom_jvp_arguments() | TypeError | \\(primals, tangents\\)
vjp cotangent scalar | jax.vjp(jnp.sin, x)[1](1.0) | ValueError TypeError | float32\\[3\\].*ones_like
pmap without a name | jax.pmap(lambda v: lax.psum(v, "i"))(jnp.ones((1, 2))) | NameError | bound here: none
"""

CONTROL = """
cond dtypes | lax.cond(True, lambda v: v, lambda v: v.astype(int), x) | TypeError | float32(.|\\n)*int32
cond shapes | lax.cond(True, lambda v: v, lambda v: v[:2], x) | TypeError | 3(.|\\n)*2
cond trees | lax.cond(True, lambda v: v, lambda v: (v, v), x) | TypeError | tree|structure|output
cond predicate rank | lax.cond(b, lambda v: v, lambda v: v, x) | TypeError | scalar|\\(3,\\)|shape
cond predicate type | lax.cond("yes", lambda v: v, lambda v: v, x) | TypeError | pred|bool|str
cond not callable | lax.cond(True, 1, 2, x) | TypeError | callable|function
cond operand count | lax.cond(True, lambda: 1, lambda: 2, x) | TypeError | argument
switch empty | lax.switch(0, [], x) | ValueError | branch
switch index type | lax.switch(0.5, [jnp.sin, jnp.cos], x) | TypeError | int|float
switch index shape | lax.switch(n, [jnp.sin, jnp.cos], x) | TypeError | scalar|\\(3,\\)|shape
while dtype | lax.while_loop(lambda c: c < 3, lambda c: c + 0.5, n[0]) | TypeError | carry|int32(.|\\n)*float32
while shape | lax.while_loop(lambda c: c.sum() < 9, lambda c: c[:2], x) | TypeError | carry|body|\\[3\\]
while tree | lax.while_loop(lambda c: c[0] < 3, lambda c: c[0], (0, 1)) | TypeError | carry|tree|structure|body
while predicate | lax.while_loop(lambda c: c, lambda c: c, x) | TypeError | cond_fun|bool|scalar
while predicate dtype | lax.while_loop(lambda c: c, lambda c: c, 1.0) | TypeError | cond_fun|bool
while not callable | lax.while_loop(1, 2, 3) | TypeError | callable|function
fori shape | lax.fori_loop(0, 3, lambda i, c: c[:1], x) | TypeError | carry|\\[3\\]|body|shape
fori bounds | lax.fori_loop(0, 2.5, lambda i, c: c, x) | TypeError | int|float|bound|upper
scan carry dtype | lax.scan(lambda c, v: (c + v, c), n[0], x) | TypeError | carry(.|\\n)*int32(.|\\n)*float32|carry
scan carry shape | lax.scan(lambda c, v: (x, v), 0.0, x) | TypeError | carry
scan carry tree | lax.scan(lambda c, v: ((c, c), v), 0.0, x) | TypeError | carry|tree|structure
scan lengths | lax.scan(lambda c, v: (c, v), 0.0, (x, y)) | ValueError | 3(.|\\n)*4
scan length argument | lax.scan(lambda c, v: (c, v), 0.0, x, length=7) | ValueError | 7(.|\\n)*3|length
scan without length | lax.scan(lambda c, v: (c, v), 0.0, None) | ValueError | length
scan scalar | lax.scan(lambda c, v: (c, v), 0.0, 3.0) | ValueError | xs|axis|scan|scalar
scan not a pair | lax.scan(lambda c, v: c, 0.0, x) | TypeError | pair|tuple|carry
scan not callable | lax.scan(3, 0.0, x) | TypeError | callable|function
scan length traced | jax.jit(lambda k: lax.scan(lambda c, v: (c, v), 0.0, None, length=k))(3) | ConcretizationTypeError TypeError | length|concrete
map scalar | lax.map(jnp.sin, 3.0) | ValueError TypeError | map|xs|axis|scan|scalar
associative_scan | lax.associative_scan(3, x) | TypeError | callable|function
associative_scan lengths | lax.associative_scan(lambda p, q: p, (x, y)) | ValueError | 3|4|size|first dim|axis
scan over a list | lax.scan(lambda c, v: (c, v), 0.0, [1.0, 2.0]) | ValueError | xs\\[1\\].*jnp\\.array\\(xs\\)
map the wrong way round | lax.map(x, jnp.sin) | TypeError ValueError | lax\\.map\\(f, xs\\)
"""

TREES = """
dictionaries | jax.tree.map(lambda p, q: p, {"a": 1}, {"b": 1}) | ValueError | key|a(.|\\n)*b
lengths | jax.tree.map(lambda p, q: p, [1, 2], [1]) | ValueError | length|arity|2(.|\\n)*1|number
types | jax.tree.map(lambda p, q: p, [1], (1,)) | ValueError | list(.|\\n)*tuple|tuple(.|\\n)*list
unflatten too few | jax.tree.unflatten(jax.tree.structure([1, 2]), [1]) | ValueError | leaves|few|2
unflatten too many | jax.tree.unflatten(jax.tree.structure([1]), [1, 2]) | ValueError | leaves|many|1
keys not comparable | jax.tree.leaves({1: 1, "a": 2}) | TypeError ValueError | compar|key|sort
registered twice | P.registered_twice() | ValueError | already|register|duplicate
self-containing list | P.own_list() | RecursionError ValueError TypeError | .
self-containing list in jit | P.own_list_jit() | RecursionError ValueError TypeError | .
self-containing dictionary | P.own_dict() | RecursionError ValueError TypeError | .
self-containing list as an array | P.own_list_array() | RecursionError ValueError TypeError | .
transpose | jax.tree.transpose(jax.tree.structure([0, 0]), jax.tree.structure({"a": 0, "b": 0}), [1, 2]) | ValueError TypeError | structure|tree|leaves
reduce of nothing | jax.tree.reduce(lambda p, q: p, []) | TypeError ValueError | empty|initial
map without a function | jax.tree.map({"a": 1}, jnp.sin) | TypeError | tree\\.map\\(f, tree\\).*dict
unflatten the wrong way round | jax.tree.unflatten([1], jax.tree.structure([1])) | TypeError AttributeError | structure first.*list
class that is no dataclass | jax.tree_util.register_dataclass(P.Callable) | TypeError | dataclasses\\.dataclass
"""

RANDOM = """
key of an int | random.uniform(0) | TypeError | key
key of floats | random.uniform(jnp.zeros(2)) | TypeError | key|uint32|float32
key of a wrong shape | random.uniform(jnp.zeros(3, "uint32")) | TypeError ValueError | key|shape|\\(3,\\)|\\(2,\\)
many keys | random.uniform(random.split(key, 3)) | ValueError TypeError | batch|vmap|\\(3,\\)|single|scalar
key of a string | random.split("a") | TypeError | key
key of none | random.normal(None) | TypeError | key
seed float | random.key(0.5) | TypeError | int|seed
seed array | random.key(np.arange(2)) | TypeError | scalar|int|seed
implementation | random.key(0, impl="nonsense") | ValueError TypeError | nonsense
fold_in many | random.fold_in(random.split(key, 3), 0) | ValueError TypeError | batch|vmap|\\(3,\\)|single|scalar
fold_in array | random.fold_in(key, n) | TypeError ValueError | scalar|fold_in
shape negative | random.uniform(key, (-1,)) | * | -1|negative
shape float | random.uniform(key, (2.5,)) | TypeError | 2\\.5|integer|float
arithmetic | key + 1 | TypeError | key
numpy | np.asarray(key) | TypeError | key
sin | jnp.sin(key) | TypeError | key
choice too many | random.choice(key, 3, (5,), replace=False) | ValueError | replace|larger|5|3
choice probabilities | random.choice(key, 5, (2,), p=x) | ValueError | p|3|5|shape
choice nothing | random.choice(key, 0, (2,)) | ValueError | a|empty|0|greater
permutation axis | random.permutation(key, x, axis=3) | ValueError | axis|3
categorical shape | random.categorical(key, m, shape=(5,)) | ValueError | shape|\\(5,\\)|\\(2,\\)
truncated_normal type | random.truncated_normal(key, 0.0, 1.0, (2,), "int32") | ValueError TypeError | int32|float
reused | P.key_reused() | KeyReuseError | reuse|consum
reused after split | P.key_reused_after_split() | KeyReuseError | reuse|consum
wrapped data | random.wrap_key_data(jnp.zeros(2)) | TypeError ValueError | uint32|float32
choice from a list of words | random.choice(key, ["a", "b"]) | TypeError | x\\[choice\\(key, len\\(x\\)\\)\\]
"""

GROUPS = {
    "shapes": SHAPES,
    "dtypes": DTYPES,
    "axes": AXES,
    "indexing": INDEXING,
    "values": VALUES,
    "transforms": TRANSFORMS,
    "control": CONTROL,
    "trees": TREES,
    "random": RANDOM,
}


def bad_calls():
    """All entries, the group in front of the id."""
    for group, text in GROUPS.items():
        for line in text.strip().splitlines():
            name, rest = line.split(" | ", 1)
            text_of_call, types, pattern = split_entry(rest)
            yield BadCall(f"{group}: {name}", text_of_call, tuple(types.split()), pattern)


def split_entry(rest):
    """The call, the types and the pattern, told apart by the bars with blanks around."""
    call, types, pattern = rest.split(" | ")
    return call.strip(), types.strip(), pattern.strip()
