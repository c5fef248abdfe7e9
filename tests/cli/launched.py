"""What a launcher starts in the tests of its commands: `rc1`, as a module."""

from rc1_lib.cli import main

if __name__ == "__main__":
    main()
