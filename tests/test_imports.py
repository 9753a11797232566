"""Who may import whom, and how long things may be. All of it read, none of it run."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import labkit

ROOT = Path(__file__).resolve().parent.parent


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {
    dotted(path): path
    for top in ("labkit", "mock")
    for path in sorted((ROOT / top).rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}

LIMIT_MODULE = 250  # lines
LIMIT_FUNCTION = 60  # lines without the docstring: what fits on a screen

# The only places that may know the provider: experiments, and what starts it.
MAY_IMPORT_MOCK = ("labkit.experiments", "labkit.server")
HTTPX_LIVES_IN = {"labkit.http", "mock.memory"}


def imports(nodes: list[ast.AST], module: str) -> Iterator[str]:
    """Dotted names that these nodes import; for `from a import b` both a and a.b."""
    is_package = MODULES[module].name == "__init__.py"
    package = module if is_package else module.rpartition(".")[0]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def everywhere(module: str) -> set[str]:
    """All imports of a module, those inside functions too."""
    return set(imports(list(ast.walk(TREES[module])), module))


def at_import_time(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when the module is imported: no function bodies, and not
    what stands under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from (n for part in child.orelse for n in ast.walk(part))
            continue
        yield child
        yield from at_import_time(child)


def leads_to(name: str, top: str) -> bool:
    return name == top or name.startswith(f"{top}.")


def test_every_public_name_can_be_imported():
    for name in labkit.__all__:
        assert getattr(labkit, name) is not None, name
        assert name in dir(labkit)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        labkit.nonsense  # noqa: B018


def test_a_public_name_never_hides_a_module():
    """`labkit.x` must not be the module or the function, as the imports happened."""
    hidden = [name for name in labkit.__all__ if f"labkit.{name}" in MODULES]
    assert hidden == []


def test_import_labkit_loads_nothing_heavy():
    code = "import sys, labkit; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    heavy = {"pandas", "matplotlib", "httpx", "tiktoken", "numpy", "asyncio", "mock"}
    assert not heavy & set(loaded.split())


def test_mock_never_imports_labkit():
    for module in (name for name in MODULES if leads_to(name, "mock")):
        assert not [n for n in everywhere(module) if leads_to(n, "labkit")], module


def test_the_core_of_labkit_never_imports_mock():
    for module in (name for name in MODULES if leads_to(name, "labkit")):
        if not any(leads_to(module, allowed) for allowed in MAY_IMPORT_MOCK):
            assert not [n for n in everywhere(module) if leads_to(n, "mock")], module


def test_httpx_is_imported_in_one_module_of_each_package():
    for module in MODULES:
        named = {name.partition(".")[0] for name in everywhere(module)}
        assert not named & {"httpx", "httpx2"} or module in HTTPX_LIVES_IN, module


def test_no_module_imports_itself_in_a_circle():
    graph = {}
    for module, tree in TREES.items():
        named = set(imports(list(at_import_time(tree)), module))
        graph[module] = (named & MODULES.keys()) - {module}
    # `import a.b` and `from a.b import c` run a/__init__.py first; ours import nothing
    # of their own then, which is what makes leaving those edges out harmless.
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("package", ["labkit", "mock"])
def test_a_package_imports_none_of_its_modules_by_itself(package):
    named = set(imports(list(at_import_time(TREES[package])), package))
    assert not {name for name in named if leads_to(name, package)}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_short(module):
    assert len(MODULES[module].read_text("utf-8").splitlines()) <= LIMIT_MODULE


@pytest.mark.parametrize("module", MODULES)
def test_a_function_fits_on_a_screen(module):
    long = []
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            if ast.get_docstring(node) is not None and len(node.body) > 1:
                first = node.body[1]
            signature = node.body[0].lineno - node.lineno
            lines = signature + node.end_lineno - first.lineno + 1
            if lines > LIMIT_FUNCTION:
                long.append(f"{node.name}: {lines}")
    assert long == []


def rooms() -> list[set[str]]:
    """The rooms of the map in labkit's docstring, as sets of module names."""
    described = labkit.__doc__.partition("The rooms")[2].partition("The public")[0]
    found: list[set[str]] = []
    for line in described.splitlines():
        if line.startswith("    "):
            title, _, names = line.strip().partition("  ")
            if not names:  # a line that goes on with the room above
                title, names = "", title
            modules = {name.strip("/ ") for name in names.split(",") if name.strip()}
            if title:
                found.append(modules)
            else:
                found[-1] |= modules
    return found


def room_of(module: str) -> int | None:
    """Which room a dotted name of labkit is in; None for what is no module."""
    first = module.split(".")[1] if module.count(".") else ""
    return next((n for n, room in enumerate(rooms()) if first in room), None)


def test_every_module_is_in_one_room_of_the_map():
    here = {name.split(".")[1] for name in MODULES if name.startswith("labkit.")}
    mapped = [name for room in rooms() for name in room]
    assert sorted(mapped) == sorted(here - {"__main__"})


def test_no_room_knows_one_that_comes_after_it():
    for module in (name for name in MODULES if room_of(name) is not None):
        for imported in everywhere(module):
            if imported.startswith("labkit.") and room_of(imported) is not None:
                assert room_of(imported) <= room_of(module), (module, imported)
