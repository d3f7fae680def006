"""Files written on 19 November 2026, to be read for ever, and the commands that read them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.golden.command_cases import CommandCase, case
from tests.golden.commands import one, run, workspace
from tests.golden.recording import FOLDER, Entry, Recording

FIXTURES = FOLDER / "fixtures"
WRITTEN_BY = (
    "convert shop.txt shop.json",
    "solve shop.json -s cpsat --work-limit 1 -o shop_schedule.json -q",
    "convert gpu_dag:tasks=6,price=yes,power_cap=0.8 dag.json",
    "solve dag.json -s heft --work-limit 1 -o dag_schedule.json -q",
    "convert geo_dc:jobs=9,only=[us-west,eu-central],shrink=0.06,max_gpus=2,days=0.02,drain=yes,"
    "preemptive=yes,outage=[largest@10m+30m] stream.json",
    "solve stream.json -s drift_penalty -o stream_schedule.json -q",
    "convert two_levels levels.json",
    "solve levels.json -s cpsat --work-limit 1 -o levels_schedule.json -q",
    "train chsac_af --on geo_dc:days=0.05 -p mode=paper -p hidden=8 -p decisions=800 -p envs=4 "
    "-o network.safetensors --no-track -q",
    "train learned_prices --on geo_dc:days=0.2,rate=0.002,drain=yes,minimize=cost,"
    "local_hours=yes,sojourn_s=4h -p envs=1 -p validation=1 -p imitate_on=1 "
    "-p imitation_steps=50 -p generations=2 -p pairs=1 -o prices.json --no-track -q",
    "solve shop.json -s cpsat --work-limit 1 --bank -q",
    "solve jobshop:jobs=4,machines=3 -s fcfs --bank -q",
    "run judged --no-track -q",
    "tune tuned --no-track -q",
)
KEPT = (
    "shop.json",
    "shop_schedule.json",
    "dag.json",
    "dag_schedule.json",
    "stream.json",
    "stream_schedule.json",
    "levels.json",
    "levels_schedule.json",
    "network.safetensors",
    "prices.json",
)
# Pages are made anew; the search of the study `tuned` is large.
NOT_KEPT = shutil.ignore_patterns("*.html", "lock", "work", "aside", "tune", "bounds.sqlite*")
READ_BY: tuple[CommandCase, ...] = (
    case("verify shop.json shop_schedule.json"),
    case("verify dag.json dag_schedule.json"),
    case("verify stream.json stream_schedule.json"),
    case("verify levels.json levels_schedule.json"),
    case("bound dag.json"),
    case("bound stream.json"),
    case("simulate stream.json --policy joint_nf"),
    case("solve dag.json -s fcfs --warm-start dag_schedule.json -q"),
    case("simulate geo_dc:days=0.02 --policy chsac_af -p checkpoint=network.safetensors"),
    case(
        "simulate geo_dc:days=0.02,rate=0.002,drain=yes,minimize=cost,local_hours=yes,sojourn_s=4h "
        "--policy learned_prices -p checkpoint=prices.json"
    ),
    case("bound --recheck"),
    case("solve shop.json -s fcfs --bank -q"),
    case("report judged"),
    case("claims judged"),
    case("simulate dag.json --policy fixed_dvfs -p params=tuned.toml"),
    # Cells whose solver has other code by now run again.
    # A cell whose solver's file has changed since is run again, even where only a comment changed.
    case("run judged --no-track -q", varying="ran skipped"),
)


def write_fixtures() -> None:
    """Make the files anew: for a format that has changed, and beside the old files."""
    with workspace() as folder:
        for line in WRITTEN_BY:
            run([*line.split(), "--json"])
        shutil.rmtree(FIXTURES, ignore_errors=True)
        FIXTURES.mkdir()
        for name in KEPT:
            shutil.copy(folder / name, FIXTURES / name)
        shutil.copy(folder / ".optbench" / "bounds.sqlite", FIXTURES / "bounds.sqlite")
        shutil.copy(folder / "tuned" / "tuned.toml", FIXTURES / "tuned.toml")
        shutil.copytree(folder / ".optbench", FIXTURES / "store", ignore=NOT_KEPT)
        keep_one_study(FIXTURES / "store")


def keep_one_study(store: Path) -> None:
    """Only the records and files of the study `judged`: trials of the search are many."""
    shutil.rmtree(store / "studies" / "tuned", ignore_errors=True)
    lines = [json.loads(line) for line in (store / "results.jsonl").read_text().splitlines()]
    instances = {line["cell"]["instance"] for line in lines if line["cell"]["label"] == "draws"}
    kept = [line for line in lines if line["cell"]["instance"] in instances]
    (store / "results.jsonl").write_text(
        "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept)
    )
    for cell in (store / "cells").iterdir():
        if cell.name not in {line["key"] for line in kept}:
            shutil.rmtree(cell)


def record_fixtures(sample: bool = False) -> Recording:
    """What is read of the files; they are quick to read, so that the sample is the whole."""
    entries: list[Entry] = []
    texts: list[Entry] = []
    with workspace() as folder:
        for source in FIXTURES.iterdir():
            if source.is_file() and source.name != "bounds.sqlite":
                shutil.copy(source, folder / source.name)
        shutil.copytree(FIXTURES / "store", folder / ".optbench")
        shutil.copy(FIXTURES / "bounds.sqlite", folder / ".optbench" / "bounds.sqlite")
        for each in READ_BY:
            entry, found = one(each, folder)
            entries.append(entry)
            texts.append({"name": each.name, "texts": found})
    return Recording(entries, texts)


__all__ = ["record_fixtures", "write_fixtures"]
