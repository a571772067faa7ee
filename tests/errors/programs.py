"""Programs of bad_calls that do not fit one expression."""

import tempfile

import numpy as np


class Callable:
    """An object of a user's class, which can be called too."""

    w = 2.0

    def __call__(self, x):
        return self.w * x


class Programs:
    """Each method makes one mistake, with the implementation it was made for."""

    Callable = Callable

    def __init__(self, ns):
        self.ns = ns
        self.x = ns.jnp.arange(3.0)

    def assign_slice(self):
        self.x[:2] += 1

    def set_shape(self):
        self.x.shape = (3, 1)

    def deleted(self):
        x = self.x + 1
        x.delete()
        return x + 1

    def write_numpy(self):
        np.asarray(self.x)[0] = 1

    def while_on_tracer(self):
        def f(x):
            while x.sum() < 3:
                x = x + 1
            return x

        return self.ns.jax.jit(f)(self.x)

    def _leaked(self, transform, *args):
        kept = []
        transform(lambda v: (kept.append(v), v.sum())[1])(*args)
        return self.ns.jnp.sin(kept[0]) + 1

    def leak_jit(self):
        return self._leaked(self.ns.jax.jit, self.x)

    def leak_grad(self):
        return self._leaked(lambda f: self.ns.jax.jit(self.ns.jax.grad(f)), self.x)

    def leak_vmap(self):
        return self._leaked(lambda f: self.ns.jax.jit(self.ns.jax.vmap(f)), self.x[None])

    def leak_scan(self):
        kept = []
        self.ns.lax.scan(lambda c, v: (kept.append(c), (c + v, c))[1], 0.0, self.x)
        return kept[0] + 1

    def leak_list(self):
        kept = []
        f = self.ns.jax.jit(lambda v: (kept.append(v * 2), v)[1])
        f(self.x)
        return self.ns.jax.jit(lambda v: v + kept[0])(self.x)

    def leak_attribute(self):
        def f(v):
            self.kept = v + 1
            return v

        self.ns.jax.jit(f)(self.x)
        return self.kept * 2

    def _custom_vjp(self, fwd, bwd):
        f = self.ns.jax.custom_vjp(lambda a, b: a * b)
        f.defvjp(fwd, bwd)
        return f

    def custom_vjp_tree(self):
        return self.ns.jax.grad(self._custom_vjp(lambda a, b: (a * b, None), lambda res, ct: (ct,)))(1.0, 2.0)

    def custom_vjp_shape(self):
        return self.ns.jax.grad(self._custom_vjp(lambda a, b: (a * b, None), lambda res, ct: (self.x, ct)))(1.0, 2.0)

    def custom_vjp_pair(self):
        return self.ns.jax.grad(self._custom_vjp(lambda a, b: a * b, lambda res, ct: (ct, ct)))(1.0, 2.0)

    def custom_jvp_tangent(self):
        f = self.ns.jax.custom_jvp(lambda a: a)
        f.defjvp(lambda primals, tangents: (primals[0], self.x))
        return self.ns.jax.grad(f)(1.0)

    def _primitive(self, abstract):
        import importlib

        core = importlib.import_module(self.ns.name + ".extend.core")
        primitive = core.Primitive("made_up")
        if abstract:
            primitive.def_abstract_eval(lambda aval: aval)
        return primitive

    def primitive_evaluated(self):
        return self._primitive(abstract=True).bind(self.x)

    def primitive_traced(self):
        return self.ns.jax.jit(self._primitive(abstract=False).bind)(self.x)

    def primitive_jvp(self):
        primitive = self._primitive(abstract=True)
        return self.ns.jax.jit(self.ns.jax.grad(lambda v: primitive.bind(v).sum()))(self.x)

    def primitive_vmap(self):
        return self.ns.jax.jit(self.ns.jax.vmap(self._primitive(abstract=True).bind))(self.x)

    def registered_twice(self):
        class Node:
            pass

        for _ in range(2):
            self.ns.tree_util.register_pytree_node(Node, lambda node: ((), None), lambda aux, children: Node())

    def _own_list(self):
        own = []
        own.append(own)
        return own

    def own_list(self):
        return self.ns.jax.tree.leaves(self._own_list())

    def own_list_jit(self):
        return self.ns.jax.jit(lambda v: v)(self._own_list())

    def own_dict(self):
        own = {}
        own["own"] = own
        return self.ns.jax.tree.map(lambda v: v, own)

    def own_list_array(self):
        return self.ns.jnp.array(self._own_list())

    def key_reused(self):
        with self.ns.jax.debug_key_reuse(True):
            key = self.ns.random.key(0)
            self.ns.random.uniform(key)
            self.ns.random.uniform(key)

    def key_reused_after_split(self):
        with self.ns.jax.debug_key_reuse(True):
            key = self.ns.random.key(0)
            self.ns.random.split(key)
            self.ns.random.normal(key)

    def custom_vjp_bwd_arguments(self):
        f = self.ns.jax.custom_vjp(lambda x: x * 2)
        f.defvjp(lambda x: (x * 2, None), lambda g: (g,))
        return self.ns.jax.grad(f)(1.0)

    def custom_jvp_arguments(self):
        f = self.ns.jax.custom_jvp(lambda x: x * 2)
        f.defjvp(lambda x: (x, x))
        return self.ns.jax.grad(f)(1.0)

    def wrong_file(self):
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            file.write(b"hello world")
            file.flush()
            return self.ns.jnp.load(file.name)
