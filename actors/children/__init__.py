"""A session's children: opened, told, waited for, brought home."""
