"""What a push service is sent, against the example of RFC 8291, appendix A."""

import pytest

from steersman.gateway.web.push_message import coded, decoded, encrypted, public_key

PLAIN = b"When I grow up, I want to be a watermelon"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
BROWSER = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
SECRET, SALT = "BTBZMqHH6r4Tts7J_aSIgg", "DGv6ra1nlYgDCS1FRnbzlw"
SEALED = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz"
    "AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_standard_is_met() -> None:
    """Its keys and its salt give its bytes."""
    sealed = encrypted(PLAIN, decoded(BROWSER), decoded(SECRET), key=SENDER, salt=decoded(SALT))
    assert coded(sealed) == SEALED


def test_a_key_that_is_none_is_refused() -> None:
    """A browser that sends nonsense is not written to."""
    with pytest.raises(ValueError, match="point"):
        encrypted(PLAIN, b"nonsense", decoded(SECRET))
    assert len(decoded(public_key(SENDER))) == 65
