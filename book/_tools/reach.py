"""What the outputs of a notebook depend on: the modules that it reaches and the data that it loads.

Imports are followed, at the top of a file and inside functions, and through the ``__init__`` of
every package on the way. A module counts as the tree of its code: comments, docstrings and the way
its lines are broken change nothing. Paths are sorted and trees are written out here, so that the
hashes are the same on every machine and in every version of Python.
"""

import ast
import functools
import hashlib
import tomllib
from pathlib import Path

PACKAGE = "dpnotes"
STYLE = "figures.mplstyle"


def hashes(cells, root):
    """Hash what the outputs of these code cells depend on, part by part."""
    code = "\0".join(source.replace("\r\n", "\n") for source in cells)
    trees = [tree for tree in map(_parsed, cells) if tree is not None]
    return {
        "code": _digest(code.encode()),
        "dpnotes": _hash_of_modules(reached(trees, root), root),
        "data": _digest("\n".join(_data(trees, root)).encode()),
        "style": _digest((_text(root / "book" / STYLE) if STYLE in code else "").encode()),
    }


def reached(trees, root):
    """Return the files of the package that code reaches, sorted, relative to the root."""
    wanted = [name for tree in trees for name in _imports(tree, "")]
    found = set()
    while wanted:
        for file in _files(wanted.pop(), root):
            if file not in found:
                found.add(file)
                wanted += _imports_of(_text(root / file), _package_of(file))
    return sorted(found)


@functools.lru_cache(maxsize=1024)
def _imports_of(text, package):
    return _imports(ast.parse(text), package)


def _imports(tree, package):
    """Name all that a tree imports; a name may be a module's or that of something in it."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join(filter(None, [*above, node.module])) if node.level else node.module
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.split(".")[0] == PACKAGE]


def _files(name, root):
    """Return the files that run when a dotted name is imported, as far as they exist."""
    parts = name.split(".")
    files = []
    for end in range(1, len(parts) + 1):
        path = "/".join(parts[:end])
        files += [f"{path}/__init__.py", f"{path}.py"]
    return [file for file in files if (root / file).is_file()]


def _package_of(file):
    return ".".join(file.split("/")[:-1])


def _hash_of_modules(files, root):
    lines = [f"{file} {_hash_of_code(_text(root / file))}" for file in files]
    return _digest("\n".join(lines).encode())


@functools.lru_cache(maxsize=1024)
def _hash_of_code(text):
    return _digest(_written(_bare(ast.parse(text))).encode())


def _parsed(source):
    try:
        return ast.parse(source)
    except SyntaxError:  # a cell for IPython alone
        return None


def _bare(tree):
    """Take the docstrings out of a tree."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = body[0] if body else None
            said = getattr(first, "value", None) if isinstance(first, ast.Expr) else None
            if isinstance(said, ast.Constant) and isinstance(said.value, str):
                node.body = body[1:]
    return tree


def _written(node):
    """Write a tree as text; fields that are empty are left out, as only some Pythons have them."""
    if isinstance(node, list):
        return f"[{','.join(map(_written, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    parts = [f"{name}={_written(value)}" for name, value in fields]
    return f"{type(node).__name__}({','.join(parts)})"


def _data(trees, root):
    """Return a line for every data set and every file of results that code loads."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {getattr(node, "attr", getattr(node, "id", None)) for node in nodes} - {None}
    loaded = {name.removeprefix("load_") for name in names if name.startswith("load_")}
    if not loaded:
        return []
    words = loaded | {node.value for node in nodes if isinstance(node, ast.Constant)}
    sources = tomllib.loads(_text(root / "data" / "datasets.toml"))
    lines = [f"{name} {source['parts']}" for name, source in sources.items() if name in words]
    if "load_results" in names:
        files = sorted((root / "data" / "results").glob("*.json*"))
        named = [file for file in files if file.name.split(".")[0] in words]
        lines += [f"{file.name} {_digest(_text(file).encode())}" for file in named or files]
    return lines


def _text(path):
    return Path(path).read_text(encoding="utf-8").replace("\r\n", "\n")


def _digest(content):
    return hashlib.sha256(content).hexdigest()[:32]
