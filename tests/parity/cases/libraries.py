"""The modules of scipy: over dtypes, shapes, modes, and with derivatives."""

from tests.parity.cases.written import families, filled

FLOATS = "'float32'", "'float16'", "'bfloat16'", "'complex64'"
ALL = (*FLOATS, "'int32'", "'uint8'", "'bool'")
MODES = "'full'", "'same'", "'valid'", "'wrong'"


FAMILIES = {}
family = families(FAMILIES)


@family(
    2e-2,
    {
        "istft(signal.stft(S('float32',(2,20)": "JAX gives as many times as there are rows",
        "signal.fftconvolve(S('int32',(4,5),1), S('int32',(2,3),2), mode='full'": "zeros that are rounded",
    },
)
def signal():
    for f in ("convolve", "correlate"):
        yield from filled(
            "signal.<f>(S(<d>,(<n>,),1), S(<e>,(<m>,),2), mode=<mode>)",
            f=[f],
            d=ALL,
            e=("'float32'", "'int32'"),
            n=(5,),
            m=(3,),
            mode=MODES[:3],
        )
        yield from filled(
            "signal.<f>(S(<d>,(<n>,),1), S(<d>,(<m>,),2), mode=<mode>, method=<how>)",
            f=[f],
            d=FLOATS[:1],
            n=(1, 4, 7),
            m=(1, 4, 6),
            mode=MODES,
            how=("'auto'", "'direct'", "'fft'"),
        )
        yield from filled("signal.<f>(S(<d>,(4,5),1), S(<d>,(2,3),2), mode=<mode>)", f=[f], d=FLOATS, mode=MODES)
        yield from filled(
            "jax.grad(lambda x: T(signal.<f>(x, S('float32',(3,),2), mode=<mode>)))(S('float32',(6,),1))",
            f=[f],
            mode=MODES[:3],
        )
    for f in ("convolve2d", "correlate2d"):
        yield from filled(
            "signal.<f>(S(<d>,<n>,1), S(<d>,<m>,2), mode=<mode>, boundary=<b>)",
            f=[f],
            d=ALL[:6],
            n=("(4,5)",),
            m=("(2,3)", "(4,5)", "(5,2)"),
            mode=MODES[:3],
            b=("'fill'",),
        )
        yield from filled(
            "signal.<f>(S('float32',(4,5),1), S('float32',(2,3),2), <rest>)",
            f=[f],
            rest=(
                "boundary='wrap'",
                "fillvalue=1.0",
                "boundary='symm'",
                "mode='wrong'",
                "boundary='fill', fillvalue=0",
            ),
        )
    yield from filled(
        "signal.fftconvolve(S(<d>,<n>,1), S(<d>,<m>,2), mode=<mode><axes>)",
        d=ALL[:6],
        n=("(4,5)", "(6,)"),
        m=("(2,3)", "(3,)"),
        mode=MODES[:3],
        axes=("", ", axes=0", ", axes=(0,1)", ", axes=-1"),
    )
    yield from filled(
        "signal.detrend(S(<d>,<n>,1), axis=<a>, type=<t>, bp=<bp>)",
        d=ALL,
        n=("(6,)", "(3,6)"),
        a=(-1, 0),
        t=("'linear'", "'constant'", "'wrong'"),
        bp=(0, "[3]"),
    )
    sizes = (
        "nperseg=8",
        "nperseg=8, noverlap=2",
        "nperseg=6, nfft=16",
        "nperseg=32",
        "window='boxcar', nperseg=8",
        "nperseg=8, noverlap=8",
    )
    for f, rates in (("stft", (10.0,)), ("welch", (1.0, 10.0))):
        yield from filled(
            "signal.<f>(S(<d>,<n>,1), fs=<fs>, <size>)",
            f=[f],
            d=("'float32'", "'complex64'", "'int32'"),
            n=("(20,)", "(2,20)"),
            fs=rates,
            size=sizes,
        )
    yield from filled(
        "signal.welch(S('float32',(2,24),1), nperseg=8, <rest>)",
        rest=(
            "detrend='linear'",
            "detrend=False",
            "return_onesided=False",
            "scaling='spectrum'",
            "average='median'",
            "axis=0",
            "axis=1",
            "scaling='wrong'",
            "average='wrong'",
            "detrend='constant', scaling='density'",
        ),
    )
    yield from filled(
        "signal.csd(S(<d>,<n>,1), S(<d>,<m>,2), fs=<fs>, <size>)",
        d=("'float32'", "'complex64'"),
        n=("(20,)", "(2,20)"),
        m=("(20,)", "(2,20)", "(12,)"),
        fs=(1.0, 10.0),
        size=sizes[:3],
    )
    yield from filled(
        "signal.istft(signal.stft(S('float32',<n>,1), <size>)[2], <size>)", n=("(20,)", "(2,20)"), size=sizes[:3]
    )
    yield from filled(
        "signal.stft(S('float32',(20,),1), nperseg=8, <rest>)",
        rest=(
            "boundary=None",
            "boundary='even'",
            "boundary='odd'",
            "boundary='constant'",
            "padded=False",
            "detrend='linear'",
            "return_onesided=False",
            "axis=0",
            "boundary='wrong'",
            "scaling='psd'",
        ),
    )


SQUARE = "(S(<d>,(3,3),1)+3*jnp.eye(3).astype(<d>))"
SPD = "(lambda a: a@jnp.conj(a).T + 2*jnp.eye(3).astype(a.dtype))(S(<d>,(3,3),1))"


@family(
    2e-2,
    {
        "slinalg.schur((S('float32'": "a tuple, where JAX gives a list",
        "slinalg.schur((S('complex64'": "as above",
        "slinalg.cholesky((S('complex64'": "the matrix is not positive definite, where JAX makes the diagonal's imaginary parts NaN too",
        "slinalg.cho_factor((S('complex64'": "as above",
        "slinalg.eigh_tridiagonal(S('float32',(4,),1), S('float32',(3,),2), eigvals_only=False": "eigenvectors have either sign",
        "slinalg.eigh_tridiagonal(S('float32',(1,),1)": "of one number JAX looks at no other argument",
    },
)
def dense():
    dtypes = "'float32'", "'complex64'", "'int32'"
    d = {"d": dtypes}
    yield from filled(
        "slinalg.solve(" + SQUARE + ", S(<d>,<b>,2)<rest>)",
        **d,
        b=("(3,)", "(3,2)", "(2,)"),
        rest=("", ", lower=True", ", assume_a='pos'", ", assume_a='sym'", ", assume_a='wrong'"),
    )
    yield from filled(
        "slinalg.solve_triangular(" + SQUARE + ", S(<d>,<b>,2), trans=<t>, lower=<l>, unit_diagonal=<u>)",
        **d,
        b=("(3,)", "(3,2)"),
        t=(0, 1, 2, "'N'", "'T'", "'C'"),
        l=(True, False),
        u=(True, False),
    )
    yield from filled(
        "slinalg.<f>(" + SQUARE + ")",
        **d,
        f="det inv lu lu_factor expm sqrtm funm rsf2csf schur hessenberg polar svd qr eigh "
        "cholesky cho_factor block_diag toeplitz bandwidth eigh_tridiagonal pascal hilbert invhilbert norm".split(),
    )
    yield from filled(
        "slinalg.cholesky(" + SPD + "<rest>)", **d, rest=("", ", lower=True", ", lower=False", ", overwrite_a=True")
    )
    yield from filled(
        "slinalg.cho_solve(slinalg.cho_factor(" + SPD + ", lower=<l>), S(<d>,<b>,2))",
        **d,
        l=(True, False),
        b=("(3,)", "(3,2)"),
    )
    yield from filled(
        "slinalg.eigh(" + SPD + ", eigvals_only=True<rest>)",
        **d,
        rest=("", ", lower=False", ", type=1", ", b=jnp.eye(3)"),
    )
    yield from filled("slinalg.eigvalsh_tridiagonal(S('float32',(4,),1), S('float32',(3,),2))")
    yield from filled(
        "slinalg.eigh_tridiagonal(S('float32',(<n>,),1), S('float32',(<m>,),2), eigvals_only=<v><rest>)",
        n=(4, 1),
        m=(3, 0),
        v=(True, False),
        rest=("", ", select='i', select_range=(0,1)", ", select='v', select_range=(-1.0,1.0)"),
    )
    yield from filled(
        "slinalg.expm(S(<d>,<n>,1)<rest>)",
        **d,
        n=("(3,3)", "(2,3,3)", "(2,3)", "(0,0)"),
        rest=("", "*5", ".astype('float32')*0.1"),
    )
    yield from filled(
        "slinalg.expm_frechet(S(<d>,(3,3),1)*0.3, S(<d>,(3,3),2)<rest>)",
        **d,
        rest=("", ", method='SPS'", ", compute_expm=False", ", method='blockEnlarge'"),
    )
    yield from filled(
        "jnp.abs(slinalg.svd(S(<d>,<n>,1), full_matrices=<f>, compute_uv=<c>)<take>)",
        **d,
        n=("(3,3)", "(2,4)"),
        f=(True, False),
        c=(True, False),
        take=("", "[0]", "[1]"),
    )
    yield from filled(
        "jnp.abs(slinalg.qr(S(<d>,<n>,1), mode=<m><p>)[<take>])",
        **d,
        n=("(3,3)", "(4,2)"),
        m=("'full'", "'r'", "'economic'", "'raw'"),
        p=("", ", pivoting=True"),
        take=(0, -1),
    )
    yield from filled(
        "slinalg.lu(S(<d>,<n>,1), permute_l=<p>)", **d, n=("(3,3)", "(2,3)", "(4,2)", "(2,3,3)"), p=(True, False)
    )
    yield from filled(
        "slinalg.lu_solve(slinalg.lu_factor(" + SQUARE + "), S(<d>,<b>,2), trans=<t>)",
        **d,
        b=("(3,)", "(3,2)"),
        t=(0, 1, 2),
    )
    yield from filled(
        "slinalg.block_diag(<a>)",
        a=("S('float32',(2,2),1), S('int32',(1,3),2)", "jnp.ones(2), 3.0", "", "jnp.ones((2,2,2)), jnp.ones(2)"),
    )
    yield from filled(
        "slinalg.toeplitz(S(<d>,<n>,1)<r>)",
        **d,
        n=("(3,)", "(2,3)", "()"),
        r=("", ", S(<d>,(4,),2)", ", S(<d>,(2,4),2)"),
    )
    yield from filled("slinalg.<f>(<n>)", f=("hilbert", "invhilbert"), n=(0, 1, 3, 5))
    yield from filled(
        "slinalg.pascal(<n><k>)", n=(0, 1, 4), k=("", ", 'symmetric'", ", 'lower'", ", kind='upper'", ", kind='wrong'")
    )
    yield from filled("slinalg.dft(<n>, <s>)", n=(1, 3), s=("None", "'sqrtn'", "'n'", "'wrong'"))
    yield from filled("slinalg.hadamard(<n><k>)", n=(1, 2, 4, 3), k=("", ", dtype='float32'"))
    yield from filled(
        "slinalg.<f>(S(<d>,<n>,1))",
        **d,
        f=("circulant", "companion", "hankel", "leslie", "fiedler", "helmert", "tri", "tril", "triu"),
        n=("(3,)", "(2,3)"),
    )
    yield from filled("slinalg.sqrtm(" + SPD + "<rest>)", **d, rest=("", ", blocksize=2"))
    yield from filled(
        "slinalg.polar(S(<d>,<n>,1)+jnp.eye(*<n>).astype(<d>), side=<s>)",
        **d,
        n=("(3,3)", "(4,2)"),
        s=("'right'", "'left'", "'wrong'"),
    )
    yield from filled("slinalg.solve_sylvester(" + SQUARE + ", " + SQUARE + ", S(<d>,(3,3),2))", **d)
    yield from filled("slinalg.funm(" + SPD + ", jnp.<f>, disp=<p>)", **d, f=("exp", "sqrt"), p=(True, False))
    yield from filled(
        "slinalg.norm(S(<d>,<n>,1)<rest>)",
        **d,
        n=("(3,)", "(2,3)"),
        rest=("", ", 2", ", 'fro'", ", axis=0", ", keepdims=True"),
    )
    yield from filled(
        "jax.grad(lambda a: T(slinalg.<f>(a + 3*jnp.eye(3))))(S('float32',(3,3),1))",
        f="det inv expm lu cholesky".split(),
    )
    yield from filled(
        "jax.grad(lambda a: T(slinalg.solve(a + 3*jnp.eye(3), S('float32',<b>,2))))(S('float32',(3,3),1))",
        b=("(3,)", "(3,2)"),
    )
    yield from filled(
        "jax.vmap(lambda a: slinalg.<f>(a + 3*jnp.eye(3)))(S('float32',(2,3,3),1))",
        f="det inv expm lu lu_factor cholesky".split(),
    )


@family(
    1e-3,
    {
        "S('float32',(3,3),1), method": "values that do not fit the points are refused here, JAX takes part of them",
        "S('complex64',(3,3),1), method": "as above",
        "S('int32',(3,3),1), method": "as above",
        "[jnp.ones(2)], order": "of several mistakes another is named first",
    },
)
def places():
    at = "[S('float32',<k>,2,-1,<hi>), S('float32',<k>,3,-1,4)]"
    yield from filled(
        "ndimage.map_coordinates(S(<d>,(3,4),1), " + at + ", order=<o>, mode=<m>, cval=<c>)",
        k=("(5,)", "(2,2)"),
        hi=(2, 4),
        d=("'float32'", "'int32'", "'complex64'", "'bfloat16'", "'uint8'"),
        o=(0, 1),
        m=("'constant'", "'nearest'", "'mirror'", "'wrap'", "'reflect'"),
        c=(0.0, 2),
    )
    yield from filled(
        "ndimage.map_coordinates(S('float32',(3,4),1), <at>, order=<o>, mode=<m>)",
        at=("[jnp.ones(2)]", "jnp.ones((2,3))", "[0, 1]", "[[0.5,1],[2,1]]", "[jnp.arange(2), jnp.arange(2)]"),
        o=(0, 1, 2),
        m=("'constant'", "'wrong'"),
    )
    yield from filled(
        "jax.grad(lambda x: T(ndimage.map_coordinates(x, [S('float32',(4,),2,0,2), S('float32',(4,),3,0,3)], order=1, mode=<m>)))"
        "(S('float32',(3,4),1))",
        m=("'constant'", "'nearest'", "'mirror'", "'wrap'", "'reflect'"),
    )
    yield from filled(
        "interpolate.RegularGridInterpolator((jnp.arange(3.0), jnp.array([0.0,1.0,4.0,5.0])), S(<d>,<v>,1), method=<m>, "
        "bounds_error=<b>, fill_value=<f>)(S('float32',<x>,2,-0.5,2.5))",
        d=("'float32'", "'complex64'", "'int32'"),
        v=("(3,4)", "(3,4,2)", "(3,3)"),
        m=("'linear'", "'nearest'", "'wrong'"),
        b=(False, True),
        f=("jnp.nan", "None", 0.0),
        x=("(5,2)", "(2,)"),
    )
    yield from filled(
        "integrate.trapezoid(S(<d>,<n>,1)<x>, axis=<a>)",
        d=("'float32'", "'complex64'", "'int32'", "'float16'", "'bool'"),
        n=("(4,)", "(3,4)", "(4,1)"),
        x=("", ", dx=0.5", ", S('float32',(4,),2)", ", jnp.arange(4)"),
        a=(-1, 0),
    )
    yield from filled(
        "cluster.vq(S(<d>,<n>,1), S(<e>,<m>,2))",
        d=("'float32'", "'int32'", "'float16'"),
        e=("'float32'", "'int32'"),
        n=("(5,2)", "(5,)", "(5,3)"),
        m=("(3,2)", "(3,)", "(3,3)"),
    )


@family(
    2e-3,
    {
        "s=(3,), axes=(0,1)": "as many sizes as axes are asked for, as in SciPy",
        "s=(3,2), axes=(0,)": "as above",
        "s=(3,2), axes=-1": "as above",
        "fft.idct(S('float16'": "computed in float32 here",
    },
)
def transforms():
    yield from filled(
        "fft.<f>(S(<d>,<n>,1), type=<t>, n=<s>, axis=<a>, norm=<norm>)",
        f=("dct", "idct"),
        d=("'float32'", "'float16'", "'int32'"),
        n=("(5,)", "(2,4)"),
        t=(2, 3),
        s=("None", 3, 6),
        a=(-1, 0),
        norm=("None", "'ortho'"),
    )
    yield from filled(
        "fft.<f>(S('float32',<n>,1), s=<s>, axes=<a>, norm=<norm>)",
        f=("dctn", "idctn"),
        n=("(5,)", "(2,4)", "(2,3,4)"),
        s=("None", "(3,)", "(3,2)"),
        a=("None", "(0,)", "(0,1)", "-1"),
        norm=("None", "'ortho'", "'wrong'"),
    )
    yield from filled(
        "jax.grad(lambda x: T(fft.<f>(x, norm=<norm>)))(S('float32',(5,),1))",
        f=("dct", "idct", "dctn", "idctn"),
        norm=("None", "'ortho'"),
    )


ROTATIONS = (
    "rotation.Rotation.from_quat(S('float32',<n>,1))",
    "rotation.Rotation.from_rotvec(S('float32',<r>,1))",
    "rotation.Rotation.from_euler('xyz', S('float32',<r>,1))",
    "rotation.Rotation.from_mrp(S('float32',<r>,1))",
    "rotation.Rotation.from_matrix(rotation.Rotation.from_rotvec(S('float32',<r>,1)).as_matrix())",
)


@family(1e-3)
def rotations():
    n = [r.replace("<n>", a).replace("<r>", b) for r in ROTATIONS for a, b in (("(4,)", "(3,)"), ("(2,4)", "(2,3)"))]
    yield from filled(
        "<r>.<m>",
        r=n,
        m=(
            "as_quat()",
            "as_quat(canonical=True)",
            "as_matrix()",
            "as_rotvec()",
            "as_rotvec(degrees=True)",
            "as_mrp()",
            "as_euler('xyz')",
            "as_euler('ZYX')",
            "as_euler('zyx', degrees=True)",
            "as_euler('xzx')",
            "inv().as_quat()",
            "magnitude()",
            "apply(S('float32',(3,),2))",
            "apply(S('float32',(2,3),2), inverse=True)",
            "mean().as_matrix()",
            "single",
            "__len__()",
            "as_euler('wrong')",
            "apply(S('float32',(2,),2))",
        ),
    )
    yield from filled("(<r> * rotation.Rotation.from_rotvec(S('float32',(3,),5))).as_matrix()", r=n)
    yield from filled(
        "rotation.Rotation.from_euler(<s>, S('float32',<n>,1), degrees=<d>).as_matrix()",
        s=("'x'", "'z'", "'xy'", "'XYZ'", "'zxz'", "'xYz'", "'q'"),
        n=("()", "(1,)", "(2,)", "(3,)", "(2,3)", "(2,1)"),
        d=(True, False),
    )
    yield from filled(
        "rotation.Slerp(jnp.arange(3.0), rotation.Rotation.from_rotvec(S('float32',(3,3),1)))(<t>).as_quat()",
        t=("0.5", "jnp.array([0.0,0.25,1.5])", "2.0", "jnp.array([1])"),
    )
    yield from filled("rotation.Rotation.identity(<n>).as_quat()", n=("", 1, 3))
    yield from filled("rotation.Rotation.concatenate([<r>, <r>]).as_quat()", r=[r for r in n if "(2," in r])
    yield from filled(
        "jax.grad(lambda v: T(rotation.Rotation.from_rotvec(v).<m>))(S('float32',(3,),1))",
        m=("as_matrix()", "as_quat()", "as_euler('xyz')", "magnitude()"),
    )


@family(
    2e-3,
    {
        "((x-1.0)**4).sum() + (x**2).sum(), S('float32',(3,),1)": "whether the last search along a line succeeds is rounding",
        "-y*y, S('float32',(),1)": "the solution has a pole before the last time",
        "(x**2).sum(), 1.0, method='BFGS'": "a TypeError says that a number is no array, where JAX asks it for its shape",
    },
)
def solvers():
    a = "(lambda a: a@a.T + 3*jnp.eye(4))(S('float32',(4,4),1))"
    for f in ("cg", "bicgstab", "gmres"):
        yield from filled(
            "iterative.<f>(<a>, S('float32',<b>,2)<rest>)[0]",
            f=[f],
            a=[a, "lambda x: 2*x"],
            b=("(4,)",),
            rest=(
                "",
                ", x0=jnp.ones(4)",
                ", tol=1e-6",
                ", atol=1e-3",
                ", maxiter=50",
                ", M=lambda x: x/2",
                ", M=jnp.eye(4)",
                ", x0=jnp.ones(3)",
            ),
        )
        yield from filled(
            "iterative.<f>(lambda t: {'a': 2*t['a'], 'b': t['b']+t['a'].sum()*0}, {'a': S('float32',(2,),1), 'b': S('float32',(3,),2)})[0]",
            f=[f],
        )
        yield from filled("jax.grad(lambda b: T(iterative.<f>(<a>, b)[0]))(S('float32',(4,),2))", f=[f], a=[a])
        yield from filled("jax.vmap(lambda b: iterative.<f>(<a>, b)[0])(S('float32',(2,4),2))", f=[f], a=[a])
    yield from filled(
        "iterative.gmres(<a>, S('float32',(4,),2), solve_method=<m>, restart=<r>)[0]",
        a=[a],
        m=("'batched'", "'incremental'", "'wrong'"),
        r=(1, 4, 20),
    )
    yield from filled(
        "(lambda r: (r.x, r.success))(optimize.minimize(lambda x: <f>, S('float32',<n>,1), method=<m>, tol=<t>))",
        f=("((x-1.0)**2).sum()", "((x-1.0)**4).sum() + (x**2).sum()"),
        n=("(3,)", "(1,)"),
        m=("'BFGS'",),
        t=("None", "1e-3"),
    )
    yield from filled(
        "optimize.minimize(lambda x: (x**2).sum(), <x>, method=<m>).x",
        x=("jnp.ones((2,2))", "jnp.ones(2)", "1.0"),
        m=("'wrong'", "'BFGS'"),
    )
    yield from filled(
        "ode.odeint(lambda y, t: <f>, S('float32',<n>,1), jnp.array([0.0,0.3,1.0])<rest>)",
        f=("-y", "jnp.sin(y)*t", "-y*y"),
        n=("()", "(2,)"),
        rest=("", ", rtol=1e-4", ", mxstep=50", ", hmax=0.1"),
    )
