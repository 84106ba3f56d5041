"""``python -m lgcourse`` is the command line."""

from lgcourse.cli import main

if __name__ == "__main__":
    main()
