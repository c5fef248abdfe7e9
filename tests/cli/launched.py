"""`rc1` as a module, for a launcher to start."""

from rc1_lib.cli import main

if __name__ == "__main__":
    main()
