from app.test_matching import *  # noqa: F403
