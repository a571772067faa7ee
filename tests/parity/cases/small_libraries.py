"""Sparse arrays, Taylor mode, optimizers, layers, random numbers, segments, and refs."""

from tests.parity.cases.written import families, filled

FAMILIES = {}
family = families(FAMILIES)


@family(1e-4)
def sparse():
    m = "sparse.BCOO.fromdense(S(<d>,(3,4),1)*(S('int32',(3,4),7)>0)<o>)"
    d = {"d": ("'float32'", "'int32'", "'complex64'"), "o": ("", ", n_batch=1", ", n_dense=1")}
    plain = {"d": ("'float32'", "'int32'", "'complex64'"), "o": ("",)}
    yield from filled(
        m + ".<f>",
        **d,
        f="todense() T.todense() nse n_batch n_sparse n_dense shape dtype sum().todense() sum(0).todense() "
        "sum(axis=1).todense() sum_duplicates().todense() sort_indices().todense() update_layout(n_batch=1).todense() "
        "update_layout(n_dense=1).todense() reshape(4,3).todense() reshape(12).todense() transpose((1,0)).todense() astype('float32').todense() "
        "indices.shape data.shape unique_indices indices_sorted".split(),
    )
    yield from filled(
        "(" + m + "<f>).todense()",
        **d,
        f=(
            "[0]",
            "[:,1]",
            "[1:]",
            "[:,::2]",
            "[None]",
            "[...,0]",
            "[-1,1:3]",
            "*2",
            "/2",
            "*S(<d>,(4,),3)",
            "*S(<d>,(3,4),3)",
            "*S(<d>,(3,1),3)",
            "+0",
            "[jnp.array([0,2])]",
            "[5]",
        ),
    )
    yield from filled(
        "(lambda y: y.todense() if hasattr(y, 'todense') else y)(" + m + "<f>)",
        **d,
        f=(
            "@S(<d>,(4,),3)",
            "@S(<d>,(4,2),3)",
            "@S('float32',(4,2),3)",
            ".T@S(<d>,(3,),3)",
            "@S(<d>,(3,),3)",
            "@sparse.BCOO.fromdense(S(<d>,(4,2),3))",
            "+" + m.replace(",1)*", ",2)*"),
            "-" + m.replace(",1)*", ",2)*"),
            "*" + m.replace(",1)*", ",2)*"),
        ),
    )
    yield from filled("S(<d>,<n>,3)@" + m, **plain, n=("(3,)", "(2,3)", "(4,)"))
    yield from filled(
        "sparse.bcoo_dot_general(" + m + ", S(<d>,<n>,3), dimension_numbers=<dn>)",
        **plain,
        n=("(4,2)", "(3,2)"),
        dn=("(((1,),(0,)),((),()))", "(((0,),(0,)),((),()))", "(((),()),((0,),(0,)))"),
    )
    yield from filled(
        "sparse.<f>.todense()",
        f=(
            "bcoo_broadcast_in_dim(<m>, shape=(2,3,4), broadcast_dimensions=(1,2))",
            "bcoo_concatenate([<m>, <m>], dimension=0)",
            "bcoo_concatenate([<m>, <m>], dimension=1)",
            "bcoo_transpose(<m>, permutation=(1,0))",
            "bcoo_reduce_sum(<m>, axes=(0,))",
            "bcoo_reduce_sum(<m>, axes=(1,))",
            "bcoo_slice(<m>, start_indices=(0,1), limit_indices=(2,3))",
            "bcoo_slice(<m>, start_indices=(0,0), limit_indices=(3,4), strides=(2,2))",
            "bcoo_rev(<m>, dimensions=(0,))",
            "bcoo_dynamic_slice(<m>, (1,1), (2,2))",
            "bcoo_reshape(<m>, new_sizes=(2,6))",
            "bcoo_sum_duplicates(<m>)",
            "bcoo_sum_duplicates(<m>, nse=12)",
            "bcoo_sort_indices(<m>)",
            "bcoo_update_layout(<m>, n_batch=0, n_dense=1)",
            "BCSR.from_bcoo(<m>)",
            "BCSR.fromdense(<m>.todense())",
            "empty((2,3), dtype=<d>)",
            "eye(3, dtype=<d>)",
            "eye(3, 4, k=1, dtype=<d>)",
            "CSR.fromdense(<m>.todense())",
            "COO.fromdense(<m>.todense())",
            "CSR.fromdense(<m>.todense()).T",
            "COO.fromdense(<m>.todense()).T",
        ),
        m=[m.replace("<o>", "")],
        d=plain["d"],
    )
    yield from filled(
        "sparse.<k>.fromdense(S(<d>,(3,4),1)*(S('int32',(3,4),7)>0))<f>",
        k=("BCSR", "CSR", "CSC", "COO", "BCOO"),
        d=plain["d"],
        f=("@S(<d>,(4,),3)", "@S(<d>,(4,2),3)", "@S(<d>,(5,),3)", ".todense()", ".nse", ".shape", ".T.todense()"),
    )
    functions = (
        "m.sum()",
        "m.sum(0)",
        "(m*2)",
        "(-m)",
        "(m.T)",
        "jnp.sin(m)",
        "jnp.abs(m)",
        "jnp.sqrt(jnp.abs(m))",
        "m@v",
        "v@m.T",
        "m.reshape(4,3)",
        "jnp.concatenate([m,m])",
        "m[1:]",
        "m[0]",
        "jnp.broadcast_to(m,(2,3,4))",
        "lax.rev(m,(0,))",
        "jnp.expm1(m)",
        "jnp.tanh(m)",
        "jnp.square(m)",
        "m**2",
        "m+m",
        "m-m",
        "m*m",
        "jax.jit(lambda m: m*3)(m)",
        "lax.cond(True, lambda m: m*2, lambda m: m, m)",
        "jnp.cos(m)",
        "m+1",
        "jnp.squeeze(m[None],0)",
        "jnp.expand_dims(m,0)",
        "m.astype('float16')",
        "jnp.einsum('ij,j->i',m,v)",
        "jnp.dot(m,v)",
        "lax.neg(m)",
        "jnp.sign(m)",
        "jnp.where(True,m,m)",
        "lax.scan(lambda c,_: (c*2,None), m, None, length=2)[0]",
        "lax.while_loop(lambda c: False, lambda c: c, m)",
        "jnp.real(m)",
        "m.max()",
        "m/2",
        "m/v",
        "v*m",
    )
    yield from filled(
        "(lambda y: y.todense() if hasattr(y,'todense') else y)(sparse.sparsify(lambda m,v: <f>)(sparse.BCOO.fromdense("
        "S('float32',(3,4),1)*(S('int32',(3,4),7)>0)), S('float32',(4,),3)))",
        f=functions,
    )
    yield from filled(
        "(lambda y: y.todense() if hasattr(y,'todense') else y)(sparse.<g>(lambda m: <f>)(sparse.BCOO.fromdense(S('float32',(3,4),1)*(S('int32',(3,4),7)>0))))",
        g=("grad", "jacfwd", "jacrev"),
        f=("(m@S('float32',(4,),3)).sum()", "m.sum()", "((m*2)@jnp.ones((4,2))).sum()", "(m@jnp.ones(4))**2"),
    )
    yield from filled(
        "sparse.linalg.spsolve(*(lambda a: (a.data, a.indices, a.indptr))(sparse.BCSR.fromdense(S('float32',(4,4),1)*(S('int32',(4,4),7)>0)+5*jnp.eye(4))), "
        "S('float32',(4,),2)<rest>)",
        rest=("", ", tol=1e-5", ", reorder=0", ", reorder=1"),
    )


SMOOTH = ("jnp.sin(x)", "jnp.cos(x)", "jnp.exp(x)", "jnp.log(x)", "jnp.tanh(x)", "jnp.sqrt(x)", "x**3", "x**2.5", "2.0**x", "x**x", "1/x", "x/(x*x+1)", "x*x*x",
          "jnp.log1p(x)", "jnp.expm1(x)", "jnp.sinh(x)", "jnp.cosh(x)", "jnp.tan(x)", "jnp.arctan(x)", "jnp.arcsin(x*0.5)", "jnp.arccos(x*0.5)", "jnp.arcsinh(x)",
          "jnp.arctanh(x*0.5)", "jax.nn.sigmoid(x)", "jax.nn.softplus(x)", "jax.nn.gelu(x)", "jax.nn.softmax(x)", "special.logsumexp(x)", "lax.erf(x)", "lax.erf_inv(x*0.4)",
          "lax.rsqrt(x)", "lax.cbrt(x)", "jnp.square(x)", "jnp.abs(x-0.5)", "jnp.maximum(x,0.5)", "jnp.where(x>0.5,x*x,x)", "jnp.sum(x*x)", "jnp.prod(x)", "jnp.cumsum(x*x)",
          "jnp.cumprod(x)", "jnp.max(x*x)", "jnp.sort(x*x)", "x[::-1]*x", "jnp.concatenate([x,x*x])", "jnp.pad(x*x,1)", "x.reshape(3,1)@x.reshape(1,3)", "jnp.dot(x,x)",
          "jnp.outer(x,jnp.sin(x))", "jnp.zeros(3).at[1].set(x[0]*x[1])", "jax.jit(jnp.sin)(x*x)", "lax.scan(lambda c,_: (c*x,c),x,None,length=2)[0]",
          "lax.cond(True,lambda x: x*x,lambda x: x,x)", "lax.fori_loop(0,3,lambda i,c: c*x,x)", "jax.vmap(lambda a: a*a*a)(x)", "jnp.fft.fft(x*x)", "lax.logistic(x*x)",
          "jnp.atan2(x,x+1)", "jnp.hypot(x,2*x)", "jnp.logaddexp(x,x*x)", "jnp.linalg.det(jnp.outer(x,x)+jnp.eye(3))", "jnp.mean(x)", "jnp.var(x)", "jnp.linalg.norm(x)",
          "lax.integer_pow(x,-2)", "lax.lgamma(x+1)", "lax.digamma(x+1)", "jnp.sinc(x)", "x.astype('float16')", "lax.complex(x,x*x)", "jnp.floor(x*3)", "lax.stop_gradient(x)*x")  # fmt: skip


@family(
    2e-3,
    {
        "jnp.sin, (1.0,), ((1.0, 0.0),)": "the second term by Python numbers is weakly typed in JAX",
        "jnp.sin, (1.0, 2.0), ([1.0],)": "a series is missing",
        "[1.0, jnp.ones(2)]": "a term has the shape of what it belongs to",
        "jnp.sin, (1,), ([1],)": "integers have no terms here",
    },
)
def taylor():
    terms = "[S('float32',<n>,2), S('float32',<n>,3,-1,1), S('float32',<n>,4,-1,1), S('float32',<n>,5,-1,1)]"
    yield from filled(
        "jet.jet(lambda x: <f>, (S('float32',(3,),1,0.2,0.9),), (" + terms.replace("<n>", "(3,)") + "[:<k>],))",
        f=SMOOTH,
        k=(1, 2, 3, 4),
    )
    yield from filled(
        "jax.jit(lambda x: jet.jet(lambda x: <f>, (x,), ([x, x*0],)))(S('float32',(3,),1,0.2,0.9))", f=SMOOTH
    )
    yield from filled(
        "jet.jet(lambda x, y: <f>, (S('float32',(),1,0.2,0.9), S('float32',(),2,0.2,0.9)), ("
        + terms.replace("<n>", "()")
        + "[:<k>], "
        + terms.replace("<n>", "()")
        + "[:<k>]))",
        f=(
            "x*y",
            "x/y",
            "x**y",
            "x+y",
            "x-y",
            "jnp.maximum(x,y)",
            "jnp.sin(x)*jnp.exp(y)",
            "(x, y*y)",
            "{'a': x*y}",
            "jnp.atan2(x,y)",
            "x",
        ),
        k=(1, 2, 3),
    )
    yield from filled(
        "jet.jet(jnp.sin, <a>)",
        a=(
            "(1.0,), ([1.0],)",
            "(1.0,), ((1.0, 0.0),)",
            "(1.0,), (1.0,)",
            "(1.0, 2.0), ([1.0],)",
            "(1.0,), ([1.0, jnp.ones(2)],)",
            "(jnp.ones(2),), ([jnp.ones(3)],)",
            "1.0, [1.0]",
            "(1,), ([1],)",
            "(1.0,), ([],)",
        ),
    )


@family(
    2e-4,
    {
        "make_schedule('a')": "a function of no name",
        "pack_optimizer_state(": "a list for a tuple",
        "optimizers.adam(0.1), S('float16'": "one unit in the last place of float16",
    },
)
def optimizers():
    made = (
        "sgd(0.1)",
        "momentum(0.1, 0.9)",
        "nesterov(0.1, 0.9)",
        "adagrad(0.1)",
        "rmsprop(0.1)",
        "rmsprop_momentum(0.1)",
        "adam(0.1)",
        "adamax(0.1)",
        "sm3(0.1)",
        "adam(0.1, b1=0.5, b2=0.9, eps=1e-3)",
        "adagrad(0.1, momentum=0.5)",
        "rmsprop(0.1, gamma=0.5)",
        "sgd(optimizers.exponential_decay(0.1, 2, 0.5))",
        "sgd(optimizers.inverse_time_decay(0.1, 2, 0.5))",
        "sgd(optimizers.inverse_time_decay(0.1, 2, 0.5, True))",
        "sgd(optimizers.polynomial_decay(0.1, 3, 0.01))",
        "sgd(optimizers.polynomial_decay(0.1, 3, 0.01, 2.0))",
        "sgd(optimizers.piecewise_constant([1,2],[0.1,0.2,0.3]))",
        "sgd(lambda i: 0.1/(i+1))",
        "sgd(optimizers.constant(0.1))",
        "sgd('x')",
    )
    params = (
        "S('float32',(3,),1)",
        "{'a': S('float32',(2,),1), 'b': [S('float32',(2,2),2)]}",
        "(S('float32',(),1), None)",
        "S('float16',(3,),1)",
        "1.0",
    )
    yield from filled("(lambda o, p: o[2](o[1](1, p, o[1](0, p, o[0](p)))))(optimizers.<o>, <p>)", o=made, p=params)
    yield from filled(
        "optimizers.<f>",
        f=(
            "clip_grads(S('float32',(3,),1), 0.5)",
            "l2_norm({'a': S('float32',(3,),1)})",
            "clip_grads({'a': S('float32',(3,),1), 'b': 1.0}, 9.0)",
            "constant(0.5)(3)",
            "make_schedule(0.5)(1)",
            "make_schedule('a')",
            "exponential_decay(1.0, 10, 0.9)(5)",
            "piecewise_constant([1,2],[1.0,2.0])",
            "piecewise_constant([1,2],[1.0,2.0,3.0])(jnp.int32(2))",
            "polynomial_decay(1.0, 10, 0.1)(20)",
            "unpack_optimizer_state(optimizers.adam(0.1)[0](S('float32',(3,),1))).subtree",
            "pack_optimizer_state(optimizers.unpack_optimizer_state(optimizers.sgd(0.1)[0](S('float32',(3,),1))))",
        ),
    )


@family(
    2e-3,
    {
        "Conv(2": "sizes are Python's integers here and NumPy's in JAX",
        "GeneralConv(": "as above",
        "ConvTranspose(2": "as above",
    },
)
def layers():
    made = (
        "Dense(4)",
        "Relu",
        "Tanh",
        "Sigmoid",
        "Softplus",
        "LogSoftmax",
        "Softmax",
        "Elu",
        "LeakyRelu",
        "Gelu",
        "Exp",
        "Selu",
        "Identity",
        "Flatten",
        "BatchNorm(axis=0)",
        "BatchNorm(axis=(0,), center=False)",
        "Dropout(0.5, mode='test')",
        "FanOut(2)",
        "serial(stax.Dense(4), stax.Relu, stax.Dense(2))",
        "serial(stax.FanOut(2), stax.parallel(stax.Dense(4), stax.Dense(4)), stax.FanInSum)",
        "serial(stax.FanOut(2), stax.parallel(stax.Identity, stax.Dense(3)), stax.FanInConcat())",
        "shape_dependent(lambda s: stax.Dense(s[-1]))",
        "elementwise(jnp.sin)",
    )
    yield from filled(
        "(lambda l: (lambda s, p: (s, l[1](p, S('float32',<n>,1), rng=random.key(1))))(*l[0](random.PRNGKey(0), <n>)))(stax.<l>)",
        l=made,
        n=("(2,3)", "(4,3)"),
    )
    images = (
        "Conv(2,(3,3))",
        "Conv(2,(3,3),strides=(2,2),padding='SAME')",
        "MaxPool((2,2))",
        "AvgPool((2,2))",
        "SumPool((2,2))",
        "MaxPool((2,2),strides=(2,2),padding='SAME')",
        "BatchNorm()",
        "Flatten",
        "ConvTranspose(2,(3,3))",
        "GeneralConv(('NHWC','HWIO','NHWC'),2,(3,3))",
        "Conv1DTranspose(2,(3,))",
        "serial(stax.Conv(2,(3,3)), stax.Relu, stax.MaxPool((2,2)), stax.Flatten, stax.Dense(3))",
    )
    yield from filled(
        "(lambda l: (lambda s, p: (s, l[1](p, S('float32',<n>,1))))(*l[0](random.key(0), <n>)))(stax.<l>)",
        l=images,
        n=("(2,5,6,3)", "(1,8,8,1)"),
    )


@family(
    2e-3,
    {
        **{
            f"random.{f}(random.key({k}), {a}, shape={n}, dtype='bfloat16'": "the last places of bfloat16, by another order of rounding"
            for f, k, a in (
                ("chisquare", 0, "3.0"),
                ("f", 0, "3.0, 5.0"),
                ("t", 0, "3.0"),
                ("double_sided_maxwell", 7, "0.5, 2.0"),
                ("multivariate_normal", 7, "jnp.array([1.0,2.0]), jnp.array([[2.0,0.3],[0.3,1.0]])"),
            )
            for n in ("()", "(3,)", "(2,3)", "3")
        },
        "wald(random.key(0), 1.5, shape=(), dtype='float16'": "as above, of float16",
    },
)
def draws():
    names = {
        "ball": "3",
        "bernoulli": "0.3",
        "beta": "2.0, 0.7",
        "binomial": "7.0, 0.4",
        "bits": "",
        "categorical": "jnp.log(jnp.array([0.2,0.5,0.3]))",
        "cauchy": "",
        "chisquare": "3.0",
        "choice": "5",
        "dirichlet": "jnp.array([0.5,2.0,1.0])",
        "double_sided_maxwell": "0.5, 2.0",
        "exponential": "",
        "f": "3.0, 5.0",
        "gamma": "0.7",
        "generalized_normal": "1.5",
        "geometric": "0.2",
        "gumbel": "",
        "laplace": "",
        "loggamma": "0.6",
        "logistic": "",
        "lognormal": "",
        "maxwell": "",
        "multivariate_normal": "jnp.array([1.0,2.0]), jnp.array([[2.0,0.3],[0.3,1.0]])",
        "normal": "",
        "pareto": "2.0",
        "permutation": "6",
        "poisson": "4.0",
        "rademacher": "",
        "randint": None,
        "rayleigh": "1.5",
        "t": "3.0",
        "triangular": "0.0, 0.5, 2.0",
        "truncated_normal": "-1.0, 0.5",
        "uniform": "",
        "wald": "1.5",
        "weibull_min": "1.0, 2.0",
        "orthogonal": "3",
    }
    integers = {
        "bits": "'uint8' 'uint16' 'uint32'",
        "poisson": "'int32' 'int16' 'uint8'",
        "geometric": "'int32' 'int16'",
        "rademacher": "'int8' 'int32'",
        "randint": "'int32' 'uint8' 'int16'",
    }
    no_dtype = "bernoulli categorical choice permutation".split()
    for name, args in names.items():
        if name in ("randint", "permutation"):
            continue
        given = f", {args}" if args else ""
        dtypes = (
            [""]
            if name in no_dtype
            else [f", dtype={d}" for d in integers.get(name, "'float32' 'bfloat16' 'float16'").split()]
        )
        keyword = "shape" if name not in ("choice", "geometric") else "shape"
        yield from filled(
            "random.<f>(random.key(<s>)<a>, <k>=<n><d>)",
            f=[name],
            s=(0, 7),
            a=[given],
            k=[keyword],
            n=("()", "(3,)", "(2,3)", "(0,)", "3"),
            d=dtypes,
        )
        yield from filled(
            "jax.<w>(lambda k: random.<f>(k<a>, shape=(2,)))(<k>)",
            w=("vmap", "jit"),
            f=[name],
            a=[given],
            k=("random.split(random.key(3), 3)", "random.key(4)"),
        )
        yield from filled(
            "random.<f>(<k><a>)",
            f=[name],
            a=[given],
            k=(
                "random.PRNGKey(1)",
                "random.key(1, impl='rbg')",
                "1",
                "jnp.zeros(3,'uint32')",
                "random.split(random.key(0))",
                "None",
            ),
        )
    yield from filled(
        "random.randint(random.key(<s>), <n>, <lo>, <hi>, <d>)",
        s=(0, 5),
        n=("(3,)", "(2,2)"),
        lo=(0, -3, "jnp.array(2)"),
        hi=(5, 300, "jnp.array(9)"),
        d=("'int32'", "'uint8'", "'int16'", "'int8'", "'int4'", "'uint4'", "'float32'"),
    )
    yield from filled(
        "random.permutation(random.key(<s>), <x>, axis=<a>, independent=<i>)",
        s=(0, 5),
        x=("S('float32',(3,4),1)", "6", "jnp.arange(5)"),
        a=(0, 1, -1),
        i=(True, False),
    )
    yield from filled(
        "random.choice(random.key(<s>), <x>, <n>, replace=<r>, p=<p>)",
        s=(0, 5),
        x=("5", "jnp.arange(5.0)", "jnp.ones((5,2))"),
        n=("()", "(3,)", "(2,2)", "(6,)"),
        r=(True, False),
        p=("None", "jnp.arange(5.0)/10", "jnp.ones(4)"),
    )
    yield from filled(
        "random.categorical(random.key(0), S('float32',(3,4),1), axis=<a>, shape=<s>, replace=<r>)",
        a=(-1, 0),
        s=("None", "(3,)", "(2,3)", "(4,)", "(2,4)", "(3,3)"),
        r=(True, False),
    )
    yield from filled(
        "random.multinomial(random.key(0), <n>, <p>, shape=<s>)",
        n=("10", "jnp.array([5.0,8.0])", "0"),
        p=("jnp.array([0.2,0.8])", "jnp.ones((2,3))/3"),
        s=("None", "(2,2)", "(2,3)", "(4,2,2)"),
    )
    yield from filled(
        "jax.grad(lambda a: random.<f>(random.key(2), a<r>).sum())(1.5)",
        f="gamma loggamma chisquare t rayleigh pareto generalized_normal".split(),
        r=("", ", (3,)"),
    )
    yield from filled(
        "random.key_data(random.<f>)",
        f=(
            "key(0)",
            "key(2**32+5)",
            "key(-1)",
            "key(jnp.int32(3))",
            "key(np.uint8(3))",
            "key('a')",
            "key(1.5)",
            "key(True)",
            "key(0, impl='rbg')",
            "key(0, impl='unsafe_rbg')",
            "key(0, impl='wrong')",
            "split(random.key(0), 3)",
            "split(random.key(0), (2,2))",
            "split(random.key(0), 0)",
            "split(random.key(0), -1)",
            "fold_in(random.key(0), 3)",
            "fold_in(random.key(0), -3)",
            "fold_in(random.key(0), 2.0)",
            "fold_in(random.key(0), jnp.arange(2))",
            "clone(random.key(0))",
            "wrap_key_data(jnp.array([1,2],'uint32'))",
            "wrap_key_data(jnp.array([1,2]))",
            "wrap_key_data(jnp.zeros((3,2),'uint32'))",
            "wrap_key_data(jnp.zeros(3,'uint32'))",
            "wrap_key_data(jnp.zeros(4,'uint32'), impl='rbg')",
            "key(jnp.arange(2))",
            "key(np.array([1]))",
        ),
    )
    keys = "random.split(random.key(0), 4)"
    yield from filled(
        "(lambda k: random.key_data(<f>))(" + keys + ")",
        f=(
            "k[1]",
            "k[::2]",
            "k[jnp.array([0,3])]",
            "k[jnp.array([0,9])]",
            "k.reshape(2,2)",
            "k.ravel()",
            "jnp.concatenate([k,k])",
            "jnp.stack([k,k])",
            "jnp.where(jnp.array([True,False,True,False]),k,k[::-1])",
            "jnp.flip(k)",
            "jnp.roll(k,1)",
            "jnp.tile(k,2)",
            "jnp.repeat(k,2)",
            "jnp.expand_dims(k,0)",
            "jnp.squeeze(k[None])",
            "k.at[0].set(k[1])",
            "jnp.broadcast_to(k[0],(3,))",
            "jnp.take(k,jnp.array([1,2]))",
            "jnp.full_like(k,k[0])",
            "jnp.zeros_like(k)",
            "jnp.empty_like(k)",
            "jnp.transpose(k.reshape(2,2))",
            "jnp.swapaxes(k.reshape(2,2),0,1)",
            "lax.dynamic_slice(k,(1,),(2,))",
            "lax.rev(k,(0,))",
            "jnp.array(k)",
            "jnp.asarray(k)",
            "jnp.copy(k)",
            "jnp.array([k[0],k[1]])",
            "k.T",
            "k.flatten()",
            "jnp.atleast_2d(k)",
            "lax.select(jnp.ones(4,bool),k,k)",
            "jnp.split(k,2)[0]",
            "jnp.moveaxis(k.reshape(2,2),0,1)",
            "k.at[jnp.array([0,9])].get(mode='fill')",
            "jnp.sort(k)",
            "k+1",
            "jnp.sum(k)",
            "-k",
            "k*k",
            "jnp.isclose(k,k)",
            "k<k",
            "jnp.abs(k)",
            "float(k[0])",
            "k.astype('int32')",
        ),
    )
    yield from filled(
        "(lambda k: <f>)(" + keys + ")",
        f=(
            "k==k",
            "k!=k",
            "(k==k[0])",
            "jnp.issubdtype(k.dtype, jax.dtypes.prng_key)",
            "jnp.issubdtype(k.dtype, jax.dtypes.extended)",
            "jnp.issubdtype(k.dtype, jnp.integer)",
            "jnp.issubdtype(k.dtype, np.generic)",
            "k.shape",
            "k.ndim",
            "k.size",
            "len(k)",
            "str(k.dtype)",
            "random.key_impl(k) is not None",
            "k.nbytes",
            "k.itemsize",
            "k.dtype.itemsize",
            "k.dtype.name",
            "jnp.shape(k)",
            "jnp.size(k)",
            "jnp.ndim(k)",
            "jax.eval_shape(lambda k: k, k)",
            "bool(k[0]==k[0])",
            "np.asarray(k)",
            "k.item(0)",
        ),
    )


@family(2e-3, {", unique_indices=True": "what repeated indices give that are said not to repeat is undefined"})
def segments():
    for f in ("segment_sum", "segment_prod", "segment_max", "segment_min"):
        yield from filled(
            "ops.<f>(S(<d>,<n>,1), <i><rest>)",
            f=[f],
            d=("'float32'", "'int32'", "'uint8'", "'bfloat16'", "'bool'"),
            n=("(6,)", "(6,2)"),
            i=("jnp.array([0,0,1,3,1,0])", "jnp.array([0,0,1,1,2,2])", "jnp.array([0,-1,1,9,1,0])"),
            rest=("", ", num_segments=3", ", num_segments=5, indices_are_sorted=True"),
        )
        yield from filled(
            "ops.<f>(S('float32',(6,),1), jnp.array([0,0,1,1,2,2]), num_segments=<k><rest>)",
            f=[f],
            k=(0, 1, 3, 4),
            rest=(
                ", bucket_size=2",
                ", unique_indices=True",
                ", mode='drop'",
                ", mode='clip'",
                ", mode='promise_in_bounds'",
                ", mode='wrong'",
            ),
        )
        yield from filled(
            "ops.<f>(<x>, jnp.array([[0,1],[1,2]]), 3)",
            f=[f],
            x=("1.0", "jnp.ones(2)", "jnp.ones((2,2,3))", "jnp.ones((2,1))", "2"),
        )
        yield from filled(
            "jax.grad(lambda x: T(ops.<f>(x, jnp.array([0,2,1,0]), 3)))(S('float32',<n>,1))", f=[f], n=("(4,)", "(4,2)")
        )
        yield from filled(
            "jax.vmap(lambda x, i: ops.<f>(x, i, 3), in_axes=<a>)(S('float32',<n>,1), <i>)",
            f=[f],
            a=("(0,None)", "(None,0)", "(0,0)"),
            n=("(2,2)", "(2,)"),
            i=("jnp.array([[0,2],[1,1]])", "jnp.array([1,2])"),
        )


@family(
    1e-5,
    {"r[5]": "a place outside is refused here where nothing uses it, too", "r + 1": "a TypeError, as of other objects"},
)
def refs():
    body = (
        "r[...] += x",
        "r[0] = x[0]",
        "r[:2] = x[:2]",
        "r[1] += 2.0",
        "r[...] = r[...] * x",
        "jax.ref.addupdate(r, slice(None), x)",
        "jax.ref.swap(r, 0, x[1])",
        "x.sum()",
        "r[jnp.array([0,2])] = x[:2]",
        "r[x.argmax()] = 0.0",
        "r[5]",
        "r[...] = x[:2]",
        "r[...] = x.astype('int32')",
        "r + 1",
        "jnp.sin(r)",
        "r[None]",
    )
    prefix = "exec('def f(r, x):\\n    {b}\\n    return x * r[...]', g) or "
    for b in body:
        quoted = b.replace("'", '"')
        run = "(lambda g: " + prefix.format(b=quoted)
        for way in (
            "g['f'](r, x)",
            "jax.jit(g['f'])(r, x)",
            "jax.jit(lambda x: g['f'](r, x))(x)",
            "lax.scan(lambda c, y: (c, g['f'](r, y)), 0, jnp.stack([x, x]))[1]",
            "lax.fori_loop(0, 2, lambda i, c: c + g['f'](r, x), x)",
            "lax.cond(x[0] > -9, lambda: g['f'](r, x), lambda: x)",
            "jax.grad(lambda x: jnp.sum(x * x))(g['f'](r, x))",
        ):
            yield (
                run
                + "(lambda r, x: ("
                + way
                + ", r[...]))(jax.new_ref(jnp.arange(3.0)), S('float32',(3,),1)))({'jnp': jnp, 'jax': jax})"
            )
