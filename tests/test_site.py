"""The check of the built documentation: no page needs another site."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "tools" / "check_site.py"
spec = importlib.util.spec_from_file_location("check_site", PATH)
check_site = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_site)


@pytest.mark.parametrize(
    "page",
    [
        '<script defer src="https://cdn.example/mathjax.js"></script>',
        '<link rel="stylesheet" href="//cdn.example/site.css">',
        '<link href="https://cdn.example/font.woff2" rel="preload">',
        '<img src="http://example.org/badge.svg"/>',
        '<iframe src="https://example.org"></iframe>',
        '<style>@import "https://cdn.example/font.css";</style>',
        '<p style="background: url(https://example.org/a.png)">',
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(page):
    assert len(check_site.addresses_in(page)) == 1


@pytest.mark.parametrize(
    "page",
    [
        '<a href="https://example.org">a link</a>',
        '<link rel="canonical" href="https://example.org/page.html">',
        '<script src="_static/site.js"></script>',
        '<img src="data:image/png;base64,//8=">',
        '<math xmlns="http://www.w3.org/1998/Math/MathML"></math>',
        "<pre>url(https://example.org)</pre>",
    ],
)
def test_links_and_files_of_the_site_are_allowed(page):
    assert check_site.addresses_in(page) == []


def test_styles_are_searched_too(tmp_path):
    (tmp_path / "index.html").write_text("<p>A page.</p>", encoding="utf-8")
    style = '@font-face { src: url("https://example.org/a.woff2") }'
    (tmp_path / "site.css").write_text(style, encoding="utf-8")
    [(file, address)] = check_site.loaded_from_elsewhere(tmp_path)
    assert (file.name, address) == ("site.css", "https://example.org/a.woff2")


def test_an_empty_folder_is_no_site(tmp_path):
    with pytest.raises(FileNotFoundError, match="no pages"):
        check_site.loaded_from_elsewhere(tmp_path)
