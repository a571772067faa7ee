"""keras on its jax backend: a convolutional model compiled, fitted, and evaluated."""

import os

os.environ["KERAS_BACKEND"] = "jax"
import keras  # noqa: E402
import numpy as np  # noqa: E402

PACKAGES = ("keras", "namex", "optree", "h5py", "rich", "absl-py", "packaging", "ml_dtypes")
STEPS = 10


def setup():
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    images, labels = rng.normal(size=(64, 10, 10, 1)).astype("float32"), rng.integers(0, 4, 64)
    model = keras.Sequential(
        [
            keras.layers.Input((10, 10, 1)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Flatten(),
            keras.layers.Dense(16, activation="gelu"),
            keras.layers.Dropout(0.1),
            keras.layers.Dense(4),
        ]
    )
    model.compile(
        keras.optimizers.Adam(3e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )

    def step(state):
        fitted = model.fit(images, labels, batch_size=16, epochs=1, shuffle=False, verbose=0)
        return state, fitted.history["loss"][0] + model.evaluate(images, labels, verbose=0)[0]

    return step, None
