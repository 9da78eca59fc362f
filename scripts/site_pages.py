"""Pages of the site that are made and not written: mkdocs loads this file as a hook (mkdocs.yml).

- The navigation is the index docs/README.md: a section a heading, a page a row of its table.
- Reference pages come from the code: commands, passes, op definitions, schemas.
- The examples and CONTRIBUTING.md stand beside docs/ in the repository, and inside it on the site.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# Files beside docs/ that pages link to.
LINK = re.compile(r"\]\((?:\.\./)+(examples/[^)#]+|CONTRIBUTING\.md)")
ROW = re.compile(r"\[([^\]]+)\]\(([\w/.-]+\.md)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation from the index."""
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    nav: list[Any] = [{"Start": "README.md"}]
    seen = {"README.md"}
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, rows = section.partition("\n")
        first = [
            ROW.search(row.split("|")[1]) for row in rows.splitlines() if row.startswith("| [")
        ]
        pages = [found[2] for found in first if found is not None and found[2] not in seen]
        seen.update(pages)
        if pages:
            nav.append({title: pages})
    nav.append({"Made from the code": [f"reference/{name}.md" for name in PAGES]})
    nav.append({"Examples": [f"examples/{path.name}.md" for path in examples()]})
    nav.append({"Contributing": "contributing.md"})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    made = {f"reference/{name}.md": page() for name, page in PAGES.items()}
    for path in examples():
        language = "python" if path.suffix == ".py" else "text"
        text = f"# {path.name}\n\n```{language}\n{path.read_text('utf-8').rstrip()}\n```\n"
        made[f"examples/{path.name}.md"] = text
    made["contributing.md"] = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links at files beside docs/ to their pages on the site."""
    if page.file.src_uri == "contributing.md":
        return markdown.replace("](docs/", "](")
    if page.file.src_uri == "README.md":  # the index names files, the site pages
        markdown = re.sub(r"\[([\w/-]+)\.md\]\(", r"[\1](", markdown)
    up = "../" * page.file.src_uri.count("/")
    return LINK.sub(lambda found: f"]({up}{_on_site(found[1])}", markdown)


def _on_site(path: str) -> str:
    return "contributing.md" if path == "CONTRIBUTING.md" else f"{path}.md"


def examples() -> list[Path]:
    """The files of examples/, by name."""
    return sorted(path for path in (ROOT / "examples").iterdir() if path.is_file())


# --- pages --------------------------------------------------------------------------------------


def commands() -> str:
    """The help of both drivers and of each command."""
    from isoform.compiler.cli import parsers
    from isoform.compiler.commands.cli_help import GROUPS

    known = parsers()[1]
    parts = ["# Commands and flags", "What `--help` prints; [commands](../commands.md) explains."]
    for title, names in GROUPS:
        parts.append(f"## {title[0].upper()}{title[1:]}")
        parts += [f"### isoform {name}\n\n```text\n{_help(known[name])}\n```" for name in names]
    return "\n\n".join(parts) + "\n"


def _help(parser: argparse.ArgumentParser) -> str:
    return parser.format_help().rstrip()


def passes() -> str:
    """Each of our passes with its options and docstring."""
    from isoform.compiler.registry import PASSES

    parts = ["# Passes", "As `isoform-opt -p NAME{option=value}` takes them."]
    for name, load in sorted(PASSES):
        found = load()
        parts.append(f"## {name}\n\n{_as_markdown(inspect.getdoc(found) or '')}")
        fields = getattr(found, "__dataclass_fields__", {}).values()
        options = [f for f in fields if f.init and f.name != "name"]
        shown = [f"`{f.name.replace('_', '-')}`" for f in options]
        if shown:
            parts.append(f"Options: {', '.join(shown)}.")
    return "\n\n".join(parts) + "\n"


def ops() -> str:
    """Each op of each of our dialects with its docstring."""
    from isoform.compiler.registry import DIALECTS

    parts = ["# Ops", "From the op definitions: docstring, operands, properties, results."]
    for name, load in DIALECTS:
        parts.append(f"## {name}")
        for op in sorted(load().operations, key=lambda one: one.name):
            parts.append(f"### {op.name}\n\n{_as_markdown(inspect.getdoc(op) or '')}")
            parts.append(_shape(op))
    return "\n\n".join(parts) + "\n"


def _shape(op: Any) -> str:
    """Operands, properties and results by name."""
    found = op.get_irdl_definition()
    rows = {
        "operands": [name for name, _ in found.operands],
        "properties": list(found.properties),
        "results": [name for name, _ in found.results],
    }
    shown = {what: ", ".join(f"`{name}`" for name in names) for what, names in rows.items()}
    return "; ".join(f"{what} {names}" for what, names in shown.items() if names)


def _as_markdown(text: str) -> str:
    """A docstring on a page: its prose flows, what is indented is code.

    Outside of code no name becomes markup.
    """
    lines = text.splitlines()
    return "\n".join(line if line.startswith("    ") else _plain(line) for line in lines)


def _plain(line: str) -> str:
    parts = line.split("`")
    parts[::2] = [re.sub(r"([*_<\[])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def schemas() -> str:
    """The JSON schemas of what isoform writes."""
    from isoform.compiler.reports.certificate_schema import SCHEMA as CERTIFICATE
    from isoform.compiler.reports.check_schema import CHECK
    from isoform.compiler.reports.report_schema import REPORT

    parts = ["# Schemas", "JSON Schema, draft 2020-12, as the commands check what they read."]
    for title, schema in (
        ("Reports of `isoform optimize`", REPORT),
        ("Certificates", CERTIFICATE),
        ("`isoform check --json`", CHECK),
    ):
        parts.append(f"## {title}\n\n```json\n{json.dumps(schema, indent=1)}\n```")
    return "\n\n".join(parts) + "\n"


PAGES = {"commands": commands, "ops": ops, "passes": passes, "schemas": schemas}
