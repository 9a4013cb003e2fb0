"""Tables that people bring: read, encoded, put into contests between fixed and learned features,
and explained.
"""
