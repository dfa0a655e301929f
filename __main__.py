"""`python -m steersman`: the same as the command `steersman`."""

from .cli.main import main

if __name__ == "__main__":
    main()
