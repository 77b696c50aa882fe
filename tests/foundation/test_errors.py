import pytest

from gradrank.foundation.errors import ConvergenceError, ExitCode, GradrankError, InputError, StorageError, unusable


def test_message_is_one_line_whatever_it_is_made_of() -> None:
    assert str(InputError("a value\n  on two\tlines\r\n")) == "a value on two lines"


@pytest.mark.parametrize(
    ("error", "builtin", "code"),
    [
        (InputError, ValueError, ExitCode.BAD_INPUT),
        (ConvergenceError, ArithmeticError, ExitCode.INCOMPLETE),
        (StorageError, OSError, ExitCode.STORAGE),
    ],
)
def test_each_error_is_also_a_builtin_and_knows_its_exit_code(
    error: type[GradrankError], builtin: type[Exception], code: ExitCode
) -> None:
    with pytest.raises(builtin, match="reason") as caught:
        raise error("reason")
    assert isinstance(caught.value, GradrankError)
    assert caught.value.exit_code == code


def test_exit_codes_are_the_documented_numbers() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "OK": 0,
        "INCOMPLETE": 1,
        "BAD_INPUT": 2,
        "STORAGE": 3,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [(-0.1, "-0.1"), ("mze", "'mze'"), (None, "None"), ([1, 2], "[1, 2]"), ("a\nb", "'a b'")],
)
def test_unusable_names_field_value_and_what_is_allowed(value: object, shown: str) -> None:
    assert str(unusable("loss", value, "give mse")) == f"loss: {shown} is not allowed; give mse"


def test_unusable_cuts_a_long_value() -> None:
    assert str(unusable("n", -(10**9000), "give a seed")).startswith("n: a whole number of 29898 bits is not allowed")
    message = str(unusable("inputs", list(range(1000)), "give a name"))
    assert "…" in message
    assert len(message) < 130
    assert message.endswith("is not allowed; give a name")
