"""Functions on small arrays outside `jit`, one line each: half should take 0.3 of JAX's time or less, none more than JAX."""

from benchmarks.case import case

LIMIT = 1.05

# The operands are v and w, 8 floats; m and k, 16 by 16; s, 8 by 8; p, 16 by 16 and positive definite; i, 8 integers; b, 8 booleans;
# z, 8 complex numbers; e, 8 edges; key, a random key; x is the library.
EXPRESSIONS = """
v + w|v - w|v * w|v / w|v ** 2|v ** 0.5|v // w|v % w|-v|abs(v)|v > w|v == w|b & b|~b|i + 1|i * i|i // 3|i % 3|i << 2
np.sin(v)|np.exp(v)|np.log(v)|np.sqrt(v)|np.tanh(v)|np.square(v)|np.maximum(v, w)|np.minimum(v, 1.0)|np.clip(v, 0.6, 1.2)
np.arctan2(v, w)|np.hypot(v, w)|np.sign(v)|np.floor(v)|np.round(v, 1)|np.isnan(v)|np.isfinite(v)|np.logical_not(b)
np.logaddexp(v, w)|np.abs(z)|np.conj(z)|np.real(z)|np.power(v, w)|np.exp2(v)|np.log1p(v)|np.reciprocal(v)
m.sum()|m.sum(1)|m.mean()|m.mean(0)|m.max()|m.min(1)|m.prod()|m.std()|m.var(0)|np.any(b)|np.all(b)|m.argmax()|m.argmin(1)
np.cumsum(v)|np.cumprod(v)|np.median(v)|np.sort(v)|np.argsort(v)|np.linalg.norm(v)|np.count_nonzero(b)|np.ptp(v)
np.average(v)|np.nansum(v)|np.nanmean(v)|np.unique(i)|np.searchsorted(v, w)|np.bincount(i)|np.diff(v)|np.quantile(v, 0.3)
m.T|m.reshape(256)|m.reshape(4, -1)|m.ravel()|np.transpose(m, (1, 0))|np.swapaxes(m, 0, 1)|np.expand_dims(v, 0)|v[None]|v[:, None]
np.squeeze(v[None])|np.stack([v, w])|np.vstack([v, w])|np.hstack([v, w])|np.concatenate([m, k], 1)|np.split(m, 4)|np.tile(v, 3)
np.repeat(v, 3)|np.flip(v)|np.roll(v, 2)|np.pad(v, 2)|np.broadcast_to(v, (4, 8))|np.moveaxis(m, 0, 1)|np.triu(m)|np.diag(v)
m[2]|m[1:5, ::2]|m[:, 3]|v[i]|m[i, i]|v[b]|v[-1]|m.at[2].add(1.0)|v.at[i].add(1.0)|np.take(v, i)|np.take_along_axis(v, i, 0)
np.where(b, v, w)|np.where(b, v, 0.0)|np.nonzero(b)|np.argwhere(b)|np.isin(i, i)|np.select([b], [v], w)
np.dot(v, w)|s @ v|v @ w|m @ k|np.outer(v, w)|np.inner(v, w)|np.vdot(v, w)|np.kron(v, w)|np.tensordot(m, k, 1)|np.trace(m)
np.einsum("ij,ij->i", m, k)|np.cross(v[:3], w[:3])|np.linalg.det(m)|np.linalg.inv(m)|np.linalg.solve(m, m[0])
np.zeros(8)|np.ones((4, 4))|np.full(8, 2.0)|np.arange(8)|np.arange(0.0, 1.0, 0.1)|np.linspace(0, 1, 8)|np.eye(4)|np.zeros_like(v)
np.ones_like(m)|np.asarray([1.0, 2.0])|np.array(2.0)|np.meshgrid(v, w)|np.copy(v)|v.astype(int)|i.astype(float)|np.asarray(1)
np.fft.fft(v)|np.polyval(v, w)|np.interp(v, w, v)|np.convolve(v, w)|np.allclose(v, w)|np.array_equal(v, w)|np.vander(v)
float(v[0])|v.tolist()|v[0].item()|x.nn.relu(v)|x.nn.softmax(v)|x.nn.sigmoid(v)|x.lax.add(v, w)|x.lax.dot(m, k)|x.nn.one_hot(i, 8)
np.linalg.slogdet(m)|np.linalg.cholesky(p)|np.linalg.eigh(p)|np.linalg.eigvalsh(p)|np.linalg.svd(m)|np.linalg.qr(m)|np.linalg.pinv(m)
np.linalg.matrix_power(s, 3)|np.linalg.matrix_rank(m)|np.linalg.cond(m)|np.linalg.lstsq(m, m[0])|np.linalg.multi_dot([m, k, m])
np.fft.rfft(v)|np.fft.ifft(z)|np.fft.fft2(m)|np.fft.fftshift(v)|np.fft.fftfreq(8)|np.hanning(8)|np.kaiser(8, 2.0)|np.blackman(8)
np.union1d(i, i)|np.intersect1d(i, i)|np.setdiff1d(i, i[:3])|np.lexsort((v, w))|np.partition(v, 3)|np.argpartition(v, 3)|np.digitize(v, e)
np.polyfit(v, w, 1)|np.roots(v)|np.poly(v)|np.polyadd(v, w)|np.polymul(v, w)|np.polyder(v)|np.polyint(v)|np.gradient(v)|np.trapezoid(v)
np.correlate(v, w)|np.unwrap(v)|np.cov(m)|np.histogram(v)|np.nanmax(v)|np.nanstd(v)|np.nanmedian(v)|np.nan_to_num(v)|np.isclose(v, w)
np.divmod(v, w)|np.frexp(v)|np.gcd(i, i)|np.copysign(v, w)|np.fmax(v, w)|np.trunc(v)|np.sinc(v)|np.log2(v)|np.angle(z)|i >> 1
np.block([[m, k], [k, m]])|np.column_stack([v, w])|np.append(v, w)|np.insert(v, 2, 1.0)|np.delete(v, 2)|np.resize(v, (3, 4))|np.rot90(m)
np.diagonal(m)|np.atleast_2d(v)|np.array_split(v, 3)|np.packbits(b)|np.compress(b, v)|np.logspace(0, 1, 8)|np.geomspace(1.0, 8.0, 8)
x.nn.gelu(v)|x.nn.silu(v)|x.nn.elu(v)|x.nn.softplus(v)|x.nn.leaky_relu(v)|x.nn.log_softmax(v)|x.nn.standardize(v)|x.nn.logsumexp(v)
x.lax.dynamic_slice(v, (2,), (3,))|x.lax.top_k(v, 3)|x.lax.rsqrt(v)|x.lax.erf(v)|x.lax.select(b, v, w)|x.lax.sort(v)|x.lax.iota(int, 8)
x.random.split(key)|x.random.fold_in(key, 3)|x.random.normal(key, (8,))|x.random.uniform(key, (8,))|x.random.randint(key, (8,), 0, 9)
x.random.bernoulli(key, 0.5, (8,))|x.random.permutation(key, 8)|x.random.choice(key, v)|x.random.categorical(key, v)|x.random.gamma(key, v)
"""


def _register(text: str) -> None:
    code = compile(f"lambda: {text}", f"<{text}>", "eval")

    @case(text, "eager functions", LIMIT)
    def make(x):
        v, w = x.array(8), x.array(8, seed=1)
        np = x.np
        i, m = np.asarray([3, 1, 0, 5, 2, 7, 7, 4]), x.array(16, 16)
        return eval(
            code,
            {
                "x": x,
                "np": np,
                "v": v,
                "w": w,
                "m": m,
                "s": x.array(8, 8),
                "k": x.array(16, 16, seed=1),
                "i": i,
                "b": v > 1.0,
                "z": v + 1j * w,
                "p": m @ m.T + np.eye(16),
                "e": np.arange(8.0),
                "key": x.random.key(0),
            },
        )


for _line in EXPRESSIONS.strip().splitlines():
    for _text in _line.split("|"):
        _register(_text)
