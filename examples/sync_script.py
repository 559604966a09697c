"""The same without `await`: a plain script that submits and waits, while a worker runs in a process of its own.

Run it: python examples/sync_script.py
"""

import subprocess
import sys

import perdure

app = perdure.App("sync.db")


@app.task("square", max_attempts=5)
def square(number: int) -> int:
    return number * number


def main() -> None:
    worker = subprocess.Popen([sys.executable, __file__, "worker"])
    try:
        with app.sync as client:
            handles = client.submit_many([square.call(number=number) for number in range(10)])
            print([handle.result(timeout=30) for handle in handles])
            for handle in client.as_completed(handles):
                assert handle.status().state == perdure.TaskState.SUCCEEDED
    finally:
        worker.terminate()  # SIGTERM: it finishes what it holds and leaves
        print("the worker ended with", worker.wait(timeout=60))


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        app.sync.run(concurrency=4)
    else:
        main()
