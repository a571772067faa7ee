"""A thousand order books at once: a matching engine written for one book and one message, mapped and compiled.

Orders are matched by price, and at the same price by time. The engine has no loop over the queue: how much of a resting
order is traded follows from the sum of the orders ahead of it. So a message takes a few operations on small arrays.
`scan` runs the messages of a day, and `vmap` a thousand books. An engine in plain Python, with heaps, makes the same
trades.

Then the books answer a question: how does the spread depend on the share of traders who cannot wait?

    python examples/order_book.py [--out order_book.png] [--quick]
"""

import argparse
import heapq
import time
from typing import NamedTuple

import matplotlib
import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import jit, lax, random, vmap

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the choice of backend

BOOKS = 1000
MESSAGES = 2000
PLACES = 48  # for resting orders on each side
BUY, SELL = 0, 1
LIMIT, MARKET, CANCEL = 0, 1, 2
MIDDLE, NOWHERE = 1000, 1 << 20  # in ticks; an empty side quotes NOWHERE, which no order reaches

# --- The engine: one book, one message ----------------------------------------------------------------------------


class Side(NamedTuple):
    """Resting orders, unsorted. `cost` is the price to the other side: lower is better, whichever the side."""

    cost: gradix.Array
    size: gradix.Array  # 0 where the place is free
    number: gradix.Array  # of the order's message; earlier orders come first


class Message(NamedTuple):
    """What a trader asks for; the `number` of a cancellation is that of the order to cancel."""

    kind: gradix.Array
    side: gradix.Array
    price: gradix.Array
    size: gradix.Array
    number: gradix.Array


class Trade(NamedTuple):
    """The result of a message: the size and value of its trades, and the quotes of the book after it."""

    size: gradix.Array
    value: gradix.Array
    bid: gradix.Array
    ask: gradix.Array


def empty():
    """A side without orders; a book is the pair of buyers and sellers."""
    return Side(*[jnp.zeros(PLACES, "int32") for _ in Side._fields])


def take(side, limit, wanted):
    """Take `wanted` from the orders that cost no more than `limit`, best first: the side after it, and the amounts."""
    is_open = (side.size > 0) & (side.cost <= limit)
    cheaper = side.cost[:, None] > side.cost
    earlier = (side.cost[:, None] == side.cost) & (side.number[:, None] > side.number)
    ahead = ((cheaper | earlier) & is_open) @ side.size
    taken = jnp.where(is_open, jnp.clip(wanted - ahead, 0, side.size), 0)
    return side._replace(size=side.size - taken), taken


def rest(side, cost, size, number):
    """The side with another order in a free place; if there is none, it replaces the worst order."""
    standing = jnp.where(side.size > 0, side.cost, NOWHERE)
    place = jnp.argmax(standing)
    gives = (size > 0) & (cost < standing[place])
    return gradix.tree.map(lambda old, new: old.at[place].set(jnp.where(gives, new, old[place])),
                           side, Side(cost, size, number))  # fmt: skip


def either(is_first, first, second):
    """The side `first` if `is_first`, else `second`."""
    return gradix.tree.map(lambda a, b: jnp.where(is_first, a, b), first, second)


def handle(book, message):
    """The book after a message, and its trades."""
    sign = jnp.where(message.side == BUY, 1, -1)  # a higher price costs a buyer more, a seller less
    buyers, sellers = book
    own, other = (either(message.side == BUY, buyers, sellers), either(message.side == BUY, sellers, buyers))

    wanted = jnp.where(message.kind == CANCEL, 0, message.size)
    other, taken = take(other, jnp.where(message.kind == MARKET, NOWHERE, sign * message.price), wanted)
    left = jnp.where(message.kind == LIMIT, wanted - taken.sum(), 0)
    is_named = (own.number == message.number) & (message.kind == CANCEL)
    own = own._replace(size=jnp.where(is_named, 0, own.size))
    own = rest(own, -sign * message.price, left, message.number)

    book = either(message.side == BUY, own, other), either(message.side == BUY, other, own)
    bid, ask = [jnp.where(s.size > 0, s.cost, NOWHERE).min() for s in book]
    return book, Trade(taken.sum(), (taken * sign * other.cost).sum(), -bid, ask)


@jit
def run(messages):
    """Run the messages of a day in one book: the last book, and the trades of every message."""
    return lax.scan(handle, (empty(), empty()), messages)


run_all = jit(vmap(run))

# --- Traders: random, as in Daniels, Farmer, Gillemot, Iori and Smith (2003) --------------------------------------


def traders(key, count, hurry):
    """Messages of random traders: a share `hurry` trades at any price, others quote near the middle or cancel."""
    kinds, leavers, sides, depths, sizes, names = random.split(key, 6)
    hurry = jnp.asarray(hurry)
    kind = jnp.where(random.uniform(kinds, (count,)) < hurry, MARKET, LIMIT)
    kind = jnp.where(random.uniform(leavers, (count,)) < 0.3, CANCEL, kind)
    side = random.bernoulli(sides, shape=(count,)).astype("int32")
    depth = random.geometric(depths, 0.12, (count,))
    number = jnp.arange(1, count + 1)
    # the number of a recent message, whose order may still rest in the book
    target = number - 1 - random.randint(names, (count,), 0, 60)
    return Message(kind, side, MIDDLE + jnp.where(side == BUY, -depth, depth) + 1, random.randint(sizes, (count,), 1, 10),
                   jnp.where(kind == CANCEL, target, number))  # fmt: skip


# --- The same engine in plain Python, to compare with ---------------------------------------------------------------


def python_trades(messages):
    """The traded sizes and values of one book's messages, found with two heaps."""
    heaps, sizes, trades = ([], []), ({}, {}), []
    for kind, side, price, size, number in zip(*(np.asarray(m).tolist() for m in messages), strict=True):
        sign, value, traded = (1 if side == BUY else -1), 0, 0
        if kind == CANCEL:
            sizes[side].pop(number, None)
        else:
            limit, theirs, standing = ((NOWHERE if kind == MARKET else sign * price), heaps[1 - side], sizes[1 - side])
            while traded < size and theirs and theirs[0][0] <= limit:
                cost, name = theirs[0]
                amount = min(size - traded, standing.get(name, 0))
                traded, value = traded + amount, value + amount * sign * cost
                if name in standing:
                    standing[name] -= amount
                if not standing.get(name):
                    standing.pop(name, None)
                    heapq.heappop(theirs)
            if kind == LIMIT and traded < size:
                heapq.heappush(heaps[side], (-sign * price, number))
                sizes[side][number] = size - traded
        trades.append((traded, value))
    return np.array(trades)


# --- The report ----------------------------------------------------------------------------------------------------


def spreads(trades):
    """The distance of a book's quotes after each message; NaN if a side has no order."""
    wide = trades.ask - trades.bid
    return jnp.where(wide < NOWHERE // 2, wide, jnp.nan)


def draw_figure(path, trades, hurries, by_hurry):
    """Draw one book's quotes, the volumes of all books, and the spread by the share of traders in a hurry."""
    bid, ask = [np.where(abs(np.asarray(q)) < NOWHERE // 2, q, np.nan) for q in (trades.bid, trades.ask)]
    figure, (quotes, sizes, answer) = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    shown = slice(100, 400)
    quotes.fill_between(range(100, 100 + len(bid[0][shown])), bid[0][shown], ask[0][shown], step="post",
                        color="#00798c", alpha=0.25)  # fmt: skip
    for line, name, colour in ((ask, "ask", "#d1495b"), (bid, "bid", "#00798c")):
        quotes.step(range(100, 100 + len(line[0][shown])), line[0][shown], where="post", color=colour, lw=1, label=name)
    quotes.set(title="The quotes of one book", xlabel="message", ylabel="price, in ticks")
    quotes.legend(frameon=False)

    volume = np.asarray(trades.size.sum(1))
    sizes.hist(volume, bins=30, color="#6a4c93")
    sizes.set(title=f"The volumes of {len(volume):,} books in a day", xlabel="volume", ylabel="books")

    low, middle, high = np.nanquantile(by_hurry, [0.1, 0.5, 0.9], axis=1)
    answer.fill_between(hurries, low, high, color="#e0a030", alpha=0.3)
    answer.plot(hurries, middle, "o-", color="#e0a030")
    answer.set(title="Market orders widen the spread", xlabel="share of market orders", ylabel="mean spread, in ticks")
    for ax in (quotes, sizes, answer):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main():
    """Run the books, compare ten with plain Python, and vary the share of traders in a hurry."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="order_book.png")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    books, count = (40, 300) if options.quick else (BOOKS, MESSAGES)

    messages = vmap(lambda key: traders(key, count, 0.2))(random.split(random.key(0), books))
    start = time.perf_counter()
    gradix.block_until_ready(run_all(messages))
    first = time.perf_counter() - start
    start = time.perf_counter()
    _, trades = gradix.block_until_ready(run_all(messages))
    took = time.perf_counter() - start
    print(
        f"{books:,} books of {count:,} messages: {first:.2f} s with the compilation, {took:.2f} s again "
        f"({books * count / took:,.0f} messages a second)"
    )

    start = time.perf_counter()
    for i in range(10):
        expected = python_trades(gradix.tree.map(lambda m, i=i: m[i], messages))
        assert (expected == np.stack([trades.size[i], trades.value[i]], -1)).all(), (
            f"book {i} makes other trades than plain Python"
        )
    python = (time.perf_counter() - start) / 10 * books
    print(f"ten of them make the same trades as plain Python, which would take {python:.1f} s for all books")
    print(f"traded in a book: {trades.size.sum(1).mean():,.0f}; spread {jnp.nanmean(spreads(trades)):.2f} ticks")

    hurries = np.linspace(0.05, 0.45, 5)
    some = random.split(random.key(1), max(books // 10, 10))
    crowd = vmap(lambda hurry: vmap(lambda key: traders(key, count, hurry))(some))(jnp.asarray(hurries))
    _, answers = jit(vmap(vmap(run)))(crowd)
    by_hurry = np.asarray(jnp.nanmean(spreads(answers), -1))
    for hurry, row in zip(hurries, by_hurry, strict=True):
        print(f"  {hurry:4.0%} market orders: spread {np.nanmean(row):.2f}")

    draw_figure(options.out, trades, hurries, by_hurry)
    print(f"\nThe picture: {options.out}")
    print("Try next: PLACES = 8: the worst orders are pushed out, and the comparison notices it;")
    print("          in `earlier`, write `<` for `>`: the latest order is then served first")


if __name__ == "__main__":
    main()
