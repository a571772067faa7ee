"""What is said of public names whose objects NumPy, ml_dtypes and jaxlib make; the tests run the examples."""

TEXTS = {
    "gradix.Device": """
A device that programs run on: `id`, `platform`, `device_kind`, `process_index`; it is jaxlib's class.

Example:
    >>> import gradix
    >>> device = gradix.devices("cpu")[0]
    >>> isinstance(device, gradix.Device), device.platform, device.id
    (True, 'cpu', 0)
""",
    "gradix.errors.JaxRuntimeError": """
An error of XLA while it compiles or runs a program, such as too little memory; it is jaxlib's class.

Example:
    >>> import gradix
    >>> call = gradix.ffi.ffi_call("not_registered", gradix.ShapeDtypeStruct((), "float32"))
    >>> try:
    ...     gradix.jit(call)(1.0)
    ... except gradix.errors.JaxRuntimeError as e:
    ...     print(str(e).partition(" ")[0])
    NOT_FOUND:
""",
    "gradix.dtypes.bfloat16": """
The 16-bit float with the range of float32, as the scalar type of ml_dtypes.

Example:
    >>> import numpy as np
    >>> from gradix import dtypes
    >>> np.array([0.3], dtypes.bfloat16).astype("float32").item()
    0.30078125
""",
    "gradix.dtypes.finfo": """
The limits of a floating dtype: `bits`, `eps`, `max`, `min`, `tiny` …; it is the class of ml_dtypes.

Example:
    >>> from gradix import dtypes
    >>> float(dtypes.finfo("bfloat16").eps), dtypes.finfo("float32").bits
    (0.0078125, 32)
""",
    "gradix.dtypes.iinfo": """
The limits of an integer dtype: `bits`, `max`, `min`; it is the class of ml_dtypes.

Example:
    >>> from gradix import dtypes
    >>> dtypes.iinfo("int4").min, dtypes.iinfo("uint8").max
    (-8, 255)
""",
    "gradix.numpy.ComplexWarning": """
The warning where a conversion drops imaginary parts; it is NumPy's class.

Example:
    >>> import warnings
    >>> import gradix.numpy as jnp
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     x = jnp.asarray(jnp.array([1 + 2j]), dtype="float32")
    >>> x, [w.category is jnp.ComplexWarning for w in found]
    (Array([1.], dtype=float32), [True])
""",
    "gradix.numpy.character": """
NumPy's abstract type over strings and bytes, which arrays cannot hold; for `jnp.issubdtype`.

Example:
    >>> import numpy as np, gradix.numpy as jnp
    >>> jnp.issubdtype(np.array("text").dtype, jnp.character)
    True
""",
    "gradix.numpy.complexfloating": """
NumPy's abstract type over complex dtypes, for `jnp.issubdtype`.

Example:
    >>> import gradix.numpy as jnp
    >>> jnp.issubdtype(jnp.complex64, jnp.complexfloating), jnp.issubdtype(jnp.float32, jnp.complexfloating)
    (True, False)
""",
    "gradix.numpy.dtype": """
NumPy's class of dtypes, which arrays have as their attribute `dtype`.

Example:
    >>> import gradix.numpy as jnp
    >>> jnp.ones(2).dtype == jnp.dtype("float32"), jnp.dtype(jnp.bfloat16).itemsize
    (True, 2)
""",
    "gradix.numpy.flexible": """
NumPy's abstract type over dtypes without a fixed size, such as strings; for `jnp.issubdtype`.

Example:
    >>> import numpy as np, gradix.numpy as jnp
    >>> jnp.issubdtype(np.dtype("S3"), jnp.flexible), jnp.issubdtype(jnp.int8, jnp.flexible)
    (True, False)
""",
    "gradix.numpy.floating": """
The abstract type over real floating dtypes, bfloat16 and the 8-bit ones among them; for `jnp.issubdtype`.

Example:
    >>> import gradix.numpy as jnp
    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating), jnp.issubdtype(jnp.complex64, jnp.floating)
    (True, False)
""",
    "gradix.numpy.generic": """
NumPy's abstract type over all scalar types, for `jnp.issubdtype`.

Example:
    >>> import gradix.numpy as jnp
    >>> jnp.issubdtype(jnp.int32, jnp.generic)
    True
""",
    "gradix.numpy.inexact": """
The abstract type over real and complex floating dtypes, those that have derivatives; for `jnp.issubdtype`.

Example:
    >>> import gradix.numpy as jnp
    >>> [jnp.issubdtype(t, jnp.inexact) for t in (jnp.float16, jnp.complex64, jnp.int32)]
    [True, True, False]
""",
    "gradix.numpy.integer": """
The abstract type over signed and unsigned integer dtypes, for `jnp.issubdtype`.

Example:
    >>> import gradix.numpy as jnp
    >>> [jnp.issubdtype(t, jnp.integer) for t in (jnp.int4, jnp.uint8, jnp.bool_)]
    [True, True, False]
""",
    "gradix.numpy.number": """
The abstract type over integer, floating and complex dtypes, for `jnp.issubdtype`; booleans are not numbers.

Example:
    >>> import gradix.numpy as jnp
    >>> [jnp.issubdtype(t, jnp.number) for t in (jnp.int32, jnp.complex64, jnp.bool_)]
    [True, True, False]
""",
    "gradix.numpy.object_": """
NumPy's type of Python objects, which arrays cannot hold.

Example:
    >>> import numpy as np, gradix.numpy as jnp
    >>> np.array([1, None]).dtype == jnp.object_
    True
""",
    "gradix.numpy.signedinteger": """
The abstract type over signed integer dtypes, for `jnp.issubdtype`.

Example:
    >>> import gradix.numpy as jnp
    >>> jnp.issubdtype(jnp.int8, jnp.signedinteger), jnp.issubdtype(jnp.uint8, jnp.signedinteger)
    (True, False)
""",
    "gradix.numpy.unsignedinteger": """
The abstract type over unsigned integer dtypes, for `jnp.issubdtype`.

Example:
    >>> import gradix.numpy as jnp
    >>> jnp.issubdtype(jnp.uint8, jnp.unsignedinteger), jnp.issubdtype(jnp.int8, jnp.unsignedinteger)
    (True, False)
""",
    "gradix.extend.mlir.deserialize_portable_artifact": """
The module that `serialize_portable_artifact` wrote, in the context that is current or given; it is jaxlib's function.

Args:
    mlir_module: the bytes.
    context: an MLIR context.

Example:
    >>> import gradix
    >>> from gradix.extend import mlir
    >>> from gradix.interpreters.mlir import make_ir_context
    >>> text = gradix.jit(lambda x: x + 1).lower(1.0).as_text()
    >>> data = mlir.serialize_portable_artifact(text, "1.0.0")
    >>> with make_ir_context():
    ...     "stablehlo.add" in str(mlir.deserialize_portable_artifact(data))
    True
""",
    "gradix.extend.mlir.hlo_to_stablehlo": """
An HLO module, serialized as a protocol buffer, as a StableHLO module in MLIR's binary form; it is jaxlib's function.

Args:
    computation: the bytes of an `HloModuleProto`.

Example:
    >>> import gradix
    >>> from gradix.extend import mlir
    >>> hlo = gradix.jit(lambda x: x + 1).lower(1.0).compiler_ir("hlo")
    >>> mlir.hlo_to_stablehlo(hlo.as_serialized_hlo_module_proto())[:2]
    b'ML'
""",
    "gradix.extend.mlir.refine_polymorphic_shapes": """
A module whose sizes all follow from those of its arguments, with these sizes filled in; it is jaxlib's function.

Args:
    mlir_module: a module as text or in MLIR's binary form, whose function `main` has arguments of known shapes.
    enable_shape_assertions: whether assertions about sizes are checked.
    validate_static_shapes: whether an error is raised for sizes that stay unknown.
    enable_shardy: whether shardings are those of the dialect Shardy.

Example:
    >>> from gradix.extend import mlir
    >>> from gradix.interpreters.mlir import make_ir_context
    >>> module = '''
    ... func.func @main(%x: tensor<3xf32>) -> tensor<?xf32> {
    ...   %n = stablehlo.constant dense<3> : tensor<1xi32>
    ...   %y = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    ...   return %y : tensor<?xf32>
    ... }'''
    >>> with make_ir_context():
    ...     "-> tensor<3xf32>" in str(mlir.ir.Module.parse(mlir.refine_polymorphic_shapes(module.encode())))
    True
""",
    "gradix.extend.mlir.serialize_portable_artifact": """
A module as bytes that the StableHLO of the given version, and later ones, can read; it is jaxlib's function.

Args:
    mlir_module: a module, or its text.
    target: the version of StableHLO.
    use_mixed_serialization: whether operations of other dialects may be in the module.

Example:
    >>> import gradix
    >>> from gradix.extend import mlir
    >>> text = gradix.jit(lambda x: x + 1).lower(1.0).as_text()
    >>> mlir.serialize_portable_artifact(text, "1.0.0")[:2]
    b'ML'
""",
    "gradix.profiler.ProfileOptions": """
What a profile records: levels of the tracers of host, Python and device; it is jaxlib's class.

Example:
    >>> from gradix import profiler
    >>> options = profiler.ProfileOptions()
    >>> options.python_tracer_level = 0
    >>> options.host_tracer_level, options.python_tracer_level
    (2, 0)
""",
    "gradix.profiler.register_subprocess": """
Let profiles of this process hold those of a process that it started, and which runs a profiler server; it is jaxlib's function.

Args:
    pid: the number of the other process.
    port: the port of its server, which `profiler.start_server` starts there.

Returns:
    A function that takes the other process out again.

Example:
    >>> from gradix import profiler
    >>> remove = profiler.register_subprocess(worker.pid, 9999)   # doctest: +SKIP
    >>> remove()                                                  # doctest: +SKIP
""",
    "gradix.tree_util.DictKey": """
An entry of a path in a tree: the key of a dict, as `key`.

Example:
    >>> from gradix import tree_util
    >>> [(path, leaf)] = tree_util.tree_leaves_with_path({"w": 1})
    >>> path, path[0].key
    ((DictKey(key='w'),), 'w')
""",
    "gradix.tree_util.FlattenedIndexKey": """
An entry of a path in a tree: the number of a child, as `key`, in a class whose registration tells no names.

Example:
    >>> from gradix import tree_util
    >>> tree_util.FlattenedIndexKey(3), tree_util.FlattenedIndexKey(3).key
    (FlattenedIndexKey(key=3), 3)
""",
    "gradix.tree_util.GetAttrKey": """
An entry of a path in a tree: an attribute's name, as `name`.

Example:
    >>> import dataclasses
    >>> from gradix import tree_util
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    >>> [(path, leaf)] = tree_util.tree_leaves_with_path(Layer(2.0))
    >>> path, tree_util.keystr(path)
    ((GetAttrKey(name='w'),), '.w')
""",
    "gradix.tree_util.PyTreeDef": """
The structure of a tree, without its leaves; `tree_util.tree_structure` gives it.

Example:
    >>> from gradix import tree_util
    >>> structure = tree_util.tree_structure({"a": 1, "b": (2, 3)})
    >>> structure, structure.num_leaves, structure.unflatten("xyz")
    (PyTreeDef({'a': *, 'b': (*, *)}), 3, {'a': 'x', 'b': ('y', 'z')})
""",
    "gradix.tree_util.SequenceKey": """
An entry of a path in a tree: a place in a list or tuple, as `idx`.

Example:
    >>> from gradix import tree_util
    >>> [path for path, _ in tree_util.tree_leaves_with_path(["x", "y"])]
    [(SequenceKey(idx=0),), (SequenceKey(idx=1),)]
""",
}
