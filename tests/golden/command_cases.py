"""The commands whose JSON is recorded: every verb, and every exit code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CommandCase:
    """One command line; it may use files of those before it.

    A ``slow`` one is left out of the sample, and no other one of the sample uses its files.
    ``varying`` are more keys whose values differ from run to run.
    """

    line: str
    slow: bool = False
    needs_data: bool = False
    varying: frozenset[str] = frozenset()
    remark: str = ""

    @property
    def name(self) -> str:
        return f"{self.line} {self.remark}".rstrip()

    @property
    def words(self) -> list[str]:
        words = self.line.split()
        return words if words[0] == "schema" or words[-1] == "-" else [*words, "--json"]


def case(
    line: str, slow: bool = False, needs_data: bool = False, varying: str = "", remark: str = ""
) -> CommandCase:
    return CommandCase(line, slow, needs_data, frozenset(varying.split()), remark)


COMMANDS = (
    # solve: exit codes 0, 1, 2, 3, 4 and 130
    case("solve shop.txt -s cpsat --work-limit 1 -o shop_schedule.json --html shop.html -q"),
    case("solve gpu_dag:tasks=6 -s cpsat --work-limit 0.2 --seed 3 -o dag_schedule.json -q"),
    case("solve gpu_dag:tasks=6 -s lp_guided --work-limit 20 --seed 3 -q", slow=True),
    case("solve rcpsp:activities=8 -s highs --work-limit 5 -q"),
    case(
        "solve jobshop:jobs=3,machines=3 -s random_rules --work-limit 3 "
        "--seed 7 --instance-seed 2 -q"
    ),
    case("solve shop.txt -s fcfs --warm-start shop_schedule.json -q"),
    case("solve two_levels -s cpsat --work-limit 1 -q"),
    case("solve gpu_dag:tasks=4 -s heft --explain -q", slow=True),
    case("solve jobshop:jobs=4,machines=3 -s fcfs --bank -q"),
    case("solve too_late -s cpsat --work-limit 1 -q"),
    case("solve shop.txt -s always_crashes -q"),
    case("solve shop.txt -s is_interrupted -q"),
    case("solve shop.txt -s breaks_order -q"),
    case("solve shop.txt -s never_finds -q"),
    case("solve jobshp -s cpsat"),
    case("solve jobshop --sovler cpsat"),
    case("solve gpu_dag:tasks=300 -s highs -q"),
    # verify
    case("verify shop.txt shop_schedule.json"),
    case("verify shop.txt shop_schedule.json --repair"),
    case("verify shop.txt bad_schedule.json"),
    case("verify shop.txt dag_schedule.json"),
    # bound
    case("bound gpu_dag:tasks=8"),
    case("bound jobshop:jobs=3,machines=3 --method cpsat"),
    case("bound two_levels"),
    case("bound --recheck"),
    case("bound shop.txt --method jackson_rule"),
    # simulate
    case("simulate gpu_dag:tasks=12 --policy fcfs"),
    case("simulate geo_dc:days=0.02 --policy joint_nf --seed 1"),
    case("simulate geo_dc:days=0.05,inference=0.05,deadline_s=60 --policy greedy --horizon 20m"),
    case("simulate too_late --policy fcfs"),
    case("simulate shop.txt --policy cpsat"),
    # audit, pareto
    case(
        "audit march.sacct --profile a100=A100-PCIe --policy greedy,joint_nf --keep clock",
        slow=True,
    ),
    case("audit march.sacct --profile a100=A100-PCIE"),
    case("pareto gpu_dag:tasks=4,transfers=false --points 3 --time-limit 30s -q", slow=True),
    case("pareto shop.txt --x makespan_s --y makespan_s -q"),
    # studies: exit codes 0, 5 and 6
    case("run plain --no-track -q"),
    case("run judged --no-track -q", slow=True),
    case("run failing --no-track -q"),
    case("run plain --only solver=fcfs --no-track -q"),
    case("report plain"),
    case("claims plain"),
    case("claims judged", slow=True),
    case("report judged", slow=True),
    case("tune tuned --no-track -q", slow=True, varying="storage search"),
    case("tune plain --no-track -q"),
    case("sync plain -q", slow=True),
    case("sync plian -q"),
    case("ui --optuna plain --no-browser"),
    case("quickstart --no-track -n 1 -q", slow=True),
    # training
    case(
        "train chsac_af --on geo_dc:days=0.05 -p mode=paper -p decisions=800 -p envs=4 "
        "-o trained.safetensors --no-track -q",
        slow=True,
    ),
    case("train fcfs --on geo_dc:days=0.05 -o trained.safetensors --no-track -q"),
    # files and plug-ins
    case("convert shop.txt shop.json"),
    case("convert gpu_dag:tasks=3 -"),
    case("convert march.sacct march.json --profile a100=A100-PCIe --schedule march_schedule.json"),
    case("verify march.json march_schedule.json"),
    case("list problems"),
    case("list solvers"),
    case("list studies"),
    case("list profiles L4"),
    case("data list", needs_data=True),
    case("data path jobshop/ft06", needs_data=True),
    case("schema instance"),
    case("schema schedule"),
    case("schema result"),
    case("init lab2 --no-compile"),
    case("new solver my_rule"),
    case("new solver my_rule", remark="(again)"),
    case("compile fcfs -q"),
    case("doctor", varying="status detail remedy problems"),
    case("gpu list", varying="driver reason devices unreadable"),
)
