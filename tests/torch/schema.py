# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that tapeswap writes against their schemas."""

import functools
import json

import jsonschema

from harness import ROOT
from runner import expect, expect_equal


@functools.cache
def schema_of(name):
    path = ROOT / f"schemas/{name}.schema.json"
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def unknown(value, schema, path="$"):
    """Members that the schema does not describe."""
    if isinstance(value, dict) and "properties" in schema:
        for key, member in value.items():
            inner = schema["properties"].get(key)
            if inner is None:
                yield f"{path}.{key}"
            else:
                yield from unknown(member, inner, f"{path}.{key}")
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            yield from unknown(item, schema["items"], f"{path}[]")


def check(document, name):
    """The document holds to the schema, and the schema tells of all of it."""
    schema = schema_of(name)
    kind = jsonschema.validators.validator_for(schema)
    errors = [
        f"{error.json_path}: {error.message[:200]}"
        for error in kind(schema).iter_errors(document)
    ]
    expect(not errors, f"{name}: {errors[:5]}")
    expect_equal(sorted(set(unknown(document, schema))), [], "unknown members")
