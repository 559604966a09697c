from app.test_job import *  # noqa: F403
