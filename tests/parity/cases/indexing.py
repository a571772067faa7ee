"""Reading elements: every kind of index, on arrays of rank 0 to 4, in and out of bounds."""

import numpy as np

from tests.parity.case import Case, sample

ARRAYS = {
    "v": sample("float32", (6,), 40),
    "m": sample("int32", (3, 4), 41),
    "t": sample("float32", (2, 3, 4), 42),
    "s": sample("float32", (), 43),
    "z": sample("float32", (0, 3), 44),
    "q": sample("int8", (2, 3, 2, 4), 45),
    "c": sample("complex64", (3,), 46),
    "b": sample("bool", (4,), 47),
    "h": sample("bfloat16", (4, 2), 48),
}
I = {
    "i": np.array([2, 0, 1], np.int32),
    "n": np.array([-1, 1], np.int32),
    "far": np.array([0, 9, -9], np.int32),
    "grid": np.array([[0, 1], [1, 0]], np.int32),
    "u": np.array([1, 0], np.uint8),
    "none": np.zeros((0,), np.int32),
    "one": np.array(1, np.int32),
    "col": np.array([[1], [0]], np.int32),
    "flt": np.array([0.0, 1.0], np.float32),
    "big": np.array([2**30], np.int32),
}
MASKS = {
    "mv": np.array([1, 0, 1, 0, 0, 1], bool),
    "mm": np.arange(12).reshape(3, 4) % 3 == 0,
    "m3": np.array([1, 0, 1], bool),
    "m2": np.array([0, 1], bool),
    "m23": np.arange(6).reshape(2, 3) % 2 == 0,
    "m4": np.array([1, 1, 0, 1], bool),
}

STATIC = """
v[0] v[-1] v[5] v[6] v[-6] v[-7] v[100] v[1:4] v[:] v[::2] v[::-1] v[4:1:-1] v[4:1] v[-2:] v[:100] v[-100:2] v[5:0:-2]
v[::0] v[...] v[None] v[:,None] v[None,...,None] v[()] v[True] v[False] v[1.0] v["a"] v[0,0] v[None,0] v[...,0]
v[...,...] v[1:2.5] v[2:5:2] m[0] m[-1] m[3] m[0,0] m[-1,-1] m[:,1] m[1,:] m[:,-1] m[::2,::2] m[::-1] m[:,::-1]
m[1:,2:] m[...,0] m[0,...] m[None] m[:,None,:] m[0,1,2] m[True] m[False] m[True,0]  m[[0,1]]
m[[0,2],[1,3]] m[(0,1)] m[[True,False,True]] m[1:1] m[5:] m[:,10] t[0] t[0,1] t[0,1,2] t[...,1] t[:,0] t[:,:,::2]
t[0,...,1] t[...,None] t[1:,::-1,1:3] t[-1,-1,-1] t[0,:,None,1] t[...,0:2] t[2] t[:,[0,2]] t[:,[0,2],1]
t[[0,1],:,[0,1]] t[[0],[1],[2]] t[None,None] t[[[0,1],[1,0]]] t[0,0,0,0] t[1,None,2] t[...,-1,None] s[()] s[...]
s[None] s[0] s[:] s[True] s[False] s[None,None] s[...,None] z[0] z[:] z[:,1] z[...,0] z[None] z[:,::-1] z[-1]
q[0,...,1] q[:,1,:,2] q[1,:,0] q[...,1,2] q[:,:,[1,0]] q[[0,1],:,[0,1]] q[0,[0,2],:,[1,3]] q[:,[0,2],[1,0]]
q[::-1,::-1,::-1,::-1] c[1] c[::-1] c[[0,2]] b[1] b[::2] b[[0,0,1]] h[1] h[:,0] h[[3,0]] h[1:3,::-1]
m[slice(None,None,3)] v[slice(1,5,2)] v[slice(5,None,-3)] v[np.int64(2)] v[np.array(2)] v[np.array([1,2])] v[np.True_]
m[np.array([1,2]),1] m[1,np.array([1,2])] v[np.uint8(3)]  v[np.float32(1)] v[2:np.int32(4)] v[1j]
v[{"a":1}] v[object()] v[np.array(["a"])] v[[]] m[[]] m[[],1] v[(1,)] v[[1,[2]]] m[...,1,...] v[10:20] v[-1:-4:-1]
"""

ADVANCED = """
v[i] v[n] v[far] v[grid] v[u] v[none] v[one] v[flt] v[big] v[i,i] v[i][n] v[-i] v[i-3] m[i] m[n] m[far] m[grid] m[i,i]
m[i,1] m[1,i] m[i,:] m[:,i] m[i,:2] m[::2,i] m[i,None] m[None,i] m[i[:,None],i] m[col,i] m[grid,grid] m[far,0]
m[0,far] m[one] m[one,one] m[:,one] m[...,i] m[i,...] m[none] m[none,none] m[far,far] m[i,n] m[u] m[grid,0] m[0,grid]
m[:,grid] t[n%2,i[:2]] t[n%2,:,i[:2]] t[:,i,i] t[:,i] t[:,:,i] t[0,i,:] t[0,:,i] t[one,i] t[i%2] t[grid,...]
t[...,grid] t[grid,:,grid] t[None,i%2] t[i%2,None] t[:,None,i] t[i%2,None,i] t[i%2,0,i] t[0,i,1] t[1:,i] t[i%2,::-1]
t[...,i,None] t[col%2,i,one] t[col,:,i] q[u,:,u] q[u,u] q[:,u,u] q[u,:,:,u] q[u,:,u,:] q[:,i,None,u[0]] q[one,:,one,:]
q[...,one] s[one] s[none] z[:,i] z[i] z[none] z[none,none] v[mv] v[~mv] m[mm] m[~mm] m[m3] m[:,m4] m[m3,:2] m[m3,0]
m[0,m4] m[m3,[0,1]] m[mm,0] m[m4] m[mm.T] m[None,m3] m[...,m4] m[mm,None] t[m2] t[m23] t[m23,1] t[:,m3] t[...,m4]
t[m2,:,m4[:1]] t[m2,0] t[0,m3] t[m23,:2] t[None,m23] t[m2,i[:1]] t[m2,...,0] q[m23] q[m2] q[:,m3] q[...,m4]
q[0,m3,:,m4] z[:,m3] z[np.zeros(0,bool)] v[mv&False] s[np.array(True)] s[np.array(False)] v[np.array(True)]
m[np.array(False)] m[v[0]>-9] m[m>0] v[v>0] v[v>99] t[t<0] h[h>0] c[i] b[i] b[m4] h[i] h[i,u[0]] h[m4] v[i:] v[:one]
v[one:5] m[one:3,i]
"""
JITTED = """
v[i] v[far] v[one] m[i,i] m[:,i] m[i,::2] m[one] m[one,one] t[:,i,0] t[i%2,None,i] v[i:] q[u,:,u] v[flt] m[i,None]
"""


def cases():
    for text in STATIC.split() + ADVANCED.split():
        yield Case(text, lambda ns, text=text: evaluate(ns, text), may_work=text == "v[np.True_]")
    yield from jitted()
    yield from gets()


def environment(ns):
    names = {key: ns.jnp.asarray(value) for key, value in (ARRAYS | I | MASKS).items()}
    return {**names, "np": np, "jnp": ns.jnp, "lax": ns.lax, "jax": ns.jax}


def evaluate(ns, text):
    return eval(text, environment(ns))


def jitted():
    """The same index taken in a jitted function, with traced integer arrays and static masks."""
    for text in JITTED.split():

        def run(ns, text=text):
            env = environment(ns)
            return ns.jax.jit(lambda traced: eval(text, {**env, **traced}))({key: env[key] for key in I})

        yield Case(f"jit {text}", run)
    for text in (
        "v[mv]",
        "m[mm]",
        "m[m3]",
        "m[m > 0]",
        "jnp.where(mv, v, 0)",
        "jnp.where(mv)",
        "jnp.nonzero(mv, size=3)",
    ):

        def run(ns, text=text):
            env = environment(ns)
            return ns.jax.jit(lambda traced: eval(text, {**env, **traced}))(
                {key: env[key] for key in (*MASKS, "m", "v")}
            )

        yield Case(f"jit mask {text}", run)


def gets():
    """`.at[].get` with modes and fill values, whose answers out of bounds differ."""
    for index in ("far", "[7]", "i", "2", "9", "-9", "1:3", "far, None"):
        for extra in (
            "",
            "mode='fill'",
            "mode='fill', fill_value=5.0",
            "mode='clip'",
            "mode='wrap'",
            "mode='drop'",
            "mode='promise_in_bounds'" if index == "i" else "mode='nonsense'",
            "fill_value=-1",
        ):
            text = f"v.at[{index}].get({extra})"
            yield Case(text, lambda ns, text=text: evaluate(ns, text))
    for text in (
        "m.at[far].get(mode='fill')",
        "m.at[far].get(mode='fill', fill_value=7)",
        "b.at[far].get(mode='fill')",
        "m.at[far, 1].get(mode='clip')",
        "m.at[:, far].get(mode='fill', fill_value=-1)",
        "h.at[far].get(mode='fill')",
        "c.at[far].get(mode='fill')",
        "q.at[far].get(mode='fill')",
        "v.at[i].get(indices_are_sorted=False)",
        "v.at[i].get(unique_indices=True)",
        "v.at[0].get(out_sharding=None)",
        "m.at[0, 99].get(mode='fill', fill_value=3)",
        "m.astype('uint8').at[far].get(mode='fill')",
    ):
        yield Case(text, lambda ns, text=text: evaluate(ns, text))
