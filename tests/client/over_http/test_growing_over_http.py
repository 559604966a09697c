from app.test_growing import *  # noqa: F403
