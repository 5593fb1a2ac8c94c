# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs under a limit, and what must hold for each of them."""

import json
import re

import jsonschema

from harness import REMEDY, ROOT, Spec, checked, launch
from runner import Failure, expect, expect_equal


def agent_symbols():
    """The driver functions that the agent calls."""
    text = (ROOT / "runtime/gpu_ops.def").read_text(encoding="utf-8")
    rows = [l for l in text.splitlines() if l.startswith("TS_GPU_OP(")]
    return [row.split(",")[1].strip() for row in rows]


def share_of_peak(report, share):
    """A limit: context plus a share of what was used beside it."""
    context = report["context_bytes"]
    return context + int((report["physical_peak_bytes"] - context) * share)


def capped(spec, limit):
    return Spec(
        spec.script,
        spec.arguments,
        device=spec.device,
        limit=str(limit),
        venv=spec.venv,
        settings=spec.settings,
        timeout=spec.timeout,
    )


def printed(outcome):
    """What a script printed, but for the times of its steps."""
    return re.sub(r"  time [0-9.]+ ms", "", outcome.out)


def check_schema(content):
    """A JSON file holds to the schema that it names."""
    name = content.get("schema")
    with open(
        ROOT / f"schemas/{name}.schema.json", encoding="utf-8"
    ) as file:
        schema = json.load(file)
    kind = jsonschema.validators.validator_for(schema)
    for error in kind(schema).iter_errors(content):
        raise Failure(f"{name}: {error.json_path}: {error.message}")


def check_capped(outcome, limit):
    """The limit held, and the agent saw what the device did."""
    report, status = outcome.report, outcome.status
    expect(
        report["physical_peak_bytes"] <= limit,
        f"physical peak {report['physical_peak_bytes']} over {limit}",
    )
    expect(status, f"no status file\n{outcome.err[-2000:]}")
    for content in report, status, outcome.plan:
        check_schema(content)
    expect_equal(status["limit_bytes"], limit, "limit in the status")
    totals = status["totals"]
    if totals["graph_launches"]:
        return  # the device counts a graph's nodes each time it runs
    moved = [device["moved"] for device in status["devices"]]
    own = sum(m["copies_out"] + m["copies_in"] for m in moved)
    own += status["tables"]["reads"]
    seen = {
        "launches": totals["launches"],
        "copies": totals["copies"] + own,
        "memsets": totals["sets"],
    }
    wanted = {key: report[key] for key in seen}
    expect_equal(seen, wanted, "operations by the agent and by the device")


EXIT = re.compile(
    r"; (?P<steps>\d+) steps(?P<most>, most)?(?: of (?P<ops>\d+) ops)?"
    r"(?:, (?P<planned>\d+) by a plan"
    r"(?:, (?P<ms>[0-9.]+) ms each \([0-9.]+ predicted\))?)?; "
)


def check_told(outcome):
    """What the exit line says of steps is so; what it says, by name."""
    found = EXIT.search(outcome.err)
    expect(found, f"no steps in\n{outcome.err[-1000:]}")
    told, status = found.groupdict(), outcome.status
    expect_equal(int(told["steps"]), status["steps"], "steps")
    plan = status.get("plan", {"steps": 0})
    expect_equal(int(told["planned"] or 0), plan["steps"], "steps by a plan")
    if told["ops"]:
        most = int(told["steps"]) // 2 + 1 if told["most"] else status["steps"]
        ops = sum(status["totals"][k] for k in ("launches", "copies", "sets"))
        expect(most * int(told["ops"]) <= ops, f"{found[0]} of {ops} ops")
    took = plan.get("median_step_ns")
    expect_equal(
        told["ms"], took and f"{took / 1e6:.1f}", "ms of a step by the plan"
    )
    return told


def run_capped(spec, limit):
    """Under the limit or, where an op needs more, the least that it names."""
    while True:
        outcome = launch(capped(spec, limit))
        named = [int(mib) << 20 for mib in REMEDY.findall(outcome.err)]
        if outcome.code == 0 or not named:
            return checked(outcome), limit
        expect(max(named) > limit, f"{limit} named as the remedy for itself")
        limit = max(named)
