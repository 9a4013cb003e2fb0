"""Images: files that hold them, the sets that have a name, and the families whose examples are made
of them.
"""
