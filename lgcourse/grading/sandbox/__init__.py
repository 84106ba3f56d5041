"""How does student code run apart from what it must not touch? In a process that is shut in.

`stage` lays out what that process may import, `zygote` is it and forks for each submission, `child`
runs cells and answers calls, `parent` is the trusted side. `linux` and `limits` shut it in.
"""
