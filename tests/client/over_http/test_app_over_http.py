from app.test_app import *  # noqa: F403
