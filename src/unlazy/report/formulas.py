"""Formulas: LaTeX between dollar signs as MathML for HTML, and as Unicode text for the terminal.

LaTeX that cannot be converted is shown as it is written.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable
from html import escape
from xml.etree import ElementTree

#: A formula within a text: LaTeX between dollar signs.
_FORMULA = re.compile(r"\$(?=\S)([^$]*[^$\s])\$")
_CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "mroot": 2}
_CHILDREN |= {"msubsup": 3, "munderover": 3}
#: All other elements are refused: the library does not escape the text of a formula.
_ELEMENTS = {"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msqrt", "mstyle", "mpadded"}
_ELEMENTS |= _CHILDREN.keys()
#: Braces of \bigl\{, and a set minus that common fonts have.
_GLYPHS = {"\\{": "{", "\\}": "}", "⧵": "∖"}
#: Attributes of MathML that are kept; links and scripts are not among them.
_ATTRIBUTES = {"display", "mathvariant", "stretchy", "fence", "form", "minsize", "maxsize"}
_ATTRIBUTES |= {"accent", "linethickness", "width", "displaystyle", "scriptlevel"}
_RELATIONS = frozenset("=≠<>≤≥≈∼~→∈∉⊆⊂∧∨⊕×≡∝")
_SIGNS = frozenset("+−±")
_NAMES = r"(max|min|log|cos|sin|ln|Pr|tanh|deg|sgn|exp|med|𝔼|ℙ̂?)"
#: Names of functions and operators, with their scripts, at the end of a text.
_NAME = re.compile(rf"{_NAMES}(_\w+|_\{{[^}}]*\}}|[₀-₉]+)?(\^\w+|\^\([^()]*\)|[²³])?$")
#: A script of letters at the end of a text: a letter after it would seem to be a part of it.
_OPEN_SCRIPT = re.compile(r"[_^][^\W_]*[^\W\d_]$")
_BRACKETS = re.compile(r"\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]|\|[^|]*\||‖[^‖]*‖")
#: The end of a text after which a sign is binary.
_OPERAND = re.compile(r"[^\s(\[{⟨⌊⌈,=<>≤≥∈|‖]\s*$|\w\S*[|‖]$")
_SCRIPTS = r"(_[^\W_⁰¹²³⁴-⁹]+|_\{[^{}]*\}|\^\w+|\^\([^()]*\)|[⁰¹²³⁴-⁹₀-₉⁺⁻⁽⁾ᵗⁱ'*ᵀ\u0300-\u0332])*"
#: A number or a symbol with its scripts, or a bracket: it needs no parentheses.
_ATOM = re.compile(
    rf"√?(\d+(\.\d+)?|[^\W\d_]{_SCRIPTS}((?<![⁰¹²³⁴-⁹])\([^()]*\))?"
    rf"|\([^()]*\){_SCRIPTS}|\|[^|]*\|{_SCRIPTS}|‖[^‖]*‖{_SCRIPTS})"
)
_ACCENTS = {"~": "\u0303", "^": "\u0302", "\u02c6": "\u0302", "\u02dc": "\u0303"}
_ACCENTS |= {"―": "\u0304", "¯": "\u0304", "→": "\u20d7", "˙": "\u0307"}
#: Elements whose text is not changed, and tags.
_MARKUP = re.compile(
    r"(<script\b.*?</script>|<style\b.*?</style>|<math\b.*?</math>|<code\b.*?</code>"
    r"|<pre\b.*?</pre>|<[^>]*>)",
    re.DOTALL,
)
_LETTER = "A-Za-zℓ\u0370-\u03ff"
_GROUP = r"\{(?:[^{}]|\{[^{}]*\})*\}"
#: What may have an unbraced subscript; words such as w_scale are names.
_BASE = (
    r"(?:(?<=(?<![A-Za-z_])[A-Za-zÀ-ž])|(?<=[\u0300-\u03ff\u2100-\u214f\U0001d400-\U0001d7ff)\]}|‖∇∑∏⋀⋁ᶜ′’'])"
    r"|(?<=\bmax)|(?<=\bmin)|(?<=\bmed)|(?<=\bacc)|(?<=\bmean)|(?<=\bmedian))"
)
#: A subscript in braces, or a short one: up to four letters and digits, or one Greek letter. Of two
#: factors such as a_iT_b, the first one has one letter.
_SUB = re.compile(
    rf"(?<=\S)_({_GROUP})|{_BASE}_((?:[A-Za-z0-9]{{1,4}}|balanced|imbalanced|trivial|reduced|[À-ÿℓℒ∞⟂\U0001d400-\U0001d7ff]|[\u0370-\u03ff])(?![A-Za-z0-9_])"
    rf"[\u0300-\u036f]*|[\u0370-\u03ff][\u0300-\u036f]*(?!_)|[A-Za-zℓ](?=[{_LETTER}]_[{_LETTER}0-9]))"
)
#: A superscript: in brackets, a number, a short name, or an order of growth such as Ω(log n).
_SUP = re.compile(
    rf"(?<=[^\s^])\^(?:({_GROUP}|\((?:[^()]|\([^()]*\))*\))"
    rf"|([ΩΘOo]\([^()]*\)|[−-]?(?:\d+(?:\.\d+)?|[{_LETTER}]{{1,3}})|[*⊤])(?![A-Za-z0-9]))"
)
_SUBSCRIPTS = str.maketrans("0123456789+-−", "₀₁₂₃₄₅₆₇₈₉₊₋₋")
_SUPERSCRIPTS = str.maketrans("0123456789+-−()t", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ᵗ")


def html_text(text: str) -> str:
    """Return a text as HTML, with formulas as MathML."""
    return _replaced(text, mathml, escape)


def plain(text: str) -> str:
    """Return a text with formulas in Unicode."""
    return _replaced(text, unicode_formula, str)


def html_scripts(html: str) -> str:
    """Return HTML with the scripts of its text raised and lowered: c_ij, Σ_{j∈A}, 2^(k/2).

    Code, formulas and tags are left as they are.
    """
    pieces = _MARKUP.split(html)  # text, markup, text, …
    return "".join(p if i % 2 else _raised(_lowered(p)) for i, p in enumerate(pieces))


def _lowered(text: str) -> str:
    def lower(text: str) -> str:
        return _SUB.sub(
            lambda found: f"<sub>{_lowered((found[1] or '')[1:-1]) or found[2]}</sub>", text
        )

    while (lowered := lower(text)) != text:  # the second of two factors follows a tag
        text = lowered
    return text


def _raised(text: str) -> str:
    return _SUP.sub(lambda found: f"<sup>{(found[1] or '')[1:-1] or found[2]}</sup>", text)


def _replaced(text: str, formula: Callable[[str], str], other: Callable[[str], str]) -> str:
    pieces = _FORMULA.split(text)  # text, formula, text, …
    return "".join(formula(p) if i % 2 else other(p) for i, p in enumerate(pieces))


@functools.cache
def mathml(latex: str) -> str:
    """Return a formula as MathML; as code if it cannot be converted."""
    try:
        return ElementTree.tostring(_tree(latex), encoding="unicode")
    except ValueError:
        return f"<code>{escape(latex)}</code>"


@functools.cache
def unicode_formula(latex: str) -> str:
    """Return a formula as Unicode text in one line; unchanged if it cannot be converted."""
    try:
        return unicodedata.normalize("NFC", re.sub(r"\s+", " ", _text(_tree(latex))).strip())
    except ValueError:
        return latex


def converts(latex: str) -> bool:
    """Return whether a formula can be converted."""
    try:
        _text(_tree(latex))
    except ValueError:
        return False
    return True


def _tree(latex: str) -> ElementTree.Element:
    """Return the MathML tree of a formula; `ValueError` if it is malformed."""
    from latex2mathml.converter import convert

    latex = re.sub(
        r"\\[dt]?binom\{[^{}]*\}\{[^{}]*\}", r"{\g<0>}", latex
    )  # its scripts need a group
    try:
        root = ElementTree.fromstring(
            convert(latex).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "", 1)
        )
    except Exception as error:  # the library raises exceptions of many classes
        raise ValueError(f"malformed formula {latex!r}") from error
    for node in root.iter():
        node.text = _GLYPHS.get(node.text or "", node.text)
        complete = len(node) == _CHILDREN.get(node.tag, len(node))
        if not complete or node.tag not in _ELEMENTS or (node.text or "").startswith("\\"):
            raise ValueError(f"malformed formula {latex!r}")
        for name in set(node.attrib) - _ATTRIBUTES:
            del node.attrib[name]
    return root


def _text(node: ElementTree.Element) -> str:
    """Return a MathML element as text."""
    tag, parts = node.tag, list(node)
    if tag in ("mi", "mn", "mo", "mtext"):
        return (node.text or "").replace("\u00a0", " ").replace("∣", "|")
    if tag == "mspace":
        return " "
    if tag == "mfrac":
        if node.get("linethickness") == "0":  # of a binomial coefficient
            return f"{_text(parts[0])} choose {_text(parts[1])}"
        return f"{_grouped(_text(parts[0]))}/{_atomic(_text(parts[1]))}"
    if tag == "msqrt":
        return f"√{_atomic(_joined(parts))}"
    if tag in ("msub", "munder"):
        if _text(parts[1]) in _ACCENTS:
            return _text(parts[0]) + "\u0332"
        return _text(parts[0]) + _subscript(_text(parts[1]), double=parts[0].tag != "mo")
    if tag == "msup":
        return _text(parts[0]) + _superscript(_text(parts[1]))
    if tag in ("msubsup", "munderover"):
        lower = _subscript(_text(parts[1]), double=parts[0].tag != "mo")
        return _text(parts[0]) + lower + _superscript(_text(parts[2]))
    if tag == "mover":
        accent = _ACCENTS.get(_text(parts[1]).strip())
        return _text(parts[0]) + (accent or _superscript(_text(parts[1])))
    if tag in ("math", "mrow", "mstyle", "mpadded"):
        return _joined(parts)
    raise ValueError(f"no text for the MathML element {tag}")


def _joined(nodes: Iterable[ElementTree.Element]) -> str:
    """Return elements side by side, with spaces around relations, signs and names."""
    text = ""
    pieces = [(node, _text(node)) for node in nodes]
    following = [piece for _, piece in pieces[1:]] + [""]
    for (node, piece), after in zip(pieces, following, strict=True):
        symbol = piece.strip()
        relation = node.tag == "mo" and (symbol in _RELATIONS or node.text == "∣")
        if _is_fraction(node) and _is_factor(text, symbol, after):
            piece = f"({symbol})"
        if relation or (symbol in _SIGNS and _OPERAND.search(text)):
            piece = f" {symbol} "
        elif symbol == ",":
            piece = ", "
        elif _apart(text, piece, node):
            piece = f" {piece}"
        text += piece
    return text


def _is_fraction(node: ElementTree.Element) -> bool:
    """Return whether an element is a fraction, possibly in groups."""
    while node.tag in ("mrow", "mstyle", "mpadded") and len(node) == 1:
        node = node[0]
    return node.tag == "mfrac" and node.get("linethickness") != "0"


def _is_factor(text: str, fraction: str, after: str) -> bool:
    """Return whether a fraction between two texts needs parentheses."""
    if re.search(r"(/|(log|ln|exp)[₀-₉]*)\s*$", text) or after.strip() == "/":
        return True
    if fraction[:1].isdigit() and re.search(r"[\w)\]‖]$", text):
        return True
    if after in ("|", "‖"):  # an opening bar follows an even number of bars
        return text.count(after) % 2 == 0
    named = re.match(r"[a-z]{3}|ln|Pr", after)
    return (after[:1].isalnum() and not named) or after[:1] in tuple("(|‖⟨√")


def _apart(text: str, piece: str, node: ElementTree.Element) -> bool:
    """Return whether a space separates a name or a script from its neighbor."""
    upright = node.tag == "mi" and node.get("mathvariant") == "normal"  # a letter of a word
    if _NAME.search(text) and not upright:
        first = piece[:1]
        if _is_fraction(node) and first == "(":
            return not re.search(r"(log|ln|exp)[₀-₉]*$", text)
        return first.isalnum() or first in tuple("|‖√∑")
    if _OPEN_SCRIPT.search(text) and piece[:1].isalnum():
        return True
    return bool(re.search(r"[\w)\]}|‖]$", text)) and (_is_named(node) or piece[:1] in tuple("∑∏"))


def _is_named(node: ElementTree.Element) -> bool:
    """Return whether an element begins with an operator such as max or log."""
    while len(node) and node.tag != "mfrac":
        node = node[0]
    text = (node.text or "").strip()
    return len(text) > 1 and text.isalpha() and text.isascii()


def _grouped(text: str) -> str:
    """Return a numerator in parentheses unless it is a product."""
    text = inner = text.strip()
    while (shorter := _BRACKETS.sub("", inner)) != inner:
        inner = shorter
    several = re.search(rf"\s[+−±=≤≥<>]\s|,|^−|/|[∑∏]|{_NAMES}\S*\s", inner)
    return f"({text})" if several else text


def _atomic(text: str) -> str:
    """Return a text in parentheses unless it is a single symbol or bracket."""
    text = text.strip()
    return text if _ATOM.fullmatch(text) else f"({text})"


def _script(text: str, sign: str, table: dict[int, int]) -> str:
    """Return a subscript or superscript, in small characters if all of them exist."""
    text = re.sub(r"\s*([=≠<>≤≥∈∉∼~+−:,;/|])\s*", r"\1", text.strip())
    if all(ord(character) in table for character in text):
        return text.translate(table)
    product = sign == "^" and re.match(r"\d+[^\W\d]", text)
    if re.fullmatch(r"[^\W_]+'?|[∞*⟂⊥]", text) and not product:
        return sign + text
    if text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        return sign + text
    return f"{sign}{{{text}}}" if sign == "_" else f"{sign}({text})"


def _subscript(text: str, *, double: bool) -> str:
    """Return a subscript; with `double`, two indices are written without a comma: T_ij."""
    if double and re.fullmatch(r"\s*[^\W_],\s*[^\W_]\s*", text):
        text = "".join(part.strip() for part in text.split(","))
    return _script(text, "_", _SUBSCRIPTS)


def _superscript(text: str) -> str:
    text = text.strip()
    if text in ("′", "'", "*", "∗", "″"):
        return text.replace("∗", "*").replace("′", "'").replace("″", "''")
    return "ᵀ" if text in ("⊤", "T") else _script(text, "^", _SUPERSCRIPTS)
