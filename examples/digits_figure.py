"""The figure of `digits.py`: learning curves, confusion matrix, the hardest digits, and all gradient norms."""

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # after the choice of backend

INK, FAINT, MISREAD = "#22303c", "#8a97a3", "#d1495b"
COLOURS = ("#e0a030", "#00798c", "#6a4c93")
STYLE = {
    "font.size": 10, "axes.titlesize": 12, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.titlepad": 12, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": FAINT,
    "text.color": INK, "axes.labelcolor": INK, "axes.titlecolor": INK, "xtick.color": INK, "ytick.color": INK,
}  # fmt: skip


def draw_curves(ax, required, curves):
    """Test error against epochs, each curve ending in its name."""
    ends = sorted(curves, key=lambda name: -curves[name][-1])
    for colour, (name, curve) in zip(COLOURS, curves.items(), strict=True):
        error = 100 * (1 - np.array(curve))
        epochs = np.arange(1, len(error) + 1)
        ax.plot(epochs, np.maximum(error, 0.1), color=colour, lw=2)
        label = f"{name}  {error[-1]:.1f} %"
        ax.text(
            0.97, 0.93 - 0.09 * ends.index(name), label, color=colour, weight="bold", ha="right", transform=ax.transAxes
        )
    ax.axhline(100 * (1 - required), color=FAINT, lw=1, ls=":")
    ax.text(len(error), 104 * (1 - required), "required", color=FAINT, size=9, ha="right", va="bottom")
    ax.set(title="Learning", xlabel="epoch", ylabel="misread test digits (%)", yscale="log", xlim=(1, len(error)))
    ax.set_yticks([0.5, 1, 3, 10, 30], ["0.5", "1", "3", "10", "30"])
    ax.set_ylim(0.4, 40)
    ax.minorticks_off()


def draw_confusion(ax, labels, readings):
    """How often each digit was read as each of the ten; mistakes are red."""
    table = np.zeros((10, 10), int)
    np.add.at(table, (labels, readings), 1)
    right = np.eye(10, dtype=bool)
    ax.imshow(np.where(right, table, 0), cmap="Blues", vmin=0, vmax=1.6 * table.max())
    for (i, j), count in np.ndenumerate(table):
        if i != j and count:
            ax.add_patch(plt.Rectangle((j - 0.5, i - 0.5), 1, 1, color=MISREAD, alpha=0.25 + 0.15 * min(count, 5)))
        ax.text(j, i, count or "·", ha="center", va="center", color=INK if count else "#c8d0d6", size=9)
    ax.set(title="Confusion of the conv net", xlabel="read as", ylabel="was", xticks=range(10), yticks=range(10))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def draw_hardest(figure, cell, images, labels, readings, pulls, rows=3, columns=7):
    """The test digits with the largest gradients, hardest first."""
    grid = cell.subgridspec(rows, columns, wspace=0.12, hspace=0.36)
    for rank, i in enumerate(np.argsort(-pulls)[: rows * columns]):
        ax = figure.add_subplot(grid[divmod(rank, columns)])
        ax.imshow(images[i], cmap="Greys", interpolation="nearest")
        wrong = readings[i] != labels[i]
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=True, color=MISREAD if wrong else "#d5dbe0", linewidth=2 if wrong else 1)
        caption = f"{labels[i]} read as {readings[i]}" if wrong else f"{labels[i]}"
        ax.set_title(caption, size=9, loc="center", pad=3, weight="bold", color=MISREAD if wrong else INK)
    heading = figure.add_subplot(cell, frameon=False, xticks=[], yticks=[])
    heading.set_title("Hardest test digits, by gradient norm", pad=26)


def draw_pulls(ax, pulls, wrong):
    """A histogram of the gradient norms of the test digits, on a logarithmic scale."""
    pulls = np.maximum(pulls, 1e-6)  # smaller norms are rounding errors
    bins = np.geomspace(0.99e-6, max(pulls.max(), 1) * 1.01, 32)
    ax.hist(
        [pulls[~wrong], pulls[wrong]],
        bins,
        stacked=True,
        color=[COLOURS[1], MISREAD],
        label=["read right", "misread"],
        rwidth=0.92,
    )
    ax.set(
        xlabel="gradient norm (the first bar holds all smaller ones)", ylabel="digits", xscale="log", yscale="symlog"
    )
    ax.set_yticks([0, 1, 3, 10, 30, 100], ["0", "1", "3", "10", "30", "100"])
    ax.minorticks_off()
    ax.set_title("How strongly each test digit still pulls", pad=26)
    ax.legend(frameon=False, loc="upper right")


def draw(path, required, curves, test_x, test_y, readings, pulls):
    """Write the figure, which has four parts."""
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(13, 9.6), facecolor="white")
        grid = figure.add_gridspec(
            2, 2, width_ratios=(1.35, 1), left=0.06, right=0.97, top=0.92, bottom=0.07, hspace=0.34, wspace=0.18
        )
        draw_curves(figure.add_subplot(grid[0, 0]), required, curves)
        draw_confusion(figure.add_subplot(grid[0, 1]), test_y, readings)
        draw_hardest(figure, grid[1, 0], test_x, test_y, readings, pulls)
        draw_pulls(figure.add_subplot(grid[1, 1]), pulls, readings != test_y)
        figure.savefig(path, dpi=120)
        plt.close(figure)
