from app.test_job_runs import *  # noqa: F403
