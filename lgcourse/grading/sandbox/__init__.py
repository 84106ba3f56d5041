"""What runs beside student code? These files alone; they import torch and nothing of lgcourse.

The process that grades starts `start.py` with ``python -I``. There this folder is a package of its
own, without the questions, the references or the rooms of the course.
"""
