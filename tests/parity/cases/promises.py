"""What holds whatever the function: options for the user's code, axes of results, modes of updates, rules, callbacks."""

from tests.parity.cases.written import families, filled

FAMILIES = {}
family = families(FAMILIES)
ONE = ("abs absolute acos acosh all amax amin angle any arccos arccosh arcsin arcsinh arctan arctanh argmax argmin argsort argwhere around asin asinh atan atanh atleast_1d atleast_2d average "
       "cbrt ceil conj copy corrcoef cos cosh count_nonzero cov cumprod cumsum cumulative_sum deg2rad degrees diag diagflat diagonal diff ediff1d exp exp2 expm1 fabs fix flatnonzero flip fliplr flipud "
       "floor frexp gradient i0 imag isfinite isinf isnan isreal log log10 log1p log2 max mean median min modf nan_to_num nanargmax nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd "
       "nansum nanvar negative nonzero ones_like positive prod ptp rad2deg radians ravel real reciprocal rint round sign signbit sin sinc sinh sort sqrt square squeeze std sum tan tanh trace "
       "transpose trapezoid tril triu trunc unique unwrap vander var zeros_like unique_values unique_counts partition argpartition histogram bincount packbits invert bitwise_not vsplit").split()  # fmt: skip
TWO = ("add subtract multiply divide true_divide floor_divide mod remainder power float_power maximum minimum fmax fmin fmod hypot arctan2 atan2 logaddexp logaddexp2 copysign nextafter equal "
       "not_equal less greater less_equal greater_equal logical_and logical_or logical_xor dot matmul inner outer kron vdot tensordot cross convolve correlate interp polyadd polysub polymul polyval polydiv "
       "append concatenate array_equal allclose isclose heaviside digitize searchsorted divmod union1d intersect1d setdiff1d setxor1d isin where select vstack hstack stack column_stack dstack gcd lcm "
       "bitwise_and bitwise_or left_shift right_shift ldexp meshgrid cov corrcoef vecdot histogram2d put_along_axis take take_along_axis percentile quantile nanquantile").split()  # fmt: skip


@family(
    1e-3,
    {
        "searchsorted(S('int32',(3,),1,1,5)": "the numbers are not sorted",
        "polyfit(jnp.arange(4.0), jnp.arange(4.0)**2, 2)": "zeros that are rounded",
    },
)
def strict():
    for option in ("numpy_rank_promotion('raise')", "numpy_dtype_promotion('strict')"):
        within = "UNDER(jax." + option + ", lambda: <call>)"
        yield from filled(
            within.replace("<call>", "jnp.<f>(S(<d>,<n>,1,0.1,0.9))"), f=ONE, d=("'float32'", "'int32'"), n=("(2,3)",)
        )
        yield from filled(
            within.replace("<call>", "jnp.<f>(S(<d>,(3,),1,1,5), S(<d>,(3,),2,1,5))"), f=TWO, d=("'float32'", "'int32'")
        )
        yield from filled(
            within.replace("<call>", "<e>"),
            e=(
                "jnp.add(jnp.ones(3), jnp.ones((2,3)))",
                "jnp.ones(3)+1",
                "jnp.ones(3)+jnp.ones(3,'int32')",
                "jnp.ones(3,'int32')*2.5",
                "jnp.ones(3)*np.float64(2)",
                "jnp.ones(3)**2",
                "2**jnp.ones(3)",
                "jnp.polyfit(jnp.arange(4.0), jnp.arange(4.0)**2, 2)",
                "jnp.add.outer(jnp.ones(3), jnp.ones(2))",
                "jnp.add.reduce(jnp.ones((2,3)))",
                "jnp.fft.fft(jnp.ones(4))",
                "jnp.fft.fftfreq(4)",
                "jax.image.resize(jnp.ones((4,4)), (2,2), 'linear')",
                "jax.image.resize(jnp.ones((4,4)), (6,3), 'cubic')",
                "special.logsumexp(jnp.ones((2,3)), axis=1)",
                "jax.nn.softmax(jnp.ones((2,3)))",
                "jax.nn.log_softmax(jnp.ones((2,3)))",
                "jax.nn.gelu(jnp.ones(3))",
                "jax.nn.one_hot(jnp.arange(3), 3)",
                "lax.scan(lambda c,x: (c+x,c), jnp.float32(0), jnp.ones(5), unroll=2)",
                "lax.fori_loop(0,3,lambda i,c: c+1.0, jnp.float32(0))",
                "random.normal(random.key(0),(3,))",
                "random.gamma(random.key(0),2.0,(3,))",
                "random.permutation(random.key(0),5)",
                "random.choice(random.key(0),5,(3,))",
                "random.multivariate_normal(random.key(0),jnp.zeros(2),jnp.eye(2))",
                "jnp.linalg.norm(jnp.ones((2,3)),axis=1)",
                "jnp.linalg.inv(jnp.eye(3)*2)",
                "jnp.linalg.det(jnp.eye(3)*2)",
                "jnp.linalg.pinv(jnp.eye(3)*2)",
                "jnp.linalg.matrix_rank(jnp.eye(3))",
                "jnp.linalg.slogdet(jnp.eye(3))",
                "jnp.linalg.cond(jnp.eye(3))",
                "jnp.linalg.lstsq(jnp.eye(3),jnp.ones(3))[0]",
                "jnp.linalg.solve(jnp.eye(3),jnp.ones(3))",
                "jnp.cov(jnp.ones((2,3)))",
                "jnp.corrcoef(jnp.arange(6.0).reshape(2,3)**2)",
                "jnp.std(jnp.arange(6).reshape(2,3),axis=1)",
                "jnp.nanvar(jnp.arange(6).reshape(2,3),axis=0)",
                "jnp.linspace(0,1,5)",
                "jnp.logspace(0,1,5)",
                "jnp.geomspace(1,8,4)",
                "jnp.arange(5)",
                "jnp.eye(3)",
                "jnp.percentile(jnp.arange(6.0).reshape(2,3),50.0,axis=1)",
                "jnp.apply_along_axis(jnp.sum,0,jnp.ones((2,3)))",
                "jnp.histogram(jnp.arange(5.0),bins=3)",
                "jnp.pad(jnp.ones((2,2)),1)",
                "jnp.roll(jnp.ones((2,3)),1)",
                "jnp.insert(jnp.arange(3.0),1,5.0)",
                "jnp.delete(jnp.arange(3.0),1)",
                "jnp.average(jnp.ones((2,3)),axis=1,weights=jnp.ones(3))",
                "jnp.einsum('ij,j->i',jnp.ones((2,3)),jnp.ones(3))",
                "jnp.ones((2,3))@jnp.ones(3)",
                "jnp.matmul(jnp.ones((2,2,3)),jnp.ones((3,2)))",
                "jnp.where(jnp.ones((2,3))>0,1.0,0.0)",
                "jnp.clip(jnp.ones((2,3)),0.0,1.0)",
                "jnp.ones((2,3)).at[0].set(1.0)",
                "jnp.ones((2,3)).at[0].add(jnp.ones(3))",
                "jnp.take(jnp.ones((2,3)),jnp.array([0,1]),axis=1)",
                "jnp.searchsorted(jnp.arange(3.0),jnp.ones((2,2)))",
                "signal.convolve(jnp.ones(5),jnp.ones(3))",
                "slinalg.expm(jnp.eye(3))",
                "stats.norm.pdf(jnp.ones((2,3)))",
                "stats.norm.logcdf(jnp.ones(3),0.0,2.0)",
                "stats.gamma.logpdf(jnp.ones(3),2.0)",
                "special.gammaln(jnp.ones(3))",
                "special.betainc(jnp.ones(3),jnp.ones(3),jnp.full(3,0.5))",
                "special.polygamma(1,jnp.ones(3))",
                "jax.grad(lambda x: jnp.sum(jnp.sin(x)*2))(jnp.ones(3))",
                "jax.hessian(lambda x: jnp.sum(x**3))(jnp.ones(3))",
                "jax.vmap(lambda x: x*2+1)(jnp.ones((2,3)))",
                "jnp.vectorize(lambda a,b: a+b)(jnp.ones(3),jnp.ones(3))",
                "jnp.piecewise(jnp.ones(3),[jnp.ones(3)>0],[1.0,2.0])",
                "jnp.ldexp(jnp.ones(3),jnp.ones(3,'int32'))",
                "jnp.trapezoid(jnp.ones((2,3)),dx=0.5)",
                "jnp.gradient(jnp.ones((2,3)))[0]",
                "jnp.unwrap(jnp.ones((2,3)))",
                "jnp.tri(3)",
                "jnp.tril(jnp.ones((2,3,3)))",
                "jnp.nan_to_num(jnp.ones((2,3)))",
                "ops.segment_sum(jnp.ones((4,2)),jnp.array([0,1,0,1]),2)",
                "optimize.minimize(lambda x: jnp.sum(x**2),jnp.ones(2),method='BFGS').x",
                "ndimage.map_coordinates(jnp.ones((3,3)),[jnp.ones(2),jnp.ones(2)],order=1)",
                "jnp.convolve(jnp.ones(4),jnp.ones(2))",
                "jnp.roots(jnp.array([1.0,-3.0,2.0]),strip_zeros=False)",
                "jnp.poly(jnp.array([1.0,2.0]))",
                "jnp.polyint(jnp.ones(3))",
                "jnp.polyder(jnp.ones(3))",
                "jnp.bartlett(5)",
                "jnp.hamming(5)",
                "jnp.kaiser(5,2.0)",
                "jnp.ediff1d(jnp.ones(3),to_begin=jnp.ones(1))",
                "jnp.i0(jnp.ones((2,3)))",
                "jnp.sinc(jnp.ones((2,3)))",
                "jnp.angle(jnp.ones(3)*1j)",
                "jnp.block([[jnp.ones((2,2)),jnp.ones((2,1))]])",
            ),
        )


@family(1e-4)
def mapped():
    functions = (
        "x",
        "x*2",
        "1.0",
        "(x, 3)",
        "y",
        "(x, y)",
        "x.sum()",
        "jnp.outer(x, y)",
        "lax.cond(y[0]>0, lambda: y, lambda: y*2)",
        "lax.fori_loop(0, 2, lambda i,c: c*2, y)",
        "lax.scan(lambda c,_: (c+1,c), y, None, length=2)",
        "{'a': x, 'b': y}",
        "lax.while_loop(lambda c: c.sum()<3, lambda c: c+1, y)",
        "jnp.zeros(2)",
        "lax.psum(x,'i')",
        "lax.axis_index('i')",
        "jax.jit(lambda y: y+1)(y)",
        "jnp.where(y>0, y, 0)",
        "lax.cond(x[0]>0, lambda: y, lambda: y*2)",
        "np.ones(2)",
        "None",
        "lax.all_gather(x,'i')",
        "lax.ppermute(x,'i',[(0,1),(1,2),(2,0)])",
    )
    yield from filled(
        "jax.vmap(lambda x, y: <f>, in_axes=(0,None), out_axes=<o>, axis_name='i')(S('float32',(3,2),1), S('float32',(2,),2))",
        f=functions,
        o=("0", "1", "-1", "None", "(0,None)", "5"),
    )
    yield from filled(
        "jax.vmap(lambda x, y: x + y, in_axes=<i><rest>)(S('float32',<n>,1), S('float32',<m>,2))",
        i=("0", "1", "(0,1)", "(-1,None)", "(None,None)", "None", "(0,)", "[0,0]", "(2,0)", "(0,'a')"),
        rest=("", ", axis_size=3", ", out_axes=1"),
        n=("(3,3)", "(3,2)"),
        m=("(3,3)", "(2,3)"),
    )
    yield from filled(
        "jnp.vectorize(lambda a, b: <f>, <o>)(<x>, <y>)",
        f=("a+b", "a", "(a,b)", "jnp.dot(a,b)"),
        o=(
            "signature='(n),(n)->(n)'",
            "signature='(n),(n)->()'",
            "signature='(),()->()'",
            "excluded={1}",
            "excluded={'b'}",
        ),
        x=("jnp.ones((2,3))", "jnp.ones(3)", "1.0"),
        y=("jnp.ones((2,3))", "jnp.ones(3)", "None", "2.0"),
    )


@family(1e-4)
def at_modes():
    x = {"x": ("S(<d>,(4,3),1)",), "d": ("'float32'", "'int32'")}
    index = (
        "0",
        "-1",
        "9",
        "-9",
        "jnp.array([0,2])",
        "jnp.array([0,9])",
        "jnp.array([-9,1])",
        "jnp.array([1,1])",
        "(jnp.array([0,2]),jnp.array([1,9]))",
        "slice(1,3)",
        "(slice(None),1)",
        "jnp.array([True,False,True,False])",
        "(...,jnp.array([0,5]))",
    )
    for f in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max"):
        yield from filled(
            "<x>.at[<i>].<f>(<v>, mode=<m>)",
            **x,
            i=index,
            f=[f],
            v=("2",),
            m=("None", "'drop'", "'clip'", "'fill'", "'promise_in_bounds'")
            if f in ("set", "add")
            else ("None", "'clip'"),
        )
    yield from filled(
        "<x>.at[<i>].get(mode=<m><rest>)",
        **x,
        i=index,
        m=("None", "'drop'", "'clip'", "'fill'", "'wrong'"),
        rest=("", ", fill_value=7"),
    )
    yield from filled("<x>.at[<i>].apply(lambda v: v*2<rest>)", **x, i=index[:6], rest=("", ", mode='clip'"))
    yield from filled(
        "<x>.at[jnp.array([0,2])].<f>(<v>, <o>)",
        x=["S('float32',(4,3),1)"],
        f=("set", "add"),
        v=("jnp.ones((2,3))", "jnp.ones(3)", "jnp.ones(2)", "1j", "jnp.ones((2,3),'int32')", "np.float64(1)"),
        o=("unique_indices=True", "indices_are_sorted=True", "wrap_negative_indices=False"),
    )
    yield from filled(
        "jax.grad(lambda v: T(S('float32',(4,3),1).at[<i>].<f>(v, mode=<m>)))(2.0)",
        i=index[:6],
        f=("set", "add", "multiply"),
        m=("None", "'drop'", "'clip'"),
    )


@family()
def bounds():
    yield from filled(
        "OPTION('jax_check_static_indices', True, lambda: <e>)",
        e=(
            "jnp.arange(3)[5]",
            "jnp.arange(3)[-4]",
            "jnp.arange(3)[2]",
            "jnp.arange(3)[:5]",
            "jnp.ones((2,3))[0,3]",
            "jnp.ones((2,3))[2]",
            "jnp.ones((2,3))[jnp.array([0,5])]",
            "jnp.arange(3).at[5].set(1)",
            "jnp.arange(3).at[5].get()",
            "jnp.arange(3).at[5].get(mode='fill')",
            "jnp.ones((2,3))[:,-4]",
            "jax.jit(lambda x: x[5])(jnp.arange(3))",
            "jax.vmap(lambda x: x[3])(jnp.ones((2,3)))",
            "jnp.arange(3)[np.int64(7)]",
        ),
    )


@family(
    1e-4,
    {
        "ct.astype": "cotangents of another dtype are always converted here, in JAX in some transformations",
        "(1,)), f)": "as above",
        "ct*1j": "no real argument has a complex cotangent here; JAX passes it on",
        "atol=0.2))": "whether a wrong derivative is within so wide a tolerance is chance",
        "['wrong']": "JAX checks nothing in a mode it does not know",
    },
)
def rules():
    jvp = "(lambda f: (f.defjvp(lambda p, t: (<y>, <t>)), f)[1])(jax.custom_jvp(lambda x: x*x))"
    yield from filled(
        "<g>(" + jvp + ")(<x>)",
        g=("jax.grad", "jax.jacfwd", "jax.hessian", "(lambda f: lambda x: jax.jvp(f,(x,),(x*0+1,)))"),
        y=("p[0]*p[0]", "p[0]", "(p[0],)", "p[0].astype('float16')"),
        t=("t[0]*3", "t[0]", "0.0", "t[0].astype('float16')", "None", "jnp.ones(2)"),
        x=("jnp.ones(2)",),
    )
    vjp = "(lambda f: (f.defvjp(lambda x: (x*x, <r>), lambda r, ct: <b>), f)[1])(jax.custom_vjp(lambda x: x*x))"
    yield from filled(
        "<g>(" + vjp + ")(<x>)",
        g=("jax.grad", "jax.jacrev", "(lambda f: jax.vmap(jax.grad(f)))", "(lambda f: jax.jit(jax.grad(f)))"),
        r=("x", "None", "3"),
        b=(
            "(ct*5,)",
            "ct*5",
            "(ct.astype('float16'),)",
            "(ct.astype('int32'),)",
            "(None,)",
            "[ct]",
            "(ct, ct)",
            "(jnp.ones(3)*ct,)",
            "(1,)",
            "(ct*1j,)",
        ),
        x=("jnp.ones(2)",),
    )
    yield from filled(
        "(lambda r: None)(test_util.check_grads(<f>, (<x>,), order=<o>, modes=<m><rest>))",
        f=("jnp.sin", "lambda x: x**3", "jnp.abs", "lambda x: lax.stop_gradient(x)*x", "lambda x: x.sum()", "jnp.exp"),
        x=("S('float32',(2,),1,0.2,0.9)", "S('float16',(2,),1,0.2,0.9)"),
        o=(1, 2),
        m=("['fwd']", "['rev']", "['fwd','rev']", "['wrong']"),
        rest=("", ", rtol=0.2, atol=0.2", ", eps=1e-2"),
    )


@family(without={"lambda x: [x],": "a list is no array that was declared; JAX looks at the number of leaves"})
def callbacks():
    struct = "jax.ShapeDtypeStruct(<n>, <d>)"
    yield from filled(
        "<w>(lambda x: jax.pure_callback(lambda x: <v>, " + struct + ", x<rest>))(S('float32',<m>,1))",
        w=("", "jax.jit", "(lambda f: jax.vmap(f))"),
        v=("np.asarray(x)*2", "x", "x.sum()", "np.float64(3)", "[x]", "x.astype('int32')"),
        n=("(2,)",),
        d=("'float32'", "'int32'"),
        m=("(2,)", "(2,2)"),
        rest=(
            "",
            ", vmap_method='sequential'",
            ", vmap_method='expand_dims'",
            ", vmap_method='broadcast_all'",
            ", vmap_method='wrong'",
        ),
    )
    yield from filled(
        "jax.<w>(lambda x: io_callback(lambda x: <v>, "
        + struct
        + ", x, ordered=<o>))(S('float32',(2,),1))".replace(
            "io_callback", "__import__(jax.__name__ + '.experimental', fromlist=['io_callback']).io_callback"
        ),
        w=("jit", "grad", "vmap"),
        v=("np.asarray(x)*2", "None"),
        n=("(2,)",),
        d=("'float32'",),
        o=(True, False),
    )


@family(without={"copy(jnp.sin)": "the copy of a jitted function has no name in JAX"})
def copies():
    values = (
        "S('float32',(2,),1)",
        "S('bfloat16',(2,),1)",
        "jnp.ones(2,'float8_e4m3fn')",
        "S('int32',(2,),1)",
        "S('bool',(2,),1)",
        "S('complex64',(2,),1)",
        "jnp.float32(1)",
        "jnp.zeros((0,3))",
        "random.key(0)",
        "jnp.ones(2,'int4')",
        "jax.ShapeDtypeStruct((2,),'float32')",
        "jnp.array(1)",
        "jax.tree.structure({'a': 1})",
        "jnp.float32",
        "jnp.sin",
        "lax.add",
        "jax.P('a', None)",
        "jax.numpy.dtype('bfloat16')",
        "jax.nn.relu",
        "lax.Precision.HIGH",
    )
    yield from filled("__import__('<m>').loads(__import__('<m>').dumps(<v>))", m=("pickle",), v=values)
    yield from filled("__import__('copy').<m>(<v>)", m=("copy", "deepcopy"), v=values)
