"""What a session does not need to live: each folder is loaded by name, as a package's plug-in is.

Nothing outside imports one of them; each needs the extra of its name, and its page is in docs/.
"""
