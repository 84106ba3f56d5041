"""Are the drawn weights those of the model, and the frames those of the circuit?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from untrained import run_of, with_cells

from lgcourse.errors import InputError
from lgcourse.relations import Form
from lgcourse.show.attention import LONGEST, attention_data, attention_figure, attention_text


@pytest.fixture(scope="module")
def reads_right():
    """A copy run whose first head reads i - j - n = 0, the operand, and the others nothing."""
    run = run_of("copy", "lbpe-sh", tests=(30,))
    return with_cells(run, [[(Form(1, -1, -1), 0)], [], [], []])


def test_a_head_that_names_the_operand_puts_its_weight_there(reads_right):
    for scale in (4, 30):
        data = attention_data(reads_right, scale, head=1)
        assert data.operands == [(row, row) for row in range(scale)]  # y_t reads x_t
        assert all(data.weights[pair] > 0.99 for pair in data.operands)
        assert data.share is not None and data.share > 0.99
        itself = attention_data(reads_right, scale, head=2)
        assert itself.share is not None and itself.share < 0.01


def test_weights_sum_to_one_and_later_keys_get_none():
    data = attention_data(run_of("addition", "rpe"), 5, layer=1, head=2)
    assert torch.allclose(data.weights.sum(1), torch.ones(len(data.rows)), atol=1e-5)
    for row, seen in enumerate(data.later):
        assert float(data.weights[row, seen:].sum()) == 0.0
    total = sum(float(data.weights[pair]) for pair in set(data.operands))
    assert data.share == pytest.approx(total / len(data.rows))


def test_right_tokens_are_those_of_a_forward_pass():
    run = run_of("copy", "rpe")
    data = attention_data(run, 6, seed=4)
    batch = run.task.sample(6, 1, torch.Generator().manual_seed(4))
    with torch.inference_mode():
        guess = run.model(batch.tokens, 6)[0].argmax(-1)
    assert data.right == [int(guess[p - 1]) == int(batch.tokens[0, p]) for p in range(7, 13)]


def test_dark_cells_are_large_weights(reads_right):
    figure = attention_figure(reads_right, 4)
    drawn = np.asarray(figure.axes[0].images[0].get_array()).sum(axis=2)
    assert all(drawn[row, row] < 1.0 < drawn[row, 4] for row in range(4))
    assert figure.alt == attention_text(reads_right, 4)  # type: ignore[attr-defined]


def test_one_size_at_all_scales(reads_right):
    sizes = {tuple(attention_figure(reads_right, n).get_size_inches()) for n in (1, 30)}
    assert len(sizes) == 1


def test_what_cannot_be_drawn_is_refused(reads_right):
    with pytest.raises(InputError, match="head must be at most 4"):
        attention_data(reads_right, 3, head=5)
    with pytest.raises(InputError, match="layer must be at most 1"):
        attention_data(reads_right, 3, layer=2)
    with pytest.raises(InputError, match=f"go up to {LONGEST}"):
        attention_data(reads_right, 200)
