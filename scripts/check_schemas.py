#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every schema is valid, has an example, and its examples hold to it.

Usage: check_schemas.py FOLDER [FILE...]

FOLDER/NAME.schema.json are the schemas, FOLDER/examples/NAME*.json their
examples. Each FILE holds to the schema that its field "schema" names.
"""

import json
import pathlib
import sys

import jsonschema


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def check(path, folder):
    schema = load(path)
    kind = jsonschema.validators.validator_for(schema)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        yield f"{path}: {error.json_path}: {error.message}"
        return
    if "$schema" not in schema:
        yield f"{path}: no $schema"
    name = path.name.removesuffix(".schema.json")
    examples = sorted((folder / "examples").glob(f"{name}*.json"))
    if not examples:
        yield f"{path}: no example"
    for example in examples:
        for error in kind(schema).iter_errors(load(example)):
            yield f"{example}: {error.json_path}: {error.message}"


def check_file(path, folder):
    content = load(path)
    name = content.get("schema")
    schema = folder / f"{name}.schema.json"
    if not schema.exists():
        yield f"{path}: no schema named {name!r}"
        return
    kind = jsonschema.validators.validator_for(load(schema))
    for error in kind(load(schema)).iter_errors(content):
        yield f"{path}: {error.json_path}: {error.message}"


def main():
    folder = pathlib.Path(sys.argv[1])
    schemas = sorted(folder.glob("*.schema.json"))
    found = [line for path in schemas for line in check(path, folder)]
    for path in sys.argv[2:]:
        found += check_file(path, folder)
    if not schemas:
        found.append(f"{folder}: no schemas")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
