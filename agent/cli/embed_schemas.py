# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes a C header that holds every schema as a string: OUTPUT SCHEMA..."""
import json
import os
import sys

output, schemas = sys.argv[1], sorted(sys.argv[2:])
rows = []
for path in schemas:
    with open(path, encoding="utf-8") as source:
        text = source.read()
    json.loads(text)
    name = os.path.basename(path).removesuffix(".schema.json")
    lines = "\n".join("\t\t" + json.dumps(line + "\n", ensure_ascii=True)
                      for line in text.splitlines())
    rows.append('\t{"%s",\n%s},\n' % (name, lines))
with open(output, "w", encoding="utf-8") as header:
    header.write("/* Generated from schemas/. */\n")
    header.write("static const struct {\n\tconst char *name;\n"
                 "\tconst char *text;\n} ts_embedded_schemas[] = {\n")
    header.writelines(rows)
    header.write("\t{NULL, NULL},\n};\n")
