"""Native files: instances, schedules and results as JSON with published schemas."""

from optbench.model.files.instance_json import (
    instance_from_dict,
    instance_to_dict,
    instance_to_json,
    read_instance,
    write_instance,
)
from optbench.model.files.result_json import result_to_dict, write_result
from optbench.model.files.schedule_json import read_schedule, schedule_from_dict, schedule_to_dict, write_schedule
from optbench.model.files.schemas import KINDS, schema

__all__ = [
    "KINDS",
    "instance_from_dict",
    "instance_to_dict",
    "instance_to_json",
    "read_instance",
    "read_schedule",
    "result_to_dict",
    "schedule_from_dict",
    "schedule_to_dict",
    "schema",
    "write_instance",
    "write_result",
    "write_schedule",
]
