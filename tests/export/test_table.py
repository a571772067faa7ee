"""The page on functions of open sizes is as the functions say."""

import pytest

from docs import polymorphic


@pytest.mark.slow
def test_the_page_is_up_to_date(capsys):
    assert polymorphic.main(["--check"]) == 0, capsys.readouterr().out


def test_calls_tell_what_takes_open_sizes():
    text, why = polymorphic.row("numpy.poly", polymorphic.jnp.poly)
    assert text == "f(v)" and "A symbolic size has several values" in why
    assert polymorphic.row("numpy.sin", polymorphic.jnp.sin) == ("f(x)", None)
    assert polymorphic.row("numpy.load", polymorphic.jnp.load)[0] is None
    page = polymorphic.PAGE.read_text(encoding="utf-8")
    assert "`sin`" in page and "`numpy.poly`" in page
