"""DAGs from files: perdure's own YAML and JSON, WfFormat of real scientific workflows; and what a run was like."""

from perdure.jobfile.reading import JobFile, read_job, read_job_file
from perdure.jobfile.report import RunReport, report

__all__ = ["JobFile", "RunReport", "read_job", "read_job_file", "report"]
