"""Does text go in and out as people write it, and does `solve` agree with plain arithmetic?"""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcourse import tasks
from lgcourse.errors import InputError
from lgcourse.tasks.numerals import turn

NAMES = tasks.names()
NO_DEADLINE = settings(deadline=None)  # machines differ


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


# numbers of up to 4,000 digits: a short pattern again and again, so that carries run far
numerals = st.builds(
    lambda pattern, times: (pattern * times)[:4000],
    st.text(alphabet="0123456789", min_size=1, max_size=30) | st.sampled_from(["9", "3", "142857"]),
    st.integers(1, 200) | st.sampled_from([1, 1, 2]),
)
short = st.text(alphabet="0123456789", min_size=1, max_size=12)


@NO_DEADLINE
@given(numerals, numerals)
def test_sums_equal_integer_sums(a, b):
    for name in ("addition", "addition-unequal"):
        assert tasks.get(name).solve(f"{a}+{b}=") == str(int(a) + int(b))
    width = max(len(a), len(b))
    assert tasks.get("addition-padded", width=width).solve(f"{a} + {b} =") == str(int(a) + int(b))


@NO_DEADLINE
@given(numerals, st.integers(0, 9))
def test_successors_and_multiples_equal_integer_ones(a, d):
    assert tasks.get("successor").solve(f"{a}=") == str(int(a) + 1)
    assert tasks.get("multiply-digit").solve(f"{a}*{d}=") == str(int(a) * d)


@NO_DEADLINE
@given(numerals.map(lambda x: x[:2000]), numerals.map(lambda x: x[:2000]))
def test_products_equal_integer_products(a, b):
    assert tasks.get("multiply-direct").solve(f"{a}*{b}=") == str(int(a) * int(b))


@NO_DEADLINE
@given(short, short)
def test_the_scratchpad_is_school_multiplication(a, b):
    *rows, product = tasks.get("multiply-scratchpad").solve(f"{a}*{b}=").split(",")
    assert product == str(int(a) * int(b))
    total = 0
    for j, (d, row) in enumerate(zip(reversed(b), rows, strict=True)):
        total += int(a) * int(d) * 10**j
        partial, *running = row.split(":")
        assert partial == str(int(a) * int(d))
        assert running == ([str(total // 10**j)] if j else [])


@NO_DEADLINE
@given(numerals, numerals)
def test_the_last_verdict_compares_the_numbers(a, b):
    verdicts = tasks.get("compare-cot").solve(f"{a}?{b}=")
    assert len(verdicts) == max(len(a), len(b))
    assert verdicts[-1] == ("~" if int(a) == int(b) else "<" if int(a) < int(b) else ">")


@NO_DEADLINE
@given(numerals)
def test_digit_strings(x):
    assert tasks.get("copy").solve(f"{x}=") == x
    assert tasks.get("reverse").solve(f"{x}=") == x[::-1]
    assert tasks.get("shift").solve(f"{x}=") == x[-1] + x[:-1]
    assert tasks.get("interleave").solve(f"{x}/{x[::-1]}=")[::2] == x
    assert tasks.get("interleave").solve(f"{x}/{x[::-1]}=")[1::2] == x[::-1]
    assert tasks.get("modsum-cot").solve(f"{x}=")[-1] == str(sum(map(int, x)) % 10)
    added = tasks.get("add-index-mod").solve(f"{x}=")
    assert [(int(y) - int(c)) % 10 for c, y in zip(x, added, strict=True)] == [
        t % 10 for t in range(1, len(x) + 1)
    ]


@NO_DEADLINE
@given(st.text(alphabet="01", min_size=1, max_size=300))
def test_bits(x):
    assert tasks.get("parity-direct").solve(f"{x}=") == str(sum(map(int, x)) % 2)
    assert tasks.get("parity-cot").solve(f"{x}=")[-1] == str(sum(map(int, x)) % 2)


@NO_DEADLINE
@given(st.lists(st.permutations("12345").map("".join), min_size=1, max_size=40))
def test_products_of_permutations_move_points_one_factor_after_the_other(gs):
    products = tasks.get("permutation-cot-s5").solve(" ".join(gs) + "=").split()
    assert len(products) == len(gs)
    for point in "12345":
        image = point
        for g in reversed(gs):  # the last factor acts first
            image = g[int(image) - 1]
        assert products[-1][int(point) - 1] == image


@NO_DEADLINE
@given(st.permutations(range(150)), st.integers(1, 150))
def test_sorting_and_unique_copying(order, n):
    text = " ".join(map(str, order[:n]))
    assert tasks.get("sort").solve(text + " =") == " ".join(map(str, sorted(order[:n])))
    assert tasks.get("copy-unique").solve(text + "=") == text


@NO_DEADLINE
@given(st.text(alphabet="abc", min_size=1, max_size=60))
def test_majority(text):
    counts = sorted((text.count(c), c) for c in "abc")
    if counts[-1][0] == counts[-2][0]:
        with pytest.raises(InputError, match="two letters share the first place"):
            tasks.get("majority").solve(text + "=")
    else:
        assert tasks.get("majority").solve(text + "=") == counts[-1][1]


def test_numbers_longer_than_python_reads():
    nines = "9" * 10_000  # int(nines) is an error
    assert tasks.get("addition").solve(f"{nines}+1=") == "1" + "0" * 10_000
    assert tasks.get("successor").solve(f"{nines}=") == "1" + "0" * 10_000
    assert tasks.get("multiply-digit").solve(f"{nines}*9=") == "8" + "9" * 9_999 + "1"
    assert tasks.get("multiply-direct").solve(f"{nines}*{nines}=") == (
        "9" * 9_999 + "8" + "0" * 9_999 + "1"
    )


# --- text, tokens and `solve` -------------------------------------------------------------------


def plain(task, ids):
    """The text of tokens as they stand, with all zeros."""
    words = [task.vocabulary[t] for t in ids]
    text = (" " if any(len(w) > 1 for w in task.vocabulary) else "").join(words)
    return turn(text) if hasattr(task, "strip") else text


@pytest.mark.parametrize("name", NAMES)
def test_solve_equals_the_sampled_answer(name):
    task: Any = tasks.get(name)
    for scale in (1, 2, 7, 20) if task.sizes == 1 else ((1, 1), (3, 1), (2, 6), (9, 9)):
        batch = task.sample(scale, 10, generator())
        start = task.prompt_length(scale)
        for line in batch.tokens.tolist():
            answer = [t for t, scored in zip(line, batch.answer.tolist(), strict=True) if scored]
            if name == "parity-cot-padded":
                text = plain(task, [*line[:scale], task.vocabulary.index("=")])
            elif name == "addition-padded":
                a, b = task.operands(torch.tensor([line[:start]]), scale)
                text = plain(task, [*a[0].tolist(), 10, *b[0].tolist(), 11])
            else:
                text = plain(task, line[:start])
            prompt = task.parse(text)
            assert (prompt.tokens, prompt.scale) == (line[:start], scale)
            assert task.solve(text) == task.decode(answer)


@pytest.mark.parametrize("name", NAMES)
def test_text_that_was_decoded_is_encoded_again(name):
    task = tasks.get(name)
    scale = 6 if task.sizes == 1 else (3, 2)
    for line in task.sample(scale, 10, generator()).tokens.tolist():
        text = plain(task, line)
        assert task.encode(text) == line
        shown = task.decode(line)
        assert task.decode(task.encode(shown)) == shown


@pytest.mark.parametrize("name", NAMES)
def test_the_example_is_a_prompt_and_spaces_do_not_matter(name):
    task = tasks.get(name)
    prompt = task.parse(task.example)
    assert len(prompt.tokens) == task.prompt_length(prompt.scale)
    assert task.parse(f"  {task.example.replace('=', ' =  ')}") == prompt
    tokens = torch.tensor([prompt.tokens])
    assert task.solve(task.example) == task.decode(task.answer(tokens, prompt.scale)[0].tolist())


def test_examples_as_people_write_them():
    solved = {name: tasks.get(name).solve(tasks.get(name).example) for name in NAMES}
    assert solved["addition"] == solved["addition-padded"] == "1033"
    assert solved["addition-unequal"] == "933"
    assert solved["multiply-digit"] == "6335"
    assert solved["multiply-scratchpad"] == "48,36:40,408"
    assert solved["successor"] == "1300"
    assert solved["compare-cot"] == "<<>"
    assert solved["interleave"] == "142536"
    assert solved["permutation-cot"] == "231 132"
    assert solved["sort"] == "4 15 31"
    assert solved["majority"] == "a"


def test_notes_say_what_was_changed():
    assert tasks.get("addition").parse("12+7=").notes == ["zero-extended to 2 digits each: 12+07="]
    assert tasks.get("compare-cot").parse("7?12=").notes == [
        "zero-extended to 2 digits each: 07?12="
    ]
    assert tasks.get("addition-padded", width=5).parse("1+2=").notes == [
        "padded with zeros to width 5"
    ]
    assert tasks.get("addition").parse("12+34=").notes == []
    assert tasks.get("addition-unequal").parse("12+7=").notes == []


# --- errors -------------------------------------------------------------------------------------

WRONG = ["", "=", "12", "hello", "1=2=", "=1", "٣=", "1.5+2=", "-1+2=", "1e3=", "1\n", "²="]
WRONG_FOR = {
    "addition": ["12+", "12+=", "+3=", "12=", "1+2", "1+2+3=", "1+2=3", "12*3="],
    "addition-unequal": ["12+=", "+3=", "1+2=3", "1+2+3="],
    "addition-padded": ["12+=", "1+2+3="],
    "compare-cot": ["1?=", "1<2=", "12+3=", "1?2?3="],
    "multiply-digit": ["12*34=", "12*=", "*3=", "12+3="],
    "multiply-scratchpad": ["12*=", "12*3*4=", "12,3="],
    "multiply-direct": ["12*=", "12*3*4="],
    "interleave": ["12/3=", "123=", "/=", "1/2/3=", "12/34", "1//2="],
    "successor": ["1+2=", "12"],
    "parity-cot": ["102="],
    "parity-direct": ["12="],
    "permutation-cot": ["233 =", "12 =", "1234 =", "231213 ="],
    "permutation-cot-s5": ["231 =", "12344 ="],
    "sort": ["3 1 3 =", "150 =", "a ="],
    "copy-unique": ["3 1 3 =", "150 ="],
    "copy-repeat": ["abc="],
    "majority": ["aabb=", "AAB="],
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_prompt_is_refused_with_the_value_and_an_example(name):
    task = tasks.get(name)
    for text in WRONG + WRONG_FOR.get(name, []):
        for read in (task.parse, task.solve):
            with pytest.raises(InputError) as caught:
                read(text)
            message = str(caught.value)
            assert message.startswith(f"'{text.strip()}' is not a prompt of task '{name}': ")
            assert "\n" not in message
            assert message.endswith(f"write it like '{task.example}'")
            assert len(message) < 300


def test_messages_show_the_text_as_it_was_typed():
    with pytest.raises(InputError, match="^'12x [+] 3=' is not a prompt .*character 'x'"):
        tasks.get("addition").encode("12x + 3=")
    with pytest.raises(InputError, match="^'231 233 =' is not a prompt .*word '233' is not a perm"):
        tasks.get("permutation-cot").encode("231 233 =")


def test_spaces_within_numbers_do_not_matter():
    task = tasks.get("addition")
    assert (
        task.encode("9 0 5 + 1 28 =") == task.encode("905+128=") == task.parse("90 5+128=").tokens
    )


def test_long_wrong_texts_are_cut_in_messages():
    with pytest.raises(InputError, match=r"^'9{37}\.\.\.' is not a prompt") as caught:
        tasks.get("addition").parse("9" * 5000)
    assert len(str(caught.value)) < 200


def test_prompts_that_do_not_fit_the_width():
    with pytest.raises(InputError, match="made for width 3, got scale 4"):
        tasks.get("addition-padded", width=3).parse("1234+1=")
    with pytest.raises(InputError, match="made for width 3, got scale 4"):
        tasks.get("parity-cot-padded", width=3).parse("1011=")


@pytest.mark.parametrize("name", NAMES)
def test_ids_that_are_no_tokens_are_refused(name):
    task = tasks.get(name)
    for id in (-1, len(task.vocabulary)):
        with pytest.raises(
            InputError, match=f"token {id} is not one of 0..{len(task.vocabulary) - 1}"
        ):
            task.decode([0, id])


def test_names_and_options():
    with pytest.raises(InputError, match="unknown task 'adition'; did you mean 'addition'"):
        tasks.get("adition")
    with pytest.raises(InputError, match="task 'copy' has no option 'width'; it takes none"):
        tasks.get("copy", width=3)
    with pytest.raises(InputError, match="task 'sort' has no option 'with'; it takes width"):
        tasks.get("sort", **{"with": 3})
    with pytest.raises(InputError, match="points must be 3, 4 or 5, got 6"):
        tasks.get("permutation-cot", points=6)
    assert len(tasks.get("permutation-cot", points=4).vocabulary) == 25
    assert [tasks.get(name).name for name in NAMES] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_a_task_states_about_itself(name):
    task = tasks.get(name)
    assert task.kind in ("constant", "saturates", "grows", "not covered")
    assert len(set(task.vocabulary)) == len(task.vocabulary)
    assert 0 < task.chance < 1 and task.sizes in (1, 2)
    own = type(task).__mro__[: type(task).__mro__.index(tasks.Task)]
    text = " ".join(str(cls.__doc__) for cls in own)
    assert "SRC" in text
    assert "rity" in text or task.kind == "not covered"
