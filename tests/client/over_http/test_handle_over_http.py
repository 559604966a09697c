from app.test_handle import *  # noqa: F403
