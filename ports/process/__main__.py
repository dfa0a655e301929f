"""Start of the spawner: executed by path, in an interpreter that knows no packages.

The folder is made known as a package of its own, so that its modules import each other as usual
without a line of the runtime being imported.
"""

import os
import sys

if __name__ == "__main__":
    package = type(sys)("process")
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules["process"] = package
    __import__("process.spawner", fromlist=["main"]).main(sys.argv[1:])
