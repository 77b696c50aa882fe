import pytest

from gradrank.foundation.errors import InputError
from gradrank.foundation.names import allowed_names, look_up

TABLE = {"ReLU": 1, "tanh": 2, "sigmoid": 3}


def test_known_name_is_found() -> None:
    assert look_up("activation", "tanh", TABLE) == 2


@pytest.mark.parametrize(("name", "nearest"), [("relu", "ReLU"), ("sigmod", "sigmoid"), ("TANH", "tanh")])
def test_nearest_name_is_suggested_whatever_its_case(name: str, nearest: str) -> None:
    with pytest.raises(InputError, match=rf"^activation: '{name}' is not allowed; .*did you mean '{nearest}'\?\)$"):
        look_up("activation", name, TABLE)


@pytest.mark.parametrize("name", ["", "wxyz"])
def test_no_suggestion_where_nothing_is_near(name: str) -> None:
    assert allowed_names(name, TABLE) == "give one of ReLU, sigmoid, tanh"
