"""What a program uses: the app, its tasks, handles and jobs, and the same without `await`."""

from perdure.app.app import App

__all__ = ["App"]
