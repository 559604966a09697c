from app.test_sync import *  # noqa: F403
